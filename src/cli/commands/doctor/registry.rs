//! A container registry: whether it is reachable, and the rights that a daemon's or a member's account needs there and
//! must not have.

use std::path::Path;

use super::finding::{Findings, Level};
use super::machine::Trust;
use super::remote_rights::NOBODY;
use crate::process::exit::CommandError;
use berth_base::model::Timestamp;
use berth_git::Repo;
use berth_git::shared_refs::Refs;
use berth_git::signature::AllowedSigners;
use berth_git::transport::{Cancel, Limits, Listing, Transport as _, Want, WorkingCopy};
use berth_hub::inputs::current_state::short;
use berth_registry::{Registry, RegistryError, RegistryTransport, Repository};

const TOO_MUCH: &str = "give a member's account the right to pull from its own repository, and no other";

/// Checks that the registry lets a daemon pull from and push to a cluster's repository.
pub(super) fn check_daemon(registry: &Registry, listing: &Listing, is_asked: bool, to: &mut Findings) {
    let prefix = Refs::default().clusters;
    let known = listing.refs.keys().find_map(|name| name.strip_prefix(&prefix));
    let repository = registry.repository_of(known.unwrap_or(NOBODY));
    if !pulls(&repository, to) {
        return;
    }
    let name = repository.full_name();
    if !is_asked {
        return to
            .not_known(format!("whether the account may push to `{name}`: `--no-push` asks for nothing"));
    }
    match repository.may_push() {
        Ok(()) => to.good(format!("the account may push to `{name}`")),
        Err(error) => registry_fault(&error, to),
    }
}

/// Checks that the registry allows a member to pull, and forbids it to push.
fn check_member(registry: &Registry, cluster: &str, is_asked: bool, to: &mut Findings) {
    let repository = registry.repository_of(cluster);
    if !pulls(&repository, to) || !is_asked {
        return;
    }
    let name = repository.full_name();
    match repository.may_push() {
        Ok(()) => to.push(
            Level::Warning,
            format!("the account may push to `{name}`, which the daemon writes"),
            Some(TOO_MUCH.to_owned()),
        ),
        Err(RegistryError::Denied { .. } | RegistryError::Refused { .. }) => {
            to.good(format!("the account may not push to `{name}`"));
        }
        Err(error) => to.not_known(format!("whether the account may push to `{name}`: {error}")),
    }
}

fn pulls(repository: &Repository, to: &mut Findings) -> bool {
    match repository.tags() {
        Ok(_) => to.good(format!("the account may pull from `{}`", repository.full_name())),
        Err(error) => {
            registry_fault(&error, to);
            return false;
        }
    }
    true
}

fn registry_fault(error: &RegistryError, to: &mut Findings) {
    let hint = error.hint().unwrap_or_else(|| "check the address, the network and the registry".to_owned());
    if error.is_passing() {
        to.cannot_be_reached();
    }
    to.fault(error.to_string(), hint);
}

/// A registry that a member follows instead of a repository.
pub(super) struct Followed<'a> {
    pub registry: &'a Registry,
    pub cluster: &'a str,
    pub limits: Limits,
}

impl Followed<'_> {
    /// Checks the member's rights, and the trust in the commit of the pointer.
    pub fn check(
        &self,
        allowed: Option<&AllowedSigners>,
        folder: &Path,
        is_asked: bool,
        to: &mut Findings,
    ) -> Result<(), CommandError> {
        let Followed { registry, cluster, limits } = *self;
        to.begin("registry");
        check_member(registry, cluster, is_asked, to);
        let refs = Refs::default();
        let copy = WorkingCopy::open(&folder.join("fleet"), registry.url())?;
        let transport = RegistryTransport::new(registry, &refs, cluster, limits, Cancel::default());
        let name = refs.cluster(cluster);
        if let Err(error) = transport.fetch(copy.path(), &[Want::same(&name)], None) {
            to.unreachable(&error);
            return Ok(());
        }
        to.begin("trust");
        let repo = Repo::open(copy.path())?;
        if let Some(tip) = repo.read_ref(&name)? {
            let trust = Trust { allowed, now: Timestamp::now() };
            trust.check_tip(&repo, short(&name), tip, to)?;
        }
        Ok(())
    }
}
