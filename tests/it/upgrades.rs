//! Two versions of berth in one fleet: a daemon or a member goes on where another version stopped, and back again. The
//! hub and its members change at other times.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::support::programs::{made, skipped};
use crate::support::remote::Fleet;
use crate::support::{RENDERED, Ran, Repo, cluster, config_map, hermetic, namespace};

const CLUSTERS: [&str; 3] = ["a", "b", "c"];

/// One cluster after the other gets a change of `web`.
const STRATEGY: &str = "apiVersion: berth.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: web, namespace: shop}
spec:
  workloads: [{kind: FederatedConfigMap, name: web}]
  strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}}
";

/// A build of berth.
struct Version {
    program: PathBuf,
}

impl Version {
    fn new() -> Version {
        Version { program: PathBuf::from(env!("CARGO_BIN_EXE_berth")) }
    }

    /// An earlier one, made from this repository's own history. `None`, loudly, where there is none.
    fn earlier() -> Option<Version> {
        static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        match FOUND.get_or_init(|| made(&["earlier/ready"], "earlier")) {
            Ok(folder) => Some(Version { program: folder.join("berth") }),
            Err(why) => {
                skipped("an earlier berth", why);
                None
            }
        }
    }

    fn berth(&self, args: &[&str]) -> Ran {
        Ran::of(hermetic(self.program.to_str().expect("a text path")).args(args))
    }

    /// A pass of the daemon, which always works in the same copy.
    #[track_caller]
    fn pass(&self, fleet: &Fleet, code: i32) -> Ran {
        let copy = fleet.root().join("copies/run").display().to_string();
        let remote = fleet.bare_path().display().to_string();
        self.berth(&["run", "--once", "--repo", &copy, "--remote", &remote]).expect(code)
    }

    /// A round of each member, each in its own copy.
    #[track_caller]
    fn sync(&self, fleet: &Fleet) {
        let remote = fleet.bare_path().display().to_string();
        for cluster in CLUSTERS {
            let copy = fleet.root().join("copies").join(cluster).display().to_string();
            let target = format!("dir:{}", fleet.target(cluster).display());
            let args = ["sync", "--once", "--cluster", cluster, "--repo", &copy, "--remote", &remote];
            self.berth(&[&args[..], &["--target", &target]].concat()).expect(0);
        }
    }

    #[track_caller]
    fn proves(&self, fleet: &Fleet) {
        let repo = fleet.bare_path().display().to_string();
        let count = fleet.bare(&["rev-list", "--count", RENDERED]);
        let ran = self.berth(&["verify", "--repo", &repo]).expect(0);
        assert!(ran.err.contains(&format!("{count} commits proven")), "{}", ran.err);
    }

    /// A pass changes nothing that any cluster or person could see.
    #[track_caller]
    fn changes_nothing(&self, fleet: &Fleet, code: i32) {
        let refs = || {
            fleet.bare(&[
                "for-each-ref",
                "--format=%(refname) %(objectname)",
                "refs/heads",
                "refs/berth/clusters",
            ])
        };
        let before = refs();
        self.pass(fleet, code);
        assert_eq!(refs(), before);
    }
}

fn push(fleet: &Fleet, path: &str, text: &str) {
    fleet.people.write(path, text);
    fleet.people.commit(path);
    fleet.push();
}

/// The value of `web` in each cluster.
fn values(fleet: &Fleet) -> String {
    CLUSTERS.map(|cluster| fleet.value(cluster).unwrap_or_default().replace('"', "")).join(" ")
}

/// A history with all that is kept from one publication to the next: decisions that stay, a faulty file, a rollout on
/// its way, and removals that wait.
fn history(version: &Version) -> Fleet {
    let everywhere = "{clusterSelector: {}}";
    let production = "{clusterSelector: {matchLabels: {env: prod}}}";
    let prod = [("env", "prod")];
    let fleet = Fleet::of(Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &prod)),
        ("clusters/b.yaml", &cluster("b", &prod)),
        ("clusters/c.yaml", &cluster("c", &prod)),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", everywhere)),
        ("apps/held.yaml", &config_map("held", "one", everywhere)),
        ("apps/faulty.yaml", &config_map("faulty", "one", everywhere)),
        ("apps/prod.yaml", &config_map("prod", "one", production)),
    ]));
    version.pass(&fleet, 0);
    version.sync(&fleet);
    push(&fleet, "clusters/c.yaml", &cluster("c", &[("env", "dev")]));
    push(&fleet, "rollouts/web.yaml", STRATEGY);
    push(&fleet, "apps/faulty.yaml", &config_map("faulty", "two", "{clusters: 7}"));
    version.pass(&fleet, 1);
    version.sync(&fleet);
    fleet.people.git(&["rm", "-q", "apps/held.yaml"]);
    push(&fleet, "apps/web.yaml", &config_map("web", "two", everywhere));
    version.pass(&fleet, 1);
    version.sync(&fleet);
    assert_eq!(values(&fleet), "two one one");
    fleet
}

/// One version goes on from the other's history, with its own members or the other's, and all proofs hold for both.
fn goes_on(one: &Version, other: &Version) {
    let fleet = history(one);
    one.proves(&fleet);
    other.proves(&fleet);
    // The members' reports on the last step are still to be read.
    one.pass(&fleet, 1);
    other.changes_nothing(&fleet, 1);
    // The rollout goes on, with members of both versions.
    other.sync(&fleet);
    assert_eq!(values(&fleet), "two two one");
    other.pass(&fleet, 1);
    one.sync(&fleet);
    assert_eq!(values(&fleet), "two two two");
    let held = other.pass(&fleet, 1);
    push(&fleet, "apps/web.yaml", &config_map("web", "three", "{clusterSelector: {}}"));
    fleet.people.git(&["commit", "-q", "--allow-empty", "-m", &format!("approve\n\n{}", held.approval())]);
    fleet.push();
    other.pass(&fleet, 1);
    one.sync(&fleet);
    for cluster in CLUSTERS {
        assert!(!fleet.target(cluster).join("shop/ConfigMap_held.yaml").exists(), "{cluster}");
        assert!(fleet.target(cluster).join("shop/ConfigMap_faulty.yaml").exists(), "{cluster}");
    }
    one.proves(&fleet);
    other.proves(&fleet);
    // And back.
    one.pass(&fleet, 1);
    one.changes_nothing(&fleet, 1);
    other.changes_nothing(&fleet, 1);
    one.proves(&fleet);
}

#[test]
#[ignore = "needs an earlier berth"]
fn this_berth_goes_on_where_an_earlier_one_stopped() {
    let Some(earlier) = Version::earlier() else { return };
    goes_on(&earlier, &Version::new());
}

/// Decisions of this version have a format that the earlier one does not know.
#[test]
#[ignore = "needs an earlier berth"]
fn an_earlier_daemon_refuses_what_this_one_decided_and_earlier_members_go_on() {
    let Some(earlier) = Version::earlier() else { return };
    let this = Version::new();
    let fleet = history(&this);
    earlier.changes_nothing(&fleet, 5);
    // The rollout goes on with members of the earlier version.
    this.pass(&fleet, 1);
    earlier.sync(&fleet);
    assert_eq!(values(&fleet), "two two one");
    this.proves(&fleet);
}
