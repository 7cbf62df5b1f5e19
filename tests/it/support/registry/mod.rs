//! A real container registry for tests: distribution, each instance in a folder and on a port of its own, and a gate
//! in front of it that counts and harms. It is built once where Go is at hand, and stops when its value is dropped or
//! the test process dies. Finding none is a skipped test, or under `CI=true` a failed one.

mod exchange;
mod fleet;
mod gate;

pub use exchange::{Exchange, call};
pub use fleet::Shop;
pub use gate::{Asked, Deed, Gate};

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value as Json;

use super::ports::free_port;
use super::wait::until;
use super::{hermetic, programs};

/// The name and password that a registry with a password takes.
pub const USER: &str = "berth";
pub const PASSWORD: &str = "s3cret-p4ss";
/// The line of an htpasswd file for both.
const HTPASSWD: &str = "berth:$2a$04$NH1TkDyqQRf.CfPBv.P9u.6qs3Rmk0Dz/RHB74WG8upn71Hw8VaLy\n";

/// A running registry.
#[derive(Debug)]
pub struct Registry {
    pub port: u16,
    data: tempfile::TempDir,
    with_password: bool,
    process: Option<Child>,
}

impl Registry {
    /// Starts a registry that lets everybody read, write and delete. Without the means for it, says so loudly and gives
    /// nothing, and the test returns; under `CI=true` the test fails.
    pub fn start() -> Option<Registry> {
        Registry::with("delete: {enabled: true}", false)
    }

    /// Starts a registry that lets in [`USER`] with [`PASSWORD`].
    pub fn start_with_password() -> Option<Registry> {
        Registry::with("delete: {enabled: true}", true)
    }

    /// Starts a registry as it is installed: it deletes nothing.
    pub fn start_without_deletion() -> Option<Registry> {
        Registry::with("delete: {enabled: false}", false)
    }

    fn with(delete: &str, with_password: bool) -> Option<Registry> {
        let program = find()?.join("registry");
        let data = tempfile::tempdir().expect("a temporary folder");
        let port = free_port();
        let path = data.path().display();
        let auth = if with_password {
            std::fs::write(data.path().join("htpasswd"), HTPASSWD).expect("a file");
            format!("auth: {{htpasswd: {{realm: tests, path: {path}/htpasswd}}}}\n")
        } else {
            String::new()
        };
        let settings = format!(
            "version: 0.1\nlog: {{level: warn, accesslog: {{disabled: true}}}}\nstorage:\n  filesystem: {{rootdirectory: \
             {path}/storage}}\n  {delete}\n  maintenance: {{uploadpurging: {{enabled: false}}}}\nhttp: {{addr: \
             '127.0.0.1:{port}', secret: tests}}\n{auth}"
        );
        std::fs::write(data.path().join("config.yml"), settings).expect("a file");
        let mut registry = Registry { port, data, with_password, process: None };
        registry.run(&program);
        Some(registry)
    }

    /// Returns `HOST:PORT`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the id of the registry's own process.
    pub fn pid(&self) -> u32 {
        let shell = self.process.as_ref().expect("it runs").id();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        children.expect("a process").split_whitespace().next().expect("a child").parse().expect("an id")
    }

    /// Returns the folder of its storage.
    pub fn storage(&self) -> PathBuf {
        self.data.path().join("storage")
    }

    /// Stops the registry. What it stores stays.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }

    /// Starts the registry again, on its port and with what it stores.
    pub fn start_again(&mut self) {
        let program = find().expect("it was there").join("registry");
        self.run(&program);
    }

    /// Asks the registry: a method, a path below `/v2/`, more headers and a body.
    pub fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Exchange {
        let basic =
            format!("Basic {}", berth_base::text::base64::encode(format!("{USER}:{PASSWORD}").as_bytes()));
        let mut all = headers.to_vec();
        if self.with_password {
            all.push(("authorization", &basic));
        }
        call(self.port, method, &format!("/v2/{path}"), &all, body).expect("the registry answers")
    }

    /// Returns the tags of a repository, sorted.
    pub fn tags(&self, repository: &str) -> Vec<String> {
        let answer = self.call("GET", &format!("{repository}/tags/list"), &[], b"");
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let tags = json["tags"].as_array().into_iter().flatten();
        let mut tags: Vec<String> = tags.filter_map(|tag| Some(tag.as_str()?.to_owned())).collect();
        tags.sort_unstable();
        tags
    }

    /// Returns a manifest by its tag or digest, with its digest.
    pub fn manifest(&self, repository: &str, reference: &str) -> Option<(Json, String)> {
        let accept = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";
        let answer =
            self.call("GET", &format!("{repository}/manifests/{reference}"), &[("accept", accept)], b"");
        let digest = answer.header("docker-content-digest")?.to_owned();
        (answer.status == 200).then(|| (serde_json::from_slice(&answer.body).expect("a manifest"), digest))
    }

    /// Returns a blob's bytes.
    pub fn blob(&self, repository: &str, digest: &str) -> Vec<u8> {
        let answer = self.call("GET", &format!("{repository}/blobs/{digest}"), &[], b"");
        assert_eq!(answer.status, 200, "{repository} {digest}");
        answer.body
    }

    /// Moves a tag to a manifest, as whoever may push can.
    pub fn tag(&self, repository: &str, tag: &str, manifest: &Json) {
        let kind = manifest["mediaType"].as_str().expect("a media type");
        let path = format!("{repository}/manifests/{tag}");
        let body = manifest.to_string();
        assert_eq!(self.call("PUT", &path, &[("content-type", kind)], body.as_bytes()).status, 201);
    }

    fn run(&mut self, program: &Path) {
        // Ends when its standard input closes, so that it never outlives the test.
        let mut command: Command = hermetic("sh");
        command.args(["-c", "\"$@\" & read -r _; kill $!; wait $!", "sh"]).arg(program).arg("serve");
        let log = std::fs::File::create(self.data.path().join("log")).expect("a file");
        command.arg(self.data.path().join("config.yml")).env("OTEL_TRACES_EXPORTER", "none");
        command.stdin(Stdio::piped()).stdout(log.try_clone().expect("a file")).stderr(log);
        self.process = Some(command.spawn().expect("the registry starts"));
        until("the registry answers", || call(self.port, "GET", "/v2/", &[], b"").is_ok());
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the folder of the built program, looked for once in a test run.
fn find() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(|| programs::made(&["ready", "registry"], "registry")) {
        Ok(folder) => Some(folder),
        Err(why) => {
            programs::skipped("a container registry", why);
            None
        }
    }
}
