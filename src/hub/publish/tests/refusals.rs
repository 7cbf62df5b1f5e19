//! Files and commits of other people on the branch.

use super::*;
use crate::testing::{assert_clean, commit_files};
use berth_base::model::{ContentId, Map, Timestamp};
use berth_git::{EntryKind, Identity, TreeId, Writer};

fn refused(branch: &Branch, current: Option<&CurrentState>, next: &State) -> PublishError {
    let before = branch.repo.read_ref(&branch.refs.rendered).unwrap();
    let error = branch.try_publish(current, next).unwrap_err();
    assert!(error.hint().is_some(), "{error} says what to do");
    assert_eq!(branch.repo.read_ref(&branch.refs.rendered).unwrap(), before, "nothing moved");
    error
}

#[test]
fn a_branch_that_is_not_berths_is_refused() {
    let branch = Branch::new();
    for files in [vec![("README.md", "mine")], vec![("berth.json", "{}")]] {
        commit_files(&branch.repo, &branch.refs.rendered, &files);
        let error = read_current(&branch.repo, &branch.refs.rendered).unwrap_err();
        assert!(matches!(error, PublishError::Unowned { .. }), "{error}");
        assert!(error.hint().unwrap().contains("git branch -m"));
    }
}

#[test]
fn a_newer_format_is_refused() {
    let branch = Branch::new();
    commit_files(&branch.repo, &branch.refs.rendered, &[("berth.json", "{\"format\": 3}")]);
    let error = read_current(&branch.repo, &branch.refs.rendered).unwrap_err();
    assert!(matches!(error, PublishError::NewerFormat { format: 3, .. }), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn who_comes_second_has_lost_the_race() {
    let branch = Branch::new();
    let (one, two) = (branch.state(&[("web", &["a"], "1")]), branch.state(&[("web", &["a"], "2")]));
    branch.publish(&one);
    let error = refused(&branch, None, &two);
    assert!(matches!(error, PublishError::Raced { .. }), "{error}");
    let seen = branch.current();
    branch.publish(&two);
    let error = refused(&branch, seen.as_ref(), &branch.state(&[("web", &["a"], "3")]));
    assert!(matches!(error, PublishError::Raced { .. }), "{error}");
}

#[test]
fn a_rendered_branch_that_is_gone_is_not_begun_anew() {
    let branch = Branch::new();
    let state = branch.state(&[("web", &["a"], "1")]);
    let commit = branch.publish(&state).unwrap().commit;
    let processed = Processed {
        branch: None,
        source: CommitId([0xab; 20]),
        rendered: Some(commit),
        errors: 1,
        warnings: 2,
        result: "published".to_owned(),
        held: vec!["one".to_owned()],
        rules: None,
        moment: Timestamp::from_second(7).unwrap(),
    };
    let identity = stamp(0).identity;
    write_processed(&branch.repo, &branch.refs, &processed, &identity).unwrap();
    assert_eq!(read_processed(&branch.repo, &branch.refs).unwrap(), Some(processed));
    branch.repo.delete_ref(&branch.refs.rendered, commit).unwrap();
    assert!(branch.current().is_none());
    let error = refused(&branch, None, &state);
    assert!(matches!(error, PublishError::Gone { .. }), "{error}");
    assert!(error.hint().unwrap().contains(&commit.to_string()));
}

#[test]
fn cluster_refs_alone_show_that_there_was_a_rendered_branch() {
    let branch = Branch::new();
    commit_files(&branch.repo, &branch.refs.cluster("a"), &[("x", "1")]);
    let error = refused(&branch, None, &branch.state(&[("web", &["a"], "1")]));
    assert!(matches!(error, PublishError::Gone { .. }), "{error}");
}

#[test]
fn an_empty_state_after_one_with_objects_needs_a_word() {
    let branch = Branch::new();
    branch.publish(&branch.state(&[("web", &["a", "b"], "1")]));
    let mut empty = State::default();
    empty.folders.insert("a".to_owned(), Folder::new());
    let current = branch.current();
    let error = refused(&branch, current.as_ref(), &empty);
    assert!(matches!(error, PublishError::Empty { objects: 2, clusters: 2 }), "{error}");
    branch.stamped(current.as_ref(), &empty, &stamp(100));
    assert!(branch.current().unwrap().state.folders.is_empty());
}

#[test]
fn kept_bytes_must_be_there() {
    let branch = Branch::new();
    let mut state = branch.state(&[("web", &["a"], "1")]);
    state.kept.insert("web.yaml".to_owned(), ContentId([1; 20]));
    let error = refused(&branch, None, &state);
    assert!(matches!(error, PublishError::KeptIsMissing { .. }), "{error}");
}

#[test]
fn a_branch_that_was_rewritten_is_told_from_a_lost_race() {
    let branch = Branch::new();
    let one = branch.publish(&branch.state(&[("web", &["a"], "1")])).unwrap().commit;
    let seen = branch.current().unwrap();
    let two = branch.publish(&branch.state(&[("web", &["a"], "2")])).unwrap().commit;
    let refuse = |current: &CurrentState, last: Option<CommitId>| {
        refuse_rewritten(&branch.repo, &branch.refs, current, last)
    };
    // Another process published after this one had read the branch.
    assert!(matches!(refuse(&seen, Some(two)), Err(PublishError::Raced { .. })));
    let now = branch.current().unwrap();
    for last in [None, Some(one), Some(two)] {
        refuse(&now, last).unwrap();
    }
    branch.repo.move_ref(&branch.refs.rendered, Some(two), one).unwrap();
    for lost in [two, CommitId([1; 20])] {
        let error = refuse(&seen, Some(lost)).unwrap_err();
        assert!(
            matches!(error, PublishError::Rewritten { tip, last, .. } if tip == one && last == lost),
            "{error}"
        );
        assert!(error.hint().unwrap().contains(&format!("git update-ref refs/heads/berth/rendered {lost}")));
    }
}

/// Commits these files in addition to the existing ones, as a person would.
fn push(branch: &Branch, files: &[(&str, &str)], message: &str) -> CommitId {
    push_without(branch, files, &[], message)
}

/// Like [`push`], without some of the existing files.
fn push_without(branch: &Branch, files: &[(&str, &str)], gone: &[&str], message: &str) -> CommitId {
    let current = branch.repo.read_ref(&branch.refs.rendered).unwrap();
    let mut all = BTreeMap::new();
    if let Some(commit) = current {
        list(&branch.repo, branch.repo.commit(commit).unwrap().tree, "", &mut all);
    }
    let mut writer = Writer::new(&branch.repo).unwrap();
    for (path, text) in files {
        all.insert((*path).to_owned(), writer.blob(text.as_bytes()).unwrap());
    }
    all.retain(|path, _| !gone.contains(&path.as_str()));
    let tree = writer.folder(all.iter().map(|(path, id)| (path.as_str(), *id))).unwrap();
    let parents: Vec<CommitId> = current.into_iter().collect();
    let commit = writer.commit(tree, &parents, message, &Identity::default(), 1_800_000_000).unwrap();
    branch.repo.move_ref(&branch.refs.rendered, current, commit).unwrap();
    commit
}

fn list(repo: &Repo, tree: TreeId, prefix: &str, out: &mut BTreeMap<String, ContentId>) {
    for entry in repo.tree(tree).unwrap() {
        let path = format!("{prefix}{}", String::from_utf8(entry.name).unwrap());
        match entry.kind {
            EntryKind::Folder(id) => list(repo, id, &format!("{path}/"), out),
            EntryKind::File(id) => drop(out.insert(path, id)),
            EntryKind::Other { .. } => unreachable!("not in these tests"),
        }
    }
}

fn paths(branch: &Branch) -> Vec<String> {
    let mut all = BTreeMap::new();
    list(&branch.repo, branch.current().unwrap().tree, "", &mut all);
    all.into_keys().collect()
}

const FOREIGN: [(&str, &str); 8] = [
    ("clusters/a/shop/ConfigMap_mine.yaml", "kind: ConfigMap"),
    ("clusters/a/shop/notes.txt", "x"),
    ("clusters/README.md", "x"),
    ("decisions/shop/Placement.x_y.yaml", "not: a decision"),
    ("facts/a.yaml", "kind: ClusterStatus\nmetadata: {name: b}\n"),
    ("facts/deep/er/a.yaml", "x"),
    ("kept/a_b.yaml", "x"),
    ("releases/shop/x.yaml", "x"),
];

#[test]
fn foreign_files_are_reported_kept_out_and_removed() {
    let branch = Branch::new();
    let state = branch.state(&[("web", &["a"], "1")]);
    branch.publish(&state);
    let clean = paths(&branch);
    push(&branch, &FOREIGN, "hello\n");
    push(&branch, &[("docs/README.md", "mine")], "and more\n");
    let current = branch.current().unwrap();
    assert_eq!(current.state, as_read(&state));
    assert_eq!(current.trailers.seq, 1);
    let said = texts(&current.foreign);
    for (path, _) in FOREIGN {
        assert!(said.iter().any(|line| line.starts_with(&format!("{path}: warning"))), "{path} in {said:?}");
    }
    assert!(
        said.iter().any(|line| line.contains("was not made by berth; its changes are undone")),
        "{said:?}"
    );
    assert_eq!(branch.publish(&state).unwrap().seq, 2);
    let mut expected = clean;
    expected.push("docs/README.md".to_owned());
    expected.sort();
    assert_eq!(paths(&branch), expected);
    let current = branch.current().unwrap();
    assert!(current.foreign.is_empty());
    assert_eq!(current.seconds, 1_800_000_000);
    assert_clean(&branch.repo);
}

#[test]
fn without_a_commit_of_berths_own_well_formed_files_count_and_others_do_not() {
    let branch = Branch::new();
    let state = branch.state(&[("web", &["a"], "1")]);
    branch.publish(&state);
    let clean = branch.current().unwrap();
    let tree = clean.tree;
    let head = branch.repo.read_ref(&branch.refs.rendered).unwrap().unwrap();
    branch.repo.delete_ref(&branch.refs.rendered, head).unwrap();
    let squashed =
        Writer::new(&branch.repo).unwrap().commit(tree, &[], "squashed\n", &Identity::default(), 1).unwrap();
    branch.repo.move_ref(&branch.refs.rendered, None, squashed).unwrap();
    push(&branch, &[("clusters/a/shop/notes.txt", "x"), ("clusters/b_c/x", "x")], "more\n");
    let current = branch.current().unwrap();
    assert_eq!(current.state, as_read(&state));
    assert_eq!(current.trailers.seq, 0);
    assert_eq!(current.trees, Map::new(), "a folder with foreign files is not reused by id");
    assert_eq!(texts(&current.foreign).len(), 3);
    members::fix(&branch, &["a"]);
    let member = branch.repo.read_ref(&branch.refs.cluster("a")).unwrap().unwrap();
    let fetched = branch.repo.commit(member).unwrap().tree;
    assert_eq!(fetched, clean.trees["a"], "nothing foreign reaches the member");
    assert_eq!(branch.publish(&state).unwrap().seq, 1);
    assert_eq!(branch.current().unwrap().tree, tree);
}

#[test]
fn what_a_stranger_added_changed_and_removed_is_told_apart() {
    let branch = Branch::new();
    branch.publish(&branch.state(&[("web", &["a"], "1"), ("api", &["a"], "1")]));
    let [web, api, mine] = ["Deployment.apps_web", "Deployment.apps_api", "ConfigMap_mine"]
        .map(|stem| format!("clusters/a/shop/{stem}.yaml"));
    push_without(&branch, &[(&web, "evil"), (&mine, "x")], &[&api], "hello\n");
    let said = texts(&branch.current().unwrap().foreign);
    let about = |path: &str| {
        said.iter().find(|line| line.starts_with(&format!("{path}: "))).cloned().unwrap_or_default()
    };
    assert!(about(&web).contains("was changed by hand; the next publication restores it"), "{said:?}");
    assert!(about(&api).contains("was removed by hand; the next publication restores it"), "{said:?}");
    assert!(
        about(&mine).contains("berth did not write this file; it is left out and will be removed"),
        "{said:?}"
    );
}

#[test]
fn a_changed_manifest_is_put_right() {
    let branch = Branch::new();
    let state = branch.state(&[("web", &["a"], "1")]);
    branch.publish(&state);
    let before = branch.current().unwrap();
    push(&branch, &[("clusters/a/shop/Deployment.apps_web.yaml", "evil")], &branch.message());
    let after = branch.current().unwrap();
    assert_eq!(after.state, before.state);
    assert!(!after.foreign.is_empty());
    branch.publish(&state).unwrap();
    assert_eq!(branch.current().unwrap().tree, before.tree);
}
