//! What passes carry from one to the next only saves time: over any sequence of edits, a daemon that
//! remembers publishes the very commits of one that has forgotten everything.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use berth::daemon::{Cache, PassError, Passed, Settings, pass, pass_knowing};
use berth::git::{CommitId, Identity, Repo, Writer};
use berth::model::Timestamp;
use berth::publish::Refs;
use proptest::prelude::*;

use crate::support::{cluster, namespace};

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
        let settings = Settings {
            repo: folder.path().to_owned(),
            source: None,
            refs: Refs::default(),
            identity: Identity::default(),
            limits: berth::gate::Limits::default(),
            allow_rewind: false,
            allow_rewritten: false,
            allow_empty: false,
        };
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
    fn process(&self, deleted: bool) -> Result<Passed, PassError> {
        if deleted {
            let _ = std::fs::remove_dir_all(self.settings.repo.join("berth/cache"));
        }
        let mut cache = Cache::default();
        let passed = pass_knowing(&self.settings, clock(), &mut cache);
        cache.store(&self.settings);
        passed
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
            let remembered = pass_knowing(&warm.settings, clock(), &mut cache);
            let found = kept.process(number % 4 == 3);
            let forgot = pass(&cold.settings, clock());
            let said = |passed: &Result<Passed, PassError>| match passed {
                Ok(passed) => format!("{:?}\n{:?}\n{:?}", passed.outcome, passed.plan, passed.diagnostics),
                Err(error) => error.to_string(),
            };
            prop_assert_eq!(said(&remembered), said(&forgot), "after {:?}", edit);
            prop_assert_eq!(said(&found), said(&forgot), "after {:?}", edit);
            prop_assert_eq!(warm.refs(), cold.refs(), "after {:?}", edit);
            prop_assert_eq!(kept.refs(), cold.refs(), "after {:?}", edit);
        }
    }
}
