//! The cause that a plan names is the edit that was made: over random fleets and edits, by brute force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::archive::Archive;
use crate::support::editing::{self, Files};
use crate::support::random::{Random, rounds};
use crate::support::removals::{GLOBAL_SET, feed};
use crate::support::{Repo, fixtures, run, small_fleet};
use berth_base::model::{Map, Timestamp};
use berth_base::source::SourceTree;
use berth_engine::causes::{Blame, Causes, Edits, Effect, Effects, How, Seen, Traced, Trials, trace};
use berth_engine::gate::Limits;
use berth_engine::load::History;
use berth_engine::pipeline::{self, Built, Inputs};
use berth_engine::render::MemoryContents;
use berth_engine::state::State;
use berth_git::Identity;
use berth_hub::inputs::{BuildCache, LocatedState, Reports, Search};
use berth_hub::next_commit::{Exemptions, StepInputs, rehearse};

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// Builds a state, without any cache.
fn build(tree: &SourceTree, before: &SourceTree, current: &State) -> Built {
    let earlier = |path: &str| -> Option<Arc<[u8]>> { Some(before.files.get(path)?.bytes.clone()) };
    let statuses = Map::new();
    let history = History::Known(&earlier);
    let inputs = Inputs { tree, history, current, statuses: &statuses, now: now() };
    pipeline::build(inputs, &mut MemoryContents::default()).unwrap()
}

/// A step between two trees.
struct Step {
    before: SourceTree,
    after: SourceTree,
    current: State,
    edits: Edits,
    effects: Effects,
}

impl Step {
    fn between(before: &Files, after: &Files) -> Step {
        let (before, after) = (editing::tree(before), editing::tree(after));
        let current = build(&before, &SourceTree::default(), &State::default()).state;
        let next = build(&after, &before, &current).state;
        let edits = Edits::between(&before, &after, |_| false);
        let effects = Effects::between(&current, &next);
        Step { before, after, current, edits, effects }
    }

    fn traced(&mut self) -> Traced {
        let (documents, n_effects) = (self.edits.documents.clone(), self.effects.len());
        trace(self, &documents, n_effects).unwrap()
    }

    fn seen(&self, taken_back: &BTreeSet<usize>) -> Vec<Seen> {
        let tree = self.edits.without(&self.after, taken_back);
        self.effects.seen_in(&build(&tree, &self.before, &self.current).state)
    }

    /// The form of each effect with only these edits.
    fn only(&self, edits: &[usize]) -> Vec<Seen> {
        self.seen(&(0..self.edits.inputs.len()).filter(|edit| !edits.contains(edit)).collect())
    }
}

impl Trials for Step {
    type Error = std::convert::Infallible;

    fn without(&mut self, taken_back: &BTreeSet<usize>) -> Result<Vec<Seen>, Self::Error> {
        Ok(self.seen(taken_back))
    }
}

#[test]
fn the_cause_of_a_single_edit_is_that_edit() {
    let mut random = Random::new(14);
    let mut traced = 0;
    while traced < rounds("BERTH_CAUSES", 300) {
        let before = editing::fleet(&mut random);
        for _ in 0..12 {
            let mut after = before.clone();
            let Some(made) = editing::edit(&mut random, &mut after) else { continue };
            let n_noise = random.below(4);
            (0..n_noise).for_each(|_| editing::noise(&mut random, &mut after));
            let mut step = Step::between(&before, &after);
            if step.effects.is_empty() {
                continue;
            }
            let matches = |number: &usize| {
                let input = &step.edits.inputs[*number];
                input.words.contains(&made.word)
                    && input.at.as_ref().is_some_and(|at| *at.file == *made.file && at.line > 0)
            };
            let number: Vec<usize> = (0..step.edits.inputs.len()).filter(matches).collect();
            assert_eq!(number.len(), 1, "{made:?}: {:?}", step.edits.inputs);
            for blame in step.traced().blames {
                let wanted = Blame { changes: number.clone(), how: How::Alone };
                assert_eq!(blame, wanted, "{made:?}: {:?}", step.edits.inputs);
            }
            traced += 1;
        }
    }
}

#[test]
fn the_causes_of_a_pair_of_edits_are_those_that_brute_force_finds() {
    let mut random = Random::new(15);
    let (mut traced, mut joint) = (0, 0);
    while traced < rounds("BERTH_CAUSES", 300) / 3 {
        let before = editing::fleet(&mut random);
        let mut after = before.clone();
        for _ in 0..2 {
            while editing::edit(&mut random, &mut after).is_none() {}
        }
        let mut step = Step::between(&before, &after);
        if step.edits.inputs.len() != 2 || step.effects.is_empty() {
            continue;
        }
        let alone = [step.only(&[0]), step.only(&[1])];
        for (effect, blame) in step.traced().blames.into_iter().enumerate() {
            let wanted = match (alone[0][effect], alone[1][effect]) {
                (Seen::After, Seen::After) => (How::Each, vec![0, 1]),
                (Seen::After, _) => (How::Alone, vec![0]),
                (_, Seen::After) => (How::Alone, vec![1]),
                (Seen::Before, Seen::Before) => (How::Together, vec![0, 1]),
                _ => (How::Parts, vec![0, 1]),
            };
            joint += usize::from(wanted.0 != How::Alone);
            assert_eq!((blame.how, blame.changes), wanted, "{:?}", step.edits.inputs);
        }
        traced += 1;
    }
    assert!(joint > 3, "{joint} effects of two edits");
}

