//! Signs artifacts and attaches their statements before a tag names them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::provenance::{Origin, Publication, folder_of, predicate};
use crate::publish::{PublishError, Trailers};
use berth_git::shared_refs::ClusterRef;
use berth_git::signature::PlainSigner;
use berth_git::{CommitId, GitError, Repo};
use berth_registry::RegistryError;
use berth_registry::artifact;
use berth_registry::client::Digest;
use berth_registry::publish::{Attach, Publication as Pushed};
use berth_registry::signing::statement::MOST_SUBJECTS;
use berth_registry::signing::{Statement, Subject, attach, bundle};

/// The publications searched for one folder.
const LONGEST_WALK: usize = 10_000;
/// The number of finished artifacts remembered.
const MOST_DONE: usize = 100_000;

/// Signs artifacts, with statements about their publications.
#[derive(Debug)]
pub struct Attestor {
    signer: PlainSigner,
    /// The name of the rendered branch.
    rendered: String,
    origin: Origin,
    made: Mutex<TipResults>,
}

/// The results for one tip of the branch, which many clusters share.
#[derive(Debug, Default)]
struct TipResults {
    tip: Option<CommitId>,
    /// The walked commits of the branch, by sequence.
    commits: BTreeMap<u64, CommitId>,
    /// The next commit to walk to.
    open: Option<CommitId>,
    publications: BTreeMap<u64, Arc<Publication>>,
    bundles: BTreeMap<(CommitId, usize), Arc<Signed>>,
    /// Artifacts attached by this process: a heartbeat rewrites every cluster's ref with the same folder.
    done: BTreeSet<(String, Digest, Option<CommitId>)>,
}

/// A statement, and its signed bundle.
#[derive(Debug)]
struct Signed {
    statement: Statement,
    bundle: Vec<u8>,
}

impl TipResults {
    /// Returns the branch's newest commit whose sequence is at most `seq`.
    fn newest_until(&mut self, repo: &Repo, seq: u64) -> Result<Option<(u64, CommitId)>, GitError> {
        while let Some(commit) = self.open {
            if let Some((seq, commit)) = self.commits.range(..=seq).next_back() {
                return Ok(Some((*seq, *commit)));
            }
            let info = repo.commit(commit)?;
            if let Some(trailers) = Trailers::read(&info.message) {
                self.commits.entry(trailers.seq).or_insert(commit);
            }
            self.open = info.parents.first().copied().filter(|parent| repo.has_commit(*parent));
        }
        Ok(self.commits.range(..=seq).next_back().map(|(seq, commit)| (*seq, *commit)))
    }
}

impl Attestor {
    /// Makes an attestor with a key. `rendered` is the name of the rendered branch.
    pub fn new(signer: PlainSigner, rendered: &str, origin: Origin) -> Attestor {
        Attestor { signer, rendered: rendered.to_owned(), origin, made: Mutex::default() }
    }

    fn made(&self) -> MutexGuard<'_, TipResults> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the publication that gave a cluster this folder. `None` if no commit of the branch did.
    fn publication_of(
        &self,
        repo: &Repo,
        cluster: &ClusterRef,
    ) -> Result<Option<Arc<Publication>>, PublishError> {
        let Some(tip) = repo.read_ref(&self.rendered)? else { return Ok(None) };
        let folder = folder_of(&cluster.cluster);
        let is_it = |found: &Publication| found.folders.get(&folder) == Some(&cluster.tree);
        let mut made = self.made();
        if made.tip != Some(tip) {
            *made = TipResults {
                tip: Some(tip),
                open: Some(tip),
                done: std::mem::take(&mut made.done),
                ..TipResults::default()
            };
        }
        if let Some(found) = made.publications.get(&cluster.seq).filter(|found| is_it(found)) {
            return Ok(Some(found.clone()));
        }
        let mut seq = cluster.seq;
        for _ in 0..LONGEST_WALK {
            let Some((number, commit)) = made.newest_until(repo, seq)? else { return Ok(None) };
            if let Some(found) = Publication::read(repo, commit)?.filter(is_it) {
                let found = Arc::new(found);
                made.publications.insert(cluster.seq, found.clone());
                return Ok(Some(found));
            }
            // The folder is older than its ref claims.
            let Some(before) = number.checked_sub(1) else { return Ok(None) };
            seq = before;
        }
        Ok(None)
    }

