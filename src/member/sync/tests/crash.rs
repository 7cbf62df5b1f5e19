//! A syncer that dies after any number of steps loses no ownership and removes nothing foreign.

use std::fs;
use std::path::Path;

use super::*;
use backends::{Apply, BackendError, Record};
use berth_base::model::ObjectId;
use desired::Desired;
use plan::{Live, Planned, Prune};

/// Works like the folder backend until its steps are used up, and then does nothing more.
struct Dying {
    inner: FolderBackend,
    steps: usize,
}

impl Dying {
    fn step<T>(
        &mut self,
        act: impl FnOnce(&mut FolderBackend) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        let Some(left) = self.steps.checked_sub(1) else {
            return Err(BackendError::Failed("dead".to_owned()));
        };
        self.steps = left;
        act(&mut self.inner)
    }
}

impl Backend for Dying {
    fn record(&mut self) -> Result<Option<Record>, BackendError> {
        self.inner.record()
    }

    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, BackendError> {
        self.inner.survey(desired)
    }

    fn begin(
        &mut self,
        record: &Record,
        writes: &[Apply<'_>],
        prunes: &[&Prune],
    ) -> Result<(), BackendError> {
        self.step(|backend| backend.begin(record, writes, prunes))
    }

    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), BackendError>> {
        batch.iter().map(|item| self.step(|backend| backend.apply(&[*item]).remove(0))).collect()
    }

    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), BackendError>> {
        batch.iter().map(|prune| self.step(|backend| backend.delete(&[*prune]).remove(0))).collect()
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        self.step(FolderBackend::finish)
    }
}

fn die_after(steps: usize, path: &Path, folder: &ClusterFolder) {
    let mut backend = Dying { inner: FolderBackend::open(path).unwrap(), steps };
    let _ = sync_once(folder, &LocalOverrides::default(), &mut backend, &options());
}

#[test]
fn whatever_step_is_the_last_the_next_round_converges() {
    let foreign = map("foreign", "mine");
    let first = [map("a", "1"), map("b", "1"), map("c", "1"), map("d", "1")];
    let second = [map("b", "2"), map("c", "1"), map("e", "1"), map("f", "1")];
    for steps in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("shop")).unwrap();
        fs::write(dir.path().join(place(&foreign)), text(&foreign)).unwrap();
        die_after(steps, dir.path(), &folder(1, &first));
        die_after(steps, dir.path(), &folder(2, &second));
        let outcome = sync(dir.path(), &folder(2, &second));
        assert_eq!(messages(&outcome), [""; 0], "after {steps} steps");
        let wanted = [&second[..], std::slice::from_ref(&foreign)].concat();
        assert_eq!(files(dir.path()), expected(&wanted), "after {steps} steps");
        assert!(sync(dir.path(), &folder(2, &second)).plan.is_quiet(), "after {steps} steps");
        // Berth still owns all its files: an empty folder removes them, and nothing else.
        sync(dir.path(), &folder(3, &[]));
        assert_eq!(files(dir.path()), expected(std::slice::from_ref(&foreign)), "after {steps} steps");
    }
}

#[test]
fn what_comes_into_a_promised_place_after_a_crash_is_a_strangers() {
    let dir = tempfile::tempdir().unwrap();
    die_after(1, dir.path(), &folder(1, &[map("a", "1")]));
    let there = dir.path().join(place(&map("a", "")));
    assert!(!there.exists(), "only the promise was written");
    fs::create_dir_all(there.parent().unwrap()).unwrap();
    fs::write(&there, "mine").unwrap();
    assert_eq!(messages(&sync(dir.path(), &folder(1, &[map("a", "1")]))).len(), 1);
    sync(dir.path(), &folder(2, &[map("b", "1")]));
    sync(dir.path(), &folder(3, &[]));
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
}

#[test]
fn what_comes_into_a_pruned_place_after_a_crash_is_a_strangers() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[map("a", "1"), map("b", "1")]));
    // Begin and one removal, without the finish.
    die_after(2, dir.path(), &folder(2, &[map("b", "1")]));
    let there = dir.path().join(place(&map("a", "")));
    assert!(!there.exists());
    fs::write(&there, "mine").unwrap();
    sync(dir.path(), &folder(2, &[map("b", "1")]));
    sync(dir.path(), &folder(3, &[]));
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
}

#[test]
fn half_written_files_are_cleared_away() {
    let dir = tempfile::tempdir().unwrap();
    die_after(1, dir.path(), &folder(1, &[map("a", "1")]));
    let left = dir.path().join("shop/.ConfigMap_a.yaml.berth-new");
    fs::create_dir_all(left.parent().unwrap()).unwrap();
    fs::write(&left, "half of").unwrap();
    sync(dir.path(), &folder(2, &[map("b", "1")]));
    assert_eq!(files(dir.path()), expected(&[map("b", "1")]));
}

#[test]
fn a_file_that_changes_between_plan_and_deed_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    sync(dir.path(), &folder(1, &[map("a", "1"), map("b", "1")]));
    let mut backend = FolderBackend::open(dir.path()).unwrap();
    let wanted = desired::read(&folder(2, &[map("b", "2"), map("c", "1")]));
    let record = Record { sequence: 2, ..backend.record().unwrap().unwrap() };
    let live = backend.survey(&wanted.objects).unwrap();
    let plan = plan::plan(&wanted, &live, |_| false);
    for name in ["a", "b", "c"] {
        fs::write(dir.path().join(place(&map(name, ""))), "changed meanwhile").unwrap();
    }
    let done =
        apply::apply(Planned { plan: &plan, desired: &wanted, live: &live }, &mut backend, &record).unwrap();
    assert_eq!((done.written.len(), done.pruned.len(), done.problems.len()), (0, 0, 3));
    assert_eq!(files(dir.path()).values().filter(|content| *content == "changed meanwhile").count(), 3);
}
