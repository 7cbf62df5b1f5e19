//! A fleet in virtual time, with members that report or do not.

use berth_base::model::{ClusterStatus, Timestamp};
use berth_base::status::write_status;
use berth_git::shared_refs::statuses;
use berth_git::{EntryKind, Identity, TreeId, Writer};
use berth_hub::daemon::{Cache, PassResult, Settings, pass_with_cache};
use berth_member::sync::status;

use super::removals::{GLOBAL_SET, managed, work};
use super::{RENDERED, Repo, run};

/// The moment of the tests' first commit.
pub const START: i64 = 1_767_225_600;

/// The seconds in which members promise their next report.
const INTERVAL: i64 = 600;

pub fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).expect("a moment")
}

/// A fleet in virtual time: members that report, or do not, and a daemon that polls each minute.
pub struct World {
    pub repo: Repo,
    pub names: Vec<String>,
    /// Whether each member reports.
    pub alive: Vec<bool>,
    /// Seconds since the start.
    now: i64,
    cache: Cache,
    pub settings: Settings,
    /// Members send their reports to the daemon, which gathers them.
    pub by_post: bool,
    /// The Git server answers.
    pub up: bool,
    next: Option<Timestamp>,
    last: Option<PassResult>,
}

impl World {
    /// Managed clusters with one workload on `picks` of them, whose placement tolerates `unreachable` for some seconds.
    pub fn of(clusters: usize, picks: usize, tolerated: Option<i64>) -> World {
        World::with(clusters, &placement(picks, tolerated), &work(1))
    }

    /// The same, with members that send their reports.
    pub fn by_post(clusters: usize, picks: usize, tolerated: Option<i64>) -> World {
        let (repo, names) = World::repo(clusters, &placement(picks, tolerated), &work(1));
        World::begin(repo, names, true)
    }

    /// Managed clusters with a workload, whose placement is `web`.
    pub fn with(clusters: usize, placement: &str, work: &str) -> World {
        let (repo, names) = World::repo(clusters, placement, work);
        World::over(repo, names)
    }

    fn repo(clusters: usize, placement: &str, work: &str) -> (Repo, Vec<String>) {
        let repo = Repo::new();
        let names: Vec<String> = (0..clusters).map(|n| format!("c{n:02}")).collect();
        for name in &names {
            repo.write(&format!("clusters/{name}.yaml"), managed(name, ""));
        }
        repo.write("sets.yaml", GLOBAL_SET);
        repo.write("apps/placement.yaml", placement);
        repo.write("apps/work.yaml", work);
        repo.commit("start");
        (repo, names)
    }

    pub fn over(repo: Repo, names: Vec<String>) -> World {
        World::begin(repo, names, false)
    }

    fn begin(repo: Repo, names: Vec<String>, by_post: bool) -> World {
        let settings = Settings::of(repo.path());
        let alive = vec![true; names.len()];
        let mut world = World {
            repo,
            names,
            alive,
            now: 0,
            cache: Cache::default(),
            settings,
            by_post,
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
    pub fn minutes(&mut self, minutes: i64) {
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

    pub fn pass(&mut self) {
        let passed = pass_with_cache(&self.settings, moment(self.now), &mut self.cache).expect("a pass");
        self.next = passed.next_change;
        self.last = Some(passed);
    }

    fn report(&self, index: usize) {
        let cluster = self.names[index].clone();
        let (reported, next_due) = (Some(moment(self.now)), Some(moment(self.now + INTERVAL)));
        let status = ClusterStatus { cluster, reported, next_due, ..ClusterStatus::default() };
        let repo = berth_git::Repo::open(self.repo.path()).expect("a repository");
        if self.by_post {
            gather(&repo, &self.settings.refs.statuses, &status);
        } else {
            status::write(&repo, &self.settings.refs, &status, moment(self.now)).expect("a report");
        }
    }

    pub fn kill(&mut self, cluster: &str) {
        let index = self.names.iter().position(|name| name == cluster).expect("a cluster");
        self.alive[index] = false;
    }

    pub fn revive(&mut self, cluster: &str) {
        let index = self.names.iter().position(|name| name == cluster).expect("a cluster");
        self.alive[index] = true;
    }

    /// A daemon that knows nothing of before.
    pub fn restart(&mut self) {
        self.cache = Cache::default();
        self.next = Some(Timestamp::MIN);
    }

    /// The clusters with a copy.
    pub fn placed(&self) -> Vec<String> {
        let files = self.repo.files(RENDERED);
        let with_copy =
            files.keys().filter(|path| path.starts_with("clusters/") && path.contains("ConfigMap"));
        with_copy.filter_map(|path| path.split('/').nth(1).map(str::to_owned)).collect()
    }

    pub fn tip(&self) -> String {
        self.repo.id(RENDERED)
    }

    /// The first line of the last commit's message.
    pub fn subject(&self) -> String {
        self.repo.git(&["log", "-1", "--format=%s", RENDERED])
    }

    pub fn facts(&self, cluster: &str) -> Option<String> {
        self.repo.files(RENDERED).get(&format!("facts/{cluster}.yaml")).cloned()
    }

    pub fn warnings(&self) -> Vec<String> {
        let passed = self.last.as_ref().expect("a pass");
        passed.diagnostics.iter().map(|one| one.message.clone()).collect()
    }

    #[track_caller]
    pub fn verify(&self) {
        run(&["verify", "--repo", self.repo.arg()]).expect(0);
    }
}

/// Puts a status among the gathered ones, as a daemon does.
fn gather(repo: &berth_git::Repo, name: &str, status: &ClusterStatus) {
    let mut writer = Writer::new(repo).expect("a writer");
    let old = repo.read_ref(name).expect("a ref");
    let tree = old.map_or(TreeId::EMPTY, |old| repo.commit(old).expect("a commit").tree);
    let content = writer.blob(write_status(status).as_bytes()).expect("a blob");
    let path = statuses::path_of(&status.cluster);
    let tree = writer.edited(tree, [(path.as_str(), Some(EntryKind::File(content)))]).expect("a tree");
    let commit = writer.commit(tree, &[], "statuses\n", &Identity::default(), START).expect("a commit");
    repo.move_ref(name, old, commit).expect("moved");
}

pub fn placement(picks: usize, tolerated: Option<i64>) -> String {
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
