//! A member that keeps running hears of every change to what it owns, puts it right, and asks for nothing
//! while nothing happens.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::support::Ran;
use crate::support::member::{Member, annotated};

/// Requests that are not a watch which was opened again.
fn but_watches(requests: &[(String, String)]) -> Vec<&(String, String)> {
    requests.iter().filter(|(verb, _)| verb != "watch").collect()
}

#[test]
fn what_is_edited_or_removed_by_hand_is_put_right_by_watching_with_no_list() {
    let Some(member) = Member::new("watched") else { return };
    member.publish(&[member.config_map("web", "one"), member.config_map("gone", "one")]);
    // So rarely does it look at its folder: what comes sooner comes from a watch.
    let running = member.keep_in_sync(&["--interval", "600"]);
    running.until_applied(1);
    let before = running.until_quiet().len();
    member.patch_as("kubectl-edit", "configmap", "web", &json!({"data": {"key": "hand", "more": "x"}}));
    running.until("the edit is put back", || {
        (member.get("configmap", "web")?["data"]["key"] == "one").then_some(())
    });
    member.kubectl(&["delete", "configmap", "gone", "-n", "watched"]);
    running.until("what was removed is there again", || member.get("configmap", "gone"));
    let after = running.until_quiet().split_off(before);
    assert!(after.iter().all(|(verb, _)| verb != "list"), "{after:?}");
    let writes = after.iter().filter(|(verb, _)| verb == "patch").count();
    // A trial and a write for each; those of the edit are refused first, for the sake of its owner.
    assert_eq!(writes, 6, "{after:?}");
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["more"], "x");
}

#[test]
fn while_nothing_happens_nothing_is_asked() {
    let Some(member) = Member::new("silent") else { return };
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "web", "namespace": "silent"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    member.publish(&[member.config_map("web", "one"), role]);
    let running = member.keep_in_sync(&[]);
    running.until_applied(1);
    let before = running.until_quiet();
    let watches = before.iter().filter(|(verb, _)| verb == "watch").count();
    assert_eq!(watches, 2, "one for each kind: {before:?}");
    // Five times as long as it looks at its folder.
    let begun = std::time::Instant::now();
    running.until("some time", || (begun.elapsed().as_secs() >= 5).then_some(()));
    let after = member.requests().split_off(before.len());
    assert!(but_watches(&after).is_empty(), "{after:?}");

    // A new folder is applied with what is known already.
    member.publish(&[
        member.config_map("web", "two"),
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "more", "namespace": "silent"}}),
    ]);
    running.until_applied(2);
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["key"], "two");
    running.until("the role is gone", || member.get("role", "web").is_none().then_some(()));
    let after = running.until_quiet().split_off(before.len());
    assert!(after.iter().all(|(verb, _)| verb != "list"), "{after:?}");
}

#[test]
fn a_change_of_health_lets_go_on_what_waits_for_it() {
    let Some(member) = Member::new("lively") else { return };
    let first = annotated(member.deployment("db", "example.com/db:1"), "berth.dev/wave", "-1");
    member.publish(&[first, member.config_map("web", "one")]);
    let running = member.keep_in_sync(&["--interval", "600"]);
    running.until("the first wave is there", || member.get("deployment", "db"));
    assert_eq!(member.get("configmap", "web"), None);
    member.make_healthy("db");
    running.until("the second wave follows", || member.get("configmap", "web"));
}

#[test]
fn who_keeps_changing_an_object_is_named_once_and_the_fight_is_left() {
    let Some(member) = Member::new("fight") else { return };
    let web = annotated(member.config_map("web", "one"), "berth.dev/on-conflict", "force");
    member.publish(&[web, member.config_map("other", "one")]);
    let running = member.keep_in_sync(&[]);
    running.until_applied(1);
    let before = running.until_quiet().len();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (plane, stop) = (member.plane.clone(), &stop);
        scope.spawn(move || {
            for round in 0.. {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let patch = json!({"data": {"key": format!("rogue {round}")}}).to_string();
                let args =
                    ["patch", "configmap", "web", "-n", "fight", "--field-manager=rogue", "-p", &patch];
                Ran::of(plane.kubectl().args(args)).expect(0);
            }
        });
        let said = "`rogue` changed `.data.key` again and again";
        running.until("the fight is said", || member.status().contains(said).then_some(()));
        let corrected = running.until_quiet().split_off(before);
        let writes = corrected.iter().filter(|(verb, _)| verb == "patch").count();
        // Five corrections: a trial and a write, each refused first for the sake of the other's field.
        assert!(writes <= 5 * 4, "{corrected:?}");
        // Others are put right as ever.
        member.kubectl(&["delete", "configmap", "other", "-n", "fight"]);
        running.until("another comes back", || member.get("configmap", "other"));
        stop.store(true, Ordering::SeqCst);
    });
    let warned = running.log().matches("again and again").count();
    assert!(warned <= 4, "{}", running.log());
    // New content is applied, whoever fought about the old.
    let web = annotated(member.config_map("web", "two"), "berth.dev/on-conflict", "force");
    member.publish(&[web, member.config_map("other", "one")]);
    running.until_applied(2);
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["key"], "two");
}
