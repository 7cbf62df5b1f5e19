//! A folder of a Git repository → its files.

use berth_git::transport::{Transport, Want};
use berth_git::{CommitId, EntryKind, Repo, TreeId, Writer};

use crate::{Fetched, Origin, VendorError};

/// The local name of what is fetched.
const HERE: &str = "refs/berth-local/vendored";

/// The folder of a repository that is wanted, at a branch, tag or commit.
#[derive(Clone, Copy, Debug)]
pub struct BaseRequest<'a> {
    /// The address, as people may read it.
    pub git: &'a str,
    pub reference: &'a str,
    /// The folder. Empty for the whole repository.
    pub path: &'a str,
}

/// Fetches a folder into a scratch repository, at a branch, tag or commit as it is now.
pub fn fetch(
    scratch: &Repo,
    transport: &dyn Transport,
    request: BaseRequest<'_>,
) -> Result<Fetched, VendorError> {
    let there = name_there(transport, request)?;
    transport.fetch(scratch.path(), &[Want::One { there, here: HERE.to_owned() }], Some(1))?;
    fetched_at(scratch, request, scratch.require(HERE)?)
}

/// Fetches a folder at a commit that a branch or tag had. Fails if the commit is none of that branch, or not the tag any
/// more: a server also has the commits of strangers.
pub fn fetch_again(
    scratch: &Repo,
    transport: &dyn Transport,
    request: BaseRequest<'_>,
    commit: &str,
) -> Result<Fetched, VendorError> {
    let BaseRequest { git, reference, .. } = request;
    let no_commit = || VendorError::wrong(format!("`{}` is no id of a commit", commit.escape_debug()));
    let wanted: CommitId = commit.parse().map_err(|_| no_commit())?;
    let there = name_there(transport, request)?;
    let is_tag = there.starts_with("refs/tags/");
    transport.fetch(scratch.path(), &[Want::One { there, here: HERE.to_owned() }], None)?;
    let tip = scratch.require(HERE)?;
    if is_tag && tip != wanted {
        let error = VendorError::server(format!(
            "the tag {reference} of {git} is {tip} now, and the lock has {wanted}"
        ));
        return Err(error.or("somebody moved the tag; `berth vendor update` accepts it"));
    }
    if !scratch.has_commit(wanted) || !scratch.is_same_or_after(tip, wanted)? {
        let error = VendorError::server(format!("{wanted} is no commit of {reference} of {git}"));
        return Err(error.or("somebody rewrote the branch, or the lock"));
    }
    fetched_at(scratch, request, wanted)
}

fn fetched_at(scratch: &Repo, request: BaseRequest<'_>, commit: CommitId) -> Result<Fetched, VendorError> {
    let BaseRequest { git, reference, path } = request;
    let tree = scratch.commit(commit)?.tree;
    let folder = match path {
        "" => tree,
        path => match scratch.entry_at(tree, path)? {
            Some(EntryKind::Folder(tree)) => tree,
            _ => return Err(VendorError::wrong(format!("{git} has no folder `{path}` at {reference}"))),
        },
    };
    let origin = Origin::Base {
        git: git.to_owned(),
        reference: reference.to_owned(),
        path: path.to_owned(),
        commit: commit.to_string(),
    };
    Ok(Fetched { tree: plain(scratch, folder)?, origin })
}

/// Returns the name under which the remote has a branch, tag or commit.
fn name_there(transport: &dyn Transport, request: BaseRequest<'_>) -> Result<String, VendorError> {
    let BaseRequest { git, reference, .. } = request;
    if reference.parse::<CommitId>().is_ok() {
        return Ok(reference.to_owned());
    }
    let listing = transport.list("refs/")?;
    let names = [format!("refs/tags/{reference}"), format!("refs/heads/{reference}"), reference.to_owned()];
    let found = names.into_iter().find(|name| listing.refs.contains_key(name));
    found.ok_or_else(|| {
        let short = |name: &String| {
            let name = name.strip_prefix("refs/tags/").or_else(|| name.strip_prefix("refs/heads/"));
            name.map(str::to_owned)
        };
        let known: Vec<String> = listing.refs.keys().filter_map(short).collect();
        let near = berth_base::diag::did_you_mean(reference, known.iter().map(String::as_str));
        let error = VendorError::wrong(format!("{git} has no branch or tag `{reference}`"));
        error.or(near.unwrap_or_else(|| "name a branch, a tag or the full id of a commit".to_owned()))
    })
}

/// Writes the tree with plain files alone, as it will be after a commit of the folder.
fn plain(scratch: &Repo, tree: TreeId) -> Result<TreeId, VendorError> {
    let files = crate::folder::files(scratch, tree)?;
    if files.is_empty() {
        return Err(VendorError::server("the folder is empty"));
    }
    let mut writer = Writer::new(scratch)?;
    Ok(writer.folder(files.iter().map(|(path, id)| (path.as_str(), *id)))?)
}
