//! Files and commits of other people on the branch.

use super::*;
use crate::testing::assert_clean;
use berth_base::model::{ContentId, Map};
use berth_git::{EntryKind, Identity, TreeId, Writer};

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
