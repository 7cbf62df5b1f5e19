use super::*;
use crate::state::ledger::Cause;
use berth_base::model::release::Releases;

#[test]
fn a_workload_that_would_leave_most_of_its_clusters_is_held_and_keeps_its_last_good_form() {
    let case = Case::of(state(&FOUR, &[("web", MAP, &FOUR)]), state(&FOUR, &[("web", MAP, &["a"])]));
    assert_eq!(case.held(), [("web".to_owned(), Why::Clusters { lost: 3, of: 4, lately: 0 })]);
    assert_eq!(case.published(), case.previous);
}

#[test]
fn two_clusters_go_free_as_long_as_one_stays() {
    let all = ["a", "b", "c"];
    let narrow = Case::of(state(&all, &[("web", MAP, &all)]), state(&all, &[("web", MAP, &["a"])]));
    assert!(narrow.held().is_empty());
    let emptied = Case::of(state(&all, &[("web", MAP, &["a"])]), state(&all, &[("web", MAP, &[])]));
    assert_eq!(emptied.held(), [("web".to_owned(), Why::Clusters { lost: 1, of: 1, lately: 0 })]);
}

#[test]
fn a_share_of_nothing_holds_every_removal_and_one_of_all_holds_none() {
    let mut case =
        Case::of(state(&FOUR, &[("web", MAP, &FOUR)]), state(&FOUR, &[("web", MAP, &["a", "b", "c"])]));
    assert!(case.held().is_empty());
    case.limits.clusters.share = Percent::new(0);
    assert_eq!(case.held().len(), 1);
    let mut gone = Case::of(state(&FOUR, &[("web", MAP, &FOUR)]), state(&FOUR, &[]));
    gone.limits.clusters.share = Percent::new(100);
    assert!(gone.held().is_empty());
}

#[test]
fn a_workload_beside_a_held_one_is_published() {
    let before = state(&FOUR, &[("api", &[("ConfigMap api", 1)], &["a"]), ("web", MAP, &FOUR)]);
    let after = state(&FOUR, &[("api", &[("ConfigMap api", 2)], &["a", "b"])]);
    let case = Case::of(before.clone(), after.clone());
    assert_eq!(case.held().len(), 1);
    let published = case.published();
    assert_eq!(published.decisions[&key("api")], after.decisions[&key("api")]);
    assert_eq!(published.decisions[&key("web")], before.decisions[&key("web")]);
    assert_eq!(published.folders["b"].len(), 2, "{published:?}");
    assert_eq!(published.folders["a"]["shop/ConfigMap_api.yaml"], ContentId([2; 20]));
}

#[test]
fn namespaces_definitions_and_volume_claims_are_held_each() {
    for text in ["Namespace shop", "CustomResourceDefinition webs.example.org", "PersistentVolumeClaim data"]
    {
        let objects: &[(&str, u8)] = &[(text, 1), ("ConfigMap web", 1)];
        let mut case =
            Case::of(state(&FOUR, &[("web", objects, &FOUR)]), state(&FOUR, &[("web", MAP, &FOUR)]));
        assert_eq!(case.held(), [("web".to_owned(), Why::Risky { object: object(text) })]);
        case.limits.allow_risky = true;
        assert!(case.held().is_empty(), "{text}");
    }
}

#[test]
fn a_cluster_that_would_lose_most_of_its_objects_holds_all_who_take_some() {
    let names: Vec<String> = (0..12).map(|n| format!("ConfigMap m{n:02}")).collect();
    let objects: Vec<(&str, u8)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let before = state(&FOUR, &[("many", &objects, &FOUR), ("web", MAP, &["a", "b", "c"])]);
    let after = state(&FOUR, &[("many", &objects, &["b", "c", "d"]), ("web", MAP, &["b", "c"])]);
    let case = Case::of(before, after);
    let why = Why::Objects { cluster: "a".to_owned(), lost: 13, of: 13, lately: 0 };
    assert_eq!(case.held(), [("many".to_owned(), why.clone()), ("web".to_owned(), why)]);
}

