//! A commit of the rendered branch with the clusters' folders that it changed, and its inputs as the
//! predicate of its statement.

use std::collections::BTreeMap;

use serde_json::{Map as JsonMap, Value as Json, json};

use crate::publish::{self, PublishError, Trailers};
use berth_base::model::path;
use berth_engine::state::layout;
use berth_git::shared_refs::trailers::{GATE, IMPORT, PROCESSED, ROLLBACK, RULES, USED_APPROVAL};
use berth_git::{CommitId, CommitInfo, EntryKind, Repo, TreeId};

/// A commit of the rendered branch that berth made.
#[derive(Clone, Debug)]
pub struct Publication {
    pub commit: CommitInfo,
    pub trailers: Trailers,
    /// The trees of berth's folders in the commit, by name.
    pub trees: BTreeMap<String, TreeId>,
    /// The clusters' folders that the commit changed, by path, such as `clusters/oslo`. A removed folder has the
    /// empty tree.
    pub folders: BTreeMap<String, TreeId>,
}

impl Publication {
    /// Returns the values of a trailer that berth does not read itself.
    fn values_of(&self, wanted: &'static str) -> impl Iterator<Item = &str> {
        let others = self.trailers.others.iter();
        others.filter(move |(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    fn git_tree(&self, name: &str) -> Option<Json> {
        let tree = self.trees.get(name)?;
        Some(json!({ "name": name, "digest": { "gitTree": tree.to_string() } }))
    }

    /// Reads a commit. `None` if berth did not make it.
    pub fn read(repo: &Repo, commit: CommitId) -> Result<Option<Publication>, PublishError> {
        let commit = repo.commit(commit)?;
        let Some(trailers) = publish::claimed(repo, &commit)? else { return Ok(None) };
        let trees = repo.folders_named(commit.tree, layout::OWNED)?;
        let before = match commit.parents.first() {
            Some(parent) => clusters(repo, repo.commit(*parent)?.tree)?,
            None => BTreeMap::new(),
        };
        let mut folders = clusters(repo, commit.tree)?;
        for path in before.keys() {
            folders.entry(path.clone()).or_insert(TreeId::EMPTY);
        }
        folders.retain(|path, tree| before.get(path) != Some(tree));
        Ok(Some(Publication { commit, trailers, trees, folders }))
    }
}

/// Returns the path of a cluster's folder on the branch.
pub fn folder_of(cluster: &str) -> String {
    format!("{}/{}", layout::CLUSTERS, path::encode(cluster))
}

fn clusters(repo: &Repo, root: TreeId) -> Result<BTreeMap<String, TreeId>, PublishError> {
    let Some(clusters) = repo.folders_named(root, [layout::CLUSTERS])?.remove(layout::CLUSTERS) else {
        return Ok(BTreeMap::new());
    };
    let entries = repo.tree(clusters)?.into_iter();
    let folder = |entry: berth_git::Entry| match entry.kind {
        EntryKind::Folder(tree) => {
            Some((format!("{}/{}", layout::CLUSTERS, String::from_utf8_lossy(&entry.name)), tree))
        }
        EntryKind::File(_) | EntryKind::Other { .. } => None,
    };
    Ok(entries.filter_map(folder).collect())
}

/// The build type, which docs/registries.md describes.
const BUILD_TYPE: &str = "https://berth.dev/render/v1";
/// The builder: a process of `berth run` with the signing key.
const BUILDER: &str = "https://berth.dev/run/v1";

/// The claims that no commit confirms. A proof accepts them unchecked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The address of the source's repository, without credentials.
    pub repository: Option<String>,
    /// The version of the program that made the publication.
    pub version: String,
    /// The SHA-256 of the program's file.
    pub program: Option<String>,
}

fn git_commit(name: &str, id: &str) -> Json {
    json!({ "name": name, "digest": { "gitCommit": id } })
}

/// Returns the inputs of the publication: its source and parent, the commits that its trailers name, the facts, and the
/// approvals that it used.
fn dependencies(publication: &Publication, origin: &Origin) -> Vec<Json> {
    let source = publication.trailers.source.map(|source| {
        let mut source = git_commit("source", &source.to_string());
        if let Some(repository) = &origin.repository {
            source["uri"] = Json::from(format!("git+{repository}"));
        }
        source
    });
    let parent = publication.commit.parents.first().map(|parent| git_commit("parent", &parent.to_string()));
    let named = [("processed", PROCESSED), ("rules", RULES), ("rollback", ROLLBACK)];
    let named = named.into_iter().filter_map(|(name, trailer)| {
        let id = publication.values_of(trailer).next()?;
        Some(git_commit(name, id))
    });
    let approvals = publication
        .values_of(USED_APPROVAL)
        .map(|digest| json!({ "name": "approval", "digest": { "berth_removal": digest } }));
    let facts = publication.git_tree(layout::FACTS);
    source.into_iter().chain(parent).chain(named).chain(facts).chain(approvals).collect()
}

/// Describes how a publication was made.
pub fn predicate(publication: &Publication, origin: &Origin) -> Json {
    let Publication { commit, trailers, .. } = publication;
    let first = |wanted| publication.values_of(wanted).next();
    let mut external = JsonMap::new();
    for (name, value) in [
        ("fleet", trailers.fleet()),
        ("gate", first(GATE)),
        ("import", first(IMPORT)),
        ("repository", origin.repository.as_deref()),
    ] {
        external.extend(value.map(|value| (name.to_owned(), Json::from(value))));
    }
    let mut internal = json!({ "sequence": trailers.seq });
    if let Some(now) = trailers.now {
        internal["now"] = Json::from(now.to_string());
    }

    let mut berth = json!({ "name": "berth" });
    if let Some(sha256) = &origin.program {
        berth["digest"] = json!({ "sha256": sha256 });
    }
    let outputs =
        [layout::DECISIONS, layout::RELEASES].into_iter().filter_map(|name| publication.git_tree(name));
    let published = git_commit("publication", &commit.id.to_string());
    let byproducts: Vec<Json> = std::iter::once(published).chain(outputs).collect();
    let mut metadata = json!({});
    if let Some(digest) = &trailers.digest {
        metadata["invocationId"] = Json::from(digest.to_string());
    }
    json!({
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": external,
            "internalParameters": internal,
            "resolvedDependencies": dependencies(publication, origin),
        },
        "runDetails": {
            "builder": { "id": BUILDER, "version": { "berth": origin.version }, "builderDependencies": [berth] },
            "metadata": metadata,
            "byproducts": byproducts,
        },
    })
}
