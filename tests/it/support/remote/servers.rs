//! The servers themselves, each a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Fleet, PASSWORD};
use crate::support::ports::free_port;
use crate::support::wait::until;
use crate::support::{Ran, hermetic};

/// A server of the repository `fleet.git`.
pub trait Server {
    /// The flags that lead to it.
    fn access(&self) -> Vec<String>;
    fn set_secrets(&self, _command: &mut Command) {}
    fn start(&mut self);
    fn stop(&mut self);
}

/// Whether the test can run; elsewhere than in CI, a missing program skips it loudly.
fn is_there(program: &str, package: &str) -> bool {
    let found = ["/usr/sbin", "/usr/bin", "/bin", "/usr/local/bin"]
        .iter()
        .any(|folder| Path::new(folder).join(program).exists())
        || hermetic("sh")
            .args(["-c", &format!("command -v {program}")])
            .output()
            .is_ok_and(|ran| ran.status.success());
    if !found {
        let message = format!("NOT TESTED: `{program}` is missing; install {package}");
        assert!(std::env::var_os("CI").is_none(), "{message}");
        eprintln!("{message}");
    }
    found
}

/// No server at all: the repository's own path.
pub struct Folder(String);

impl Folder {
    pub fn of(fleet: &Fleet) -> Folder {
        Folder(fleet.bare_path().display().to_string())
    }
}

impl Server for Folder {
    fn access(&self) -> Vec<String> {
        vec!["--remote".to_owned(), self.0.clone()]
    }
    fn start(&mut self) {}
    fn stop(&mut self) {}
}

fn wait_for_port(port: u16) {
    until(&format!("something listens on port {port}"), || TcpStream::connect(("127.0.0.1", port)).is_ok());
}

/// Ends with the test.
struct Process(Option<Child>);

impl Process {
    fn kill(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `git daemon`.
pub struct Plain {
    root: PathBuf,
    pub port: u16,
    process: Process,
}

impl Plain {
    pub fn pid(&self) -> u32 {
        self.process.0.as_ref().expect("it runs").id()
    }

    pub fn new(root: &Path) -> Plain {
        let mut server = Plain { root: root.to_owned(), port: free_port(), process: Process(None) };
        server.start();
        server
    }

    /// Goes on with the repositories of another folder, on its port.
    pub fn move_to(&mut self, root: &Path) {
        self.stop();
        self.root = root.to_owned();
        self.start();
    }
}

impl Server for Plain {
    fn access(&self) -> Vec<String> {
        vec!["--remote".into(), format!("git://127.0.0.1:{}/fleet.git", self.port), "--allow-plain".into()]
    }

    fn start(&mut self) {
        let folder = hermetic("git").arg("--exec-path").output().expect("git runs").stdout;
        let program = Path::new(String::from_utf8_lossy(&folder).trim()).join("git-daemon");
        let mut command = hermetic(program.to_str().expect("text"));
        command.args(["--export-all", "--enable=receive-pack", "--reuseaddr", "--listen=127.0.0.1"]);
        command.arg(format!("--port={}", self.port)).arg(format!("--base-path={}", self.root.display()));
        self.process = Process(Some(command.stderr(Stdio::null()).spawn().expect("git daemon starts")));
        wait_for_port(self.port);
    }

    fn stop(&mut self) {
        self.process.kill();
    }
}

/// `git http-backend` behind TLS with a password.
pub struct Https {
    root: PathBuf,
    pub port: u16,
    pub password: String,
    /// Without the authority's certificate, nobody trusts the server.
    pub trusted: bool,
    process: Process,
}

impl Https {
    /// `None` where the machine lacks what it needs.
    pub fn new(root: &Path) -> Option<Https> {
        if !is_there("python3", "python3") || !is_there("openssl", "openssl") {
            return None;
        }
        let made = Ran::of(hermetic("openssl").current_dir(root).args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ]));
        assert_eq!(made.code, 0, "{}", made.err);
        std::fs::write(root.join("token"), format!("{PASSWORD}\n")).expect("a file");
        let password = PASSWORD.to_owned();
        let mut server = Https {
            root: root.to_owned(),
            port: free_port(),
            password,
            trusted: true,
            process: Process(None),
        };
        server.start();
        Some(server)
    }

    /// The same over http and without a password, to count what goes over it. `None` without Python.
    pub fn open_to_all(root: &Path) -> Option<Https> {
        if !is_there("python3", "python3") {
            return None;
        }
        let mut server = Https {
            root: root.to_owned(),
            port: free_port(),
            password: String::new(),
            trusted: false,
            process: Process(None),
        };
        server.start();
        Some(server)
    }

    pub fn pid(&self) -> u32 {
        self.process.0.as_ref().expect("it runs").id()
    }