#[test]
fn a_decision_is_no_object_of_a_cluster_that_would_lose_most_of_its_objects() {
    let names: Vec<String> = (0..12).map(|n| format!("ConfigMap m{n:02}")).collect();
    let objects: Vec<(&str, u8)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let with_readers = |clusters: &[&str], of_readers: &[&str]| {
        let mut state = state(&FOUR, &[("many", &objects, clusters)]);
        let key = Key::new("cluster.open-cluster-management.io", "Placement", "shop", "readers");
        let picks = of_readers.iter().map(|cluster| Pick::of(*cluster)).collect();
        let decision = Decision { picks, ..Decision::new(key.clone(), "readers.yaml") };
        state.decisions.insert(key, decision);
        state
    };
    let case = Case::of(with_readers(&FOUR, &FOUR), with_readers(&["b", "c", "d"], &["b", "c", "d"]));
    let held = case.held();
    assert_eq!(held.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["many"]);
}

#[test]
fn what_was_held_together_does_not_slip_through_one_by_one() {
    let names: Vec<String> = (0..24).map(|n| format!("ConfigMap m{n:02}")).collect();
    let objects: Vec<(&str, u8)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let (one, two, rest) = (&objects[..8], &objects[8..16], &objects[16..]);
    let all: [&str; 2] = ["a", "b"];
    let before = state(&all, &[("one", one, &all), ("rest", rest, &all), ("two", two, &all)]);
    let after = state(&all, &[("one", one, &["b"]), ("rest", rest, &all), ("two", two, &["b"])]);
    let mut case = Case::of(before, after);
    let held = case.judge().held;
    assert_eq!(held.len(), 2);
    case.approvals.insert(held[0].digest);
    let verdict = case.publish();
    assert_eq!(verdict.held.len(), 1);
    case.is_edited = false;
    assert_eq!(case.held(), [("two".to_owned(), Why::Still)], "8 of 16 alone would be no more than half");
}

#[test]
fn a_cluster_that_leaves_the_inventory_counts_and_none_of_its_objects_go_free() {
    let before = state(&FOUR, &[("web", MAP, &FOUR)]);
    let case = Case::of(before.clone(), state(&["a", "b", "c"], &[("web", MAP, &["a", "b", "c"])]));
    let why = Why::Objects { cluster: "d".to_owned(), lost: 1, of: 1, lately: 0 };
    assert_eq!(case.held(), [("web".to_owned(), why)]);
    assert_eq!(case.published(), before);
}

#[test]
fn a_move_to_another_owner_and_the_loss_of_one_of_two_owners_are_no_removals() {
    let before = state(&FOUR, &[("old", MAP, &FOUR)]);
    let moved = Case::of(before.clone(), state(&FOUR, &[("new", MAP, &FOUR)]));
    assert!(moved.held().is_empty());
    let shared = state(&FOUR, &[("one", MAP, &FOUR), ("two", MAP, &FOUR)]);
    let unshared = Case::of(shared, state(&FOUR, &[("two", MAP, &FOUR)]));
    assert!(unshared.held().is_empty());
}

#[test]
fn an_object_on_its_way_to_a_held_workload_stays_where_it_is() {
    // A copy names its workload, so another workload's copy has another content.
    let [sent, arrived] = [1, 2].map(|content| [("ConfigMap parcel", content)]);
    let before = state(&FOUR, &[("from", &sent, &["a"]), ("to", MAP, &FOUR)]);
    let after = state(&FOUR, &[("from", &[], &["a"]), ("to", &arrived, &["a"])]);
    let case = Case::of(before.clone(), after);
    let held = case.judge().held;
    assert_eq!(held.iter().map(|held| &*held.key.name).collect::<Vec<_>>(), ["from", "to"]);
    assert_eq!(held[0].why, [Why::Along { with: key("to") }]);
    assert!(!held[0].has_own_reason() && held[1].has_own_reason());
    assert_eq!(held[0].digest, held[1].digest, "one approval for both");
    assert_eq!(case.published(), before);
}

#[test]
fn an_approval_lets_exactly_its_removal_pass_once() {
    let before = state(&FOUR, &[("web", MAP, &FOUR)]);
    let mut case = Case::of(before.clone(), state(&FOUR, &[("web", MAP, &["a"])]));
    let digest = case.judge().held[0].digest;
    case.approvals.insert(digest);
    let verdict = case.judge();
    assert!(verdict.held.is_empty());
    assert_eq!(case.published(), case.next);
    assert_eq!(verdict.approved[0].digests, BTreeSet::from([digest]));

    case.next = state(&FOUR, &[("web", MAP, &["b"])]);
    assert_eq!(case.held().len(), 1, "another removal has another digest");

    case.next = state(&FOUR, &[("web", MAP, &["a"])]);
    case.publish();
    (case.previous, case.next) =
        (State { ledger: case.previous.ledger.clone(), ..before }, case.next.clone());
    let held = case.judge().held;
    assert_eq!(held[0].spent, [digest]);
    assert_ne!(held[0].digest, digest, "the next time has a digest of its own");
    case.approvals.insert(held[0].digest);
    assert!(case.judge().held.is_empty());
}

