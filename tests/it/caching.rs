//! What passes carry from one to the next only saves time: over any sequence of edits, a daemon that
//! remembers publishes the very commits of one that has forgotten everything.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use berth_base::model::Timestamp;
use berth_engine::plan::Plan;
use berth_git::{CommitId, Identity, Repo, Writer};
use berth_hub::daemon::{
    Cache, Once, PassError, PassOutcome, PassResult, Settings, pass, pass_once, pass_with_cache,
};
use proptest::prelude::*;

use crate::archive::Archive;
use crate::support::{cluster, fixtures, namespace};

const CLUSTERS: usize = 4;
const WORKLOADS: usize = 4;

/// One change to the fleet's files.
#[derive(Clone, Debug)]
enum Edit {
    Workload {
        which: usize,
        value: u8,
        clusters: u8,
        overrides: u8,
    },
    /// The same object as workload 0 puts, by another system's words.
    Rival {
        value: u8,
    },
    Cluster {
        which: usize,
        env: u8,
    },
    Remove {
        which: usize,
    },
    Break {
        which: usize,
    },
    Nothing,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => (0..WORKLOADS, 0..3_u8, 0..16_u8, 0..6_u8)
            .prop_map(|(which, value, clusters, overrides)| Edit::Workload { which, value, clusters, overrides }),
        1 => (0..4_u8).prop_map(|value| Edit::Rival { value }),
        2 => (0..CLUSTERS, 0..2_u8).prop_map(|(which, env)| Edit::Cluster { which, env }),
        1 => (0..CLUSTERS + WORKLOADS).prop_map(|which| Edit::Remove { which }),
        1 => (0..CLUSTERS + WORKLOADS).prop_map(|which| Edit::Break { which }),
        1 => Just(Edit::Nothing),
    ]
}

fn name(cluster: usize) -> String {
    format!("c{cluster}")
}

fn path(which: usize) -> String {
    match which.checked_sub(CLUSTERS) {
        None => format!("clusters/{}.yaml", name(which)),
        Some(workload) => format!("apps/w{workload}.yaml"),
    }
}

fn workload(which: usize, value: u8, clusters: u8, overrides: u8) -> String {
    let picked = (0..CLUSTERS).filter(|n| clusters & (1 << n) != 0);
    let picked: Vec<String> = picked.map(|n| format!("{{name: {}}}", name(n))).collect();
    let placement = match clusters {
        0 => "{clusterSelector: {matchLabels: {env: e1}}}".to_owned(),
        _ => format!("{{clusters: [{}]}}", picked.join(", ")),
    };
    let mut text = format!(
        "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata: {{name: w{which}, namespace: shop}}\n\
         spec:\n  template:\n    data: {{value: \"{value}\"}}\n  placement: {placement}\n"
    );
    let patch = match overrides {
        1 => "{path: /data/value, value: other}",
        2 => "{op: remove, path: /data/absent}",
        3 => "{op: replace, path: /data/absent, value: added}",
        4 => "{op: add, path: /metadata/labels, value: {a: b}}",
        _ => return text,
    };
    let _ = write!(text, "  overrides:\n  - clusterName: {}\n    clusterOverrides: [{patch}]\n", name(1));
    text
}

fn rival(value: u8) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: w0, namespace: shop}}\ndata: {{value: \"{value}\"}}\n---\n\
         apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\nmetadata: {{name: rival, namespace: shop}}\n\
         spec:\n  resourceSelectors: [{{group: '', version: v1, kind: ConfigMap, name: w0}}]\n  policy: {{placementType: PickAll}}\n"
    )
}

fn apply(files: &mut BTreeMap<String, String>, edit: &Edit) {
    let text = match edit {
        Edit::Workload { which, value, clusters, overrides } => {
            (path(CLUSTERS + which), Some(workload(*which, *value, *clusters, *overrides)))
        }
        Edit::Rival { value: 3 } => ("apps/rival.yaml".to_owned(), None),
        Edit::Rival { value } => ("apps/rival.yaml".to_owned(), Some(rival(*value))),
        Edit::Cluster { which, env } => {
            (path(*which), Some(cluster(&name(*which), &[("env", &format!("e{env}"))])))
        }
        Edit::Remove { which } => (path(*which), None),
        Edit::Break { which } => (path(*which), Some("kind: [\n".to_owned())),
        Edit::Nothing => return,
    };
    match text {
        (path, Some(text)) => files.insert(path, text),
        (path, None) => files.remove(&path),
    };
}

/// A repository with one daemon's worth of settings.
struct Side {
    _folder: tempfile::TempDir,
    settings: Settings,
}

