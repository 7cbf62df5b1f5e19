//! Members that fall silent: their workloads move as their systems have it, and not for a fault of the hub.

use berth_base::model::{ClusterStatus, Timestamp};
use berth_hub::daemon::{Cache, PassResult, Settings, pass_with_cache};
use berth_member::sync::status;

use crate::support::removals::{GLOBAL_SET, managed, work};
use crate::support::{RENDERED, Repo, run};

/// The moment of the tests' first commit.
const START: i64 = 1_767_225_600;

/// The seconds in which members promise their next report.
const INTERVAL: i64 = 600;

fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).expect("a moment")
}

/// A fleet in virtual time: members that report, or do not, and a daemon that polls each minute.
struct World {
    repo: Repo,
    names: Vec<String>,
    /// Whether each member reports.
    alive: Vec<bool>,
    /// Seconds since the start.
    now: i64,
    cache: Cache,
    settings: Settings,
    /// The Git server answers.
    up: bool,
    next: Option<Timestamp>,
    last: Option<PassResult>,
}

impl World {
    /// Managed clusters with one workload on `picks` of them, whose placement tolerates `unreachable` for some seconds.
    fn of(clusters: usize, picks: usize, tolerated: Option<i64>) -> World {
        let repo = Repo::new();
        let names: Vec<String> = (0..clusters).map(|n| format!("c{n:02}")).collect();
        for name in &names {
            repo.write(&format!("clusters/{name}.yaml"), managed(name, ""));
        }
        repo.write("sets.yaml", GLOBAL_SET);
        repo.write("apps/placement.yaml", placement(picks, tolerated));
        repo.write("apps/work.yaml", work(1));
        repo.commit("start");
        World::over(repo, names)
    }

    fn over(repo: Repo, names: Vec<String>) -> World {
        let settings = Settings::of(repo.path());
        let alive = vec![true; names.len()];
        let mut world = World {
            repo,
            names,
            alive,
            now: 0,
            cache: Cache::default(),
            settings,
            up: true,
            next: None,
            last: None,
        };
        (0..world.names.len()).for_each(|index| world.report(index));
        world.cache.fetched(moment(0));
        world.pass();
        world
    }

    /// Lets minutes pass. Each member reports in its own minute of ten.
    fn minutes(&mut self, minutes: i64) {
        for _ in 0..minutes {
            self.now += 60;
            let mut reported = false;
            for index in 0..self.names.len() {
                let turn = (self.now / 60) % 10 == i64::try_from(index).expect("few") % 10;
                if self.up && self.alive[index] && turn {
                    self.report(index);
                    reported = true;
                }
            }
            let clock = moment(self.now);
            if self.up {
                self.cache.fetched(clock);
                if reported || self.next.is_some_and(|next| next <= clock) {
                    self.pass();
                }
            }
        }
    }

    fn pass(&mut self) {
        let passed = pass_with_cache(&self.settings, moment(self.now), &mut self.cache).expect("a pass");
        self.next = passed.next_change;
        self.last = Some(passed);
    }

    fn report(&self, index: usize) {
        let cluster = self.names[index].clone();
        let (reported, next_due) = (Some(moment(self.now)), Some(moment(self.now + INTERVAL)));
        let status = ClusterStatus { cluster, reported, next_due, ..ClusterStatus::default() };
        let repo = berth_git::Repo::open(self.repo.path()).expect("a repository");
        status::write(&repo, &self.settings.refs, &status, moment(self.now)).expect("a report");
    }

    fn kill(&mut self, cluster: &str) {
        let index = self.names.iter().position(|name| name == cluster).expect("a cluster");
        self.alive[index] = false;
    }

    fn revive(&mut self, cluster: &str) {
        let index = self.names.iter().position(|name| name == cluster).expect("a cluster");
        self.alive[index] = true;
    }

    /// A daemon that knows nothing of before.
    fn restart(&mut self) {
        self.cache = Cache::default();
        self.next = Some(Timestamp::MIN);
    }

    /// The clusters with a copy.
    fn placed(&self) -> Vec<String> {
        let files = self.repo.files(RENDERED);
        let with_copy =
            files.keys().filter(|path| path.starts_with("clusters/") && path.contains("ConfigMap"));
        with_copy.filter_map(|path| path.split('/').nth(1).map(str::to_owned)).collect()
    }

    fn tip(&self) -> String {
        self.repo.id(RENDERED)
    }

    fn facts(&self, cluster: &str) -> Option<String> {
        self.repo.files(RENDERED).get(&format!("facts/{cluster}.yaml")).cloned()
    }

    fn warnings(&self) -> Vec<String> {
        let passed = self.last.as_ref().expect("a pass");
        passed.diagnostics.iter().map(|one| one.message.clone()).collect()
    }

    #[track_caller]
    fn verify(&self) {
        run(&["verify", "--repo", self.repo.arg()]).expect(0);
    }
}

