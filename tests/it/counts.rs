//! What one edit costs in objects and documents, exactly: cost follows what changed, not the fleet's size.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::status::Applied;
use berth_base::model::{ClusterStatus, Timestamp};
use berth_engine::pipeline::Effort;
use berth_git::shared_refs::{Refs, STATUS_FILE};
use berth_git::{Identity, Repo, Writer};
use berth_hub::daemon::{Cache, Settings, pass_with_cache};

use crate::fleet::{Dialect, Shape, commit, git};
use crate::support::RENDERED;

struct World {
    folder: tempfile::TempDir,
    cache: Cache,
}

impl World {
    fn new(shape: Shape) -> World {
        let mut world = World::unpublished(shape);
        world.pass();
        world
    }

    fn unpublished(shape: Shape) -> World {
        let folder = tempfile::tempdir().unwrap();
        shape.repository(folder.path());
        World { folder, cache: Cache::default() }
    }

    fn pass(&mut self) {
        let settings = Settings::of(self.folder.path());
        let clock: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let passed = pass_with_cache(&settings, clock, &mut self.cache).unwrap();
        assert_eq!(passed.errors(), 0, "{:?}", passed.diagnostics);
    }

    fn git(&self, args: &[&str]) -> String {
        String::from_utf8(git(self.folder.path(), args)).unwrap()
    }

    /// Each member reports that it applied the folder that its ref has.
    fn report(&self) {
        let repo = Repo::open(self.folder.path()).unwrap();
        let refs = Refs::default();
        let mut writer = Writer::new(&repo).unwrap();
        for (name, commit) in repo.list_refs(&refs.clusters).unwrap() {
            let cluster = name.strip_prefix(&refs.clusters).unwrap().trim_start_matches('/').to_owned();
            let tree = repo.commit(commit).unwrap().tree.to_string();
            let applied = Some(Applied { tree, ..Applied::default() });
            let status = ClusterStatus { cluster, applied, ..ClusterStatus::default() };
            let file = writer.blob(berth_base::status::write_status(&status).as_bytes()).unwrap();
            let tree = writer.folder([(STATUS_FILE, file)]).unwrap();
            let commit = writer.commit(tree, &[], "status\n", &Identity::default(), 1).unwrap();
            let name = refs.status_of(&status.cluster);
            repo.move_ref(&name, repo.read_ref(&name).unwrap(), commit).unwrap();
        }
    }

    /// All files of the report.
    fn fleet_report(&self) -> BTreeMap<String, String> {
        let list = self.git(&["ls-tree", "-r", "refs/berth/report"]);
        let files = list.lines().map(|line| line.split_once('\t').unwrap());
        files.map(|(id, path)| (path.to_owned(), id.to_owned())).collect()
    }

    /// All objects of the repository by id, with their kind.
    fn objects(&self) -> BTreeMap<String, String> {
        let list =
            self.git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)"]);
        list.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(id, kind)| (id.into(), kind.into()))
            .collect()
    }

    /// The ids below `clusters/` of the rendered branch: of blobs, or of trees.
    fn below_clusters(&self, flag: &str) -> BTreeSet<String> {
        let list = self.git(&["ls-tree", flag, &format!("{RENDERED}:clusters")]);
        list.lines().filter_map(|line| line.split([' ', '\t']).nth(2)).map(str::to_owned).collect()
    }
}

