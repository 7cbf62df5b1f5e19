use super::*;
use berth_base::diag::{Diagnostic, Pos};

fn kept<'a>(loaded: &'a Loaded, path: &str) -> &'a str {
    std::str::from_utf8(&loaded.kept[path]).unwrap()
}

#[test]
fn an_unreadable_document_keeps_its_last_good_form() {
    let before = doc("Member", "a", "labels: {x: old}") + &doc("Member", "b", "labels: {x: old}");
    let objects = doc("Member", "a", "labels: {x: new}")
        + "---\napiVersion: test.dev/v1\nkind: Member\nmetadata: {name: b\n";
    let loaded = load_after(&[("a.yaml", &before)], &tree(&[("a.yaml", &objects)]));
    assert_eq!(clusters(&loaded), ["a", "b"]);
    assert_eq!(loaded.fleet.clusters["a"].labels["x"], "new");
    assert_eq!(loaded.fleet.clusters["b"].labels["x"], "old");
    assert!(loaded.fleet.doubt.everything, "inventory is in doubt");
    assert_eq!(errors(&loaded).len(), 1);
    assert_eq!(
        kept(&loaded, "a.yaml"),
        doc("Member", "a", "labels: {x: new}") + &doc("Member", "b", "labels: {x: old}")
    );
}

#[test]
fn a_faulty_document_keeps_its_last_good_form_and_is_reported_once() {
    let before = "# once\n\n".to_owned() + &doc("Rule", "all", "") + &doc("App", "web", "");
    let objects = doc("Rule", "all", "") + &doc("App", "web", "ruel: all");
    let loaded = load_after(&[("a.yaml", &before)], &tree(&[("a.yaml", &objects)]));
    assert_eq!(workloads(&loaded), ["web"]);
    assert_eq!(said(&loaded), ["a.yaml:10:1: error: unknown field `ruel` hint: did you mean `rule`?"]);
    assert_eq!(loaded.fleet.doubt.files.iter().collect::<Vec<_>>(), ["a.yaml"]);
    assert!(!loaded.fleet.doubt.everything);
    assert_eq!(kept(&loaded, "a.yaml"), doc("Rule", "all", "") + &doc("App", "web", ""));
}

#[test]
fn what_a_kept_document_has_wrong_is_not_reported() {
    // Only an older berth accepted the last good form.
    let before = doc("Member", "a", "lables: {}");
    let loaded = load_after(&[("a.yaml", &before)], &tree(&[("a.yaml", "a: [\n")]));
    assert_eq!(clusters(&loaded), ["a"]);
    let errors = errors(&loaded);
    assert!(errors.len() == 1 && errors[0].contains("not YAML"), "{errors:?}");
}

#[test]
fn a_whole_file_that_can_not_be_read_keeps_all_of_it() {
    let before = doc("Member", "a", "") + &doc("Member", "b", "");
    let mut files = tree(&[]);
    files.files.put(SourceFile::new("a.yaml", b"a: \xFF".as_slice()));
    files.found.push(Diagnostic::error(Pos::file("b.yaml"), "too large"));
    files.found.push(Diagnostic::warning(Pos::file("c.yaml"), "a symbolic link"));
    let loaded = load_after(
        &[("a.yaml", &before), ("b.yaml", &doc("Member", "c", "")), ("c.yaml", &doc("Member", "d", ""))],
        &files,
    );
    assert_eq!(clusters(&loaded), ["a", "b", "c", "d"]);
    assert_eq!(kept(&loaded, "a.yaml"), before);
}

#[test]
fn an_object_that_moved_to_another_file_is_not_kept_twice() {
    let before = doc("Member", "a", "labels: {x: old}") + &doc("Member", "b", "");
    let files = tree(&[("a.yaml", "x: [\n"), ("c.yaml", &doc("Member", "a", "labels: {x: new}"))]);
    let loaded = load_after(&[("a.yaml", &before)], &files);
    assert_eq!(clusters(&loaded), ["a", "b"]);
    assert_eq!(loaded.fleet.clusters["a"].labels["x"], "new");
    assert_eq!(kept(&loaded, "a.yaml"), doc("Member", "b", ""));
}

#[test]
fn a_deleted_file_and_a_removed_document_are_deletions() {
    let before = doc("Member", "a", "") + &doc("Member", "b", "");
    let loaded = load_after(
        &[("a.yaml", &before), ("b.yaml", &doc("Member", "c", ""))],
        &tree(&[("a.yaml", &doc("Member", "a", ""))]),
    );
    assert_eq!(clusters(&loaded), ["a"]);
    assert!(loaded.kept.is_empty() && loaded.fleet.doubt == berth_base::model::fleet::Doubt::default());
}

#[test]
fn a_new_broken_file_puts_nothing_in_doubt() {
    let loaded = load_after(&[], &tree(&[("a.yaml", "a: [\n"), ("b.yaml", &doc("Member", "b", ""))]));
    assert_eq!(clusters(&loaded), ["b"]);
    assert!(loaded.kept.is_empty() && !loaded.fleet.doubt.everything);
}

