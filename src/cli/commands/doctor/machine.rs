//! This machine: its files, its clock, its working copy, and the addresses on which a daemon listens; the repository on
//! it, if no remote is set; the signing key, the allowed keys, and the tip that members follow.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::AccountRole;
use super::finding::{Findings, Level};
use crate::process::exit::CommandError;
use berth_base::model::Timestamp;
use berth_git::signature::{AllowedSigners, PublicKey};
use berth_git::{CommitId, GitError, Repo};
use berth_http::server_time;
use berth_hub::daemon::webhooks::SecretFile;
use berth_hub::inputs::current_state::short;
use berth_hub::inputs::{LocatedState, Search};

/// The allowed error of the clock in seconds. Webhooks and leases tolerate five minutes, but commits show any error
/// in their dates.
const TOLERANCE: i64 = 30;
const PATIENCE: Duration = Duration::from_secs(5);

/// Checks that only its owner can read a file with a secret.
pub(super) fn check_secret_file(file: &Path, to: &mut Findings) {
    let shown = file.display();
    match std::fs::metadata(file) {
        Err(error) => {
            to.fault(format!("`{shown}` cannot be read: {error}"), "create the file, or name another");
        }
        Ok(about) if others_may_read(&about) => {
            to.warning(
                format!("everybody on this machine may read `{shown}`"),
                format!("chmod o-rwx {shown}"),
            );
        }
        Ok(_) => to.good(format!("`{shown}` is for its owner and group")),
    }
}

#[cfg(unix)]
fn others_may_read(about: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(about) & 0o004 != 0
}

#[cfg(not(unix))]
fn others_may_read(_: &std::fs::Metadata) -> bool {
    false
}

/// Compares the clock with a web server's.
pub(super) fn check_clock(url: Option<&str>, now: Timestamp, to: &mut Findings) {
    let web = url.filter(|url| url.starts_with("http"));
    let Some(web) = web else {
        to.not_known("whether this machine's clock is right: the remote does not speak HTTP");
        return;
    };
    let Some(time) = server_time(&without_user(web)) else {
        to.not_known(
            "whether this machine's clock is right: the server does not tell its time, or its certificate is not \
             among those of this machine or `SSL_CERT_FILE`",
        );
        return;
    };
    let off = time.as_second() - now.as_second();
    if off.abs() > TOLERANCE {
        to.fault(
            format!("this machine's clock and the server's differ by {} seconds", off.abs()),
            "set both by NTP",
        );
    } else {
        to.good("this machine's clock agrees with the server's");
    }
}

fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    format!("{scheme}://{}/{path}", host.rsplit('@').next().unwrap_or(host))
}

/// Checks the working copy of a daemon or member on this machine.
pub(super) fn check_working_copy(folder: &Path, to: &mut Findings) {
    let shown = folder.display();
    if !folder.exists() {
        to.good(format!("the working copy `{shown}` does not exist yet"));
        return;
    }
    match Repo::open(folder) {
        Err(error) => to.fault(
            format!("the working copy `{shown}` cannot be opened: {error}"),
            "stop what uses it and delete the folder: berth makes it anew",
        ),
        Ok(_) => check_writable(&format!("the working copy `{shown}`"), folder, to),
    }
    match std::fs::metadata(folder) {
        Ok(about) if others_may_read(&about) => to.warning(
            format!("everybody on this machine may read the working copy `{shown}`, and the Secrets in it"),
            format!("chmod 700 {shown}"),
        ),
        _ => {}
    }
}

/// Checks that berth can write to the folder of a repository.
pub(super) fn check_writable(name: &str, folder: &Path, to: &mut Findings) {
    match is_writable(folder) {
        Err(error) => to.fault(
            format!("{name} cannot be written: {error}"),
            "run berth as the folder's owner, and free disk space",
        ),
        Ok(()) => to.good(format!("{name} can be read and written")),
    }
}

/// Writes a file and removes it.
fn is_writable(folder: &Path) -> std::io::Result<()> {
    let place = folder.join(format!("berth-doctor-{}", std::process::id()));
    std::fs::write(&place, "berth doctor\n")?;
    std::fs::remove_file(place)
}

/// Checks the secrets of webhooks, and the listener at their address.
pub(super) fn check_webhooks(address: SocketAddr, secrets: &Path, to: &mut Findings) {
    match SecretFile::new(secrets) {
        Ok(_) => to.good(format!("the webhook secrets in `{}` can be used", secrets.display())),
        Err(why) => to.fault(
            format!("the webhook secrets in `{}` cannot be used: {why}", secrets.display()),
            "write one secret a line; make one: openssl rand -hex 32",
        ),
    }
    // Berth answers 401 to a request without a signature.
    check_listener(address, "POST /webhook", "401", "webhooks", to);
}

/// Checks the listener of the metrics.
pub(super) fn check_metrics(address: SocketAddr, to: &mut Findings) {
    check_listener(address, "GET /healthz", "200", "the page of numbers", to);
}

