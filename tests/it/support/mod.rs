//! Builds fleet repositories and runs the binary against them, away from the user's own settings.

#[cfg(unix)]
pub mod argocd;
#[cfg(unix)]
pub mod argocd_bed;
#[cfg(unix)]
pub mod browser;
pub mod chaos;
#[cfg(target_os = "linux")]
pub mod contained;
#[cfg(unix)]
pub mod cosign;
#[cfg(unix)]
pub mod deliveries;
pub mod disk;
pub mod editing;
pub mod fake_host;
pub mod faults;
#[cfg(unix)]
pub mod flux;
#[cfg(unix)]
pub mod flux_bed;
pub mod git;
#[cfg(unix)]
pub mod gitea;
pub mod harbour;
pub mod in_process;
pub mod kube;
pub mod kubefed;
pub mod kubefleet;
pub mod language_server;
pub mod leftovers;
pub mod member;
pub mod ocm;
pub mod owned;
pub mod page;
#[cfg(unix)]
pub mod page_fleets;
pub mod pod;
pub mod ports;
pub mod programs;
pub mod random;
pub mod real_fleet;
pub mod record;
#[cfg(unix)]
pub mod registry;
#[cfg(unix)]
pub mod remote;
pub mod removals;
pub mod results;
pub mod rollouts;
pub mod running_member;
#[cfg(unix)]
pub mod signals;
pub mod silence;
#[cfg(unix)]
pub mod site;
#[cfg(unix)]
pub mod site_fleet;
pub mod slots;
#[cfg(unix)]
pub mod status_posts;
pub mod wait;
pub mod workflow;

use crate::archive::Archive;
use berth_base::model::Timestamp;
use berth_cli::process::shell::Clock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A command that sees nothing of this machine's Git settings or berth variables.
pub fn hermetic(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for keep in ["PATH", "TMPDIR", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(keep) {
            command.env(keep, value);
        }
    }
    command
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Ann Author")
        .env("GIT_AUTHOR_EMAIL", "ann@example.com")
        .env("GIT_COMMITTER_NAME", "Ann Author")
        .env("GIT_COMMITTER_EMAIL", "ann@example.com");
    command
}

/// The factor by which the binary's own pauses are shorter than in production.
pub const FASTER: u32 = 4;

/// The berth binary under test. `BERTH_TEST_BINARY` names another build: a regression test must fail on the
/// build before its fix.
pub fn berth() -> Command {
    let binary = std::env::var("BERTH_TEST_BINARY").ok().or_else(record::recording);
    let mut command = hermetic(binary.as_deref().unwrap_or(env!("CARGO_BIN_EXE_berth")));
    command.env("BERTH_TEST_TIME_SCALE", (1.0 / f64::from(FASTER)).to_string());
    command
}

/// The variables that switch the deletion gate off.
const UNGATED: [(&str, &str); 3] = [
    ("BERTH_MAX_REMOVED_CLUSTERS", "100%"),
    ("BERTH_MAX_REMOVED_OBJECTS", "100%"),
    ("BERTH_ALLOW_RISKY_REMOVALS", "true"),
];

/// Switches the deletion gate off, for tests of other things.
pub fn ungated(command: &mut Command) -> &mut Command {
    command.envs(UNGATED)
}

/// How a run of the binary ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(command: &mut Command) -> Ran {
        let Output { status, stdout, stderr } = command.output().expect("the program starts");
        let code = status.code().unwrap_or(-1);
        record::ended(command.get_program(), command.get_args(), code);
        results::checked(Ran {
            code,
            out: String::from_utf8(stdout).expect("stdout is text"),
            err: String::from_utf8(stderr).expect("stderr is text"),
        })
    }

    /// The one line that approves everything held.
    #[track_caller]
    pub fn approval(&self) -> String {
        let lines: Vec<&str> =
            self.out.lines().filter(|line| line.starts_with("Berth-Allow-Delete: ")).collect();
        assert_eq!(lines.len(), 1, "one line to paste\n{}\n{}", self.out, self.err);
        lines[0].to_owned()
    }

    /// Insists on an exit code, showing everything where it differs.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "exit code\n--- stdout\n{}\n--- stderr\n{}", self.out, self.err);
        self
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.out))
    }
}

/// Runs berth with these arguments.
pub fn run(args: &[&str]) -> Ran {
    in_process::run_with(args, &[])
}

/// Runs berth with these arguments at another moment.
pub fn run_at(moment: Timestamp, args: &[&str]) -> Ran {
    in_process::run_by(Clock::At(moment), args)
}

/// Runs berth with these arguments, with no removal held back.
pub fn run_ungated(args: &[&str]) -> Ran {
    in_process::run_with(args, &UNGATED)
}

/// A Git repository in a folder of its own, gone when the test ends.
#[derive(Debug)]
pub struct Repo {
    folder: tempfile::TempDir,
    /// Commit dates count up from here, a minute each, so that ids repeat.
    clock: std::cell::Cell<i64>,
}

impl Repo {
    pub fn new() -> Repo {
        let folder = tempfile::tempdir().expect("a temporary folder");
        git::init(folder.path());
        Repo { folder, clock: std::cell::Cell::new(1_767_225_600) }
    }

