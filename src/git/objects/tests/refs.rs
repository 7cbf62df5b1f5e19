use std::collections::BTreeMap;
use std::sync::Barrier;

use super::*;
use crate::{GitError, Recent, RefMove, TreeId};

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
fn a_ref_with_a_log_has_its_moves_in_it() {
    let (folder, repo) = bare();
    let ids = commits(&repo, 3);
    let lines = |name: &str| std::fs::read_to_string(folder.path().join("logs").join(name)).ok();
    repo.move_ref("refs/heads/a", None, ids[0]).unwrap();
    repo.move_ref("refs/heads/a", Some(ids[0]), ids[1]).unwrap();
    assert_eq!(lines("refs/heads/a"), None, "a bare repository has no logs");
    repo.inner.config().unwrap().set_bool("core.logAllRefUpdates", true).unwrap();
    repo.move_ref("refs/heads/b", None, ids[0]).unwrap();
    repo.move_ref("refs/heads/b", Some(ids[0]), ids[1]).unwrap();
    assert!(matches!(repo.move_ref("refs/heads/b", Some(ids[0]), ids[2]), Err(GitError::Raced { .. })));
    repo.move_ref("refs/heads/b", Some(ids[1]), ids[2]).unwrap();
    assert_eq!(lines("refs/heads/b").unwrap().lines().count(), 3);
}

#[test]
fn packed_refs_move_like_loose_ones() {
    let (_guard, repo) = bare();
    let ids = commits(&repo, 2);
    repo.move_ref("refs/berth/clusters/a", None, ids[0]).unwrap();
    repo.inner.refdb().unwrap().compress().unwrap();
    assert!(matches!(repo.move_ref("refs/berth/clusters/a", None, ids[1]), Err(GitError::Raced { .. })));
    repo.move_ref("refs/berth/clusters/a", Some(ids[0]), ids[1]).unwrap();
    repo.inner.refdb().unwrap().compress().unwrap();
    repo.delete_ref("refs/berth/clusters/a", ids[1]).unwrap();
    assert!(repo.list_refs("refs/berth/").unwrap().is_empty());
}

fn moves(names: &[String], old: Option<CommitId>, new: CommitId) -> Vec<RefMove> {
    names.iter().map(|name| RefMove { name: name.clone(), old, new }).collect()
}

#[test]
fn many_refs_move_at_once_and_only_from_the_values_last_seen() {
    let (folder, repo) = bare();
    let ids = commits(&repo, 3);
    let names: Vec<String> = (0..100).map(|n| format!("refs/berth/clusters/c{n:03}")).collect();
    repo.move_ref("refs/heads/main", None, ids[0]).unwrap();
    repo.move_refs(&moves(&names, None, ids[0])).unwrap();
    assert!(!folder.path().join(&names[7]).exists(), "they are in the packed file");
    assert!(matches!(repo.move_refs(&moves(&names, None, ids[1])), Err(GitError::Raced { .. })));
    // One ref has a file of its own, which overrides the packed one.
    repo.move_ref(&names[7], Some(ids[0]), ids[2]).unwrap();
    assert!(matches!(repo.move_refs(&moves(&names, Some(ids[0]), ids[1])), Err(GitError::Raced { .. })));
    repo.move_ref(&names[7], Some(ids[2]), ids[0]).unwrap();
    repo.move_refs(&moves(&names, Some(ids[0]), ids[1])).unwrap();
    let seen = repo.list_refs("refs/berth/").unwrap();
    assert!(seen.len() == 100 && seen.values().all(|id| *id == ids[1]));
    assert_eq!(repo.read_ref("refs/heads/main").unwrap(), Some(ids[0]));
    assert!(!folder.path().join("packed-refs.lock").exists());
    assert_clean(&repo);
}

