//! Errors of a remote, distinguished by what the caller can do about them.
//!
//! Failures are classified by the messages of `git`. These are stable in the C locale, and those of curl, TLS
//! libraries and ssh nearly so. An unknown message is shown unchanged.

use std::time::Duration;

/// A failed exchange with a remote. Messages never contain a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// A setting is wrong: an address, or a file named in the settings.
    #[error("{message}")]
    Setting { message: String, hint: Option<String> },
    #[error("`git` cannot be used: {message}")]
    NoGit { message: String },
    #[error("`{remote}` cannot be reached: {message}")]
    Unreachable { remote: String, message: String },
    #[error("`{remote}` did not finish within {} seconds", .after.as_secs())]
    TimedOut { remote: String, after: Duration },
    /// The process was asked to stop.
    #[error("the exchange with `{remote}` was interrupted")]
    Cancelled { remote: String },
    /// The remote cannot prove its identity.
    #[error("`{remote}` is not trusted: {message}")]
    Untrusted { remote: String, message: String },
    /// The remote's content is not valid; none of it is used.
    #[error("`{remote}` sent invalid content: {message}")]
    Wrong { remote: String, message: String },
    /// The remote denies access, or denies this operation.
    #[error("`{remote}` refuses the credentials: {message}")]
    Denied { remote: String, message: String },
    #[error("there is no repository at `{remote}`: {message}")]
    NoRepository { remote: String, message: String },
    #[error("`{remote}` has no `{name}`")]
    NoSuchRef { remote: String, name: String },
    /// Another process moved the ref first. The caller fetches, computes again and tries again.
    #[error("another process changed `{name}` at `{remote}` first")]
    Raced { remote: String, name: String },
    /// Another process is moving the ref right now, or died while moving it.
    #[error("`{name}` is locked at `{remote}`: {lock}")]
    Locked { remote: String, name: String, lock: String },
    /// A hook or a rule of the server refuses the push.
    #[error("`{remote}` refuses to move `{name}`: {message}")]
    Refused { remote: String, name: String, message: String },
    /// The answer was incomplete; none of it is used.
    #[error("the exchange with `{remote}` was cut off: {message}")]
    Truncated { remote: String, message: String },
    /// The local repository's folder cannot be read or written, as with a full disk or missing rights.
    #[error("the working copy cannot be used: {message}")]
    WorkingCopy { message: String },
    /// The sandbox or a resource limit of `git` made it fail.
    #[error("`git` was stopped by its limits in the exchange with `{remote}`: {message}")]
    Limited { remote: String, message: String },
    #[error("`git` failed with `{remote}`: {message}")]
    Failed { remote: String, message: String },
}

impl TransportError {
    /// Makes the error for a `git` that could not be started.
    pub(super) fn not_started(error: std::io::Error) -> TransportError {
        if error.kind() == std::io::ErrorKind::Unsupported {
            let hint = "use `--git-sandbox auto`: it runs `git` with the parts of a sandbox that this system supports";
            let hint = Some(hint.to_owned());
            return TransportError::Setting { message: format!("`git` is not run: {error}"), hint };
        }
        TransportError::NoGit { message: error.to_string() }
    }

    /// Reports whether the same operation may succeed later without anyone's intervention.
    pub fn is_passing(&self) -> bool {
        use TransportError::{
            Cancelled, Failed, Limited, Locked, Raced, TimedOut, Truncated, Unreachable, WorkingCopy,
        };
        matches!(
            self,
            Unreachable { .. }
                | TimedOut { .. }
                | Cancelled { .. }
                | Truncated { .. }
                | Raced { .. }
                | Locked { .. }
                | Failed { .. }
                | Limited { .. }
                | WorkingCopy { .. }
        )
    }

    pub fn is_race(&self) -> bool {
        matches!(self, TransportError::Raced { .. } | TransportError::Locked { .. })
    }

