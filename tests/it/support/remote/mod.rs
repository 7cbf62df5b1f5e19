//! Git servers on the loopback: `git daemon`, HTTPS with a password, sshd with a key. Each can be stopped and
//! started again on its port.

mod proxy;
mod running;
mod servers;
mod spy;

pub use proxy::{Harm, WebProxy, Wire};
pub use running::Running;
pub use servers::{Folder, Https, Plain, Server, Ssh};
pub use spy::Spy;

use std::path::{Path, PathBuf};

use super::{Ran, Repo, berth, hermetic, small_fleet};

/// Never in a process list, a log, a message or a commit.
pub const PASSWORD: &str = "s3cret-p4ss";

/// A fleet whose repository is at a server; people push to it by its path.
pub struct Fleet {
    pub people: Repo,
    folder: tempfile::TempDir,
}

impl Fleet {
    pub fn new() -> Fleet {
        Fleet::of(small_fleet())
    }

    /// The same of what people have committed.
    pub fn of(people: Repo) -> Fleet {
        let folder = tempfile::tempdir().expect("a folder");
        let fleet = Fleet { people, folder };
        fleet.people.git(&["init", "-q", "--bare", "-b", "main", fleet.bare_arg()]);
        for (key, value) in [("http.receivepack", "true"), ("receive.autogc", "false")] {
            fleet.bare(&["config", key, value]);
        }
        fleet.push();
        fleet
    }

    /// The folder of all repositories.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn bare_path(&self) -> PathBuf {
        self.folder.path().join("fleet.git")
    }

    fn bare_arg(&self) -> &'static str {
        Box::leak(self.bare_path().display().to_string().into_boxed_str())
    }

    /// Runs git in the server's repository.
    #[track_caller]
    pub fn bare(&self, args: &[&str]) -> String {
        let ran = Ran::of(hermetic("git").arg("--git-dir").arg(self.bare_path()).args(args));
        assert_eq!(ran.code, 0, "git {args:?}\n{}\n{}", ran.out, ran.err);
        ran.out.trim_end().to_owned()
    }

    pub fn push(&self) {
        self.people.git(&["push", "-q", self.bare_arg(), "HEAD:refs/heads/main"]);
    }

    /// Changes the one value that every cluster gets.
    pub fn edit(&self, value: &str) {
        self.people.write("apps/web.yaml", super::config_map("web", value, "{clusterSelector: {}}"));
        self.people.commit(value);
        self.push();
    }

    pub fn has(&self, name: &str) -> bool {
        let git_dir = self.bare_path();
        let ran = Ran::of(hermetic("git").arg("--git-dir").arg(git_dir).args([
            "rev-parse",
            "-q",
            "--verify",
            name,
        ]));
        ran.code == 0
    }

    /// Adds so many refs to the server's repository, all at this commit.
    pub fn add_refs(&self, prefix: &str, count: usize, commit: &str) {
        use std::io::Write as _;
        let mut git = hermetic("git");
        git.arg("--git-dir").arg(self.bare_path()).args(["update-ref", "--stdin"]);
        let mut running = git.stdin(std::process::Stdio::piped()).spawn().expect("git runs");
        let lines: String = (0..count).map(|at| format!("create {prefix}m{at:05} {commit}\n")).collect();
        running.stdin.take().expect("an input").write_all(lines.as_bytes()).expect("git reads");
        assert!(running.wait().expect("git ends").success());
        self.bare(&["pack-refs", "--all"]);
    }

    /// A hook of the server's repository.
    pub fn hook(&self, name: &str, script: &str) {
        let path = self.bare_path().join("hooks").join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        super::programs::write_script(&path, script);
    }

    /// `berth run --once` on a server, with a working copy of its own.
    pub fn run_once(&self, server: &dyn Server, more: &[&str]) -> Ran {
        self.run_from("run", server, more)
    }

    pub fn run_from(&self, copy: &str, server: &dyn Server, more: &[&str]) -> Ran {
        let mut command = berth();
        command.args(["run", "--once", "--repo"]).arg(self.root().join("copies").join(copy));
        command.args(server.access()).args(more);
        server.set_secrets(&mut command);
        Ran::of(&mut command)
    }

    /// `berth sync --once` of a cluster through a server.
    pub fn sync_once(&self, cluster: &str, server: &dyn Server, more: &[&str]) -> Ran {
        let mut command = berth();
        command.args(["sync", "--once", "--cluster", cluster, "--repo"]);
        command.arg(self.root().join("copies").join(cluster));
        command.arg("--target").arg(format!("dir:{}", self.target(cluster).display()));
        command.args(server.access()).args(more);
        server.set_secrets(&mut command);
        Ran::of(&mut command)
    }

    pub fn target(&self, cluster: &str) -> PathBuf {
        self.root().join("targets").join(cluster)
    }

    /// The value that a member has.
    pub fn value(&self, cluster: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.web(cluster)).ok()?;
        text.lines().find_map(|line| line.trim().strip_prefix("value: ")).map(str::to_owned)
    }

    pub fn web(&self, cluster: &str) -> PathBuf {
        self.target(cluster).join("shop/ConfigMap_web.yaml")
    }
}
