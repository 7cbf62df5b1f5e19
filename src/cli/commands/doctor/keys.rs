//! The signing key, the allowed keys, and the tip that members follow.

use std::path::Path;

use super::finding::Findings;
use berth_base::model::Timestamp;
use berth_git::signature::{AllowedSigners, PublicKey};
use berth_git::{CommitId, GitError, Repo};

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
