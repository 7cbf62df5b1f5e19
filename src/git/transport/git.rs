//! The transport through the `git` executable, which speaks protocol version 2 and pushes atomically with leases. It
//! runs with hardened settings (see `environment`) and time limits (see `process`).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::credentials::Access;
use super::process::{self, Cancel, ProcessEnd};
use super::upkeep::{Grace, Step};
use super::{
    Listing, RefPush, Transport, TransportError, Want, WorkingCopy, environment, error, working_copy,
};
use crate::{Repo, is_valid_ref};

/// The refs of one push: their names and ids are arguments, whose length is limited.
const MOST_REFS: usize = 500;

/// The number of times a remote's lock may change hands before it counts as held.
const MOST_TURNS: usize = 5;

/// The oldest version of `git` that takes settings from the environment.
const OLDEST: (u32, u32) = (2, 31);

/// A remote, through the `git` executable.
#[derive(Debug)]
pub struct GitTransport {
    access: Access,
    shown: String,
    cancel: Cancel,
    checked: OnceLock<()>,
    /// Set once the server refused an atomic push as unsupported.
    one_by_one: OnceLock<()>,
    /// The working copy's lock, which each `git` gets as its standard input.
    lock: Option<File>,
    /// Stale locks removed at the remote, not yet reported.
    cleared: Mutex<Vec<String>>,
}

impl GitTransport {
    pub fn new(access: Access, cancel: Cancel) -> GitTransport {
        let shown = access.url.to_string();
        let (checked, one_by_one) = (OnceLock::new(), OnceLock::new());
        GitTransport { access, shown, cancel, checked, one_by_one, lock: None, cleared: Mutex::default() }
    }

    /// Uses this working copy: each `git` that runs also holds the copy's lock.
    pub fn within(self, copy: &WorkingCopy) -> std::io::Result<GitTransport> {
        Ok(GitTransport { lock: Some(copy.lock()?), ..self })
    }

    /// Runs `git`. Returns its output, or the error that its messages and the server's describe.
    fn git(&self, repository: Option<&Path>, args: &[String]) -> Result<Said, TransportError> {
        self.check_version()?;
        self.run(repository, args)
    }

    fn run(&self, repository: Option<&Path>, args: &[String]) -> Result<Said, TransportError> {
        let pushes = args.first().is_some_and(|word| word == "push");
        let (mut command, bounds, scrubber) = environment::command(&self.access, repository, pushes)?;
        command.args(args);
        command.stdin(match &self.lock {
            Some(lock) => Stdio::from(lock.try_clone().map_err(TransportError::not_started)?),
            None => Stdio::null(),
        });
        let remote = || self.shown.clone();
        let ended = process::run_within(command, &bounds, &self.cancel)?;
        if !matches!(&ended, ProcessEnd::Done { status, .. } if status.success())
            && let Some(repository) = repository.filter(|_| self.lock.is_some())
        {
            working_copy::remove_unfinished_objects(repository);
        }
        match ended {
            ProcessEnd::Done { status, out, err } => Ok(Said {
                good: status.success(),
                out: String::from_utf8_lossy(&out).into_owned(),
                err: scrubber.scrub(&String::from_utf8_lossy(&err)),
            }),
            ProcessEnd::TimedOut => {
                Err(TransportError::TimedOut { remote: remote(), after: self.access.timeout })
            }
            ProcessEnd::Cancelled => Err(TransportError::Cancelled { remote: remote() }),
            ProcessEnd::TooMuch => {
                let message = "its answer is too long for any repository".to_owned();
                Err(TransportError::Failed { remote: remote(), message })
            }
        }
    }

    /// Refuses an older `git`, which would ignore all settings, including the hardening.
    fn check_version(&self) -> Result<(), TransportError> {
        if self.checked.get().is_some() {
            return Ok(());
        }
        let number = self.version()?;
        let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
        let version = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if version < OLDEST {
            let message = format!("version {number} is too old");
            return Err(TransportError::NoGit { message });
        }
        let _ = self.checked.set(());
        Ok(())
    }

    /// Returns the version of `git`, even if it is too old.
    pub fn version(&self) -> Result<String, TransportError> {
        let said = self.run(None, &["version".to_owned()])?;
        Ok(said.out.split_whitespace().nth(2).unwrap_or_default().to_owned())
    }

    fn push_some(&self, from: &Path, moves: &[RefPush], atomic: bool) -> Result<(), TransportError> {
        for _ in 0..MOST_TURNS {
            match self.try_push(from, moves, atomic) {
                Err(TransportError::Locked { .. }) if self.outlast_locks(moves) => {}
                done => return done,
            }
        }
        self.try_push(from, moves, atomic)
    }

    /// Waits for ref locks at a remote on this machine, and removes those of dead processes, such as a killed push.
    /// Returns false if locks remain, and for other remotes.
    fn outlast_locks(&self, moves: &[RefPush]) -> bool {
        let Some(repo) = self.access.url.folder().and_then(|folder| Repo::open(folder).ok()) else {
            return false;
        };
        let are_free = repo.outlast_locks(moves.iter().map(|one| one.name.as_str())).is_ok();
        self.cleared.lock().unwrap_or_else(PoisonError::into_inner).extend(repo.cleared_locks());
        are_free
    }

