//! One question to a program that keeps credentials, `docker-credential-<name> get`, in limited time.
//!
//! The program is named by the user's own file and found in `PATH`, as docker does; its name cannot be a path.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Login;
use berth_http::Secret;

const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
const LONGEST_ANSWER: u64 = 1 << 20;
/// The name that a helper gives with a token to exchange.
const TOKEN: &str = "<token>";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// Asks a helper for the credentials of a server.
pub(super) fn ask(helper: &str, server: &str) -> Result<Login, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !helper.chars().all(is_name) {
        return Err(format!("`{}` is not the name of a credential helper", helper.escape_debug()));
    }
    let program = format!("docker-credential-{helper}");
    let failed = |why: String| format!("`{program}` failed: {why}");
    let mut command = Command::new(&program);
    // What it says beside its answer could hold a secret.
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(server.as_bytes());
    }
    let output = child.stdout.take();
    // A thread that is waited for so long only: a process that the helper leaves behind could keep its output open.
    let (answers, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.map(|output| output.take(LONGEST_ANSWER).read_to_end(&mut bytes));
        let _ = answers.send(read.is_some_and(|read| read.is_ok()).then_some(bytes));
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < PATIENCE => std::thread::sleep(POLL),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!("it took longer than {} seconds", PATIENCE.as_secs())));
            }
        }
    };
    let answer = answer.recv_timeout(PATIENCE).ok().flatten();
    let answer = answer.ok_or_else(|| failed("its answer cannot be read".to_owned()))?;
    if !status.success() {
        // Helpers say so on their output where they know no credentials.
        let is_unknown = String::from_utf8_lossy(&answer).contains("credentials not found");
        return if is_unknown { Ok(Login::Anonymous) } else { Err(failed(status.to_string())) };
    }
    let answer: Answer =
        serde_json::from_slice(&answer).map_err(|_| failed("its answer is not as expected".to_owned()))?;
    let secret = Secret::new(answer.secret);
    Ok(match answer.username.as_str() {
        TOKEN => Login::Identity(secret),
        _ => Login::Password { name: answer.username, password: secret },
    })
}