fn kinds(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> [usize; 3] {
    let count =
        |wanted| after.iter().filter(|(id, kind)| *kind == wanted && !before.contains_key(*id)).count();
    ["blob", "tree", "commit"].map(count)
}

const KUBEFED: Shape =
    Shape { clusters: 40, workloads: 60, each: 20, overridden: 10, dialect: Dialect::KubeFed };

#[test]
fn one_edited_workload_costs_its_own_objects_and_one_document() {
    let mut world = World::new(KUBEFED);
    let (before, parsed) = (world.objects(), world.cache.parsed());
    commit(world.folder.path(), &[KUBEFED.workload(7, 1)], 1);
    let source = world.objects();
    assert_eq!(kinds(&before, &source), [1, 3, 1], "the edit itself");
    world.pass();
    assert_eq!(world.cache.parsed() - parsed, 1, "documents parsed");
    // Blobs: the copy as it is and as overrides make it in two clusters; the record of the pass; of the report, the
    // files of 20 clusters. Trees: the namespace's three forms, 20 clusters' folders, `clusters` and the root; the
    // record; `clusters` and the root of the report. Commits: the rendered one, one for each of 20 clusters; record
    // and report.
    let written = kinds(&source, &world.objects());
    assert_eq!(written, [1 + 2 + 1 + 20, 3 + 20 + 2 + 1 + 2, 1 + 20 + 2], "blobs, trees and commits");
}

/// The cost of one pass: files parsed, what the build looked at, and the objects written.
type Cost = (usize, Effort, [usize; 3]);

fn cost(world: &mut World, change: impl FnOnce(&World)) -> Cost {
    change(world);
    let (before, parsed) = (world.objects(), world.cache.parsed());
    world.pass();
    (world.cache.parsed() - parsed, world.cache.effort(), kinds(&before, &world.objects()))
}

/// Counts what the first pass looks at, and the cost of passes after nothing, an edit of one workload, a new cluster
/// that no workload picks, and a label of one cluster at which no placement and no copy looks.
fn costs(shape: Shape) -> (Effort, [Cost; 4]) {
    let mut world = World::new(shape);
    let first = world.cache.effort();
    world.pass();
    let nothing = cost(&mut world, |world| commit(world.folder.path(), &[], 1));
    let edit = cost(&mut world, |world| commit(world.folder.path(), &[shape.workload(7, 1)], 2));
    let (path, text) = shape.cluster(shape.clusters);
    let text = text.replace("shard: s", "shard: other-than-s");
    let joined = cost(&mut world, |world| commit(world.folder.path(), &[(path, text)], 3));
    let (path, text) = shape.cluster(3);
    let text = text.replace("labels: {", "labels: {unread: by-all, ");
    let label = cost(&mut world, |world| commit(world.folder.path(), &[(path, text)], 4));
    (first, [nothing, edit, joined, label])
}

/// With twice as many workloads in the same clusters, a pass makes no more and writes no more.
#[test]
fn the_cost_of_a_change_does_not_follow_the_number_of_workloads() {
    for dialect in [Dialect::KubeFed, Dialect::KubeFleet, Dialect::Ocm] {
        let shape = Shape { dialect, ..KUBEFED };
        let [(first, one), (first_of_two, two)] =
            [60, 120].map(|workloads| costs(Shape { workloads, ..shape }));
        assert!(first.paths >= 60 && first_of_two.paths >= first.paths + 60, "{first:?} {first_of_two:?}");
        let [.., (files, effort, _)] = one;
        // KubeFleet's overrides look at labels.
        assert_eq!((files, effort.paths > 0), (1, dialect == Dialect::KubeFleet), "{dialect:?}: {effort:?}");
        let flat = |costs: [Cost; 4]| match costs {
            // KubeFleet's decisions are checked in every pass.
            costs if dialect == Dialect::KubeFleet => {
                costs.map(|(files, effort, objects)| (files, Effort { placements: 0, ..effort }, objects))
            }
            costs => costs,
        };
        let (
            [nothing, edit, joined, (.., label)],
            [nothing_of_two, edit_of_two, joined_of_two, (.., label_of_two)],
        ) = (flat(one), flat(two));
        assert_eq!((nothing.0, nothing.1.paths, nothing.2), (0, 0, [1, 1, 1]), "{dialect:?}: nothing");
        // The clusters are those that were picked: only the content is another one.
        let looked_at = Effort { placements: 0, paths: 1 };
        assert_eq!((edit.0, edit.1), (1, looked_at), "{dialect:?}: one edit");
        // Everybody gets the namespaces of KubeFed and KubeFleet.
        let namespaces = if dialect == Dialect::Ocm { 0 } else { 20 };
        let (files, effort, _) = joined;
        assert_eq!((files, effort.paths), (1, namespaces), "{dialect:?}: a new cluster");
        let placements = if dialect == Dialect::KubeFed { namespaces } else { 0 };
        assert_eq!(effort.placements, placements, "{dialect:?}: a new cluster");
        let first = (nothing, edit, joined, label);
        assert_eq!(first, (nothing_of_two, edit_of_two, joined_of_two, label_of_two), "{dialect:?}");
    }
}

/// Counts the memory that a pass after an edit asks for, on its own thread.
fn allocations(shape: Shape) -> u64 {
    let mut world = World::new(shape);
    let mut count = 0;
    // The first edits make what later ones go on from.
    for version in 1..=3 {
        commit(world.folder.path(), &[shape.workload(7, version)], version);
        count = allocation_counter::measure(|| world.pass()).count_total;
    }
    count
}

/// An edit of 20 copies asks for memory so many times at most, and for each further workload and cluster of the fleet
/// so many times more. KubeFleet's documents are read together, and its decisions are checked in every pass.
#[test]
fn the_memory_that_an_edit_asks_for_follows_its_copies() {
    for (dialect, most, for_workload, for_cluster) in [
        (Dialect::KubeFed, 8_100, 0, 10),
        (Dialect::KubeFleet, 18_000, 100, 14),
        (Dialect::Ocm, 9_900, 5, 10),
    ] {
        let shape = Shape { dialect, ..KUBEFED };
        let one = allocations(shape);
        let of_workloads = allocations(Shape { workloads: shape.workloads + 180, ..shape });
        let of_clusters = allocations(Shape { clusters: shape.clusters + 40, ..shape });
        let further =
            [(of_workloads, 180), (of_clusters, 40)].map(|(count, n)| count.saturating_sub(one) / n);
        let is_little = one <= most && further[0] <= for_workload && further[1] <= for_cluster;
        assert!(is_little, "{dialect:?}: {one}, {further:?}");
    }
}

#[test]
fn the_report_of_one_edited_workload_has_its_file_anew_and_those_of_its_clusters() {
    let mut world = World::new(KUBEFED);
    world.report();
    world.pass();
    let before = world.fleet_report();
    assert_eq!(
        before.len(),
        40 + 60 + 20 + 1,
        "clusters, workloads, their namespaces, the numbers: {before:?}"
    );
    commit(world.folder.path(), &[KUBEFED.workload(7, 1)], 1);
    world.pass();
    let after = world.fleet_report();
    let changed: Vec<&String> =
        after.iter().filter(|(path, id)| before.get(*path) != Some(*id)).map(|(path, _)| path).collect();
    let [clusters, workloads] = ["clusters/", "workloads/"]
        .map(|folder| changed.iter().filter(|path| path.starts_with(folder)).count());
    assert_eq!((clusters, workloads, changed.len()), (20, 1, 20 + 1 + 1), "{changed:?}");
    // A process that knows nothing of it says the same.
    world.cache = Cache::default();
    world.git(&["update-ref", "-d", "refs/berth/report"]);
    world.pass();
    assert_eq!(world.fleet_report(), after);
    world.report();
    world.pass();
    assert_eq!(world.fleet_report().get("report.json"), before.get("report.json"), "all are in sync again");
}

#[test]
fn a_pass_over_what_it_knows_parses_nothing_and_writes_nothing_but_its_record() {
    let mut world = World::new(KUBEFED);
    commit(world.folder.path(), &[], 1);
    let (before, parsed) = (world.objects(), world.cache.parsed());
    world.pass();
    assert_eq!(world.cache.parsed(), parsed);
    assert_eq!(kinds(&before, &world.objects()), [1, 1, 1]);
}

#[test]
fn equal_copies_are_one_blob_and_equal_folders_one_tree() {
    for dialect in [Dialect::KubeFed, Dialect::KubeFleet, Dialect::Ocm] {
        let shape = Shape { overridden: 0, dialect, ..KUBEFED };
        let world = World::new(shape);
        let namespaces = if dialect == Dialect::Ocm { 0 } else { 20 };
        assert_eq!(world.below_clusters("-r").len(), shape.workloads + namespaces, "{dialect:?}: blobs");
        // Two shards of clusters, each with the same objects.
        assert_eq!(world.below_clusters("-d").len(), 2, "{dialect:?}: clusters' trees");
    }
}

#[test]
fn a_full_run_leaves_its_objects_in_packs() {
    let world = World::new(KUBEFED);
    let count = world.git(&["count-objects", "-v"]);
    let number = |name: &str| -> usize {
        let line = count.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').trim().parse().unwrap()
    };
    // The source's pack, the state's, the cluster refs', the report's. The small record beside it stays loose.
    assert_eq!(number("packs"), 4);
    assert!(number("count") <= 10, "{count}");
    assert!(number("in-pack") > 500, "{count}");
    world.git(&["fsck", "--strict"]);
}