impl Side {
    fn new() -> Side {
        let folder = tempfile::tempdir().unwrap();
        crate::support::hermetic("git")
            .args(["init", "-q", "--bare", "-b", "main"])
            .arg(folder.path())
            .status()
            .unwrap();
        let settings = Settings::of(folder.path());
        Side { _folder: folder, settings }
    }

    fn commit(&self, files: &BTreeMap<String, String>, number: i64) {
        let repo = Repo::open(&self.settings.repo).unwrap();
        let mut writer = Writer::new(&repo).unwrap();
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.as_str(), writer.blob(text.as_bytes()).unwrap())).collect();
        let tree = writer.folder(files).unwrap();
        let old = repo.read_ref("refs/heads/main").unwrap();
        let parents: Vec<CommitId> = old.into_iter().collect();
        let seconds = 1_767_225_600 + 60 * number;
        let commit = writer.commit(tree, &parents, "edit\n", &Identity::default(), seconds).unwrap();
        repo.move_ref("refs/heads/main", old, commit).unwrap();
    }

    /// A pass of a process of its own, which begins with what the last one left, or without.
    fn process(&self, deleted: bool) -> Result<Once, PassError> {
        if deleted {
            let _ = std::fs::remove_dir_all(self.settings.repo.join("berth/cache"));
        }
        pass_once(&self.settings, clock(), None)
    }

    fn refs(&self) -> BTreeMap<String, CommitId> {
        Repo::open(&self.settings.repo).unwrap().list_refs("refs/").unwrap()
    }
}

fn clock() -> Timestamp {
    "2027-01-01T00:00:00Z".parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_pass_that_remembers_publishes_what_one_that_forgot_does(edits in proptest::collection::vec(edit(), 1..12)) {
        let (warm, kept, cold) = (Side::new(), Side::new(), Side::new());
        let mut cache = Cache::default();
        let mut files = BTreeMap::from([("apps/shop.yaml".to_owned(), namespace("shop"))]);
        for which in 0..CLUSTERS {
            apply(&mut files, &Edit::Cluster { which, env: 1 });
        }
        for which in 0..WORKLOADS {
            apply(&mut files, &Edit::Workload { which, value: 0, clusters: 0, overrides: 1 });
        }
        for (number, edit) in [Edit::Nothing].iter().chain(&edits).enumerate() {
            apply(&mut files, edit);
            let number = i64::try_from(number).unwrap();
            warm.commit(&files, number);
            kept.commit(&files, number);
            cold.commit(&files, number);
            let remembered = pass_with_cache(&warm.settings, clock(), &mut cache);
            let found = kept.process(number % 4 == 3);
            let forgot = pass(&cold.settings, clock());
            let said = |passed: &Result<PassResult, PassError>| match passed {
                Ok(passed) => format!("{:?}\n{:?}\n{:?}", passed.outcome, passed.plan, passed.diagnostics),
                Err(error) => error.to_string(),
            };
            let found_to_say = |once: Result<Once, PassError>| match once {
                Ok(Once::Passed(passed)) => said(&Ok(*passed)),
                Ok(Once::Idle { diagnostics, .. }) => {
                    format!("{:?}\n{:?}\n{diagnostics:?}", PassOutcome::Unchanged, Plan::default())
                }
                Err(error) => error.to_string(),
            };
            prop_assert_eq!(said(&remembered), said(&forgot), "after {:?}", edit);
            prop_assert_eq!(found_to_say(found), said(&forgot), "after {:?}", edit);
            if number % 3 == 1 {
                // The last of these finds that nothing changed since the one before it.
                let forgot = pass(&cold.settings, clock());
                let remembered = pass_with_cache(&warm.settings, clock(), &mut cache);
                prop_assert_eq!(said(&remembered), said(&forgot), "again after {:?}", edit);
                for _ in 0..2 {
                    let again = kept.process(false);
                    prop_assert_eq!(found_to_say(again), said(&forgot), "again after {:?}", edit);
                }
            }
            prop_assert_eq!(warm.refs(), cold.refs(), "after {:?}", edit);
            prop_assert_eq!(kept.refs(), cold.refs(), "after {:?}", edit);
        }
    }
}

