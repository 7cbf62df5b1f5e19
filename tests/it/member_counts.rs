//! The requests of a member to its API server, counted: one request for each object that changes.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::support::member::{Member, annotated};
use crate::support::wait::eventually;

/// The number of requests of each kind.
fn counted(requests: &[(String, String)]) -> BTreeMap<(&str, &str), usize> {
    let mut counts = BTreeMap::new();
    for (verb, resource) in requests {
        *counts.entry((verb.as_str(), resource.as_str())).or_default() += 1;
    }
    counts
}

fn maps(member: &Member, count: usize) -> Vec<Json> {
    (0..count).map(|number| member.config_map(&format!("map-{number}"), "one")).collect()
}

/// All requests of a first sync of so many objects.
fn first_sync(member: &Member, count: usize) -> Vec<(String, String)> {
    member.publish(&maps(member, count));
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with(&format!("{count} writes")), "{}", ran.out);
    eventually("all writes in the log", || {
        let requests = member.requests();
        // The record is written, too.
        (counted(&requests).get(&("patch", "configmaps")) > Some(&count)).then_some(requests)
    })
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_first_sync_makes_one_request_for_each_object() {
    let (Some(few), Some(many)) = (Member::new("counted-few"), Member::new("counted-many")) else { return };
    let few = first_sync(&few, 10);
    let many = first_sync(&many, 40);
    let (mut few, many) = (counted(&few), counted(&many));
    assert_eq!(many[&("patch", "configmaps")], 40 + 1, "{many:?}");
    *few.get_mut(&("patch", "configmaps")).expect("writes") += 30;
    assert_eq!(few, many);
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_edit_in_the_folder_costs_its_write_and_the_records() {
    let Some(member) = Member::new("counted-edit") else { return };
    let mut objects = maps(&member, 3);
    member.publish(&objects);
    let running = member.keep_in_sync(&[]);
    running.until_applied(1);
    let before = running.until_quiet().len();
    objects[0]["data"]["key"] = json!("two");
    // Annotated or not, a new form of an owned object is checked by the server at the write.
    objects[1] = annotated(objects[1].clone(), "berth.dev/on-conflict", "force");
    member.publish(&objects);
    running.until_applied(2);
    let after = running.until_quiet().split_off(before);
    assert_eq!(counted(&after), BTreeMap::from([(("patch", "configmaps"), 1 + 2)]), "{after:?}");
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_of_somebody_else_costs_a_look_and_is_left_as_it_is() {
    let Some(member) = Member::new("counted-foreign") else { return };
    member.kubectl_apply(&member.config_map("map-1", "theirs"), &[]);
    let theirs = member.get("configmap", "map-1").expect("it");
    member.publish(&maps(&member, 3));
    let ran = member.sync(&[]).expect(7);
    assert!(ran.err.contains("map-1: it exists and was not made by berth"), "{}", ran.err);
    assert!(ran.out.starts_with("2 writes"), "{}", ran.out);
    assert_eq!(member.get("configmap", "map-1").expect("it"), theirs);

    // Where the folder says so, it is taken over in the same sync.
    let mut objects = maps(&member, 3);
    objects[1] = annotated(objects[1].clone(), "berth.dev/take-over", "true");
    member.publish(&objects);
    let ran = member.sync(&[]).expect(0);
    assert!(ran.out.starts_with("1 write, 0 removals, 2 unchanged"), "{}", ran.out);
    assert_eq!(member.get("configmap", "map-1").expect("it")["data"]["key"], "one");
}