#[test]
fn few_known_refs_move_from_the_packed_file_and_from_their_own() {
    let (folder, repo) = bare();
    let ids = commits(&repo, 4);
    let names: Vec<String> = (0..20).map(|n| format!("refs/berth/clusters/eu.{n:02}")).collect();
    repo.move_refs(&moves(&names, None, ids[0])).unwrap();
    assert!(!folder.path().join("refs/berth").exists(), "they are in the packed file");
    let few = &names[..3];
    assert!(matches!(repo.move_refs(&moves(few, Some(ids[1]), ids[2])), Err(GitError::Raced { .. })));
    assert!(matches!(repo.move_refs(&moves(few, None, ids[2])), Err(GitError::Raced { .. })));
    assert!(!folder.path().join(&few[0]).exists(), "nothing moved");
    repo.move_refs(&moves(few, Some(ids[0]), ids[1])).unwrap();
    repo.move_refs(&moves(few, Some(ids[1]), ids[2])).unwrap();
    assert!(matches!(repo.move_refs(&moves(few, Some(ids[0]), ids[3])), Err(GitError::Raced { .. })));
    let gone = ["refs/berth/clusters/none".to_owned()];
    assert!(matches!(repo.move_refs(&moves(&gone, Some(ids[0]), ids[1])), Err(GitError::Raced { .. })));
    let lock = folder.path().join(format!("{}.lock", few[1]));
    let holder = std::fs::File::create(&lock).unwrap();
    holder.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    drop(holder);
    repo.move_refs(&moves(&few[1..2], Some(ids[2]), ids[3])).unwrap();
    assert_eq!(repo.cleared_locks().len(), 1, "a lock that nobody holds stops nobody");
    std::fs::write(folder.path().join(&few[2]), format!("ref: {}\n", names[9])).unwrap();
    repo.move_refs(&moves(&few[2..], Some(ids[0]), ids[1])).unwrap();
    let seen = repo.list_refs("refs/berth/").unwrap();
    assert_eq!((seen.get(&few[0]), seen.get(&few[1])), (Some(&ids[2]), Some(&ids[3])));
    let written = (seen.get(&few[2]), seen.get(&names[9]));
    assert_eq!(written, (Some(&ids[1]), Some(&ids[0])), "nobody writes through a symbolic one");
    assert_eq!(seen.len(), 20);
    assert_clean(&repo);
}

#[test]
fn what_is_remembered_of_packed_refs_is_what_is_there() {
    let (folder, repo) = bare();
    let (ids, recent) = (commits(&repo, 3), Recent::default());
    let mut expected = BTreeMap::new();
    for round in 0..90 {
        let own = Repo::open(folder.path()).unwrap().recalling(&recent);
        let other = Repo::open(folder.path()).unwrap();
        let mover = if round % 3 == 0 { &other } else { &own };
        let names =
            (round * 7..round * 7 + 4 + round % 29).map(|n| format!("refs/berth/clusters/c{:02}", n % 40));
        let new = ids[round % 3];
        let moves: Vec<RefMove> =
            names.map(|name| RefMove { old: expected.insert(name.clone(), new), name, new }).collect();
        mover.move_refs(&moves).unwrap();
        match round % 5 {
            0 => repo.inner.refdb().unwrap().compress().unwrap(),
            1 | 3 => {
                let (name, commit) = expected.pop_first().unwrap();
                other.delete_ref(&name, commit).unwrap();
            }
            _ => {}
        }
        for prefix in ["refs/berth/", "refs/berth/clusters/c1", "refs/berth/clusters/c17"] {
            let listed: BTreeMap<_, _> = own.list_refs(prefix).unwrap().into_iter().collect();
            let mut there = expected.clone();
            there.retain(|name, _| name.starts_with(prefix));
            assert_eq!(listed, there, "{round} {prefix}");
        }
    }
}

#[test]
fn a_lock_left_on_the_packed_refs_stops_nobody() {
    let (folder, repo) = bare();
    let ids = commits(&repo, 1);
    let lock = folder.path().join("packed-refs.lock");
    let holder = std::fs::File::create(&lock).unwrap();
    holder.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let names = |from: usize| -> Vec<String> {
        (from..from + 100).map(|n| format!("refs/berth/clusters/c{n:03}")).collect()
    };
    if cfg!(target_os = "linux") {
        repo.move_refs(&moves(&names(0), None, ids[0])).unwrap();
        assert_eq!(repo.list_refs("refs/berth/").unwrap().len(), 100);
        assert!(lock.exists(), "it is in use");
    }
    drop(holder);
    repo.move_refs(&moves(&names(100), None, ids[0])).unwrap();
    assert!(repo.read_ref("refs/berth/clusters/c199").unwrap().is_some());
    assert_eq!(repo.cleared_locks().len(), 1);
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