/// A file that is broken leaves nothing to publish again once its last good form is kept.
#[test]
fn a_second_pass_over_a_broken_file_publishes_nothing() {
    let side = Side::new();
    let mut files = BTreeMap::from([("apps/shop.yaml".to_owned(), namespace("shop"))]);
    (0..CLUSTERS).for_each(|which| apply(&mut files, &Edit::Cluster { which, env: 1 }));
    for which in 0..WORKLOADS {
        apply(&mut files, &Edit::Workload { which, value: 0, clusters: 0, overrides: 1 });
    }
    let workload = Edit::Workload { which: 1, value: 0, clusters: 0, overrides: 0 };
    let edits = [Edit::Nothing, Edit::Cluster { which: 1, env: 0 }, Edit::Remove { which: 4 }, workload];
    for (number, edit) in edits.into_iter().chain([Edit::Break { which: 0 }]).enumerate() {
        apply(&mut files, &edit);
        side.commit(&files, i64::try_from(number).unwrap());
        pass(&side.settings, clock()).unwrap();
        let again = pass(&side.settings, clock()).unwrap();
        let shown = crate::support::hermetic("git")
            .args(["log", "-p", "-2", "berth/rendered"])
            .current_dir(&side.settings.repo)
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert_eq!(again.outcome, PassOutcome::Unchanged, "after {edit:?}: {shown}");
    }
}

/// The forms that each file of the walk may have, see `fixtures/walk.txtar`; none for a file that is not there.
fn forms() -> Vec<(String, Vec<Option<String>>)> {
    let mut forms: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (path, text) in Archive::read(&fixtures("walk.txtar")).files {
        let (file, form) = path.rsplit_once('/').unwrap();
        let text = form.ends_with(".yaml").then_some(text);
        forms.entry(format!("{file}.yaml")).or_default().push(text);
    }
    forms.into_iter().collect()
}

fn put(files: &mut BTreeMap<String, String>, path: &str, form: Option<&String>) {
    match form {
        Some(text) => files.insert(path.to_owned(), text.clone()),
        None => files.remove(path),
    };
}

fn said(passed: &Result<PassResult, PassError>) -> String {
    match passed {
        Ok(passed) => {
            format!(
                "{:?}\n{:?}\n{:?}\n{:?}",
                passed.outcome, passed.plan, passed.diagnostics, passed.next_change
            )
        }
        Err(error) => error.to_string(),
    }
}

/// Three sides that see the same commits at the same moments: a daemon that remembers, processes that find
/// what the last one left, and processes that begin with nothing.
struct Walk {
    warm: Side,
    kept: Side,
    cold: Side,
    cache: Cache,
}

impl Walk {
    fn new() -> Walk {
        Walk { warm: Side::new(), kept: Side::new(), cold: Side::new(), cache: Cache::default() }
    }

    fn step(&mut self, files: &BTreeMap<String, String>, minute: i64, clock: Timestamp) {
        for side in [&self.warm, &self.kept, &self.cold] {
            side.commit(files, minute);
        }
        let remembered = pass_with_cache(&self.warm.settings, clock, &mut self.cache);
        let mut cache = Cache::default();
        let found = pass_with_cache(&self.kept.settings, clock, &mut cache);
        cache.store(&self.kept.settings);
        let forgot = pass(&self.cold.settings, clock);
        assert_eq!(said(&remembered), said(&forgot), "a daemon at {clock}");
        assert_eq!(said(&found), said(&forgot), "a process at {clock}");
        assert_eq!(self.warm.refs(), self.cold.refs(), "a daemon at {clock}");
        assert_eq!(self.kept.refs(), self.cold.refs(), "a process at {clock}");
        let repo = Repo::open(&self.cold.settings.repo).unwrap();
        let refs = &self.cold.settings.refs;
        if let Some(commit) = repo.read_ref(&refs.rendered).unwrap() {
            let expected = berth_hub::verify::Expected::at(clock);
            let proof =
                berth_hub::verify::Verifier::new(&repo, refs, expected).unwrap().prove(commit).unwrap();
            assert!(!proof.verdict.is_failed(), "{:?} at {clock}", proof.verdict);
        }
    }
}

fn at(time: &str) -> Timestamp {
    format!("2026-01-01T{time}Z").parse().unwrap()
}