#[test]
fn the_causes_of_many_edits_are_enough_and_none_is_left_out() {
    let mut random = Random::new(16);
    let (mut effects, mut untraced) = (0, 0);
    for _ in 0..rounds("BERTH_CAUSES", 300) / 50 {
        let before = editing::fleet(&mut random);
        let mut after = before.clone();
        (0..60).for_each(|_| {
            editing::edit(&mut random, &mut after);
        });
        let mut step = Step::between(&before, &after);
        let traced = step.traced();
        assert!(traced.asked <= 96, "{}", traced.asked);
        for (effect, blame) in traced.blames.iter().enumerate().step_by(2) {
            effects += 1;
            let only = |edits: &[usize]| step.only(edits)[effect] == Seen::After;
            let key = step.effects.iter().nth(effect).unwrap();
            let named: Vec<_> =
                blame.changes.iter().map(|number| &step.edits.inputs[*number].words).collect();
            let said = || format!("{key:?} {:?} {named:?}: {:?}", blame.how, step.edits.inputs);
            match blame.how {
                How::Alone | How::Together | How::Parts => {
                    let is_out = traced.asked >= 96;
                    assert!(is_out || only(&blame.changes), "not enough: {}", said());
                    for left_out in &blame.changes {
                        let others: Vec<usize> =
                            blame.changes.iter().filter(|one| *one != left_out).copied().collect();
                        let without = || step.seen(&BTreeSet::from([*left_out]))[effect] != Seen::After;
                        assert!(!only(&others) || without(), "{left_out} is not needed: {}", said());
                    }
                }
                How::Each => assert!(blame.changes.iter().all(|one| only(&[*one])), "{}", said()),
                How::Untraced => untraced += 1,
                How::Earlier | How::Imported | How::First => {
                    panic!("nothing was held or imported: {}", said())
                }
            }
        }
    }
    println!("{untraced} of {effects} effects are untraced");
    assert!(untraced * 4 < effects, "{untraced} of {effects} effects are untraced");
}

#[test]
fn documents_that_are_written_anew_read_as_before() {
    let mut cases = 0;
    for system in [
        "kubefed",
        "kubefed-render",
        "kubefed-fleet",
        "kubefleet",
        "kubefleet-render",
        "kubefleet-azure",
        "ocm",
    ] {
        for entry in std::fs::read_dir(fixtures(system)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "txtar") {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            Archive::read(&path).unpack(folder.path());
            let limits = berth_base::yaml::Limits::default();
            let Ok(tree) = berth_base::source::read_dir(&folder.path().join("fleet"), &limits) else {
                continue;
            };
            let none = SourceTree::default();
            let edits = Edits::between(&tree, &none, |_| false);
            let all: BTreeSet<usize> = (0..edits.inputs.len()).collect();
            let anew = edits.without(&none, &all);
            let [old, new] = [&tree, &anew].map(|tree| build(tree, &none, &State::default()));
            assert_eq!(new.state, old.state, "{}", path.display());
            let n_errors = |built: &Built| built.diagnostics.errors().count();
            assert_eq!(n_errors(&new), n_errors(&old), "{}", path.display());
            cases += 1;
        }
    }
    assert!(cases > 300, "{cases} cases");
}

/// The plan of the head, computed as the command does, and its causes.
fn planned(repo: &Repo) -> Causes {
    let git = berth_git::Repo::rehearsal(repo.path()).unwrap();
    let located = LocatedState::find(&git, &Search::default()).unwrap();
    let start = StepInputs {
        name: "HEAD",
        source: git.require("HEAD").unwrap(),
        current: located.current.as_ref(),
        processed: located.processed.as_ref(),
        refs: &located.refs,
        reports: Reports::default(),
        identity: &Identity::default(),
        signs_anew: false,
        limits: &Limits::default(),
        exemptions: Exemptions::default(),
        clock: "2027-01-01T00:00:00Z".parse().unwrap(),
        // Time is no input then.
        at: located.current.as_ref().and_then(|current| current.trailers.now),
        cache: BuildCache::default(),
    };
    let (mut step, _) = rehearse(&git, start).unwrap();
    step.inputs.causes(&git, &step.built.state, |built| built.state.clone()).unwrap()
}

