//! Tests that an updated summary equals a new one, and that updates make few lines.

use proptest::prelude::*;

use super::*;
use berth_base::model::ContentId;
use berth_base::model::release::{Assignment, Release};
use berth_base::model::status::ProblemKind;

const CLUSTERS: u8 = 5;
const WORKLOADS: u8 = 4;
const OBJECTS: u8 = 3;

/// A change of the inputs. Numbers select its subject.
#[derive(Clone, Debug)]
enum Edit {
    Report(u8, Report),
    NoReport(u8),
    Publish(u8, u8),
    Unpublish(u8),
    Differ(u8, Option<u8>),
    Decide(u8, Decided),
    Forget(u8),
    Release(u8, u64, u8),
    NoRelease(u8),
    Wait(i64),
}

#[derive(Clone, Debug)]
struct Report {
    tree: u8,
    /// Bits that select objects, here and below.
    problems: u8,
    is_kept: bool,
    progressing: bool,
    waiting: u8,
    failing: bool,
    suspended: bool,
    applied: bool,
    interval: i64,
}

#[derive(Clone, Debug)]
struct Decided {
    clusters: u8,
    objects: u8,
    failures: u8,
    pending: u8,
}

fn edit() -> impl Strategy<Value = Edit> {
    let (cluster, workload) = (0..CLUSTERS, 0..WORKLOADS);
    let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.1));
    let report = (0..3u8, 0..8u8, flags, 0..8u8, prop::bool::weighted(0.9), 1..400i64).prop_map(
        |(tree, problems, (is_kept, progressing, failing, suspended), waiting, applied, interval)| Report {
            tree,
            problems,
            is_kept,
            progressing,
            waiting,
            failing,
            suspended,
            applied,
            interval,
        },
    );
    let decided = (0..32u8, 0..8u8, 0..32u8, 0..32u8)
        .prop_map(|(clusters, objects, failures, pending)| Decided { clusters, objects, failures, pending });
    prop_oneof![
        8 => (cluster.clone(), report).prop_map(|(cluster, report)| Edit::Report(cluster, report)),
        1 => cluster.clone().prop_map(Edit::NoReport),
        4 => (cluster.clone(), 0..3u8).prop_map(|(cluster, tree)| Edit::Publish(cluster, tree)),
        1 => cluster.clone().prop_map(Edit::Unpublish),
        4 => (cluster, prop::option::of(0..8u8)).prop_map(|(cluster, objects)| Edit::Differ(cluster, objects)),
        8 => (workload.clone(), decided).prop_map(|(workload, decided)| Edit::Decide(workload, decided)),
        1 => workload.clone().prop_map(Edit::Forget),
        3 => (workload.clone(), 1..3u64, 0..32u8).prop_map(|(workload, good, told)| Edit::Release(workload, good, told)),
        1 => workload.prop_map(Edit::NoRelease),
        3 => (-300..900i64).prop_map(Edit::Wait),
    ]
}

fn cluster(number: u8) -> String {
    format!("c{number}")
}

fn key(number: u8) -> Key {
    let group = if number == 0 { "placement.kubernetes-fleet.io" } else { "types.kubefed.io" };
    Key::new(group, "FederatedDeployment", "shop", &format!("w{number}"))
}

fn chosen(bits: u8, of: u8) -> impl Iterator<Item = u8> {
    (0..of).filter(move |number| bits >> number & 1 == 1)
}

fn objects(bits: u8) -> Vec<ObjectId> {
    chosen(bits, OBJECTS)
        .map(|number| ObjectId::new("", "ConfigMap", "shop", &format!("o{number}")))
        .collect()
}

