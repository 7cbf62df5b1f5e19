//! A fleet of config maps whose members report on what they applied, minute by minute.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use berth_base::model::Timestamp;
use berth_hub::daemon::{Cache, Settings, pass_with_cache};

use super::removals::report;
use super::silence::START;
use super::{RENDERED, Ran, Repo, berth, cluster, config_map, hermetic, namespace, run, run_at};

/// A published fleet. Its members say what the test lets them say.
pub struct Rollouts {
    pub repo: Repo,
    minute: Cell<u64>,
}

/// A policy that gives `web` of the namespace `shop` to one cluster at a time.
pub const WAVES: &str = "apiVersion: berth.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: waves, namespace: shop}
spec:
  workloads: [{kind: FederatedConfigMap, name: web}]
  strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1, minSuccessTime: 10m}}}
";

impl Rollouts {
    /// Publishes what the repository has.
    pub fn of(repo: Repo) -> Rollouts {
        let rollouts = Rollouts { repo, minute: Cell::new(60) };
        rollouts.publish();
        rollouts
    }

    /// A fleet whose workload `web` goes to one cluster at a time, with a first release that both clusters have.
    pub fn with_a_proven_release() -> Rollouts {
        let rollouts = Rollouts::of(Repo::with(&[
            ("clusters/a.yaml", &cluster("a", &[])),
            ("clusters/b.yaml", &cluster("b", &[])),
            ("apps/shop.yaml", &namespace("shop")),
            ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
            ("waves.yaml", WAVES),
        ]));
        // The release that all have is proven before the next one begins.
        for _ in 0..2 {
            rollouts.succeed(&["a", "b"]);
            rollouts.publish();
            rollouts.wait(20);
        }
        rollouts
    }

    /// Commits these files and publishes.
    pub fn edit(&self, files: &[(&str, &str)]) -> Ran {
        files.iter().for_each(|(path, text)| self.repo.write(path, text));
        self.repo.commit("an edit");
        self.publish()
    }

    /// Runs `berth run --once` at this minute, and again when all waits are over.
    #[track_caller]
    pub fn publish(&self) -> Ran {
        let seen = self.repo.publish_at(self.now()).expect(0);
        let over = self.repo.publish().expect(0);
        Ran { code: over.code, out: seen.out + &over.out, err: seen.err + &over.err }
    }

    /// The same, where members may report labels with these keys.
    #[track_caller]
    pub fn publish_with_labels(&self, keys: &str, code: i32) -> Ran {
        let args = ["run", "--once", "--repo", self.repo.arg(), "--member-labels", keys];
        run_at(self.now(), &args).expect(code);
        run(&args).expect(code)
    }

    /// One pass at this very minute.
    pub fn pass(&self) {
        let (settings, clock) = (Settings::of(self.repo.path()), self.now());
        pass_with_cache(&settings, clock, &mut Cache::default()).expect("a pass");
    }

    pub fn wait(&self, minutes: u64) {
        self.minute.set(self.minute.get() + minutes);
    }

    pub fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.minute.get() * 60).expect("a time");
        Timestamp::from_second(START + seconds).expect("a moment")
    }

    /// These members applied their folders, and all is well.
    pub fn succeed(&self, clusters: &[&str]) {
        clusters.iter().for_each(|cluster| self.say(cluster, ""));
    }

    /// This member applied its folder, but for this config map of the namespace `shop`.
    pub fn fail(&self, cluster: &str, name: &str, message: &str) {
        let object = format!("kind: ConfigMap, namespace: shop, name: {name}, message: {message}");
        self.say(cluster, &format!("  problems: [{{{object}}}]\n"));
    }

    /// This member applied its folder, with what else it says of that.
    pub fn say(&self, cluster: &str, more: &str) {
        self.wait(1);
        report(&self.repo, cluster, self.minute.get(), &format!("{}{more}", self.applied(cluster)));
    }

    /// This member applied its folder, and reports a label.
    pub fn succeed_with_label(&self, cluster: &str, key: &str, value: &str) {
        let labels = format!("labels:\n  {key}: \"{value}\"\n");
        self.wait(1);
        report(&self.repo, cluster, self.minute.get(), &format!("{}{labels}", self.applied(cluster)));
    }

    fn applied(&self, cluster: &str) -> String {
        let tree = self.repo.git(&["rev-parse", &format!("{RENDERED}:clusters/{cluster}")]);
        format!("applied:\n  sequence: 1\n  tree: {tree}\n  objects: 1\n")
    }

    /// The values of a config map by cluster: `a=one b=-`.
    pub fn values(&self, clusters: &[&str], name: &str) -> String {
        let files: BTreeMap<String, String> = self.repo.files(RENDERED);
        let value = |cluster: &&str| {
            let text = files.get(&format!("clusters/{cluster}/shop/ConfigMap_{name}.yaml"));
            let value = text.and_then(|text| text.lines().find_map(|line| line.strip_prefix("  value: ")));
            format!("{cluster}={}", value.unwrap_or("-").trim_matches('"'))
        };
        clusters.iter().map(value).collect::<Vec<_>>().join(" ")
    }

    /// `berth rollout` with these arguments.
    pub fn order(&self, args: &[&str]) -> Ran {
        run(&[&["rollout"], args, &["--repo", self.repo.arg()]].concat())
    }

    /// Runs these commands in the repository, at this minute.
    #[track_caller]
    pub fn shell(&self, commands: &str) -> Ran {
        let berth = berth();
        let folder = Path::new(berth.get_program()).parent().expect("its folder").display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").expect("a path"));
        let now = self.now().to_string();
        let mut bash = hermetic("bash");
        bash.current_dir(self.repo.path()).env("PATH", path).args(["-e", "-c", commands]);
        Ran::of(bash.env("GIT_AUTHOR_DATE", &now).env("GIT_COMMITTER_DATE", &now)).expect(0)
    }

    /// The message of the last commit.
    pub fn message(&self) -> String {
        self.repo.git(&["log", "-1", "--format=%B", RENDERED])
    }

    #[track_caller]
    pub fn verify(&self) {
        run(&["verify", "--repo", self.repo.arg()]).expect(0);
    }
}

/// A placement of one Namespace that goes by staged runs, and their stages.
pub fn staged_shop(stages: &str) -> String {
    let head = "apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
  strategy: {type: External}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: rings}
spec:
  stages:
";
    format!("{head}{stages}")
}
