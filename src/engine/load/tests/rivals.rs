//! Several descriptions of one object or cluster.

use super::*;
use crate::load::survey;
use berth_base::model::Key;

fn rules() -> String {
    doc("Rule", "all", "") + &doc("Rule", "other", "")
}

/// Returns the file that a workload comes from, and the placement that it follows.
fn web(loaded: &Loaded) -> Option<(String, String)> {
    let key = Key::new("test.dev", "App", "", "web");
    let placement = loaded.fleet.placements.get(&key)?;
    let Source::Follows(follow) = &placement.source else { return None };
    Some((placement.origin.file.to_string(), follow.placements[0].name.clone()))
}

fn of(file: &str, rule: &str) -> Option<(String, String)> {
    Some((file.to_owned(), rule.to_owned()))
}

/// Returns a tree with the last good forms in place of their files.
fn with_kept(files: &[(&str, &str)], loaded: &Loaded) -> SourceTree {
    let mut tree = tree(files);
    let kept = loaded.kept.iter().map(|(path, form)| SourceFile::new(path.as_str(), form.as_slice()));
    tree.files.extend(kept);
    tree
}

/// Returns the files of a published tree that describe a valid object.
fn published(tree: &SourceTree) -> Vec<(String, String)> {
    let survey = survey(tree);
    survey.good.into_iter().map(|(key, text)| (key.name.to_string(), text.path)).collect()
}

/// Returns a cluster of KubeFed or of KubeFleet.
fn real(kind: &str, env: &str) -> String {
    let (api, namespace, spec) = match kind {
        "KubeFedCluster" => (
            "core.kubefed.io/v1beta1",
            ", namespace: kube-federation-system",
            "{apiEndpoint: 'https://a.example.com', secretRef: {name: a}}",
        ),
        _ => (
            "cluster.kubernetes-fleet.io/v1beta1",
            "",
            "{identity: {kind: User, name: a, apiGroup: rbac.authorization.k8s.io}}",
        ),
    };
    format!(
        "apiVersion: {api}\nkind: {kind}\nmetadata: {{name: a{namespace}, labels: {{env: {env}}}}}\nspec: {spec}\n"
    )
}

#[test]
fn a_second_description_does_not_win_over_the_one_that_was_there() {
    let (before, rules) = (doc("App", "web", "rule: all"), rules());
    let copy = doc("App", "web", "rule: other");
    for second in ["drafts/web.yaml", "zz/web.yaml"] {
        let files = tree(&[("rules.yaml", &rules), (second, &copy), ("shop/web.yaml", &before)]);
        let loaded = load_after(&[("shop/web.yaml", &before)], &files);
        assert_eq!(web(&loaded), of("shop/web.yaml", "all"), "{second}");
        let errors = errors(&loaded);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains(second) && errors[0].contains("shop/web.yaml"), "{errors:?}");
        assert!(loaded.fleet.doubt.files.contains("shop/web.yaml"), "the decision loses no cluster");
    }
}

#[test]
fn the_description_that_was_there_stays_in_effect_in_later_passes() {
    let (before, rules) = (doc("App", "web", "rule: all"), rules());
    let copy = doc("Rule", "draft", "") + &doc("App", "web", "rule: other");
    let files = [("rules.yaml", &*rules), ("drafts/web.yaml", &*copy), ("shop/web.yaml", &*before)];
    let loaded = load_after(&[("shop/web.yaml", &before)], &tree(&files));
    assert_eq!(std::str::from_utf8(&loaded.kept["drafts/web.yaml"]).unwrap(), doc("Rule", "draft", ""));
    assert_eq!(std::str::from_utf8(&loaded.kept["shop/web.yaml"]).unwrap(), before);
    let again = with_kept(&files, &loaded);
    let next = load_with(&again, History::None);
    assert_eq!((web(&next), errors(&next).len()), (of("shop/web.yaml", "all"), 0));
}

