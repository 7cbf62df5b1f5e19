//! A member that keeps running hears of every change to what it owns, puts it right, and asks for nothing
//! while nothing happens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::support::Ran;
use crate::support::member::{Member, annotated};
use crate::support::wait::pause;

/// Requests that are not a watch which was opened again.
fn but_watches(requests: &[(String, String)]) -> Vec<&(String, String)> {
    requests.iter().filter(|(verb, _)| verb != "watch").collect()
}

#[test]
#[ignore = "needs Kubernetes"]
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
    // A write for what is missing; a trial and a write for the edit, each refused first for the sake of its owner.
    assert_eq!(writes, 5, "{after:?}");
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["more"], "x");
}

#[test]
#[ignore = "needs Kubernetes"]
fn while_nothing_happens_nothing_is_asked() {
    let Some(member) = Member::new("hushed") else { return };
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "web", "namespace": "hushed"},
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
        "metadata": {"name": "more", "namespace": "hushed"}}),
    ]);
    running.until_applied(2);
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["key"], "two");
    running.until("the role is gone", || member.get("role", "web").is_none().then_some(()));
    let after = running.until_quiet().split_off(before.len());
    assert!(after.iter().all(|(verb, _)| verb != "list"), "{after:?}");
}

#[test]
#[ignore = "needs Kubernetes"]
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

struct StopsWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopsWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
#[ignore = "needs Kubernetes"]
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
                pause(Duration::from_millis(300), "the pace of whoever keeps changing the object");
            }
        });
        // However this ends, the other does.
        let _stops = StopsWhenDropped(stop);
        let said = "`rogue` changed `.data.key` again after each correction";
        running.until("the fight is said", || member.status().contains(said).then_some(()));
        let corrected = running.until_quiet().split_off(before);
        let writes = corrected.iter().filter(|(verb, _)| verb == "patch").count();
        // Five corrections: a trial and a write, each refused first for the sake of the other's field.
        assert!(writes <= 5 * 4, "{corrected:?}");
        // Others are put right as ever.
        member.kubectl(&["delete", "configmap", "other", "-n", "fight"]);
        running.until("another comes back", || member.get("configmap", "other"));
    });
    let warned = running.log().matches("again after each correction").count();
    assert_eq!(warned, 1, "{}", running.log());
    // New content is applied, whoever fought about the old.
    let web = annotated(member.config_map("web", "two"), "berth.dev/on-conflict", "force");
    member.publish(&[web, member.config_map("other", "one")]);
    running.until_applied(2);
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["key"], "two");
}

#[test]
#[ignore = "needs Kubernetes"]
fn drift_is_only_reported_where_that_is_wanted_and_new_content_is_applied_all_the_same() {
    let Some(member) = Member::new("reported") else { return };
    let web = |value: &str| annotated(member.config_map("web", value), "berth.dev/drift", "report");
    let gone = |value: &str| annotated(member.config_map("gone", value), "berth.dev/drift", "report");
    member.publish(&[web("one"), gone("one")]);
    let running = member.keep_in_sync(&["--interval", "600"]);
    running.until_applied(1);
    let before = running.until_quiet().len();
    member.patch_as("kubectl-edit", "configmap", "web", &json!({"data": {"key": "hand"}}));
    let said = "`kubectl-edit` changed `.data.key` at 2";
    running.until("the change is said", || member.status().contains(said).then_some(()));
    member.kubectl(&["delete", "configmap", "gone", "-n", "reported"]);
    let said = "removed by others; its drift mode only reports, so berth does not recreate it";
    running.until("the removal is said", || member.status().contains(said).then_some(()));
    let after = running.until_quiet().split_off(before);
    assert!(after.iter().all(|(verb, _)| verb == "get" || verb == "watch"), "{after:?}");
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["key"], "hand");
    assert_eq!(member.get("configmap", "gone"), None);
    drop(running);

    member.publish(&[web("two"), gone("two")]);
    let running = member.keep_in_sync(&[]);
    running.until_applied(2);
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["key"], "two");
    assert!(member.get("configmap", "gone").is_some());
}