    /// From now on each request meets this fault; none where it is empty.
    pub fn fault(&self, what: &str) {
        std::fs::write(self.root.join("faults.new"), what).expect("a file");
        std::fs::rename(self.root.join("faults.new"), self.root.join("faults")).expect("a file");
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}/fleet.git", self.port)
    }
}

impl Server for Https {
    fn access(&self) -> Vec<String> {
        let mut access = vec!["--remote".to_owned(), self.url(), "--username".to_owned(), "ann".to_owned()];
        if self.trusted {
            access.extend(["--ca-file".to_owned(), self.root.join("cert.pem").display().to_string()]);
        }
        if self.password == PASSWORD {
            access.extend(["--token-file".to_owned(), self.root.join("token").display().to_string()]);
        }
        access
    }

    fn set_secrets(&self, command: &mut Command) {
        if self.password != PASSWORD {
            command.env("BERTH_TOKEN", &self.password);
        }
    }

    fn start(&mut self) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/remote/https_server.py");
        let mut command = hermetic("python3");
        // A shim of `python3` may look for its versions at home.
        if let Some(home) = std::env::var_os("HOME") {
            command.env("HOME", home);
        }
        command.arg(script).arg(&self.root);
        if self.password.is_empty() {
            command.args(["", "", &self.port.to_string(), ""]);
        } else {
            command.arg(self.root.join("cert.pem")).arg(self.root.join("key.pem"));
            command.arg(self.port.to_string()).arg(format!("ann:{PASSWORD}"));
        }
        command.arg(self.root.join("faults"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("python starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        self.process = Process(Some(child));
        self.port = line.trim().parse().expect("the server says its port");
    }

    fn stop(&mut self) {
        self.process.kill();
    }
}

/// sshd with a key for the user who runs the tests.
pub struct Ssh {
    root: PathBuf,
    pub port: u16,
    process: Process,
}

impl Ssh {
    /// `None` where the machine lacks what it needs.
    pub fn new(root: &Path) -> Option<Ssh> {
        if !is_there("sshd", "openssh-server") || !is_there("ssh-keygen", "openssh-client") {
            return None;
        }
        for name in ["host_key", "user_key", "other_key"] {
            let made = Ran::of(
                hermetic("ssh-keygen").current_dir(root).args(["-q", "-t", "ed25519", "-N", "", "-f", name]),
            );
            assert_eq!(made.code, 0, "{}", made.err);
        }
        let _ = std::fs::create_dir_all("/run/sshd");
        let port = free_port();
        let at = |name: &str| root.join(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
             AcceptEnv GIT_PROTOCOL\nMaxStartups 100\n",
            at("host_key"),
            at("user_key.pub")
        );
        std::fs::write(root.join("sshd_config"), config).expect("a file");
        let key = std::fs::read_to_string(root.join("host_key.pub")).expect("a key");
        std::fs::write(root.join("known_hosts"), format!("[127.0.0.1]:{port} {key}")).expect("a file");
        let other = std::fs::read_to_string(root.join("other_key.pub")).expect("a key");
        std::fs::write(root.join("other_hosts"), format!("[127.0.0.1]:{port} {other}")).expect("a file");
        let mut server = Ssh { root: root.to_owned(), port, process: Process(None) };
        server.start();
        Some(server)
    }

    pub fn url(&self) -> String {
        let user = Ran::of(hermetic("id").arg("-un")).out;
        let path = self.root.join("fleet.git");
        format!("ssh://{}@127.0.0.1:{}{}", user.trim(), self.port, path.display())
    }

    /// The path of the known hosts, with this server among them.
    pub fn known_hosts(&self) -> String {
        self.root.join("known_hosts").display().to_string()
    }

    /// Lets who has this key in, too.
    pub fn allow(&self, public: &str) {
        let path = self.root.join("user_key.pub");
        let known = std::fs::read_to_string(&path).expect("keys");
        std::fs::write(path, format!("{known}{public}\n")).expect("a file");
    }

    /// The flags with another key or other known hosts.
    pub fn access_with(&self, key: &str, hosts: &str) -> Vec<String> {
        vec![
            "--remote".into(),
            self.url(),
            "--ssh-key".into(),
            self.root.join(key).display().to_string(),
            "--known-hosts".into(),
            self.root.join(hosts).display().to_string(),
        ]
    }
}

impl Server for Ssh {
    fn access(&self) -> Vec<String> {
        self.access_with("user_key", "known_hosts")
    }

    fn start(&mut self) {
        let program = if Path::new("/usr/sbin/sshd").exists() { "/usr/sbin/sshd" } else { "sshd" };
        let mut command = hermetic(program);
        command.args(["-D", "-e", "-f"]).arg(self.root.join("sshd_config"));
        self.process = Process(Some(command.stderr(Stdio::null()).spawn().expect("sshd starts")));
        wait_for_port(self.port);
    }

    fn stop(&mut self) {
        self.process.kill();
    }
}