#[test]
fn without_a_history_the_first_description_stays_and_later_ones_do_not_win_over_it() {
    let rules = rules();
    let (first, second) = (doc("App", "web", "rule: all"), doc("App", "web", "rule: other"));
    let files = [("rules.yaml", &*rules), ("b.yaml", &*first), ("c.yaml", &*second)];
    let loaded = load(&files);
    assert_eq!((web(&loaded), errors(&loaded).len()), (of("b.yaml", "all"), 1));
    let form = std::str::from_utf8(&loaded.kept["b.yaml"]).unwrap();
    let more = [("a.yaml", &*second), files[0], files[1], files[2]];
    let later = load_after(&[("b.yaml", form)], &tree(&more));
    assert_eq!((web(&later), errors(&later).len()), (of("b.yaml", "all"), 2));
    // A second pass over the same files keeps the same forms.
    assert_eq!(load_after(&[("b.yaml", form)], &tree(&files)).kept, loaded.kept);
}

#[test]
fn what_an_earlier_berth_published_of_two_descriptions_was_the_first_one() {
    let (first, second) = (real("MemberCluster", "prod"), real("MemberCluster", "test"));
    let files = tree(&[("b.yaml", &first), ("c.yaml", &second)]);
    assert_eq!(published(&files), [("a".to_owned(), "b.yaml".to_owned())]);
}

#[test]
fn while_the_history_is_unavailable_no_description_counts_and_everything_is_in_doubt() {
    let rules = rules();
    let (first, second) = (doc("App", "web", "rule: all"), doc("App", "web", "rule: other"));
    let files = [("rules.yaml", &*rules), ("b.yaml", &*first), ("c.yaml", &*second)];
    let loaded = load_with(&tree(&files), History::Unavailable);
    assert_eq!(web(&loaded), None);
    assert!(loaded.fleet.doubt.everything && loaded.fleet.doubt.objects);
}

#[test]
fn a_contradicting_description_of_another_kind_changes_no_cluster() {
    let before = doc("Member", "a", "labels: {x: '1'}");
    let second = doc("Machine", "a", "labels: {x: '2'}") + &doc("Machine", "b", "");
    for path in ["a.yaml", "z.yaml"] {
        let files = [(path, &*second), ("m.yaml", &*before)];
        let loaded = load_after(&[("m.yaml", &before)], &tree(&files));
        assert_eq!(loaded.fleet.clusters["a"].labels["x"], "1", "{path}");
        assert_eq!(clusters(&loaded), ["a", "b"]);
        let errors = errors(&loaded);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains(path) && errors[0].contains("m.yaml"), "{errors:?}");
        assert!(loaded.fleet.doubt.everything, "no decision loses a cluster");
        let next = load_with(&with_kept(&files, &loaded), History::None);
        assert_eq!(next.fleet.clusters["a"].labels["x"], "1", "later");
        assert_eq!(next.fleet.clusters["a"].origins.len(), 1);
        // The forms in effect are all good, and the contradicting document is not.
        assert!(self::errors(&next).is_empty(), "{:?}", said(&next));
    }
}

#[test]
fn an_edit_that_contradicts_another_description_keeps_both_last_good_forms() {
    let (before, other) = (doc("Member", "a", "labels: {x: '1'}"), doc("Machine", "a", "labels: {x: '1'}"));
    let edited = doc("Member", "a", "labels: {x: '2', y: '1'}");
    let files = tree(&[("a.yaml", &edited), ("b.yaml", &other)]);
    let loaded = load_after(&[("a.yaml", &before), ("b.yaml", &other)], &files);
    let cluster = &loaded.fleet.clusters["a"];
    assert_eq!((cluster.labels.len(), &*cluster.labels["x"], cluster.origins.len()), (1, "1", 2));
}

#[test]
fn a_cluster_of_another_real_system_does_not_change_the_labels_of_one_that_was_there() {
    for (first, second) in [("MemberCluster", "KubeFedCluster"), ("KubeFedCluster", "MemberCluster")] {
        let before = real(first, "prod");
        let files = tree(&[("a.yaml", &real(second, "test")), ("m.yaml", &before)]);
        let forms = BTreeMap::from([("m.yaml", before)]);
        let last_good = |path: &str| forms.get(path).map(|text| text.as_bytes().into());
        let loaded = crate::load::load(&files, History::Known(&last_good));
        assert_eq!(loaded.fleet.clusters["a"].labels["env"], "prod", "{second}");
        assert!(loaded.fleet.doubt.everything, "no decision loses a cluster");
    }
}