fn check_listener(address: SocketAddr, request: &str, expected: &str, what: &str, to: &mut Findings) {
    match TcpListener::bind(address) {
        Ok(_) => to.good(format!("the address {address} is free for {what}")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => match status(address, request) {
            Some(status) if status == expected => to.good(format!("berth answers for {what} at {address}")),
            Some(status) => to.fault(
                format!("{what} at {address} should answer {expected} to `{request}`, and answers {status}"),
                "see the log of the berth that runs, or find out what else listens there",
            ),
            None => to.fault(
                format!("the process at {address} does not answer like {what} of berth"),
                "find out what listens there, or name another address",
            ),
        },
        Err(error) => to.fault(
            format!("berth cannot listen at {address} for {what}: {error}"),
            "name an address of this machine, with a port that this user may use",
        ),
    }
}

/// Sends a request and returns the status of the answer.
fn status(address: SocketAddr, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let whole =
        format!("{request} HTTP/1.1\r\nHost: berth\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(whole.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.take(1024).read_to_string(&mut answer).ok()?;
    Some(answer.split(' ').nth(1)?.to_owned())
}

fn check_source(repo: &Repo, source: Option<&str>, to: &mut Findings) -> Result<(), CommandError> {
    let branch = source.map(str::to_owned).or(repo.head_branch()?);
    let source = branch.as_deref().unwrap_or("HEAD");
    match repo.resolve(source)? {
        Some(commit) => to.good(format!("the source `{}` is at {}", short(source), commit.short())),
        None => to.fault(
            format!("the source `{}` has no commit here", short(source)),
            "commit the fleet's files, or name the branch that people edit with `--source`",
        ),
    }
    Ok(())
}

/// Checks a repository: its source, its state, and the trust in the tip that this role follows.
pub(super) fn check_repository(
    folder: &Path,
    role: &AccountRole,
    source: Option<&str>,
    trust: Trust<'_>,
    to: &mut Findings,
) -> Result<(), CommandError> {
    to.begin("repository");
    let repo = match Repo::open(folder) {
        Ok(repo) => repo,
        Err(error) => {
            to.fault(
                error.to_string(),
                "go to a fleet repository, name one with `--repo`, or its remote with `--remote`",
            );
            return Ok(());
        }
    };
    check_writable(&format!("the repository `{}`", folder.display()), repo.path(), to);
    check_source(&repo, source, to)?;
    let located = match LocatedState::find(&repo, &Search::leniently()) {
        Ok(located) => located,
        Err(error) => {
            let hint = error.hint();
            to.push(Level::Fault, error.to_string(), hint);
            return Ok(());
        }
    };
    let rendered = &located.refs.rendered;
    match &located.current {
        Some(_) => to.good(format!("{} can be read", located.words())),
        None => to.not_known(format!("cannot check the signature of `{}`: not published", short(rendered))),
    }
    to.begin("trust");
    let followed = role.followed(&located.refs);
    match repo.read_ref(&followed)? {
        Some(tip) => trust.check_tip(&repo, short(&followed), tip, to)?,
        None if located.current.is_some() => {
            to.not_known(format!(
                "cannot check the signature of `{}`: it is missing in this repository",
                short(&followed)
            ));
        }
        None => {}
    }
    to.begin("remote");
    let named = match repo.remote_for(repo.head_branch()?.as_deref())? {
        Some(remote) => format!("`--remote` with the address of `{remote}`"),
        None => "`--remote`".to_owned(),
    };
    to.not_known(format!("the rights at a remote: none is named; name it with {named}"));
    Ok(())
}

/// The time before a key's expiry in which a warning is due.
const SOON: i64 = 14 * 24 * 3600;

/// Checks that the signing key is allowed, and stays allowed for some time.
pub(super) fn check_signing_key(
    key: Option<&PublicKey>,
    allowed: Option<&(AllowedSigners, &Path)>,
    now: Timestamp,
    to: &mut Findings,
) {
    let (key, (allowed, file)) = match (key, allowed) {
        (Some(key), Some(allowed)) => (key, allowed),
        (None, _) => {
            to.warning(
                "commits are not signed: anyone who may push cluster refs can change the clusters",
                "give the daemon a key with `--signing-key`, and members its public half with `--allowed-signers`",
            );
            return;
        }
        (Some(key), None) => {
            to.not_known(format!("whether members allow the key {key}: `--allowed-signers` names no file"));
            return;
        }
    };
    let file = file.display();
    match allowed.allows(key, now) {
        Err(why) => to.fault(
            format!("the daemon signs with the key {key}, {why}: members refuse what it publishes"),
            format!("add the line of this key to `{file}`: * {}", key.line()),
        ),
        Ok(Some(until)) if until.as_second() - now.as_second() < SOON => to.warning(
            format!("the key {key} is allowed until {until} only"),
            "replace it: docs/operations.md has the steps, under \"Keys\"",
        ),
        Ok(_) => to.good(format!("the key {key} is allowed to sign")),
    }
}

/// The trusted keys, if any are set, and the moment of the check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust<'a> {
    pub allowed: Option<&'a AllowedSigners>,
    pub now: Timestamp,
}

impl Trust<'_> {
    /// Checks that an allowed key signed the commit that a role follows, and that its date is not in the future.
    pub fn check_tip(
        &self,
        repo: &Repo,
        name: &str,
        tip: CommitId,
        to: &mut Findings,
    ) -> Result<(), GitError> {
        const AHEAD: i64 = 60;
        let ahead = repo.commit(tip)?.seconds - self.now.as_second();
        if ahead > AHEAD {
            to.fault(
                format!("the tip of `{name}` is of a moment {ahead} seconds from now"),
                "set the clocks of this machine and of the daemon's by NTP",
            );
        }
        let Some(allowed) = self.allowed else {
            to.warning(
                format!("nothing says whose commits on `{name}` are trusted"),
                "name the keys with `--allowed-signers`",
            );
            return Ok(());
        };
        match repo.vouch(tip, allowed)? {
            Ok(()) => to.good(format!("the tip {} of `{name}` is signed by an allowed key", tip.short())),
            Err(why) => to.fault(
                format!("the tip {} of `{name}` is not trusted: {why}", tip.short()),
                "find out who made it; docs/operations.md has the steps, under \"Keys\"",
            ),
        }
        Ok(())
    }
}