    /// Returns the signed statement about a folder's artifact. It is made once for all artifacts that it covers.
    fn bundle_of(
        &self,
        repo: &Repo,
        publication: &Publication,
        folder: &str,
    ) -> Result<Option<Arc<Signed>>, RegistryError> {
        let Some(part) = part_of(publication, folder) else { return Ok(None) };
        // Held while the statement is made, because the other artifacts of the part need the same one.
        let mut made = self.made();
        let place = (publication.commit.id, part);
        if let Some(bundle) = made.bundles.get(&place) {
            return Ok(Some(bundle.clone()));
        }
        let statement = statement(repo, publication, part, &self.origin)?;
        let bundle = bundle::sign(&self.signer, &statement).map_err(|error| unsigned(folder, &error))?;
        let bundle = Arc::new(Signed { statement, bundle });
        made.bundles.insert(place, bundle.clone());
        Ok(Some(bundle))
    }
}

impl Attach for Attestor {
    fn attach(&self, pushed: &Pushed<'_>) -> Result<(), RegistryError> {
        let Pushed { repository, manifest, cluster, repo, .. } = pushed;
        let Some(artifact) = manifest.digest() else { return Ok(()) };
        let folder = folder_of(&cluster.cluster);
        let publication = self.publication_of(repo, cluster).map_err(|error| match error {
            PublishError::Git(error) => RegistryError::Git(error),
            error => unsigned(&folder, &error),
        })?;
        let done = (repository.full_name(), artifact, publication.as_ref().map(|found| found.commit.id));
        if self.made().done.contains(&done) {
            return Ok(());
        }
        // A registry could offer another artifact under the folder's name to get it signed.
        if artifact::pack(repo, cluster.tree, &folder)?.digest() != artifact {
            return Err(unsigned(&folder, &"the artifact is not the folder of the cluster's commit"));
        }
        attach::attach_signature(repository, artifact, &self.signer)?;
        if let Some(publication) = publication
            && let Some(bundle) = self.bundle_of(repo, &publication, &folder)?
        {
            let Signed { statement, bundle } = &*bundle;
            attach::attach_statement(repository, manifest, statement, bundle, self.signer.public())?;
        }
        let mut made = self.made();
        if made.done.len() >= MOST_DONE {
            made.done.clear();
        }
        made.done.insert(done);
        Ok(())
    }
}

fn unsigned(what: &str, reason: &dyn std::fmt::Display) -> RegistryError {
    RegistryError::Unsigned { what: what.to_owned(), reason: reason.to_string() }
}

/// Returns the index of the publication's statement that covers a folder.
fn part_of(publication: &Publication, folder: &str) -> Option<usize> {
    publication.folders.keys().position(|name| name == folder).map(|index| index / MOST_SUBJECTS)
}

/// Writes one of a publication's statements. They differ only in their artifacts, at most [`MOST_SUBJECTS`] each.
fn statement(
    repo: &Repo,
    publication: &Publication,
    part: usize,
    origin: &Origin,
) -> Result<Statement, RegistryError> {
    let mut subjects = Vec::new();
    for (name, tree) in publication.folders.iter().skip(part * MOST_SUBJECTS).take(MOST_SUBJECTS) {
        match artifact::pack(repo, *tree, name) {
            Ok(artifact) => subjects.push(Subject::new(name, &artifact.digest().to_string())),
            // The artifact of such a folder is never pushed; the other folders' artifacts are.
            Err(RegistryError::Unfit { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Statement::provenance(subjects, predicate(publication, origin)))
}

/// Returns the statements of a publication, one for each part of its artifacts. Needs no registry: equal folders give
/// equal artifacts.
pub fn statements_of(
    repo: &Repo,
    publication: &Publication,
    origin: &Origin,
) -> Result<Vec<Statement>, RegistryError> {
    let parts = publication.folders.len().div_ceil(MOST_SUBJECTS);
    (0..parts).map(|part| statement(repo, publication, part, origin)).collect()
}
