use std::sync::Barrier;

use super::*;
use crate::git::{GitError, TreeId};

fn commits(repo: &Repo, count: usize) -> Vec<CommitId> {
    let mut writer = Writer::new(repo).unwrap();
    let mut commit = |index: usize| {
        writer.commit(TreeId::EMPTY, &[], &format!("{index}\n"), &Identity::default(), 1).unwrap()
    };
    (0..count).map(&mut commit).collect()
}

#[test]
fn a_ref_moves_only_from_the_value_last_seen() {
    let (_guard, repo) = bare();
    let ids = commits(&repo, 3);
    let name = "refs/heads/berth/rendered";
    repo.move_ref(name, None, ids[0]).unwrap();
    assert!(matches!(repo.move_ref(name, None, ids[1]), Err(GitError::Raced { .. })));
    assert!(matches!(repo.move_ref(name, Some(ids[2]), ids[1]), Err(GitError::Raced { .. })));
    assert_eq!(repo.read_ref(name).unwrap(), Some(ids[0]));
    repo.move_ref(name, Some(ids[0]), ids[1]).unwrap();
    assert!(matches!(repo.delete_ref(name, ids[0]), Err(GitError::Raced { .. })));
    repo.delete_ref(name, ids[1]).unwrap();
    assert_eq!(repo.read_ref(name).unwrap(), None);
    assert!(matches!(repo.move_ref(name, Some(ids[1]), ids[2]), Err(GitError::Raced { .. })));
    assert!(matches!(repo.delete_ref(name, ids[1]), Err(GitError::Raced { .. })));
}

#[test]
fn packed_refs_move_like_loose_ones() {
    let (_guard, repo) = bare();
    let ids = commits(&repo, 2);
    repo.move_ref("refs/berth/clusters/a", None, ids[0]).unwrap();
    repo.pack_refs().unwrap();
    assert!(matches!(repo.move_ref("refs/berth/clusters/a", None, ids[1]), Err(GitError::Raced { .. })));
    repo.move_ref("refs/berth/clusters/a", Some(ids[0]), ids[1]).unwrap();
    repo.pack_refs().unwrap();
    repo.delete_ref("refs/berth/clusters/a", ids[1]).unwrap();
    assert!(repo.list_refs("refs/berth/").unwrap().is_empty());
}

#[test]
fn of_many_at_once_exactly_one_creates_the_ref() {
    let (folder, repo) = bare();
    let ids = commits(&repo, 8);
    let barrier = Barrier::new(ids.len());
    let won = std::thread::scope(|scope| {
        let attempts: Vec<_> = ids
            .iter()
            .map(|id| {
                let (barrier, path) = (&barrier, folder.path());
                scope.spawn(move || {
                    let repo = Repo::open(path).unwrap();
                    barrier.wait();
                    match repo.move_ref("refs/heads/main", None, *id) {
                        Ok(()) => 1,
                        Err(error) if error.is_race() => 0,
                        Err(error) => panic!("{error}"),
                    }
                })
            })
            .collect();
        attempts.into_iter().map(|attempt| attempt.join().unwrap()).sum::<usize>()
    });
    assert_eq!(won, 1);
}

#[test]
fn a_held_lock_an_orphaned_one_and_a_bad_name_are_told_apart() {
    let (folder, repo) = bare();
    let ids = commits(&repo, 1);
    std::fs::create_dir_all(folder.path().join("refs/heads")).unwrap();
    let lock = folder.path().join("refs/heads/main.lock");
    let holder = std::fs::File::create(&lock).unwrap();
    holder.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    if cfg!(target_os = "linux") {
        let error = repo.move_ref("refs/heads/main", None, ids[0]).unwrap_err();
        assert!(matches!(error, GitError::Locked { .. }) && error.is_race(), "{error}");
        assert!(error.hint().unwrap().contains("refs/heads/main.lock"));
    }
    drop(holder);
    repo.move_ref("refs/heads/main", None, ids[0]).unwrap();
    assert_eq!(repo.read_ref("refs/heads/main").unwrap(), Some(ids[0]));
    assert_eq!(repo.cleared_locks().len(), 1);
    let error = repo.move_ref("refs/heads/x.lock", None, ids[0]).unwrap_err();
    assert!(matches!(error, GitError::InvalidRef { .. }), "{error}");
}

#[test]
fn packing_outlasts_the_lock_that_a_killed_packing_left_on_one_ref() {
    let (folder, repo) = bare();
    let ids = commits(&repo, 1);
    for name in ["a", "b"] {
        repo.move_ref(&format!("refs/berth/clusters/{name}"), None, ids[0]).unwrap();
    }
    let lock = folder.path().join("refs/berth/clusters/b.lock");
    std::fs::File::create(&lock).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    repo.pack_refs().unwrap();
    assert!(!lock.exists());
    assert_eq!(repo.cleared_locks().len(), 1);
    assert_eq!(repo.list_refs("refs/berth/clusters/").unwrap().len(), 2);
}