fn placement(picks: usize, tolerated: Option<i64>) -> String {
    let tolerations = tolerated.map_or_else(String::new, |seconds| {
        format!(
            "  tolerations:\n  - {{key: cluster.open-cluster-management.io/unreachable, operator: Exists, \
             tolerationSeconds: {seconds}}}\n"
        )
    });
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
         metadata: {{name: web, namespace: shop}}\nspec:\n  numberOfClusters: {picks}\n{tolerations}"
    )
}

#[test]
fn a_workload_moves_after_the_toleration_and_not_before() {
    let mut world = World::of(8, 2, Some(3_600));
    world.minutes(20);
    assert_eq!(world.placed(), ["c00", "c01"]);
    let before = world.tip();
    world.kill("c00");
    // The last report was in minute 20, so that it is silent from minute 50 on.
    world.minutes(29);
    assert_eq!(world.tip(), before, "nobody is silent yet");
    world.minutes(1);
    assert_eq!(
        world.facts("c00").as_deref(),
        Some(&*format!(
            "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata:\n  name: c00\nsilent: \"{}\"",
            moment(50 * 60)
        ))
    );
    world.minutes(59);
    assert_eq!(world.placed(), ["c00", "c01"], "its toleration lasts until minute 110");
    world.minutes(1);
    assert_eq!(world.placed(), ["c01", "c02"]);
    world.verify();

    // Back again, its silence ends after three intervals of reports, and nothing moves.
    let moved = world.tip();
    world.revive("c00");
    world.minutes(20);
    assert!(world.facts("c00").is_some());
    world.minutes(30);
    assert_eq!(world.facts("c00"), None);
    assert_eq!(world.placed(), ["c01", "c02"]);
    assert_ne!(world.tip(), moved, "the end of its silence is recorded");
    world.verify();
}

#[test]
fn a_workload_without_a_toleration_moves_when_its_member_is_silent() {
    let mut world = World::of(8, 2, None);
    world.minutes(20);
    world.kill("c00");
    world.minutes(29);
    assert_eq!(world.placed(), ["c00", "c01"]);
    world.minutes(1);
    assert_eq!(world.placed(), ["c01", "c02"]);
    world.verify();
}

#[test]
fn a_member_that_comes_back_in_time_keeps_its_workload() {
    let mut world = World::of(8, 2, Some(3_600));
    world.minutes(20);
    world.kill("c00");
    world.minutes(70);
    world.revive("c00");
    // It reports again in minute 91; the toleration would end in minute 110, before it is steady again.
    world.minutes(60);
    assert_eq!(world.placed(), ["c00", "c01"]);
    assert_eq!(world.facts("c00"), None);
    world.verify();
}

#[test]
fn a_member_that_comes_and_goes_moves_its_workload_once() {
    let mut world = World::of(8, 2, Some(600));
    world.minutes(20);
    world.kill("c00");
    world.minutes(45);
    assert_eq!(world.placed(), ["c01", "c02"]);
    let tip = world.tip();
    for _ in 0..4 {
        world.revive("c00");
        world.minutes(11);
        world.kill("c00");
        world.minutes(30);
        assert_eq!(world.placed(), ["c01", "c02"]);
        assert!(world.facts("c00").is_some(), "it is silent still");
    }
    let files = |tip: &str| world.repo.git(&["ls-tree", "-r", &format!("{tip}:clusters")]);
    assert_eq!(files(&tip), files(&world.tip()));
    world.verify();
}

#[test]
fn git_down_for_an_hour_moves_nothing() {
    let mut world = World::of(8, 2, None);
    world.minutes(20);
    let before = world.tip();
    world.up = false;
    world.minutes(60);
    world.up = true;
    world.minutes(40);
    assert_eq!(world.tip(), before);
    assert_eq!(world.placed(), ["c00", "c01"]);
}

#[test]
fn a_hub_that_evicts_everybody_after_its_own_outage() {
    for clusters in [2, 8] {
        let mut world = World::of(clusters, 2, Some(60));
        world.minutes(20);
        let before = world.tip();
        world.up = false;
        world.minutes(300);
        world.restart();
        world.up = true;
        // Members take their time to come back.
        world.alive.fill(false);
        world.minutes(9);
        world.alive.fill(true);
        world.minutes(40);
        assert_eq!(world.tip(), before, "{clusters}");
    }
}