fn with(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

const BOUND: &str = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
                     metadata: {name: global, namespace: shop}\nspec: {clusterSet: global}\n";

#[test]
fn a_score_that_ends_within_a_second_ends_for_everybody() {
    let score = "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: AddOnPlacementScore\n\
                 metadata: {name: default, namespace: c2}\n\
                 status: {validUntil: \"2026-01-01T00:01:59.500Z\", scores: [{name: free, value: 60}]}\n";
    let placement = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                     metadata: {name: web, namespace: shop}\nspec:\n  numberOfClusters: 1\n  prioritizerPolicy:\n    \
                     mode: Exact\n    configurations:\n    \
                     - {weight: 2, scoreCoordinate: {type: AddOn, addOn: {resourceName: default, scoreName: free}}}\n";
    let managed = |name: &str| {
        format!(
            "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}}}\n\
             spec: {{hubAcceptsClient: true}}\n"
        )
    };
    let (c1, c2) = (managed("c1"), managed("c2"));
    let mut files = with(&[
        ("b.yaml", BOUND),
        ("c1.yaml", &c1),
        ("c2.yaml", &c2),
        ("s.yaml", score),
        ("p.yaml", placement),
    ]);
    let mut walk = Walk::new();
    walk.step(&files, 1, at("00:01:00"));
    files.insert("note.yaml".into(), namespace("shop"));
    walk.step(&files, 2, at("00:02:00"));
}

#[test]
fn a_cluster_that_is_out_anyway_and_falls_silent_changes_its_decision() {
    let member = "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {name: c1}\nspec:\n  \
                  identity: {kind: ServiceAccount, name: a, namespace: fleet-system, apiGroup: ''}\nstatus:\n  \
                  agentStatus:\n  - type: MemberAgent\n    lastReceivedHeartbeat: \"2026-01-01T00:00:00Z\"\n    \
                  conditions:\n    - {type: Joined, status: \"False\", reason: x, message: x, \
                  lastTransitionTime: \"2026-01-01T00:00:00Z\"}\n";
    let drained = "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: c2}\n\
                   spec:\n  hubAcceptsClient: true\n  taints:\n  \
                   - {key: drain, effect: NoSelect, timeAdded: \"2026-01-01T00:03:00Z\"}\n";
    let tolerant = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                    metadata: {name: web, namespace: shop}\nspec:\n  tolerations:\n  \
                    - {key: drain, operator: Exists, tolerationSeconds: 600}\n";
    let placed = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: w0, namespace: shop}}\ndata: {{value: {value}}}\n---\n\
             apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\n\
             metadata: {{name: all, namespace: shop}}\nspec:\n  \
             resourceSelectors: [{{group: '', version: v1, kind: ConfigMap, name: w0}}]\n  \
             policy: {{placementType: PickAll}}\n"
        )
    };
    let mut files =
        with(&[("b.yaml", BOUND), ("c1.yaml", member), ("c2.yaml", drained), ("p.yaml", tolerant)]);
    let mut walk = Walk::new();
    files.insert("rp.yaml".into(), placed("a"));
    walk.step(&files, 1, at("00:01:10"));
    files.insert("rp.yaml".into(), placed("b"));
    walk.step(&files, 2, clock());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12, failure_persistence: None, max_shrink_iters: 60, ..ProptestConfig::default()
    })]

    #[test]
    fn a_walk_over_all_dialects_goes_the_same_way_for_all(
        steps in proptest::collection::vec(proptest::collection::vec((0..64_usize, 0..8_usize), 1..3), 4..14),
        jumps in proptest::collection::vec(0..3_i64, 14),
    ) {
        let forms = forms();
        let mut walk = Walk::new();
        let mut files = BTreeMap::new();
        forms.iter().for_each(|(path, forms)| put(&mut files, path, forms[0].as_ref()));
        let mut minute = 0;
        for (step, changes) in std::iter::once(&Vec::new()).chain(&steps).enumerate() {
            for (which, form) in changes {
                let (path, forms) = &forms[which % forms.len()];
                put(&mut files, path, forms[form % forms.len()].as_ref());
            }
            minute += jumps[step % jumps.len()];
            walk.step(&files, minute, Timestamp::from_second(1_767_225_600 + 60 * minute + 30).unwrap());
        }
    }
}

/// A repository whose last run had nothing to do, and whose cluster's file cannot be read any more.
fn idle() -> crate::support::Repo {
    let repo = crate::support::Repo::new();
    repo.write("clusters/a.yaml", crate::support::removals::managed("a", ""));
    repo.commit("start");
    for _ in 0..2 {
        repo.publish().expect(0);
    }
    let blob = repo.git(&["rev-parse", "HEAD:clusters/a.yaml"]);
    std::fs::remove_file(repo.path().join(".git/objects").join(&blob[..2]).join(&blob[2..])).unwrap();
    repo
}

#[test]
fn a_run_after_one_that_had_nothing_to_do_reads_nothing() {
    let repo = idle();
    assert!(repo.publish().expect(0).out.contains("nothing to publish"));
}

#[test]
fn a_run_looks_again_once_anything_differs() {
    let flags = idle();
    let other = crate::support::run(&["run", "--once", "--repo", flags.arg(), "--max-removed-clusters", "7"]);
    assert_ne!(other.code, 0);
    for name in ["refs/berth/report", "refs/berth/processed"] {
        let repo = idle();
        repo.git(&["update-ref", "-d", name]);
        assert_ne!(repo.publish().code, 0, "without {name}");
    }
    let reported = idle();
    crate::support::removals::report(&reported, "a", 1, "");
    assert_ne!(reported.publish().code, 0);
    let damaged = idle();
    let file = damaged.path().join(".git/berth/cache/idle");
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_ne!(damaged.publish().code, 0);
}
