//! Real repositories: the cluster's ref, the status ref, and syncs one after another.

use std::time::Duration;

use super::*;
use crate::testing::bare;
use berth_base::model::Timestamp;
use berth_git::shared_refs::{Refs, read_status};
use berth_git::{Identity, Repo, Writer};
use cluster_folder::{FolderError, fetch};
use sync_loop::{Config, Sync, SyncHooks, Syncer};

fn publish(repo: &Repo, message: &str, objects: &[Json]) {
    let mut writer = Writer::new(repo).unwrap();
    let mut files: Vec<(String, berth_base::model::ContentId)> =
        objects.iter().map(|object| (place(object), writer.blob(text(object).as_bytes()).unwrap())).collect();
    files.sort();
    let tree = writer.folder(files.iter().map(|(path, id)| (path.as_str(), *id))).unwrap();
    let commit = writer.commit(tree, &[], message, &Identity::default(), 0).unwrap();
    let name = Refs::default().cluster("eu-1");
    repo.move_ref(&name, repo.read_ref(&name).unwrap(), commit).unwrap();
}

fn message(sequence: u64) -> String {
    format!("eu-1: folder\n\nBerth-Seq: {sequence}\nBerth-Cluster: eu-1\n")
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

#[test]
fn a_published_folder_is_read_whole() {
    let (_dir, repo) = bare();
    publish(&repo, &message(7), &[map("a", "1"), namespace("shop")]);
    let folder = fetch(&repo, &Refs::default(), "eu-1").unwrap();
    assert_eq!((folder.sequence, folder.objects.len(), folder.tree.len()), (7, 2, 40));
    assert_eq!(desired::read(&folder).objects.len(), 2);
}

#[test]
fn a_missing_ref_is_an_error_and_removes_nothing() {
    let (_dir, repo) = bare();
    publish(&repo, &message(7), &[map("a", "1")]);
    let error = fetch(&repo, &Refs::default(), "eu-2").unwrap_err();
    assert!(matches!(error, FolderError::NoFolder { .. }), "{error}");
    assert_eq!(error.hint().as_deref(), Some("did you mean `eu-1`?"));
}

#[test]
fn a_ref_that_does_not_say_whose_it_is_is_refused() {
    let (_dir, repo) = bare();
    for message in [
        "no trailers at all",
        "x\n\nBerth-Seq: 7\n",
        "x\n\nBerth-Cluster: eu-1\n",
        "x\n\nBerth-Seq: seven\nBerth-Cluster: eu-1\n",
        "x\n\nBerth-Seq: 7\nBerth-Cluster: eu-2\n",
        "x\n\nBerth-Seq: 7\nBerth-Cluster: eu-1\n\nand more text",
    ] {
        publish(&repo, message, &[map("a", "1")]);
        assert!(
            matches!(fetch(&repo, &Refs::default(), "eu-1"), Err(FolderError::NotOurs { .. })),
            "{message}"
        );
    }
}

#[test]
fn a_status_is_written_when_it_changed_or_is_due_again() {
    let (_dir, repo) = bare();
    let applied = Applied { sequence: 7, tree: "t".to_owned(), objects: 2, ..Applied::default() };
    let report = |applied: &Applied, now: i64| {
        let status = status::of("eu-1", applied.clone(), at(now), 600);
        status::write(&repo, &Refs::default(), &status, at(now)).unwrap()
    };
    assert!(report(&applied, 1_000));
    assert!(!report(&applied, 1_010), "nothing new");
    assert!(report(&Applied { objects: 3, ..applied.clone() }, 1_020));
    assert!(report(&Applied { objects: 3, ..applied }, 1_620), "the heartbeat");
    let read = read_status(&repo, &Refs::default(), "eu-1").unwrap().unwrap();
    assert_eq!(read.reported, Some(at(1_620)));
    assert_eq!(read.applied.unwrap().objects, 3);
    let id = repo.read_ref(&Refs::default().status_of("eu-1")).unwrap().unwrap();
    assert!(repo.commit(id).unwrap().parents.is_empty());
}

#[test]
fn members_are_not_all_due_at_one_moment_and_none_is_late() {
    let due: BTreeSet<i64> =
        (0..20).map(|n| status::next_due(&format!("c{n}"), at(0), 600).as_second()).collect();
    assert!(due.len() > 10 && due.iter().all(|due| (480..=600).contains(due)), "{due:?}");
}

/// Changes folder and repository between syncs, and stops after the last.
struct Script<'a> {
    repo: &'a Repo,
    backend: &'a Path,
    stop: Box<dyn Fn()>,
    rounds: Vec<Result<(usize, usize), String>>,
    reports: Vec<bool>,
}

impl SyncHooks for Script<'_> {
    fn now(&mut self) -> Timestamp {
        at(1_000 + i64::try_from(self.rounds.len()).unwrap())
    }

    fn after(&mut self, sync: &Sync) {
        let said = sync.result.as_ref().map(|outcome| (outcome.written, outcome.pruned));
        self.rounds.push(said.map_err(ToString::to_string));
        self.reports.push(*sync.reported.as_ref().unwrap());
        match self.rounds.len() {
            // After the first sync nothing changes; after the second a hand edits.
            2 => std::fs::write(self.backend.join(place(&map("a", ""))), "edited").unwrap(),
            3 => publish(self.repo, &message(8), &[map("b", "1")]),
            4 => publish(self.repo, &message(6), &[map("old", "1")]),
            5 => publish(self.repo, &message(9), &[map("b", "2")]),
            6 => (self.stop)(),
            _ => {}
        }
    }
}

#[test]
fn rounds_follow_the_ref_correct_drift_and_survive_a_bad_one() {
    let dir = tempfile::tempdir().unwrap();
    let (_repo, repo) = bare();
    let path = dir.path().join("target");
    publish(&repo, &message(7), &[map("a", "1")]);
    let wakeups = sync_loop::Wakeups::default();
    let stop = Box::new(wakeups.stopper());
    let config = Config {
        cluster: "eu-1".to_owned(),
        refs: Refs::default(),
        interval: Duration::from_millis(1),
        heartbeat_seconds: 600,
        options: options(),
    };
    let mut world = Script { repo: &repo, backend: &path, stop, rounds: Vec::new(), reports: Vec::new() };
    let mut backend = FolderBackend::open(&path).unwrap();
    Syncer::new(&config, &repo, &mut backend, &mut world).run(&wakeups);

    let rewound = Err("the folder has sequence 6, but the later 8 was already applied".to_owned());
    assert_eq!(world.rounds, [Ok((1, 0)), Ok((0, 0)), Ok((1, 0)), Ok((1, 1)), rewound, Ok((1, 0))]);
    assert_eq!(world.reports, [true, false, false, true, true, true]);
    assert_eq!(files(&path), expected(&[map("b", "2")]));
    let applied = read_status(&repo, &Refs::default(), "eu-1").unwrap().unwrap().applied.unwrap();
    assert_eq!((applied.sequence, applied.problems.len()), (9, 0));
}

#[test]
fn a_status_names_so_many_unfinished_removals_and_counts_the_others() {
    let removing: Vec<ObjectId> =
        (0..130).map(|n| ObjectId::new("", "ConfigMap", "shop", &format!("m{n}"))).collect();
    let applied = Applied { removing, ..Applied::default() };
    let said = status::of("eu-1", applied, at(1_000), 600).applied.unwrap();
    assert_eq!((said.removing.len(), said.more_removing), (100, 30));
    let again = status::of("eu-1", said.clone(), at(1_000), 600).applied.unwrap();
    assert_eq!(again, said, "a status that is repeated counts them once");
}
