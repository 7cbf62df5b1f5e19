//! A real forge for tests: Gitea, with users, tokens, repositories, forks and pull requests, each instance in a
//! folder and on a port of its own. It is built once where Go is at hand, and stops when its value is dropped or
//! the test process dies. Finding none is a skipped test, or under `CI=true` a failed one.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value as Json, json};

use super::ports::free_port;
use super::slots::{self, Slot};
use super::wait::seen_in_time;
use super::{Ran, hermetic, programs};

/// The user and group that Gitea runs as where the tests run as root, whom it refuses.
const NOBODY: u32 = 65_534;
const PASSWORD: &str = "a password of tests";

/// Creates the first user, with a token that the last word of the output is.
const ADMIN: [&str; 16] = [
    "admin",
    "user",
    "create",
    "--admin",
    "--username",
    "root",
    "--email",
    "root@example.com",
    "--password",
    PASSWORD,
    "--must-change-password=false",
    "--access-token",
    "--access-token-name",
    "all",
    "--access-token-scopes",
    "all",
];

/// A running Gitea.
#[derive(Debug)]
pub struct Gitea {
    /// Without a slash at its end.
    pub url: String,
    admin_token: String,
    process: Child,
    data: tempfile::TempDir,
    _slot: Slot,
}

/// A user of a Gitea.
#[derive(Clone, Debug)]
pub struct User {
    pub name: String,
    /// A token with every right of the user.
    pub token: String,
}

impl Gitea {
    /// Starts an instance and waits until it answers. Without the means for it, says so loudly and gives nothing,
    /// and the test returns; under `CI=true` the test fails.
    pub fn start() -> Option<Gitea> {
        let data = tempfile::tempdir().expect("a temporary folder");
        let found = find()?;
        let slot = slots::FORGES.take();
        let programs = programs(found, data.path());
        let work = data.path().join("work");
        std::fs::create_dir(&work).expect("a folder");
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let ini = work.join("app.ini");
        std::fs::write(&ini, settings(&url, port, &work, &programs)).expect("a file");
        if is_root() {
            // Gitea adds the secrets that are missing.
            for path in [&work, &ini] {
                chown(path, Some(NOBODY), Some(NOBODY)).expect("a path of the other user");
            }
        }

        let program = programs.join("gitea");
        let configured = |command: &mut Command| {
            command.arg("-c").arg(&ini);
        };
        let run = |arguments: &[&str]| {
            let mut command = unprivileged(program.to_str().expect("a text path"), &work);
            configured(&mut command);
            let ran = Ran::of(command.args(arguments));
            assert_eq!(ran.code, 0, "gitea {arguments:?}\n{}{}", ran.out, ran.err);
            ran.out
        };
        run(&["migrate"]);
        let admin_token = run(&ADMIN).trim_end().rsplit(' ').next().expect("a token").to_owned();

        // Ends when its standard input closes, so that it never outlives the test.
        let mut web = unprivileged("sh", &work);
        web.args(["-c", "\"$@\" & read -r _; kill $!; wait $!", "sh"]).arg(&program);
        configured(&mut web);
        let log = std::fs::File::create(data.path().join("web.log")).expect("a file");
        web.arg("web").stdin(Stdio::piped()).stdout(log.try_clone().expect("a file")).stderr(log);
        let process = web.spawn().expect("gitea starts");
        let gitea = Gitea { url, admin_token, process, data, _slot: slot };
        let answers = || gitea.request(&gitea.admin_token, "GET", "version", None);
        seen_in_time(|| answers().ok()).unwrap_or_else(|| {
            let log = std::fs::read_to_string(gitea.data.path().join("web.log"));
            panic!("no Gitea: {:?}\n{}", answers(), log.unwrap_or_default())
        });
        Some(gitea)
    }

    /// Returns the address of the API.
    pub fn api(&self) -> String {
        format!("{}/api/v1", self.url)
    }

    /// Creates a user.
    pub fn user(&self, name: &str) -> User {
        let user = json!({"username": name, "password": PASSWORD, "email": format!("{name}@example.com"),
            "must_change_password": false});
        self.call(&self.admin_token, "POST", "admin/users", Some(&user));
        let token = self.token(name, &["all"]);
        User { name: name.to_owned(), token }
    }

    /// Creates a token of a user with these scopes, such as `write:issue`.
    pub fn token(&self, user: &str, scopes: &[&str]) -> String {
        let name = scopes.join(" ");
        let basic = berth_base::text::base64::encode(format!("{user}:{PASSWORD}").as_bytes());
        let token = json!({"name": name, "scopes": scopes});
        let path = format!("users/{user}/tokens");
        let answer = self.send(&format!("Basic {basic}"), "POST", &path, Some(&token)).expect("a token");
        answer["sha1"].as_str().expect("a token").to_owned()
    }

    /// Creates a public repository without a commit. Returns `owner/name`.
    pub fn repository(&self, owner: &User, name: &str) -> String {
        self.call(&owner.token, "POST", "user/repos", Some(&json!({"name": name, "default_branch": "main"})));
        format!("{}/{name}", owner.name)
    }

    /// Forks a repository. Returns `owner/name`.
    pub fn fork(&self, by: &User, repository: &str) -> String {
        let fork = self.call(&by.token, "POST", &format!("repos/{repository}/forks"), Some(&json!({})));
        fork["full_name"].as_str().expect("a name").to_owned()
    }

