use super::*;
use crate::{Counts, Entry, EntryKind, GitContents, RefMove, TreeId};
use berth_base::model::{ContentId, Contents};

fn paths(writer: &mut Writer<'_>, files: &[(&str, &str)]) -> Vec<(String, ContentId)> {
    let mut list: Vec<_> = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), writer.blob(text.as_bytes()).unwrap()))
        .collect();
    list.sort();
    list
}

#[test]
fn nested_folders_sort_as_git_sorts_them() {
    let (_guard, repo) = bare();
    commit_files(
        &repo,
        "refs/heads/main",
        &[("a.b/x", "1"), ("a/x", "2"), ("a/y", "2"), ("a0", "3"), ("a-/z", "4")],
    );
    assert_clean(&repo);
}

#[test]
fn one_changed_blob_rewrites_the_trees_on_its_path_and_no_others() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let before = [("a/n1/x", "1"), ("a/n2/x", "2"), ("b/n1/x", "3"), ("b/n2/y", "4")];
    let list = paths(&mut writer, &before);
    let old = writer.folder(list.iter().map(|(path, id)| (path.as_str(), *id))).unwrap();
    assert_eq!(writer.counts, Counts { blobs: 4, trees: 7, commits: 0 });
    let after = [("a/n1/x", "1"), ("a/n2/x", "2"), ("b/n1/x", "changed"), ("b/n2/y", "4")];
    let mut writer = Writer::new(&repo).unwrap();
    let list = paths(&mut writer, &after);
    let new = writer.folder(list.iter().map(|(path, id)| (path.as_str(), *id))).unwrap();
    assert_eq!(writer.counts, Counts { blobs: 1, trees: 3, commits: 0 });
    assert_eq!(repo.changed_paths(old, new, &[]).unwrap(), ["b/n1/x"]);
    assert_eq!(repo.changed_paths(old, new, &["a"]).unwrap(), Vec::<String>::new());
}

/// Files become folders and folders become files, under the same names.
#[test]
fn a_file_and_a_folder_of_one_name_take_turns() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let all: [&[(&str, &str)]; 6] = [
        &[("a", "1")],
        &[("a/a", "1"), ("a/b", "2"), ("a-b", "3")],
        &[("a/a/a", "1"), ("a/b", "2")],
        &[("a", "2"), ("a-b", "3"), ("a0", "4")],
        &[("a", "1"), ("a0/x", "4")],
        &[],
    ];
    for (before, after) in all.iter().flat_map(|before| all.iter().map(move |after| (before, after))) {
        let [before, after] = [before, after].map(|files| paths(&mut writer, files));
        let gone = before.iter().map(|(path, _)| (path.as_str(), None));
        let new = after.iter().map(|(path, id)| (path.as_str(), Some(EntryKind::File(*id))));
        let edits: std::collections::BTreeMap<&str, Option<EntryKind>> = gone.chain(new).collect();
        let [old, wanted] = [&before, &after]
            .map(|files| writer.folder(files.iter().map(|(path, id)| (path.as_str(), *id))).unwrap());
        assert_eq!(writer.edited(old, edits).unwrap(), wanted, "{before:?} {after:?}");
    }
}

#[test]
fn nothing_is_both_a_file_and_a_folder() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let file = Some(EntryKind::File(writer.blob(b"x").unwrap()));
    let old = writer.edited(TreeId::EMPTY, [("a/b", file), ("a/c", file)]).unwrap();
    for edits in [vec![("a", file), ("a/b", file)], vec![("a", file), ("a/b", None)]] {
        let error = writer.edited(old, edits).unwrap_err().to_string();
        assert!(error.contains("`a` would be both a file and a folder"), "{error}");
    }
}

#[test]
fn the_empty_tree_can_be_committed() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    assert_eq!(writer.tree(Vec::new()).unwrap(), TreeId::EMPTY);
    let commit = writer.commit(TreeId::EMPTY, &[], "nothing\n", &Identity::default(), 1).unwrap();
    assert_eq!(repo.commit(commit).unwrap().tree, TreeId::EMPTY);
    assert_eq!(repo.tree(TreeId::EMPTY).unwrap(), Vec::new());
}

#[test]
fn commits_depend_on_nothing_but_their_inputs() {
    let ids: Vec<CommitId> = (0..2)
        .map(|round| {
            let (folder, _) = bare();
            let own = git2::Repository::open(folder.path()).unwrap();
            own.config().unwrap().set_str("user.name", &format!("Somebody {round}")).unwrap();
            let repo = Repo::open(folder.path()).unwrap();
            commit_files(&repo, "refs/heads/main", &[("x", "1")])
        })
        .collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn an_impossible_identity_is_an_error() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let identity = Identity { name: "<>".to_owned(), email: String::new(), signer: None, fleet: None };
    assert!(writer.commit(TreeId::EMPTY, &[], "x", &identity, 1).is_err());
}

#[test]
fn entries_that_are_not_plain_files_keep_their_mode() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let id = writer.blob(b"#!/bin/sh\n").unwrap();
    let script = Entry { name: b"run".to_vec(), kind: EntryKind::Other { mode: 0o100_755, id: id.0 } };
    let tree = writer.tree(vec![script.clone()]).unwrap();
    assert_eq!(repo.tree(tree).unwrap(), vec![script]);
}

/// Many objects of all sizes around the edges of a pack entry's length.
fn texts() -> Vec<Vec<u8>> {
    let lengths = [0, 1, 15, 16, 17, 2047, 2048, 2049, 70_000];
    let long = lengths.iter().map(|length| vec![b'x'; *length]);
    long.chain((0..500).map(|n| format!("text {n}\n").into_bytes())).collect()
}