#[test]
fn much_of_the_fleet_goes_silent_and_evictions_freeze_until_it_is_back() {
    let mut world = World::of(10, 3, Some(1_800));
    world.minutes(20);
    world.kill("c00");
    world.minutes(35);
    assert!(world.facts("c00").is_some_and(|facts| facts.contains("silent")), "one alone is silent");
    // Three more are cut off while its toleration runs.
    for cluster in ["c03", "c04", "c05"] {
        world.kill(cluster);
    }
    world.minutes(20);
    assert!(
        world.warnings().iter().any(|said| said.starts_with("4 of 10 members are late: ")),
        "{:?}",
        world.warnings()
    );
    assert!(world.facts("c00").is_some_and(|facts| facts.contains("frozen")));
    world.minutes(300);
    assert_eq!(world.placed(), ["c00", "c01", "c02"], "the toleration ended hours ago");
    assert_eq!(world.facts("c03"), None, "and nobody else fell silent");
    world.restart();
    world.minutes(60);
    assert_eq!(world.placed(), ["c00", "c01", "c02"], "a restarted daemon freezes as well");
    for cluster in ["c03", "c04", "c05"] {
        world.revive(cluster);
    }
    world.minutes(30);
    assert_eq!(world.placed(), ["c00", "c01", "c02"], "the others have their grace first");
    world.minutes(60);
    assert_eq!(world.placed(), ["c01", "c02", "c03"], "the one that is really gone is replaced");
    world.verify();
}

#[test]
fn a_restarted_daemon_keeps_what_was_silent_and_evicts_nobody_at_once() {
    let mut world = World::of(8, 2, Some(600));
    world.minutes(20);
    world.kill("c00");
    world.minutes(35);
    assert!(world.facts("c00").is_some());
    world.restart();
    world.minutes(29);
    assert_eq!(world.placed(), ["c00", "c01"], "it could have come back");
    world.minutes(10);
    assert_eq!(world.placed(), ["c01", "c02"]);
    world.restart();
    world.minutes(60);
    assert_eq!(world.placed(), ["c01", "c02"]);
    world.verify();
}

#[test]
fn a_silent_member_of_a_fleet_whose_decisions_read_no_silence_changes_no_byte() {
    let repo = crate::support::small_fleet();
    let names = repo.git(&["ls-files", "clusters"]);
    let names: Vec<String> = names
        .lines()
        .filter_map(|file| file.rsplit('/').next()?.strip_suffix(".yaml").map(str::to_owned))
        .collect();
    let mut world = World::over(repo, names);
    world.minutes(20);
    let before = world.tip();
    let first = world.names[0].clone();
    world.kill(&first);
    world.minutes(120);
    assert_eq!(world.tip(), before);
}

/// Three KubeFleet members, of which a placement picks two.
fn kubefleet(annotations: &str) -> World {
    let repo = Repo::new();
    let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
    for name in &names {
        repo.write(
            &format!("clusters/{name}.yaml"),
            format!(
                "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {{name: {name}}}\n\
                 spec: {{identity: {{kind: User, name: {name}}}}}\n"
            ),
        );
    }
    repo.write(
        "apps/web.yaml",
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\n\
             apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\n\
             metadata: {{name: shop, annotations: {{{annotations}}}}}\n\
             spec:\n  resourceSelectors: [{{group: '', version: v1, kind: Namespace, name: shop, selectionScope: NamespaceOnly}}]\n  \
             policy: {{placementType: PickN, numberOfClusters: 2}}\n"
        ),
    );
    repo.commit("start");
    World::over(repo, names)
}

fn namespaces(world: &World) -> Vec<String> {
    let files = world.repo.files(RENDERED);
    let with_copy = files.keys().filter(|path| path.starts_with("clusters/") && path.contains("Namespace"));
    with_copy.filter_map(|path| path.split('/').nth(1).map(str::to_owned)).collect()
}

#[test]
fn kubefleet_never_replaces_a_silent_cluster_unless_somebody_asks() {
    let mut world = kubefleet("");
    world.minutes(20);
    assert_eq!(namespaces(&world), ["b", "c"]);
    world.kill("c");
    world.minutes(300);
    assert_eq!(namespaces(&world), ["b", "c"]);
    world.verify();

    let mut world = kubefleet("berth.dev/replace-after: 30m");
    world.settings.limits.allow_risky = true;
    world.minutes(20);
    assert_eq!(namespaces(&world), ["b", "c"]);
    world.kill("c");
    // Its last report was in minute 12, so that it is silent from minute 42 on.
    world.minutes(51);
    assert_eq!(namespaces(&world), ["b", "c"], "silent for less than half an hour");
    world.minutes(1);
    assert_eq!(namespaces(&world), ["a", "b"]);
    world.verify();
    world.revive("c");
    world.minutes(120);
    assert_eq!(namespaces(&world), ["a", "b"], "nothing moves back");
    world.verify();
}

#[test]
fn a_silent_cluster_without_a_replacement_keeps_its_copy() {
    let mut world = kubefleet("berth.dev/replace-after: 30m");
    world.settings.limits.allow_risky = true;
    world.minutes(20);
    world.repo.git(&["rm", "-q", "clusters/a.yaml"]);
    world.repo.commit("two are left");
    world.kill("c");
    world.minutes(120);
    assert_eq!(namespaces(&world), ["b", "c"]);
    world.verify();
}