    fn try_push(&self, from: &Path, moves: &[RefPush], atomic: bool) -> Result<(), TransportError> {
        let said = self.push_once(from, moves, atomic)?;
        if said.good {
            return Ok(());
        }
        if atomic && said.err.contains("does not support --atomic") {
            let _ = self.one_by_one.set(());
            return self.push_one_by_one(from, moves);
        }
        Err(error::of_push(&self.shown, &said.out, &said.err).unwrap_or_else(|| self.fault(&said)))
    }

    /// Runs one push and returns its raw result.
    pub(super) fn push_once(
        &self,
        from: &Path,
        moves: &[RefPush],
        atomic: bool,
    ) -> Result<Said, TransportError> {
        let mut args: Vec<String> = [
            "push",
            "--porcelain",
            "--no-verify",
            "--no-follow-tags",
            "--recurse-submodules=no",
            "--no-signed",
        ]
        .map(str::to_owned)
        .into();
        if atomic {
            args.push("--atomic".to_owned());
        }
        for RefPush { name, old, .. } in moves {
            let old = old.map(|id| id.to_string()).unwrap_or_default();
            args.push(format!("--force-with-lease={name}:{old}"));
        }
        args.extend(["--".to_owned(), self.access.url.clean.clone()]);
        for RefPush { name, new, .. } in moves {
            args.push(format!("{}:{name}", new.map(|id| id.to_string()).unwrap_or_default()));
        }
        self.git(Some(from), &args)
    }

    /// Pushes in order, so that a ref moves before the refs derived from it.
    fn push_one_by_one(&self, from: &Path, moves: &[RefPush]) -> Result<(), TransportError> {
        let Some((first, rest)) = moves.split_first() else { return Ok(()) };
        self.push_some(from, std::slice::from_ref(first), false)?;
        if rest.is_empty() { Ok(()) } else { self.push_some(from, rest, false) }
    }

    pub(super) fn fault(&self, said: &Said) -> TransportError {
        error::of(&self.shown, &said.err)
    }
}

/// The output of a `git`, without secrets.
pub(super) struct Said {
    pub good: bool,
    pub out: String,
    pub err: String,
}

impl Transport for GitTransport {
    fn list(&self, prefix: &str) -> Result<Listing, TransportError> {
        let args = ["ls-remote", "--quiet", "--symref", "--", &self.access.url.clean].map(str::to_owned);
        let said = self.git(None, &args)?;
        if !said.good {
            return Err(self.fault(&said));
        }
        let mut listing = Listing { head: None, refs: BTreeMap::new() };
        for (first, name) in said.out.lines().filter_map(|line| line.split_once('\t')) {
            match (first.strip_prefix("ref: "), first.parse()) {
                (Some(target), _) if name == "HEAD" => listing.head = Some(target.to_owned()),
                // A tag's second line names its commit. `HEAD` repeats another listed ref.
                (None, Ok(id)) if name.starts_with(prefix) && is_valid_ref(name) && name != "HEAD" => {
                    listing.refs.insert(name.to_owned(), id);
                }
                _ => {}
            }
        }
        Ok(listing)
    }

    fn fetch(&self, into: &Path, wants: &[Want], depth: Option<u32>) -> Result<(), TransportError> {
        let mut args: Vec<String> = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--prune",
            "--no-recurse-submodules",
        ]
        .map(str::to_owned)
        .into();
        if let Some(depth) = depth {
            args.push(format!("--depth={depth}"));
        }
        args.extend(["--".to_owned(), self.access.url.clean.clone()]);
        for want in wants {
            args.push(match want {
                Want::One { there, here } => format!("+{there}:{here}"),
                Want::All { there, here } => format!("+{there}*:{here}*"),
            });
        }
        let said = self.git(Some(into), &args)?;
        if said.good { Ok(()) } else { Err(self.fault(&said)) }
    }

    fn push(&self, from: &Path, moves: &[RefPush], atomic: bool) -> Result<(), TransportError> {
        for some in moves.chunks(MOST_REFS) {
            if atomic && self.one_by_one.get().is_none() {
                self.push_some(from, some, true)?;
            } else {
                self.push_one_by_one(from, some)?;
            }
        }
        Ok(())
    }

    fn tidy(&self, repository: &Path, step: Step) -> Result<(), TransportError> {
        for args in step.commands(Grace::Nothing) {
            let said = self.git(Some(repository), &args)?;
            if !said.good {
                return Err(self.fault(&said));
            }
        }
        Ok(())
    }

    fn is_sound(&self, repository: &Path) -> Result<bool, TransportError> {
        let args = ["fsck", "--no-dangling", "--no-progress"].map(str::to_owned);
        Ok(self.git(Some(repository), &args)?.good)
    }

    fn cleared_locks(&self) -> Vec<String> {
        std::mem::take(&mut self.cleared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn shown(&self) -> &str {
        &self.shown
    }
}