fn packs(repo: &Repo) -> usize {
    let names = std::fs::read_dir(repo.path().join("objects/pack")).unwrap();
    names.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "pack")).count()
}

#[test]
fn many_new_objects_become_one_pack_and_read_back_as_they_were() {
    let (folder, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let ids: Vec<ContentId> = texts().iter().map(|text| writer.blob(text).unwrap()).collect();
    assert_eq!(writer.counts.blobs, ids.len());
    let names: Vec<String> = (0..ids.len()).map(|n| format!("f/{n:04}")).collect();
    let tree = writer.folder(names.iter().map(String::as_str).zip(ids.iter().copied())).unwrap();
    let commit = writer.commit(tree, &[], "many\n", &Identity::default(), 1).unwrap();
    repo.move_ref("refs/heads/main", None, commit).unwrap();
    assert_eq!(packs(&repo), 1);
    // Another process reads the same objects.
    let other = Repo::open(folder.path()).unwrap();
    for (id, text) in ids.iter().zip(texts()) {
        assert_eq!(other.blob(*id).unwrap(), text);
    }
    let mut again = Writer::new(&other).unwrap();
    texts().iter().for_each(|text| {
        again.blob(text).unwrap();
    });
    assert_eq!(again.counts, Counts::default());
    assert_clean(&repo);
}

#[test]
fn a_handful_of_objects_stays_loose_and_what_is_never_pointed_at_is_never_written() {
    let (folder, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let id = writer.blob(b"few").unwrap();
    assert!(Repo::open(folder.path()).unwrap().blob(id).is_err());
    assert_eq!(repo.blob(id).unwrap(), b"few");
    assert_eq!((packs(&repo), Repo::open(folder.path()).unwrap().blob(id).unwrap()), (0, b"few".to_vec()));
    texts().iter().for_each(|text| {
        writer.blob(text).unwrap();
    });
    drop(writer);
    drop(repo);
    assert_eq!(std::fs::read_dir(folder.path().join("objects/pack")).unwrap().count(), 0);
}

#[test]
fn a_rehearsal_reads_what_it_writes_and_leaves_nothing() {
    let (guard, repo) = bare();
    let before = commit_files(&repo, "refs/heads/main", &[("a", "one")]);
    let files = || {
        let mut found = Vec::new();
        let mut folders = vec![guard.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
            }
        }
        found.sort();
        found
    };
    let there = files();
    let rehearsal = Repo::rehearsal(guard.path()).unwrap();
    let mut writer = Writer::new(&rehearsal).unwrap();
    // More refs than are moved one by one.
    let blobs: Vec<_> = (0..100).map(|n| writer.blob(format!("text {n}").as_bytes()).unwrap()).collect();
    let names: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
    let tree = writer.folder(names.iter().map(String::as_str).zip(blobs.iter().copied())).unwrap();
    let commit = writer.commit(tree, &[before], "next\n", &Identity::default(), 1_700_000_060).unwrap();
    assert_eq!(rehearsal.blob(blobs[99]).unwrap(), b"text 99");
    assert!(rehearsal.is_same_or_after(commit, before).unwrap());
    let error = rehearsal.move_ref("refs/heads/main", Some(before), commit).unwrap_err();
    assert!(error.to_string().contains("rehearsal"), "{error}");
    let many = |n: usize| RefMove { name: format!("refs/tags/{n}"), old: None, new: commit };
    let error = rehearsal.move_refs(&(0..100).map(many).collect::<Vec<_>>()).unwrap_err();
    assert!(error.to_string().contains("rehearsal"), "{error}");
    assert_eq!(files(), there);
    assert_eq!(Repo::open(guard.path()).unwrap().read_ref("refs/heads/main").unwrap(), Some(before));
}

#[test]
fn what_git_may_just_collect_is_written_again() {
    let (folder, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let id = writer.blob(b"seldom").unwrap();
    repo.flush().unwrap();
    let loose = folder.path().join("objects").join(&id.to_string()[..2]).join(&id.to_string()[2..]);
    assert!(loose.exists());
    let running = folder.path().join("gc.pid");
    std::fs::write(&running, "1 elsewhere").unwrap();
    let mut writer = Writer::new(&repo).unwrap();
    writer.blob(b"seldom").unwrap();
    writer.blob(b"seldom").unwrap();
    assert_eq!(writer.counts.blobs, 1);
    repo.flush().unwrap();
    std::fs::remove_file(&loose).unwrap();
    assert_eq!((packs(&repo), Repo::open(folder.path()).unwrap().blob(id).unwrap()), (1, b"seldom".to_vec()));
    std::fs::remove_file(running).unwrap();
    assert_clean(&repo);
}

#[test]
fn remembered_bytes_have_the_same_id_and_stay_out_of_the_repository() {
    let (_guard, repo) = bare();
    let mut writing = GitContents::writing(&repo).unwrap();
    let there = writing.put(b"there").unwrap();
    let mut remembering = GitContents::remembering(&repo).unwrap();
    assert_eq!(remembering.put(b"there").unwrap(), there);
    let new = remembering.put(b"new").unwrap();
    assert_eq!(remembering.put(b"new").unwrap(), new);
    assert_eq!(remembering.get(new).unwrap(), b"new");
    assert_eq!(remembering.get(there).unwrap(), b"there");
    assert!(repo.blob(new).is_err());
    assert_eq!(writing.put(b"new").unwrap(), new);
    assert_eq!(repo.blob(new).unwrap(), b"new");
}