#[test]
fn what_happens_by_itself_has_the_fleets_budget_beside_the_other_limits() {
    let before = state(&FOUR, &[("web", MAP, &["a"])]);
    let mut case = Case::of(before, state(&FOUR, &[("web", MAP, &["b"])]));
    case.is_edited = false;
    assert!(case.held().is_empty(), "one cluster of four");

    case.previous = state(&FOUR, &[("web", MAP, &FOUR)]);
    let held = case.judge().held;
    assert_eq!(
        (held[0].causes.clone(), &held[0].why[..]),
        (
            BTreeSet::from([Cause::Time]),
            &[Why::Clusters { lost: 3, of: 4, lately: 0 }, Why::Evictions { clusters: 3, of: 4 }][..]
        )
    );
    case.publish();
    assert_eq!(case.held().len(), 1, "it stays held");
    case.next = state(&FOUR, &[("web", MAP, &["b", "c", "d"])]);
    assert!(case.held().is_empty(), "until most clusters are back");
}

#[test]
fn what_an_edit_removed_stays_an_edits_when_time_goes_on() {
    let mut case = Case::of(state(&FOUR, &[("web", MAP, &["a"])]), state(&FOUR, &[("web", MAP, &[])]));
    case.publish();
    case.is_edited = false;
    assert_eq!(case.held().len(), 1);
    assert!(case.judge().held[0].is_of_edit());
}

#[test]
fn only_approved_removals_of_risky_kinds_are_for_members_to_prune() {
    let objects: &[(&str, u8)] = &[("Namespace shop", 1), ("ConfigMap web", 1)];
    let mut case = Case::of(state(&FOUR, &[("web", objects, &["a", "b"])]), state(&FOUR, &[]));
    assert!(case.judge().prunable().is_empty());
    case.approvals = case.judge().held.iter().map(|held| held.digest).collect();
    let prunable = case.judge();
    let prunable = prunable.prunable();
    assert_eq!(prunable.keys().collect::<Vec<_>>(), ["_cluster/Namespace_shop.yaml"]);
    assert_eq!(prunable["_cluster/Namespace_shop.yaml"], BTreeSet::from(["a", "b"]));
}

#[test]
fn settings_and_records_read_back_what_was_written() {
    let limits = Limits { allow_risky: true, rollback: 3, ..Limits::default() };
    assert_eq!(limits.to_string().parse(), Ok(limits.clone()));
    assert!("clusters=50%/2".parse::<Limits>().is_err());
    for key in [key("web"), Key::new("", "Kind", "", "name")] {
        let record = HeldRecord { key, digest: Digest([9; 16]) };
        assert_eq!(record.to_string().parse(), Ok(record));
    }
    assert!("101%".parse::<Percent>().is_err() && "x".parse::<Percent>().is_err());
    assert_eq!("7".parse(), Ok(Percent::new(7)));
}

#[test]
fn a_held_removal_leaves_the_numbers_of_releases_to_the_record() {
    let mut case = Case::of(state(&FOUR, &[("web", MAP, &FOUR)]), state(&FOUR, &[]));
    let last_releases = [(key("web"), 3), (key("api"), 5)].into();
    let ledger = Ledger { last_releases, ..Ledger::default() };
    case.step = Some(State { ledger: ledger.into(), ..case.next.clone() });
    case.previous.releases.insert(key("web"), releases(key("web")).into());
    case.publish();
    assert_eq!(case.previous.ledger.last_releases, [(key("api"), 5)].into());
}

fn releases(key: Key) -> Releases {
    let inputs = BTreeMap::from([(1, ContentId([0; 20]))]);
    let text = format!(
        "apiVersion: berth.dev/v1alpha1\nkind: Releases\nmetadata: {{name: {name}}}\n\
         workload: {{kind: {kind}, name: {name}}}\ncurrent: {{number: 1, begun: \"2026-01-01T00:00:00Z\"}}\n",
        kind = key.kind,
        name = key.name
    );
    let read = crate::state::releases_file::read(text.as_bytes(), &inputs).expect("readable");
    Releases { key, ..read }
}
