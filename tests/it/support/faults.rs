//! A server between berth and an API server that answers some requests badly: it speaks plain HTTP, and
//! `kubectl proxy` behind it does the rest.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use super::kube::ControlPlane;

/// What is done to the first write of an object.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The server is busy, and says for how long.
    Busy,
    /// It is done, and the answer is lost.
    Lost,
    /// It is done, a controller writes to it, and the answer is lost.
    Touched,
}

pub struct Faults {
    behind: Child,
    pub port: u16,
    /// The objects whose first write went wrong.
    pub happened: Arc<Mutex<BTreeSet<String>>>,
}

impl Faults {
    /// Each fault strikes the first real write to a path that ends so.
    pub fn between(plane: &ControlPlane, faults: &'static [(&'static str, Fault)]) -> Faults {
        let mut command = plane.kubectl();
        let mut behind = command
            .args(["proxy", "--port=0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kubectl runs");
        let mut line = String::new();
        BufReader::new(behind.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let upstream = line.trim().rsplit(' ').next().expect("an address").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let happened = Arc::new(Mutex::new(BTreeSet::new()));
        let seen = happened.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (upstream, seen) = (upstream.clone(), seen.clone());
                std::thread::spawn(move || serve(stream, &upstream, faults, &seen));
            }
        });
        Faults { behind, port, happened }
    }

    /// Writes a kubeconfig that goes this way.
    pub fn kubeconfig(&self, folder: &Path) -> PathBuf {
        let path = folder.join("faulty-kubeconfig");
        std::fs::write(&path, kubeconfig_of(self.port)).expect("a file");
        path
    }
}

/// A kubeconfig for a proxy on this machine.
pub fn kubeconfig_of(port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\nusers: [{{name: a, user: {{}}}}]\n"
    )
}

impl Drop for Faults {
    fn drop(&mut self) {
        let _ = self.behind.kill();
        let _ = self.behind.wait();
    }
}

/// One request for each connection.
fn serve(
    mut stream: TcpStream,
    upstream: &str,
    faults: &[(&str, Fault)],
    seen: &Mutex<BTreeSet<String>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length, mut first) = (String::new(), 0, String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if first.is_empty() {
            first.clone_from(&line);
        }
        if line == "\r\n" {
            head.push_str("Connection: close\r\n\r\n");
            break;
        }
        if !lower.starts_with("connection:") {
            head.push_str(&line);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.split('?').next()?.to_owned();
    let is_write = first.starts_with("PATCH") && !first.contains("dryRun=All");
    let fault = faults.iter().find(|(end, _)| is_write && path.ends_with(end));
    let fault =
        fault.filter(|_| seen.lock().is_ok_and(|mut seen| seen.insert(path))).map(|(_, fault)| *fault);
    if let Some(Fault::Busy) = fault {
        let answer = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(answer.as_bytes()).ok();
    }
    let mut behind = TcpStream::connect(upstream).ok()?;
    behind.write_all(head.as_bytes()).ok()?;
    behind.write_all(&body).ok()?;
    let mut answer = Vec::new();
    behind.read_to_end(&mut answer).ok()?;
    if let Some(Fault::Touched) = fault {
        touch(upstream, first.split(['?', ' ']).nth(1)?)?;
    }
    if fault.is_none() {
        stream.write_all(&answer).ok()?;
    }
    Some(())
}

/// Writes to an object as a controller does that has just seen it.
fn touch(upstream: &str, path: &str) -> Option<()> {
    let body = r#"{"metadata":{"finalizers":["example.com/controller"]}}"#;
    let head = format!(
        "PATCH {path}?fieldManager=controller HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/merge-patch+json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut behind = TcpStream::connect(upstream).ok()?;
    behind.write_all(head.as_bytes()).ok()?;
    behind.write_all(body.as_bytes()).ok()?;
    behind.read_to_end(&mut Vec::new()).ok().map(drop)
}
