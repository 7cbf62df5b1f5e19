use super::*;
use crate::testing::assert_clean;
use berth_base::model::ClusterStatus;

#[test]
fn a_state_comes_back_as_it_was_published() {
    let branch = Branch::new();
    let long = "x".repeat(250);
    let mut state =
        branch.state(&[("web", &["a", "b.lock", &long], "1"), ("system:api", &[".hidden", "a"], "1")]);
    state.folders.insert("empty".to_owned(), Folder::new());
    let facts = ClusterStatus {
        cluster: "a".to_owned(),
        labels: map([("zone", "012".to_owned())]),
        ..Default::default()
    };
    state.facts.insert("a".to_owned(), facts.into());
    let bytes = GitContents::writing(&branch.repo).unwrap().put(b"kind: X\n").unwrap();
    state.kept.insert("fleet/.odd dir/web_1.yaml".to_owned(), bytes);
    let committed = branch.publish(&state).unwrap();
    let current = branch.current().unwrap();
    assert_eq!(current.state, as_read(&state));
    assert_eq!(texts(&current.foreign), Vec::<String>::new());
    assert_eq!((current.commit, current.trailers.seq), (committed.commit, 1));
    assert_eq!(current.trailers.source, Some(CommitId([0xab; 20])));
    let carried = committed.into_current(state);
    assert_eq!(carried.state, current.state);
    assert_eq!(
        (carried.tree, carried.trees, carried.trailers),
        (current.tree, current.trees, current.trailers)
    );
    assert_clean(&branch.repo);
}

#[test]
fn the_same_state_again_makes_no_commit() {
    let branch = Branch::new();
    let state = branch.state(&[("web", &["a", "b"], "1")]);
    assert!(branch.publish(&state).is_some());
    assert!(branch.publish(&state).is_none());
    assert!(branch.publish(&branch.state(&[("web", &["a", "b"], "2")])).is_some());
    assert_eq!(branch.current().unwrap().trailers.seq, 2);
}

#[test]
fn an_incremental_publish_equals_a_full_one() {
    let one = Branch::new();
    one.publish(&one.state(&[("web", &["a", "b"], "1"), ("api", &["b", "c"], "1")]));
    let next = [("web", &["a", "b"][..], "1"), ("api", &["b"], "2")];
    one.publish(&one.state(&next));
    let two = Branch::new();
    two.publish(&two.state(&next));
    assert_eq!(one.current().unwrap().tree, two.current().unwrap().tree);
}

#[test]
fn one_changed_manifest_rewrites_the_trees_above_it_only() {
    let branch = Branch::new();
    let clusters = ["a", "b", "c", "d"];
    let before = branch.state(&[("web", &clusters, "1"), ("api", &clusters, "1")]);
    branch.publish(&before);
    let current = branch.current().unwrap();
    let mut next = before;
    let id = GitContents::writing(&branch.repo).unwrap().put(b"changed").unwrap();
    let folder = next.folders.get_mut("c").unwrap();
    let path = folder.keys().next().unwrap().clone();
    folder.put((path, id).into());
    let mut writer = berth_git::Writer::new(&branch.repo).unwrap();
    tree::write(&mut writer, Some(&current), &next).unwrap();
    // The trees of the namespace, the cluster and `clusters`; the root is the caller's.
    assert_eq!(writer.counts, berth_git::Counts { blobs: 0, trees: 3, commits: 0 });
}

#[test]
fn two_machines_make_the_same_commit() {
    let make = || {
        let branch = Branch::new();
        branch.publish(&branch.state(&[("web", &["a"], "1")]));
        branch.publish(&branch.state(&[("web", &["a", "b"], "1")])).unwrap().commit
    };
    assert_eq!(make(), make());
}