    /// Returns a repository's address for Git, with a user's token in it.
    pub fn remote(&self, user: &User, repository: &str) -> String {
        let host = self.url.trim_start_matches("http://");
        format!("http://{}:{}@{host}/{repository}.git", user.name, user.token)
    }

    /// Pushes from a clone or worktree, such as `main` or `+HEAD:refs/heads/edit`.
    pub fn push(&self, user: &User, repository: &str, folder: &Path, refspec: &str) {
        let remote = self.remote(user, repository);
        let ran = Ran::of(hermetic("git").current_dir(folder).args(["push", "--quiet", &remote, refspec]));
        assert_eq!(ran.code, 0, "{}", ran.err);
    }

    /// Opens a pull request against `main` from a branch, or from a fork's (`user:branch`). Returns its number.
    pub fn pull_request(&self, by: &User, repository: &str, head: &str) -> u64 {
        let wanted = json!({"head": head, "base": "main", "title": format!("Merge {head}")});
        let made = self.call(&by.token, "POST", &format!("repos/{repository}/pulls"), Some(&wanted));
        made["number"].as_u64().expect("a number")
    }

    /// Returns the event that an Actions run for a pull request finds in its file.
    pub fn event(&self, repository: &str, number: u64) -> String {
        let path = format!("repos/{repository}/pulls/{number}");
        let pull_request = self.call(&self.admin_token, "GET", &path, None);
        json!({"action": "synchronized", "number": number, "pull_request": pull_request}).to_string()
    }

    /// Returns the comments on a pull request, oldest first.
    pub fn comments(&self, repository: &str, number: u64) -> Vec<Json> {
        let path = format!("repos/{repository}/issues/{number}/comments");
        self.call(&self.admin_token, "GET", &path, None).as_array().expect("a list").clone()
    }

    /// Returns the statuses of a commit, one a context.
    pub fn statuses(&self, repository: &str, commit: &str) -> Vec<Json> {
        let path = format!("repos/{repository}/commits/{commit}/status");
        let answer = self.call(&self.admin_token, "GET", &path, None);
        answer["statuses"].as_array().cloned().unwrap_or_default()
    }

    /// Sends a request that must succeed to a path below `/api/v1`.
    pub fn call(&self, token: &str, method: &str, path: &str, body: Option<&Json>) -> Json {
        self.request(token, method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends a request to a path below `/api/v1`. An error is the status and the answer.
    pub fn request(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Json>,
    ) -> Result<Json, String> {
        self.send(&format!("token {token}"), method, path, body)
    }

    fn send(&self, login: &str, method: &str, path: &str, body: Option<&Json>) -> Result<Json, String> {
        // It listens on this machine, whatever proxy the machine uses for others.
        let config = ureq::Agent::config_builder().proxy(None).http_status_as_error(false);
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}/{path}", self.api()))
            .header("authorization", login)
            .header("content-type", "application/json");
        let agent = config.build().new_agent();
        let answer = match body {
            Some(body) => agent.run(request.body(body.to_string()).expect("a request")),
            None => agent.run(request.body(()).expect("a request")),
        };
        let mut answer = answer.map_err(|error| error.to_string())?;
        let text = answer.body_mut().read_to_string().map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("{} {text}", answer.status()));
        }
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

impl Drop for Gitea {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn settings(url: &str, port: u16, work: &Path, programs: &Path) -> String {
    let (work, programs) = (work.display(), programs.display());
    format!(
        "\
RUN_MODE = prod
WORK_PATH = {work}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = {url}/
STATIC_ROOT_PATH = {programs}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
; Becomes a part of the database's address: nothing waits for the disk.
SQLITE_JOURNAL_MODE = MEMORY&_synchronous=OFF
[security]
INSTALL_LOCK = true
[repository]
DEFAULT_BRANCH = main
[indexer]
ISSUE_INDEXER_TYPE = db
[queue]
TYPE = channel
[cron]
ENABLED = false
[log]
LEVEL = warn
[webhook]
ALLOWED_HOST_LIST = loopback
[actions]
ENABLED = false
[packages]
ENABLED = false
"
    )
}

/// Returns the folder of the built programs, looked for once in a test run.
fn find() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(|| programs::made(&["ready", "forge"], "forge")) {
        Ok(folder) => Some(folder),
        Err(why) => {
            programs::skipped("Gitea", why);
            None
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the programs' folder, or for root a copy that the other user can read.
fn programs(folder: &Path, data: &Path) -> PathBuf {
    if !is_root() {
        return folder.to_owned();
    }
    std::fs::set_permissions(data, std::fs::Permissions::from_mode(0o755)).expect("a readable folder");
    let copy = data.join("programs");
    // Links cost nothing, but cannot lead to another file system.
    let copied = ["-Rl", "-R"].into_iter().any(|how| {
        let _ = std::fs::remove_dir_all(&copy);
        Ran::of(hermetic("cp").arg(how).arg(folder).arg(&copy)).code == 0
    });
    assert!(copied, "a copy of {}", folder.display());
    copy
}

/// Returns a command that runs as another user where this one is root.
fn unprivileged(program: &str, home: &Path) -> Command {
    let mut command = hermetic(program);
    // Gitea writes Git settings, into a home of its own.
    command.current_dir(home).env("HOME", home).env_remove("GIT_CONFIG_GLOBAL");
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}