fn write(repo: &Repo, files: &Files) {
    for folder in ["kubefed", "fleet", "ocm", "moved"] {
        let _ = std::fs::remove_dir_all(repo.path().join(folder));
    }
    files.iter().for_each(|(path, documents)| repo.write(path, editing::text(documents)));
    repo.commit("edits");
}

#[test]
fn trials_that_use_what_was_made_before_find_what_those_from_nothing_find() {
    let mut random = Random::new(17);
    for _ in 0..rounds("BERTH_CAUSES", 300) / 50 {
        let before = editing::fleet(&mut random);
        let repo = Repo::new();
        write(&repo, &before);
        repo.publish_ungated().expect(0);
        for n_edits in [1, 2, 6, 20, 50] {
            let mut after = before.clone();
            (0..n_edits).for_each(|_| {
                editing::edit(&mut random, &mut after);
            });
            write(&repo, &after);
            let causes = planned(&repo);
            let mut cold = Step::between(&before, &after);
            let traced = cold.traced();
            assert_eq!(causes.inputs, cold.edits.inputs);
            let expected: BTreeMap<Effect, Blame> = cold.effects.iter().cloned().zip(traced.blames).collect();
            let differs = |(effect, blame): &(&Effect, &Blame)| expected.get(effect) != Some(blame);
            let wrong: Vec<_> = causes.by_effect.iter().filter(differs).collect();
            assert!(wrong.is_empty(), "{wrong:?} in place of {expected:?} by {:?}", causes.inputs);
            assert_eq!((causes.by_effect.len(), causes.asked), (expected.len(), traced.asked));
        }
    }
}

#[test]
fn a_held_workload_has_its_cause_too() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.git(&["rm", "-q", "apps/shop.yaml"]);
    repo.commit("clean up");
    let plan = run(&["plan", "--repo", repo.arg()]).expect(0);
    let cause = "apps/shop.yaml:1:1: document removed: FederatedNamespace shop/shop\n";
    assert!(plan.out.contains(cause) && plan.out.contains("held"), "{}", plan.out);
}

#[test]
fn time_and_reports_are_causes_as_edits_are() {
    let repo = Repo::new();
    for name in ["c0", "c1"] {
        let taint = "  taints:\n  - {key: drain, effect: NoSelect, timeAdded: \"2100-01-01T00:00:00Z\"}\n";
        let taint = if name == "c0" { taint } else { "" };
        repo.write(
            &format!("clusters/{name}.yaml"),
            format!(
                "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}}}\n\
                 spec:\n  hubAcceptsClient: true\n{taint}"
            ),
        );
    }
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write(
        "place.yaml",
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: web, namespace: shop}\nspec:\n  \
         predicates:\n  - requiredClusterSelector:\n      claimSelector: {matchExpressions: [{key: zone, operator: NotIn, \
         values: [z1]}]}\n  tolerations:\n  - {key: drain, operator: Exists, tolerationSeconds: 600}\n---\n\
         apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\nmetadata: {name: web, namespace: shop}\n\
         spec:\n  placementRefs: [{name: web}]\n  manifestWorkTemplate:\n    workload:\n      manifests:\n      - {apiVersion: v1, \
         kind: ConfigMap, metadata: {name: web, namespace: shop}}\n",
    );
    repo.commit("start");
    repo.publish_at(repo.dated()).expect(0);
    let plan = |more: &[&str]| run(&[&["plan", "--repo", repo.arg()], more].concat()).expect(0).out;
    let later = plan(&["--now", "2100-01-01T00:30:00Z"]);
    assert!(later.contains("\ntime: 2026-01-01T00:01:00Z → 2100-01-01T00:30:00Z\n"), "{later}");
    assert!(!later.contains("report of"), "{later}");
    let status = "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {name: c1}\nreported: \
                  \"2026-01-01T00:02:00Z\"\nclaims: {zone: z1}\n";
    let blob = feed(&repo, &["hash-object", "-w", "--stdin"], status);
    let tree = feed(&repo, &["mktree"], &format!("100644 blob {blob}\tstatus.yaml\n"));
    let commit = feed(&repo, &["commit-tree", &tree, "-m", "status"], "");
    repo.git(&["update-ref", "refs/berth/status/c1", &commit]);
    let reported = plan(&[]);
    assert!(reported.contains("\nreport of c1: claim zone: z1, not reported before\n"), "{reported}");
    assert!(!reported.contains("time: "), "{reported}");
    // An edit with the report: the report alone is enough, the edit makes nothing.
    repo.write("sets.yaml", format!("{GLOBAL_SET}# more\n"));
    repo.write(
        "clusters/c0.yaml",
        std::fs::read_to_string(repo.path().join("clusters/c0.yaml")).unwrap() + "# more\n",
    );
    repo.commit("comments");
    assert!(plan(&[]).contains("\nreport of c1: claim zone"), "{}", plan(&[]));
}