    /// A repository with these files committed.
    pub fn with(files: &[(&str, &str)]) -> Repo {
        let repo = Repo::new();
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.commit("start");
        repo
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn arg(&self) -> &str {
        self.path().to_str().expect("a text path")
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Runs git here and gives its trimmed output.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let ran = Ran::of(hermetic("git").current_dir(self.path()).args(args));
        assert_eq!(ran.code, 0, "git {args:?}\n{}\n{}", ran.out, ran.err);
        ran.out.trim_end().to_owned()
    }

    /// Commits everything in the folder and gives the commit's id.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.clock.set(self.clock.get() + 60);
        git::commit_all(self.path(), message, self.clock.get())
    }

    /// `berth run --once` on this repository.
    pub fn publish(&self) -> Ran {
        run(&["run", "--once", "--repo", self.arg()])
    }

    /// The same at another moment.
    pub fn publish_at(&self, moment: Timestamp) -> Ran {
        run_at(moment, &["run", "--once", "--repo", self.arg()])
    }

    /// The date of the last commit.
    pub fn dated(&self) -> Timestamp {
        Timestamp::from_second(self.clock.get()).expect("a moment")
    }

    /// The same, with no removal held back.
    pub fn publish_ungated(&self) -> Ran {
        run_ungated(&["run", "--once", "--repo", self.arg()])
    }

    /// `berth sync --once` of one cluster into a folder.
    pub fn sync(&self, cluster: &str, target: &Path, more: &[&str]) -> Ran {
        let target = format!("dir:{}", target.display());
        let mut args =
            vec!["sync", "--once", "--repo", self.arg(), "--cluster", cluster, "--target", &target];
        args.extend(more);
        run(&args)
    }

    /// The id of a revision.
    #[track_caller]
    pub fn id(&self, revision: &str) -> String {
        git::id(self.path(), revision)
    }

    /// Every file of a revision, with its text.
    #[track_caller]
    pub fn files(&self, revision: &str) -> BTreeMap<String, String> {
        git::files(self.path(), revision)
    }

    /// The paths that differ between two revisions.
    #[track_caller]
    pub fn changed(&self, from: &str, to: &str) -> Vec<String> {
        git::changed(self.path(), from, to)
    }

    /// Commits what was imported and runs the commands that must find nothing to do. Gives what `verify` says.
    #[track_caller]
    pub fn commit_import(&self) -> Ran {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "import"]);
        run(&["validate", self.arg()]).expect(0);
        let plan = run(&["plan", "--repo", self.arg(), "--fail-on", "any"]).expect(0);
        assert_eq!(plan.out, "no changes\n");
        let before = self.id("berth/rendered");
        let ran = self.publish().expect(0);
        assert!(ran.out.contains("nothing to publish"), "{}", ran.out);
        assert_eq!(self.id("berth/rendered"), before);
        run(&["verify", "--repo", self.arg()]).expect(0)
    }
}

/// Every command, in the order of the help.
pub const COMMANDS: [&str; 44] = [
    "demo",
    "init",
    "validate",
    "test",
    "decide",
    "explain",
    "describe",
    "render",
    "plan",
    "review",
    "simulate",
    "diff",
    "why",
    "log",
    "rollout",
    "run",
    "sync",
    "suspend",
    "resume",
    "status",
    "site",
    "ui",
    "map",
    "wait",
    "verify",
    "public-key",
    "doctor",
    "bundle",
    "import",
    "federate",
    "vendor",
    "join",
    "install",
    "unjoin",
    "enable",
    "disable",
    "orphan",
    "label",
    "taint",
    "cordon",
    "uncordon",
    "schema",
    "completions",
    "man",
];

/// The branch berth writes.
pub const RENDERED: &str = "refs/heads/berth/rendered";

/// Where the repository's fixtures are.
pub fn fixtures(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(part)
}

/// A case of the fixtures, and a folder with its files.
pub fn case(name: &str) -> (Archive, tempfile::TempDir) {
    let case = Archive::read(&fixtures(&format!("{name}.txtar")));
    let folder = tempfile::tempdir().expect("a temporary folder");
    case.unpack(folder.path());
    (case, folder)
}

/// A KubeFed cluster with labels, as text.
pub fn cluster(name: &str, labels: &[(&str, &str)]) -> String {
    let labels: String = labels.iter().map(|(key, value)| format!("    {key}: \"{value}\"\n")).collect();
    format!(
        "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata:\n  name: {name}\n  \
         namespace: kube-federation-system\n  labels:\n    x: \"1\"\n{labels}spec:\n  apiEndpoint: https://{name}.example.com\n  \
         secretRef: {{name: {name}}}\n"
    )
}

/// A namespace that goes everywhere.
pub fn namespace(name: &str) -> String {
    format!(
        "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedNamespace\nmetadata: {{name: {name}, namespace: {name}}}\n\
         spec:\n  placement: {{clusterSelector: {{}}}}\n"
    )
}

/// A KubeFleet member with a label `env`.
pub fn fleet_member(name: &str, env: &str) -> String {
    format!(
        "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {{name: {name}, labels: {{env: {env}}}}}\n\
         spec: {{identity: {{kind: ServiceAccount, name: hub, namespace: fleet-system}}}}\n"
    )
}

/// A config map with one value, placed by a flow-style placement.
pub fn config_map(name: &str, value: &str, placement: &str) -> String {
    format!(
        "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata: {{name: {name}, namespace: shop}}\n\
         spec:\n  template:\n    data:\n      value: \"{value}\"\n  placement: {placement}\n"
    )
}

/// A small fleet: three clusters, one namespace, one config map everywhere.
pub fn small_fleet() -> Repo {
    Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[("env", "prod")])),
        ("clusters/b.yaml", &cluster("b", &[("env", "prod")])),
        ("clusters/c.yaml", &cluster("c", &[("env", "dev")])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
    ])
}
