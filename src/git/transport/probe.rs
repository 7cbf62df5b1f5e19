//! Checks whether an account may move a ref at the remote, without moving one.
//!
//! A dry run consults neither hooks nor rules of the server. So each probe is an atomic push of the ref together with
//! two refs that cannot both exist, `refs/berth/doctor/ref` and `refs/berth/doctor/ref/below`. A server consults its
//! hooks and rules first and moves refs last; there this push always fails. The first probe pushes these two refs
//! alone: its error is the one that a permitted push gets. Any other error comes from the rules.
//!
//! The server may keep a small unreachable commit until its next `git gc`.

use std::path::{Path, PathBuf};

use super::error::{ALONG, gist, rejections};
use super::git::{GitTransport, Said};
use super::{Listing, RefPush, Transport as _, TransportError};
use crate::CommitId;

/// The prefix of the refs that can never be made together.
pub const PROBES: &str = "refs/berth/doctor/";
const IMPOSSIBLE: [&str; 2] = ["refs/berth/doctor/ref", "refs/berth/doctor/ref/below"];

/// Words in the refusals of servers' hooks and rules.
const RULES: [&str; 6] = ["declined", "denied", "prohibited", "not allowed", "hidden ref", "not permitted"];

/// The right of an account to move a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Right {
    Granted,
    /// The server refuses, with this message.
    Refused(String),
    /// The answer is inconclusive, for this reason.
    NotKnown(String),
}

/// A remote whose answers can be interpreted.
#[derive(Debug)]
pub struct Probe<'t> {
    transport: &'t GitTransport,
    from: PathBuf,
    impossible: [RefPush; 2],
    state: State,
}

#[derive(Debug)]
enum State {
    /// After its rules the server fails with this message.
    Asks(String),
    /// Every probe has this answer.
    Same(Right),
}

impl<'t> Probe<'t> {
    /// Learns how this remote answers. `known` is any commit that both the remote and the repository `from` have.
    pub fn begin(
        transport: &'t GitTransport,
        from: &Path,
        known: CommitId,
        listed: &Listing,
    ) -> Result<Probe<'t>, TransportError> {
        let impossible =
            IMPOSSIBLE.map(|name| RefPush { name: name.to_owned(), old: None, new: Some(known) });
        let mut probe = Probe {
            transport,
            from: from.to_owned(),
            impossible,
            state: State::Same(Right::NotKnown(String::new())),
        };
        probe.state = match listed.refs.keys().find(|name| name.starts_with(PROBES)) {
            Some(name) => State::Same(Right::NotKnown(format!(
                "the ref `{name}` blocks this check; delete it at the remote"
            ))),
            None => probe.first_question()?,
        };
        Ok(probe)
    }

    fn first_question(&self) -> Result<State, TransportError> {
        let not_known = |why: &str| Ok(State::Same(Right::NotKnown(why.to_owned())));
        let said = self.transport.push_once(&self.from, &self.impossible, true)?;
        let made = self.transport.list(PROBES)?.refs;
        if said.good || !made.is_empty() {
            let moves: Vec<RefPush> =
                made.into_iter().map(|(name, old)| RefPush { name, old: Some(old), new: None }).collect();
            self.transport.push(&self.from, &moves, false)?;
            return not_known(
                "the server accepted a push that must fail as a whole, so the check shows nothing",
            );
        }
        if said.err.contains("does not support --atomic") {
            return not_known("the server cannot move all refs of a push or none");
        }
        let rejected = rejections(&said.out);
        let Some((_, why)) = rejected.iter().find(|(_, why)| !why.contains(ALONG)) else {
            let fault = self.transport.fault(&said);
            return match fault {
                TransportError::Denied { message, .. } => Ok(State::Same(Right::Refused(message))),
                fault => Err(fault),
            };
        };
        if !why.starts_with("[remote rejected]") || is_of_rules(why) {
            let words = words(why, &said);
            return not_known(&format!("the server does not let this account ask with `{PROBES}*`: {words}"));
        }
        Ok(State::Asks((*why).to_owned()))
    }

    /// Asks whether the account may make this move.
    pub fn ask(&self, one: &RefPush) -> Right {
        let allowed = match &self.state {
            State::Asks(allowed) => allowed,
            State::Same(right) => return right.clone(),
        };
        let moves: Vec<RefPush> = std::iter::once(one).chain(&self.impossible).cloned().collect();
        let said = match self.transport.push_once(&self.from, &moves, true) {
            Ok(said) => said,
            Err(error) => return Right::NotKnown(error.to_string()),
        };
        let rejected = rejections(&said.out);
        match rejected.iter().find(|(name, _)| *name == one.name) {
            Some((_, why)) if why == allowed => Right::Granted,
            Some((_, why)) if why.starts_with("[remote rejected]") && !why.contains(ALONG) => {
                Right::Refused(words(why, &said))
            }
            Some((_, why)) => Right::NotKnown(words(why, &said)),
            None => match self.transport.fault(&said) {
                TransportError::Denied { message, .. } => Right::Refused(message),
                fault => Right::NotKnown(fault.to_string()),
            },
        }
    }
}

fn is_of_rules(why: &str) -> bool {
    let why = why.to_lowercase();
    RULES.iter().any(|word| why.contains(word))
}

/// Returns the server's message for a refusal. Output of its hooks is preferred, since it is more detailed.
fn words(why: &str, said: &Said) -> String {
    let told = said.err.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim);
    let told: Vec<&str> = told.filter(|line| !line.is_empty()).collect();
    let why = why.split_once('(').map_or(why, |(_, reason)| reason.trim_end_matches(')'));
    gist(&[&told[..], &[why]].concat().join("\n"))
}