#[test]
#[ignore = "needs Kubernetes"]
fn drift_is_ignored_until_a_time_and_put_right_then() {
    let Some(member) = Member::new("ignored") else { return };
    let seconds =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs();
    let until = berth_base::model::Timestamp::from_second(i64::try_from(seconds).expect("a time") + 40);
    let until = format!("ignore-until={}", until.expect("a time"));
    let odd = annotated(member.config_map("odd", "one"), "berth.dev/drift", "sometimes");
    member.publish(&[annotated(member.config_map("web", "one"), "berth.dev/drift", &until), odd]);
    let running = member.keep_in_sync(&["--interval", "600"]);
    running.until_applied(1);
    member.patch_as("kubectl-edit", "configmap", "web", &json!({"data": {"key": "hand"}}));
    member.patch_as("kubectl-edit", "configmap", "odd", &json!({"data": {"key": "hand"}}));
    // What is odd about the other is said after the change to this one was heard of.
    let said = "its annotation `berth.dev/drift` is none of";
    running.until("the odd mode is said", || member.status().contains(said).then_some(()));
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["key"], "hand");
    assert!(!member.status().contains("kubectl-edit"), "{}", member.status());
    running.until("its time is over", || {
        (member.get("configmap", "web")?["data"]["key"] == "one").then_some(())
    });
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_whole_member_may_only_report_drift() {
    let Some(member) = Member::new("looking") else { return };
    member.publish(&[member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    member.patch_as("kubectl-edit", "configmap", "web", &json!({"data": {"key": "hand"}}));
    let before = member.requests().len();
    let ran = member.sync(&["--drift", "report"]).expect(7);
    assert!(ran.out.starts_with("0 writes, 0 removals, 1 unchanged"), "{}", ran.out);
    assert!(
        ran.err.contains("ConfigMap looking/web: `kubectl-edit` changed `.data.key` at 2"),
        "{}",
        ran.err
    );
    let after = member.requests().split_off(before);
    assert!(after.iter().all(|(verb, _)| verb == "get" || verb == "list"), "{after:?}");
    assert!(member.sync(&[]).expect(0).out.starts_with("1 write,"));
}

#[test]
#[ignore = "needs Kubernetes"]
fn ignored_fields_are_left_to_whoever_sets_them_and_nothing_is_written_again_and_again() {
    let Some(member) = Member::new("left") else { return };
    let web = |image: &str| annotated(member.deployment("web", image), "berth.dev/ignore", "/spec/replicas");
    let hook = |url: &str| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "left-hook", "annotations": {"berth.dev/ignore-managers": "cainjector"}},
            "webhooks": [{"name": "hook.left.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {"url": url, "caBundle": "Cg=="},
                "namespaceSelector": {"matchLabels": {"no": "namespace"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}]}]})
    };
    member.publish(&[web("example.com/web:1"), hook("https://127.0.0.1:1/one")]);
    member.sync(&["--health-timeout", "0"]).expect(7);
    assert_eq!(member.get("deployment", "web").expect("it is there")["spec"]["replicas"], 1);
    // The scaler and the injector have what is theirs, also through new content.
    member.kubectl(&["scale", "deployment", "web", "--replicas=4", "-n", "left"]);
    let patch =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "Cgo="}]).to_string();
    member.kubectl(&[
        "patch",
        "validatingwebhookconfiguration",
        "left-hook",
        "--type=json",
        "--field-manager=cainjector",
        "-p",
        &patch,
    ]);
    let ran = member.sync(&["--health-timeout", "0"]).expect(7);
    assert!(ran.out.starts_with("0 writes, 0 removals, 2 unchanged"), "{}{}", ran.out, ran.err);
    for (round, image) in ["example.com/web:2", "example.com/web:3"].into_iter().enumerate() {
        member.publish(&[web(image), hook(&format!("https://127.0.0.1:1/two-{round}"))]);
        let ran = member.sync(&["--health-timeout", "0"]).expect(7);
        assert!(ran.out.starts_with("2 writes, 0 removals, 0 unchanged"), "{}{}", ran.out, ran.err);
        let ran = member.sync(&["--health-timeout", "0"]).expect(7);
        assert!(ran.out.starts_with("0 writes, 0 removals, 2 unchanged"), "{}{}", ran.out, ran.err);
        let found = member.get("deployment", "web").expect("it is there");
        assert_eq!(found["spec"]["replicas"], 4);
        assert_eq!(found["spec"]["template"]["spec"]["containers"][0]["image"], image);
        let found = member.kubectl(&[
            "get",
            "validatingwebhookconfiguration",
            "left-hook",
            "-ojsonpath={.webhooks[0].clientConfig}",
        ]);
        assert!(found.contains("Cgo=") && found.contains(&format!("two-{round}")), "{found}");
    }
    member.kubectl(&["delete", "validatingwebhookconfiguration", "left-hook"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_kind_that_may_not_be_listed_is_its_own_trouble_alone() {
    let Some(member) = Member::new("unlisted") else { return };
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "web", "namespace": "unlisted"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    member.publish(&[member.config_map("web", "one"), role.clone()]);
    member.sync(&[]).expect(0);
    // Somebody who may do all that is needed, but nothing about roles.
    let rules = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "unlisted"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["*"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}]});
    member.kubectl_apply(&rules, &[]);
    member.kubectl(&[
        "create",
        "clusterrolebinding",
        "unlisted",
        "--clusterrole=unlisted",
        "--user=somebody",
    ]);
    let config = std::fs::read_to_string(member.plane.kubeconfig()).expect("a kubeconfig");
    let named = tempfile::NamedTempFile::new().expect("a file");
    let lines: Vec<String> = config
        .lines()
        .map(|line| {
            let indent = line.len() - line.trim_start().len();
            match line.trim_start().starts_with("client-certificate-data:")
                || line.trim_start().starts_with("client-certificate:")
            {
                true => format!("{}as: somebody\n{line}", " ".repeat(indent)),
                false => line.to_owned(),
            }
        })
        .collect();
    let text = lines.join("\n");
    let text = if text.contains("as: somebody") {
        text
    } else {
        text.replacen("token:", "as: somebody\n    token:", 1)
    };
    std::fs::write(named.path(), text).expect("a file");
    member.publish(&[member.config_map("web", "two"), role]);
    let ran = member.sync_at(named.path().to_str().expect("a text path"), &[]);
    let ran = ran.expect(7);
    assert!(
        ran.err.contains("Role.rbac.authorization.k8s.io unlisted/web: its kind cannot be listed"),
        "{}",
        ran.err
    );
    assert_eq!(member.get("configmap", "web").expect("it is there")["data"]["key"], "two");
    let parent = member.kubectl(&["get", "configmap", "berth-unlisted", "-n", "berth-system", "-o", "json"]);
    assert!(parent.contains("\"ConfigMap,Role.rbac.authorization.k8s.io\""), "{parent}");
    member.kubectl(&["delete", "clusterrolebinding,clusterrole", "unlisted"]);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_single_round_that_waits_lists_each_kind_once_more_and_then_is_told() {
    let Some(member) = Member::new("waiting") else { return };
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "waiting"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "waiting"},
        "spec": {"ports": [{"port": 80}]}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "namespace": "waiting"}});
    member.publish(&[claim, service, account, member.config_map("web", "one")]);
    member.sync(&["--health-timeout", "0"]).expect(7);
    let before = member.requests().len();
    let ran = member.sync(&["--health-timeout", "12"]).expect(7);
    assert!(ran.err.contains("PersistentVolumeClaim waiting/data: not healthy in time"), "{}", ran.err);
    let requests = member.requests().split_off(before);
    let lists = requests.iter().filter(|(verb, _)| verb == "list").count();
    assert!((4..=8).contains(&lists), "{lists} lists: {requests:?}");
}
