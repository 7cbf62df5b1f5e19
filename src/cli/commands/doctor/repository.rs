//! The repository on this machine, if no remote is set.

use std::path::Path;

use super::finding::{Findings, Level};
use super::keys::Trust;
use super::{Role, machine};
use crate::process::exit::CommandError;
use berth_git::Repo;
use berth_hub::inputs::current_state::short;
use berth_hub::inputs::{LocatedState, Search};

/// Checks a repository: its source, its state, and the trust in the tip that this role follows.
pub(super) fn check(
    folder: &Path,
    role: &Role,
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
    machine::check_writable(&format!("the repository `{}`", folder.display()), repo.path(), to);
    let branch = source.map(str::to_owned).or(repo.head_branch()?);
    let source = branch.as_deref().unwrap_or("HEAD");
    match repo.resolve(source)? {
        Some(commit) => to.good(format!("the source `{}` is at {}", short(source), commit.short())),
        None => to.fault(
            format!("the source `{}` has no commit here", short(source)),
            "commit the fleet's files, or name the branch that people edit with `--source`",
        ),
    }
    let located = match LocatedState::find(&repo, &Search::leniently()) {
        Ok(located) => located,
        Err(error) => {
            let hint = error.hint();
            to.push(Level::Fault, error.to_string(), hint);
            return Ok(());
        }
    };
    let rendered = located.refs.rendered.clone();
    match &located.current {
        Some(_) => to.good(format!("{} can be read", located.words())),
        None => to.not_known(format!("cannot check the signature of `{}`: not published", short(&rendered))),
    }
    to.begin("trust");
    let followed = match role {
        Role::Member { cluster, .. } => located.refs.cluster(cluster),
        _ => rendered,
    };
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