#[test]
fn without_a_history_a_broken_file_puts_everything_in_doubt() {
    let files = tree(&[("a.yaml", "a: [\n")]);
    let loaded = load_with(&files, History::Unavailable);
    assert!(loaded.fleet.doubt.everything && loaded.fleet.doubt.files.contains("a.yaml"));
    let fine = load_with(&tree(&[("a.yaml", "a: 1\n")]), History::Unavailable);
    assert!(!fine.fleet.doubt.everything);
}

#[test]
fn broken_settings_keep_theirs() {
    let before = "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {exclude: [charts]}\n";
    let objects = "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {exclud: []}\n";
    let files = tree(&[("berth.yaml", objects), ("charts/x.yaml", &doc("Member", "x", ""))]);
    let loaded = load_after(&[("berth.yaml", before)], &files);
    assert!(clusters(&loaded).is_empty());
    assert_eq!(errors(&loaded).len(), 1);
    assert_eq!(kept(&loaded, "berth.yaml"), before);
}

#[test]
fn items_of_lists_are_kept_one_by_one() {
    let list = |second: &str| {
        format!(
            "apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: test.dev/v1, kind: Member, metadata: {{name: a}}}}\n- {{apiVersion: test.dev/v1, kind: Member, metadata: {{name: b}}, {second}}}\n"
        )
    };
    let loaded =
        load_after(&[("a.yaml", &list("labels: {x: old}"))], &tree(&[("a.yaml", &list("labls: {}"))]));
    assert_eq!(loaded.fleet.clusters["b"].labels["x"], "old");
    let again = load(&[("a.yaml", kept(&loaded, "a.yaml"))]);
    assert!(errors(&again).is_empty());
    assert_eq!(clusters(&again), ["a", "b"]);
    assert_eq!(again.fleet.clusters["b"].labels, loaded.fleet.clusters["b"].labels);
}

#[test]
fn the_form_in_force_can_stand_in_for_the_file() {
    let before = "%YAML 1.1\n".to_owned()
        + &doc("Member", "a", "labels: {x: 'yes'}").trim_end().replace('\n', "\r\n")
        + "\n"
        + &doc("App", "w", "");
    let loaded = load_after(&[("a.yaml", &before)], &tree(&[("a.yaml", "---\nx: [")]));
    let form = kept(&loaded, "a.yaml").to_owned();
    let again = load_after(&[("a.yaml", &form)], &tree(&[("a.yaml", "---\nx: {")]));
    assert_eq!(kept(&again, "a.yaml"), form);
    assert_eq!(clusters(&again), ["a"]);
    assert_eq!(workloads(&again), ["w"]);
}

#[test]
fn a_misspelt_group_is_an_error_and_keeps_the_last_good_form() {
    let before = doc("Member", "a", "") + &doc("App", "web", "") + &doc("Rule", "all", "");
    for wrong in ["tset.dev", "Test.dev", "core.test.dev"] {
        let objects = before.replacen("test.dev", wrong, 1);
        let loaded = load_after(&[("a.yaml", &before)], &tree(&[("a.yaml", &objects)]));
        assert_eq!(clusters(&loaded), ["a"], "{wrong}");
        assert!(loaded.kept.contains_key("a.yaml"));
        let wanted = format!(
            "a.yaml:2:1: error: the kind `Member` is known, but not in the group `{wrong}` hint: did you mean `test.dev`?"
        );
        assert_eq!(errors(&loaded), [wanted]);
    }
}

#[test]
fn a_plain_object_that_looks_like_a_slip_and_that_nothing_selects_gets_a_warning() {
    let object = |group: &str, kind: &str| doc(kind, "a", "").replacen("test.dev", group, 1);
    let said = |text: &str| {
        let found = load(&[("a.yaml", text)]).diagnostics;
        found.iter().map(ToString::to_string).filter(|text| text.contains("warning")).collect::<Vec<_>>()
    };
    let both =
        said(&(object("tset.dev", "Widget") + &object("tset.dev", "Widget").replace("name: a", "name: b")));
    assert_eq!(both.len(), 1, "{both:?}");
    assert!(both[0].contains("this `Widget` of the group `tset.dev`, nor 1 more"), "{both:?}");
    assert!(both[0].contains("did you mean the group `test.dev`?"), "{both:?}");
    let kind = said(&object("tset.dev", "Memmber"));
    assert!(kind[0].contains("`test.dev`, and the kind `Member`?"), "{kind:?}");
    for group in ["test.devices.io", "t.dev"] {
        let far = said(&object(group, "Member"));
        assert!(far[0].contains("did you mean the group `test.dev`?"), "{group}: {far:?}");
    }
    assert_eq!(said(&object("test.devices.io", "Widget")), [""; 0], "another system's");
    assert_eq!(said(&object("other.example.com", "Member")), [""; 0], "another system's kind of that name");
}

#[test]
fn a_kind_of_the_same_name_in_a_distant_group_is_a_plain_object() {
    let member = |group: &str| doc("Member", "a", "").replacen("test.dev", group, 1);
    for (group, kind) in [("other.example.com", "Member"), ("tset.dev", "Widget")] {
        let text = member(group).replace("Member", kind);
        let loaded = load(&[("a.yaml", &text)]);
        assert!(errors(&loaded).is_empty() && clusters(&loaded).is_empty(), "{kind} in {group}");
    }
}
