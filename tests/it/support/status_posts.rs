//! A daemon that takes statuses by POST, and members' keys.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use berth_base::model::{ClusterStatus, Timestamp};
use berth_base::status::write_status;
use berth_git::deploy_key::DeployKey;
use berth_git::signature::{Signer, sshsig};

use super::remote::{Fleet, Running, Server};

/// The statuses that were sent by POST.
pub const STATUSES: &str = "refs/berth/statuses";

/// A member's key, in a file of its own.
pub struct MemberKey {
    pub cluster: String,
    pub file: PathBuf,
    key: DeployKey,
}

impl MemberKey {
    pub fn new(folder: &Path, cluster: &str) -> MemberKey {
        let key = DeployKey::generate(cluster).expect("a key");
        let file = folder.join(format!("key-{cluster}"));
        std::fs::write(&file, &key.private).expect("a file");
        MemberKey { cluster: cluster.to_owned(), file, key }
    }

    /// Its line of a file of signers, for these clusters.
    pub fn line(&self, clusters: &str) -> String {
        format!("{clusters} namespaces=\"berth-status\" {}\n", self.key.public.line())
    }

    /// Its public key, as a server of Git lets it in.
    pub fn public(&self) -> String {
        self.key.public.line()
    }

    pub fn sign(&self, status: &str) -> String {
        sshsig::sign_status(&Signer::read(&self.key.private).expect("a signer"), status.as_bytes())
            .expect("a signature")
    }

    /// Sends a status with its signature.
    pub fn post(&self, address: &str, status: &str) -> (u16, String) {
        post(address, Some(&self.sign(status)), status)
    }
}

/// A status of a cluster with this label, made so many seconds from now.
pub fn status(cluster: &str, label: &str, seconds: i64) -> String {
    let at = |second: i64| Timestamp::from_second(second).ok();
    let now = Timestamp::now().as_second() + seconds;
    let labels = [("berth.dev/is".to_owned(), label.to_owned())].into();
    let (reported, next_due) = (at(now), at(now + 600));
    let cluster = cluster.to_owned();
    write_status(&ClusterStatus { cluster, reported, next_due, labels, ..ClusterStatus::default() })
}

/// The status and the words of the answer; 0 where the connection was closed.
pub fn post(address: &str, signature: Option<&str>, body: &str) -> (u16, String) {
    let signature = signature.map(|line| format!("Berth-Signature: {line}\r\n")).unwrap_or_default();
    let head =
        format!("POST /status HTTP/1.1\r\nHost: x\r\n{signature}Content-Length: {}\r\n\r\n", body.len());
    request(address, &(head + body))
}

pub fn request(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let code = answer.get(9..12).and_then(|code| code.parse().ok()).unwrap_or_default();
    (code, answer.split_once("\r\n\r\n").map(|(_, words)| words.to_owned()).unwrap_or_default())
}

/// A daemon that takes statuses of these keys.
pub fn daemon(copy: &str, poll: &str, fleet: &Fleet, server: &dyn Server, more: &[&str]) -> Running {
    let signers = signers_file(fleet);
    let own = ["--status-listen", "0", "--metrics", "0", "--status-signers", signers.to_str().expect("text")];
    Running::daemon_in(copy, poll, fleet, server, &[&own, more].concat())
}

pub fn signers_file(fleet: &Fleet) -> PathBuf {
    fleet.root().join("status-signers")
}

pub fn listens_at(daemon: &Running) -> String {
    daemon.address("listening for statuses")
}

/// The kept statuses, by the file's name.
pub fn kept(fleet: &Fleet) -> Vec<String> {
    if !fleet.has(STATUSES) {
        return Vec::new();
    }
    let paths = fleet.bare(&["ls-tree", "-r", "--name-only", STATUSES]);
    paths.lines().filter_map(|path| path.rsplit('/').next()).map(str::to_owned).collect()
}

/// The kept status of a cluster.
pub fn kept_of(fleet: &Fleet, cluster: &str) -> String {
    let paths = fleet.bare(&["ls-tree", "-r", "--name-only", STATUSES]);
    let name = format!("/{cluster}.yaml");
    let path = paths.lines().find(|path| path.ends_with(&name)).expect("a file");
    fleet.bare(&["show", &format!("{STATUSES}:{path}")])
}