fn reported(name: String, report: &Report, now: Timestamp) -> ClusterStatus {
    let kind = if report.is_kept { ProblemKind::Kept } else { ProblemKind::Failed };
    let problem = |object| Problem::of(kind, object, "words");
    let applied = Applied {
        tree: report.tree.to_string(),
        problems: objects(report.problems).into_iter().map(problem).collect(),
        progressing: report.progressing,
        waiting: objects(report.waiting),
        failing: report.failing.then(Default::default),
        suspended: report.suspended.then(Default::default),
        ..Applied::default()
    };
    ClusterStatus {
        cluster: name,
        reported: Some(now),
        next_due: Some(at(now.as_second() + report.interval)),
        applied: report.applied.then_some(applied),
        ..ClusterStatus::default()
    }
}

fn decision_of(number: u8, decided: &Decided) -> Decision {
    let pick = |cluster_number| {
        let pending = decided.pending >> cluster_number & 1 == 1;
        Pick::of(cluster(cluster_number)).with(|details| details.pending = pending)
    };
    let objects = objects(decided.objects);
    let failure = |number| {
        Some(Failure {
            cluster: cluster(number),
            object: objects.first()?.clone(),
            of_override: true,
            reason: String::new(),
        })
    };
    Decision {
        picks: chosen(decided.clusters, CLUSTERS).map(pick).collect(),
        failures: chosen(decided.failures, CLUSTERS).filter_map(failure).collect(),
        objects: objects.clone(),
        ..Decision::new(key(number), "web.yaml")
    }
}

fn releases_of(number: u8, good: u64, assigned: u8) -> Releases {
    let release = |number| Release { number, begun: at(0), inputs: ContentId([0; 20]) };
    let assigned =
        chosen(assigned, CLUSTERS).map(|number| (cluster(number), Assignment { release: 2, at: at(10) }));
    Releases {
        good: Some(good),
        earlier: vec![release(1)],
        assigned: assigned.collect(),
        ..Releases::of(key(number), release(2))
    }
}

impl Edit {
    fn apply(&self, inputs: &mut SummaryInputs) {
        let SummaryInputs { statuses, published, differing, decisions, releases, now } = inputs;
        match self {
            Edit::Report(number, report) => {
                let status = reported(cluster(*number), report, *now);
                statuses.insert(cluster(*number), status.into());
            }
            Edit::NoReport(number) => drop(statuses.remove(&cluster(*number))),
            Edit::Publish(number, tree) => {
                let folder = Published { sequence: u64::from(*tree), tree: tree.to_string() };
                published.insert(cluster(*number), folder);
            }
            Edit::Unpublish(number) => drop(published.remove(&cluster(*number))),
            Edit::Differ(number, None) => drop(differing.remove(&cluster(*number))),
            Edit::Differ(number, Some(bits)) => {
                let paths = objects(*bits).iter().map(path::of_object).collect();
                differing.insert(cluster(*number), paths);
            }
            Edit::Decide(number, decided) => {
                drop(decisions.insert(key(*number), decision_of(*number, decided)));
            }
            Edit::Forget(number) => drop(decisions.remove(&key(*number))),
            Edit::Release(number, good, told) => {
                releases.insert(key(*number), releases_of(*number, *good, *told).into());
            }
            Edit::NoRelease(number) => drop(releases.remove(&key(*number))),
            Edit::Wait(seconds) => *now = at((now.as_second() + seconds).max(0)),
        }
    }
}

proptest! {
    #[test]
    fn a_kept_summary_equals_a_new_one(steps in prop::collection::vec(prop::collection::vec(edit(), 1..6), 1..20)) {
        let mut kept = FleetSummary::new(Detail::Full);
        let mut inputs = SummaryInputs { now: at(1_000), ..SummaryInputs::default() };
        for edits in steps {
            edits.iter().for_each(|edit| edit.apply(&mut inputs));
            kept.update(inputs.clone());
            let new = FleetSummary::of(inputs.clone(), Detail::Full);
            prop_assert_eq!(kept.clusters(), new.clusters());
            prop_assert_eq!(kept.workloads(), new.workloads());
            prop_assert_eq!(kept.totals(), new.totals());
        }
    }
}