#[test]
fn a_commit_says_in_words_what_it_does_and_in_trailers_what_it_was_made_from() {
    let branch = Branch::new();
    branch.publish(&branch.state(&[("web", &["a", "b"], "1"), ("api", &["a"], "1")]));
    assert!(branch.message().starts_with("berth: first state, 2 workloads on 2 clusters\n"));
    branch.publish(&branch.state(&[("web", &["a", "b", "c"], "1"), ("api", &["a"], "1")]));
    let message = branch.message();
    let (words, trailers) = message.trim_end().rsplit_once("\n\n").unwrap();
    assert_eq!(
        words,
        "berth: web added to 1 cluster\n\n\
         FederatedDeployment shop/web: 1 added in 1 cluster (+1)\n\n\
         Made from abababababab: web: more of it Berth-Seq: 99"
    );
    let names: Vec<&str> = trailers.lines().map(|line| line.split_once(": ").unwrap().0).collect();
    assert_eq!(names, ["Berth-Source", "Berth-Now", "Berth-Seq", "Berth-Digest"]);
    assert!(trailers.contains("Berth-Now: 2023-11-14T22:15:00Z\nBerth-Seq: 2\n"), "{trailers}");
    branch.publish(&branch.state(&[("web", &["a", "b", "c"], "2"), ("api", &["b"], "1")]));
    assert!(branch.message().starts_with("berth: api 1 removed, 1 added in 2 clusters and 1 more\n"));
    assert!(branch.message().contains("shop/web: 3 changed in 3 clusters\n"), "{}", branch.message());
}

#[test]
fn the_first_line_counts_the_clusters_that_changed_and_no_others() {
    let branch = Branch::new();
    let before = branch.state(&[("greeting", &["a", "b"], "1"), ("api", &["a"], "1")]);
    branch.publish(&before);
    let edited = branch.state(&[("greeting", &["b"], "2")]);
    let mut next = before;
    next.folders.insert("b".to_owned(), edited.folders["b"].clone());
    branch.publish(&next);
    assert!(branch.message().starts_with("berth: greeting changed in 1 cluster\n"), "{}", branch.message());
    assert!(branch.message().contains("shop/greeting: 1 changed in 1 cluster\n"), "{}", branch.message());
    branch.publish(&branch.state(&[("api", &["a"], "1")]));
    assert!(
        branch.message().starts_with("berth: greeting removed from 2 clusters\n"),
        "{}",
        branch.message()
    );
    assert!(
        branch.message().contains("shop/greeting: 2 removed in 2 clusters (-2)\n"),
        "{}",
        branch.message()
    );
}

#[test]
fn problems_are_listed_in_the_message() {
    use berth_base::diag::{Diagnostic, Diagnostics, Pos};
    let mut found = Diagnostics::new();
    found.push(Diagnostic::error(Pos::new("fleet/x.yaml", 3, 1), "bad\n\nBerth-Seq: 7").hint("y"));
    let text = Summary::of(&Plan::default(), true).with_problems(&found).text();
    assert!(
        text.contains("1 error and 0 warnings\n- fleet/x.yaml:3:1: error: bad\\n\\nBerth-Seq: 7\n"),
        "{text}"
    );
}

#[test]
fn a_commit_is_never_dated_before_its_parent_its_source_or_now() {
    let branch = Branch::new();
    let publish = |clusters: &[&str], now: i64, source: i64| {
        let current = branch.current();
        let mut stamp = stamp(now);
        stamp.source_seconds = 1_700_000_000 + source;
        let next = branch.state(&[("web", clusters, "1")]);
        branch.stamped(current.as_ref(), &next, &stamp);
        branch.current().unwrap().seconds - 1_700_000_000
    };
    assert_eq!(publish(&["a"], 50, 10), 50);
    assert_eq!(publish(&["b"], 20, 10), 50);
    assert_eq!(publish(&["a"], 20, 90), 90);
}

#[test]
fn further_trailers_are_read_back_and_part_of_the_digest() {
    let branch = Branch::new();
    let mut stamp = stamp(1);
    stamp.trailers = vec![("Berth-Allowed".to_owned(), "abc\nBerth-Seq: 50".to_owned())];
    let next = branch.state(&[("web", &["a"], "1")]);
    branch.stamped(None, &next, &stamp);
    let current = branch.current().unwrap();
    assert_eq!(current.trailers.seq, 1);
    assert_eq!(current.trailers.others, [("Berth-Allowed".to_owned(), "abc Berth-Seq: 50".to_owned())]);
    assert!(current.foreign.is_empty());
}