    /// Reports whether the remote allows reading, but not this operation.
    pub fn is_refusal(&self) -> bool {
        matches!(self, TransportError::Denied { .. } | TransportError::Refused { .. })
    }

    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            TransportError::Setting { hint, .. } => return hint.clone(),
            TransportError::NoGit { .. } => "install Git 2.31 or newer; only remotes need it",
            TransportError::TimedOut { .. } => "if the server is only slow, raise `--git-timeout`",
            TransportError::Untrusted { .. } => {
                "for https give the authority's certificate with `--ca-file`; for ssh the host's key with `--known-hosts`"
            }
            TransportError::Denied { .. } => "check the token, password or key, and its permissions",
            TransportError::NoRepository { .. } => {
                "check the address and the credentials: many servers give this answer for both"
            }
            TransportError::Refused { .. } => {
                "allow berth's account to update `refs/heads/berth/*` and `refs/berth/*` in the server's \
                 rules and hooks"
            }
            TransportError::Raced { .. } => "try again",
            TransportError::Locked { .. } => {
                "try again; if no Git process uses that repository, remove the file"
            }
            TransportError::WorkingCopy { .. } => {
                "free disk space, correct the folder's permissions, or name another folder with `--repo`"
            }
            TransportError::Limited { .. } => {
                "a repository that needs more memory gets it by `--git-memory`, longer files by `--git-largest-file`; \
                 other needs by `--git-sandbox never`"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// The length of a shown message: enough to understand, without flooding a log.
const LONGEST: usize = 400;

enum Kind {
    Untrusted,
    Denied,
    NoRepository,
    Unreachable,
    Truncated,
}

/// The first row with a matching word counts: rows are in the order in which an exchange can fail.
const WORDS: &[(Kind, &[&str])] = &[
    (
        Kind::Untrusted,
        &[
            "host key verification failed",
            "host identification has changed",
            "server certificate verification failed",
            "certificate verif",
            "certificate problem",
            "certificate subject name",
            "peer's certificate",
            "peer certificate",
            "error setting certificate",
            "error reading ca cert",
        ],
    ),
    (
        Kind::Denied,
        &[
            "could not read username",
            "could not read password",
            "authentication failed",
            "returned error: 401",
            "returned error: 403",
            "returned error: 407",
            "http code 407",
            "response 407",
            "http 401",
            "http 403",
            "permission denied",
            "too many authentication failures",
            "no supported authentication methods",
            "access denied",
            "service not enabled",
            "unprotected private key",
            "load key",
        ],
    ),
    (
        Kind::NoRepository,
        &[
            "does not appear to be a git repository",
            "repository not found",
            "returned error: 404",
            "' not found",
        ],
    ),
    (
        Kind::Unreachable,
        &["returned error: 429", "returned error: 5", "http 429", "http 5", "operation too slow"],
    ),
    (
        Kind::Truncated,
        &[
            "rpc failed",
            "early eof",
            "unexpected disconnect",
            "unexpected eof",
            "index-pack",
            "unpack-objects",
            "bad pack header",
            "inflate",
            "pack has",
            "packfile",
            "transfer closed",
            "bad line length",
            "protocol error",
            "expected flush",
            "did not send all necessary objects",
            "invalid server response",
            "not valid: is this a git repository",
        ],
    ),
    (
        Kind::Unreachable,
        &[
            "could not resolve",
            "failed to connect",
            "couldn't connect",
            "connection refused",
            "connection timed out",
            "operation timed out",
            "timed out",
            "connection reset",
            "connection was reset",
            "connection closed",
            "network is unreachable",
            "no route to host",
            "unable to connect",
            "empty reply",
            "handshake",
            "ssl_connect",
            "ssl routines",
            "tls",
            "broken pipe",
            "kex_exchange_identification",
            "unable to look up",
            "unable to access",
            "proxy",
        ],
    ),
    // Last, because ssh and Git print these after every other error too.
    (Kind::Truncated, &["hung up unexpectedly", "could not read from remote repository"]),
];

/// Classifies the error output of a failed `git`, which is already free of secrets.
pub(super) fn of(remote: &str, said: &str) -> TransportError {
    let (remote, message) = (remote.to_owned(), gist(said));
    let lower = said.to_lowercase();
    if says_here(said, &FULL_DISK) {
        return TransportError::WorkingCopy { message };
    }
    // ssh writes `(publickey)` after a server's refusal, so a bare one is local.
    let is_denied = |line: &str| line.ends_with(": permission denied") && !line.contains("load key");
    if says_here(said, &LIMITED) || lines_of_here(said).any(|line| is_denied(&line)) {
        return TransportError::Limited { remote, message };
    }
    if let Some(rest) = said.split("couldn't find remote ref ").nth(1) {
        let name = rest.lines().next().unwrap_or_default().trim().to_owned();
        return TransportError::NoSuchRef { remote, name };
    }
    if ["301", "302", "307", "308"].iter().any(|code| lower.contains(&format!("returned error: {code}"))) {
        let hint = Some(
            "name the address it is redirected to: credentials are not sent after a redirection".to_owned(),
        );
        return TransportError::Setting { message: format!("`{remote}` redirects to another address"), hint };
    }
    let found = WORDS.iter().find(|(_, words)| words.iter().any(|word| lower.contains(word)));
    match found.map(|(kind, _)| kind) {
        Some(Kind::Untrusted) => TransportError::Untrusted { remote, message },
        Some(Kind::Denied) => TransportError::Denied { remote, message },
        Some(Kind::NoRepository) => TransportError::NoRepository { remote, message },
        Some(Kind::Unreachable) => TransportError::Unreachable { remote, message },
        Some(Kind::Truncated) => TransportError::Truncated { remote, message },
        None => TransportError::Failed { remote, message },
    }
}

const FULL_DISK: [&str; 3] = ["no space left on device", "disk quota exceeded", "file too large"];

/// Messages caused by the sandbox or by limits of memory, processor time (24) and files (25).
const LIMITED: [&str; 6] = [
    "out of memory",
    "cannot allocate memory",
    "memory exhausted",
    "died of signal 24",
    "died of signal 25",
    "function not implemented",
];

/// Reports whether a local line contains one of these words.
fn says_here(said: &str, words: &[&str]) -> bool {
    lines_of_here(said).any(|line| words.iter().any(|word| line.contains(word)))
}

/// Iterates over the local lines, in lower case. The server's lines begin with `remote:`.
fn lines_of_here(said: &str) -> impl Iterator<Item = String> {
    said.lines().map(|line| line.trim().to_lowercase()).filter(|line| !line.starts_with("remote:"))
}

/// The reason given for a ref that did not move because another one could not.
pub(super) const ALONG: &str = "atomic push fail";

/// Lists the refs that did not move, with reasons, from the `--porcelain` lines of a push.
pub(super) fn rejections(out: &str) -> Vec<(&str, &str)> {
    let lines = out.lines().filter_map(|line| line.strip_prefix("!\t")?.split_once('\t'));
    lines.map(|(refs, why)| (refs.rsplit_once(':').map_or(refs, |(_, to)| to), why)).collect()
}

/// Classifies a failed push by its `--porcelain` lines: `!<tab>from:to<tab>[who] (why)` for each ref that did not
/// move. `None` if there is no such line.
pub(super) fn of_push(remote: &str, out: &str, said: &str) -> Option<TransportError> {
    let rejected = rejections(out);
    // In an atomic push, most refs are refused because of one.
    let along = |why: &str| why.contains(ALONG);
    let (name, why) = rejected.iter().find(|(_, why)| !along(why)).or(rejected.first())?;
    let (remote, name) = (remote.to_owned(), (*name).to_owned());
    let theirs = why.starts_with("[remote rejected]");
    let reason = why.split_once('(').map_or(*why, |(_, reason)| reason.trim_end_matches(')'));
    const MOVED: &[&str] = &[
        "stale info",
        "fetch first",
        "failed to update ref",
        "incorrect old value",
        "already exists",
        "cannot lock ref",
        "failed to lock",
        "atomic transaction failed",
    ];
    let moved =
        MOVED.iter().any(|word| reason.contains(word)) || (!theirs && reason.contains("fast-forward"));
    if moved {
        return Some(match lock_in_the_way(said) {
            Some(lock) => TransportError::Locked { remote, name, lock },
            None => TransportError::Raced { remote, name },
        });
    }
    let told: Vec<&str> =
        said.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim).collect();
    let message = gist(&[&[reason][..], &told].concat().join("\n"));
    Some(TransportError::Refused { remote, name, message })
}

/// Returns the file that blocked a ref, from the server's message `Unable to create 'FILE': File exists`.
fn lock_in_the_way(said: &str) -> Option<String> {
    let line =
        said.lines().find(|line| line.contains("Unable to create '") && line.contains("File exists"))?;
    let file = line.split_once("Unable to create '")?.1.split_once("':")?.0;
    file.ends_with(".lock").then(|| gist(&format!("`{}` exists", file.replace("/./", "/"))))
}

/// Joins the meaningful lines into one.
pub(super) fn gist(said: &str) -> String {
    const EMPTY: &[&str] = &[
        "please make sure you have the correct access rights",
        "and the repository exists",
        "could not read from remote repository",
        "failed to push some refs",
        "warning: permanently added",
    ];
    let plain = |line: &str| -> String {
        let line = line.trim();
        let line = ["fatal: ", "error: "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
        line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
    };
    let mut parts: Vec<String> = Vec::new();
    for line in said.lines().map(plain) {
        let lower = line.to_lowercase();
        let says = line.chars().any(char::is_alphanumeric);
        if says && !EMPTY.iter().any(|empty| lower.contains(empty)) && !parts.contains(&line) {
            parts.push(line);
        }
    }
    if parts.is_empty() {
        return "it gave no reason".to_owned();
    }
    let text = parts.join("; ");
    let text = text.trim_end_matches('.');
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
