//! The forge's rules for the branches.

use std::path::{Path, PathBuf};

use super::finding::{Findings, Level};
use crate::process::exit::CommandError;
use berth_base::text::some_quoted;
use berth_forge::{Client, Forge, ForgeError, Protection, Pushers, Repository, Token};
use berth_hub::inputs::current_state::short;

/// The flags for the forge's API
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Forge")]
pub(super) struct ForgeApiArgs {
    /// The forge's kind, to check its rules for branches: github, gitlab, gitea or forgejo
    #[arg(long, value_name = "KIND", env = "BERTH_FORGE", requires = "forge_token_file")]
    forge: Option<Forge>,
    /// Address of the forge's API, such as `https://git.example.com/api/v1`
    #[arg(long, value_name = "URL", env = "BERTH_FORGE_API")]
    api: Option<String>,
    /// The repository at the forge: `owner/name`, or GitLab's number of the project
    #[arg(long, value_name = "NAME", requires = "forge")]
    repository: Option<String>,
    /// File with a token for the forge's API that may read the rules for branches, which takes an administrator's
    /// on most forges
    #[arg(long, value_name = "FILE", env = "BERTH_FORGE_TOKEN_FILE")]
    forge_token_file: Option<PathBuf>,
}

/// The number of pushers that a message names.
const SHOWN: usize = 5;

impl ForgeApiArgs {
    pub fn secret_file(&self) -> Option<&Path> {
        self.forge_token_file.as_deref()
    }

    /// Checks the rules for the rendered and the source branch.
    pub fn check(&self, rendered: &str, source: Option<&str>, to: &mut Findings) -> Result<(), CommandError> {
        let (Some(forge), Some(name), Some(file)) = (self.forge, &self.repository, &self.forge_token_file)
        else {
            to.not_known(
                "the forge's rules for branches: `--forge`, `--repository` and `--forge-token-file` name none",
            );
            return Ok(());
        };
        let token = std::fs::read_to_string(file)
            .map_err(|error| CommandError::usage(format!("`{}` cannot be read: {error}", file.display())))?;
        let place = Repository::new(forge, self.api.as_deref(), name)?;
        let client = Client::of_repository(&place, Token::new(&token));
        let rendered = short(rendered);
        match client.protection(rendered) {
            Ok(found) => judge_rendered(rendered, found.as_ref(), to),
            Err(error) => untold(rendered, &error, to),
        }
        let Some(source) = source.map(short) else { return Ok(()) };
        match client.protection(source) {
            Ok(found) => judge_source(source, found.as_ref(), to),
            Err(error) => untold(source, &error, to),
        }
        to.not_known(format!(
            "whether {forge} protects `refs/berth/*`: no forge has rules for refs other than branches and tags, so \
             every account that may write can replace them"
        ));
        Ok(())
    }
}

fn untold(branch: &str, error: &ForgeError, to: &mut Findings) {
    let message = format!("the forge's rules for `{branch}`: {error}");
    match error {
        ForgeError::BadToken { .. } | ForgeError::Moved { .. } | ForgeError::Unreachable { .. } => {
            to.push(Level::Fault, message, Some("check `--api`, `--repository` and the token".to_owned()));
        }
        _ => to.not_known(message),
    }
}

fn judge_rendered(branch: &str, found: Option<&Protection>, to: &mut Findings) {
    let hint =
        format!("protect `{branch}` at the forge: only the daemon's account pushes, nobody force-pushes");
    let Some(found) = found else {
        to.fault(
            format!("the forge has no rules for `{branch}`: anyone who may write can change the state"),
            hint,
        );
        return;
    };
    match &found.pushers {
        Pushers::Writers => to.fault(format!("everybody who may write may push to `{branch}`"), hint.clone()),
        Pushers::Only(names) if names.is_empty() => {
            to.fault(format!("nobody may push to `{branch}`, not even the daemon"), hint.clone());
        }
        Pushers::Only(names) if names.len() == 1 => {
            to.good(format!("only {} may push to `{branch}`", some_quoted(names, SHOWN)));
        }
        Pushers::Only(names) => {
            let names = some_quoted(names, SHOWN);
            to.warning(format!("several may push to `{branch}`: {names}"), hint.clone());
        }
        Pushers::Excepted => {
            to.good(format!(
                "only accounts exempt from the rules may push to `{branch}`: check that only the daemon is exempt"
            ));
        }
        Pushers::NotKnown => {
            to.not_known(format!("the accounts that may push to `{branch}`: this token may not read them"));
        }
    }
    for (allowed, what) in [(found.force_push, "force-pushed"), (found.deletion, "deleted")] {
        match allowed {
            Some(true) => to.fault(format!("`{branch}` may be {what}"), hint.clone()),
            Some(false) => to.good(format!("`{branch}` may not be {what}")),
            None => to.not_known(format!("whether `{branch}` may be {what}: this token may not read it")),
        }
    }
    if found.approvals.is_some_and(|approvals| approvals > 0) && found.pushers == Pushers::Excepted {
        to.warning(
            format!("changes of `{branch}` need a review, which the daemon's do not have"),
            "except the daemon's account from the rule",
        );
    }
}

fn judge_source(branch: &str, found: Option<&Protection>, to: &mut Findings) {
    let hint =
        format!("protect `{branch}` at the forge: changes need a review, and nobody pushes without one");
    let Some(found) = found else {
        to.fault(
            format!(
                "the forge has no rules for `{branch}`: anyone who may write can change what clusters run"
            ),
            hint,
        );
        return;
    };
    match &found.pushers {
        Pushers::Writers => {
            to.fault(
                format!("everybody who may write may push to `{branch}` without a review"),
                hint.clone(),
            );
        }
        Pushers::Only(names) if names.is_empty() => {
            to.good(format!("nobody may push to `{branch}` without a review"));
        }
        Pushers::Only(names) => {
            let names = some_quoted(names, SHOWN);
            to.warning(format!("some may push to `{branch}` without a review: {names}"), hint.clone());
        }
        Pushers::Excepted => {
            to.good(format!("only accounts exempt from the rules may push to `{branch}` without a review"));
        }
        Pushers::NotKnown => {
            to.not_known(format!("the accounts that may push to `{branch}`: this token may not read them"));
        }
    }
    match found.approvals {
        Some(0) => to.warning(format!("changes of `{branch}` need no approval"), hint),
        Some(number) => to.good(format!("changes of `{branch}` need approvals: {number}")),
        None => {
            to.not_known(format!("the approvals that changes of `{branch}` need: the forge does not tell"));
        }
    }
}
