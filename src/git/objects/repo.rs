//! An open repository, with revisions, commits and trees as plain data.
//!
//! A [`Repo`] is cheap to open and stays on its thread; its results may go to other threads.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType, Oid};

use super::GitError;
use super::id::{CommitId, TreeId, bytes_of, oid};
use super::loose::LooseFolders;
use super::pending::Pending;
use super::recent::Recent;
use berth_base::model::ContentId;
use berth_base::progress::Progress;

/// A Git repository on this machine, bare or not.
pub struct Repo {
    pub(super) inner: git2::Repository,
    pub(super) pending: Pending,
    pub(super) loose: LooseFolders,
    /// The stale lock files removed so far.
    pub(super) cleared: RefCell<Vec<String>>,
    /// New objects stay in memory, and refs cannot move.
    pub(super) is_rehearsal: bool,
    pub(super) progress: Progress,
    pub(super) recent: Recent,
}

impl std::fmt::Debug for Repo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repo").field("path", &self.path()).finish()
    }
}

/// A commit, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    pub id: CommitId,
    pub tree: TreeId,
    pub parents: Vec<CommitId>,
    pub message: String,
    /// The committer's time, in seconds since 1970.
    pub seconds: i64,
    pub author: String,
    pub email: String,
}

impl CommitInfo {
    /// The first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

/// An entry of a tree. Names are bytes: not all of them are text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: Vec<u8>,
    pub kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File(ContentId),
    Folder(TreeId),
    /// An executable file, a symbolic link or a submodule, by its mode.
    Other {
        mode: u32,
        id: [u8; 20],
    },
}

impl EntryKind {
    pub(super) fn oid(self) -> Oid {
        match self {
            EntryKind::File(ContentId(id)) | EntryKind::Folder(TreeId(id)) | EntryKind::Other { id, .. } => {
                oid(id)
            }
        }
    }

    pub(super) fn of(mode: u32, id: [u8; 20]) -> EntryKind {
        match mode {
            MODE_FOLDER => EntryKind::Folder(TreeId(id)),
            // Some old tools wrote plain files as group-writable ones.
            MODE_FILE | 0o100_664 => EntryKind::File(ContentId(id)),
            _ => EntryKind::Other { mode, id },
        }
    }
}

/// The kind of difference of a path between two trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathChange {
    Added,
    Changed,
    Removed,
}

pub(super) const MODE_FILE: u32 = 0o100_644;
pub const MODE_EXECUTABLE: u32 = 0o100_755;
pub const MODE_LINK: u32 = 0o120_000;
pub(super) const MODE_FOLDER: u32 = 0o040_000;
pub(super) const MODE_SUBMODULE: u32 = 0o160_000;

impl Repo {
    /// Opens the repository at exactly this path: a bare one, or a work tree's root or its `.git`.
    pub fn open(path: impl AsRef<Path>) -> Result<Repo, GitError> {
        let path = path.as_ref();
        let named = path.display().to_string();
        let inner = git2::Repository::open(path).map_err(|error| cannot_open(named.clone(), &error))?;
        Ok(Repo {
            inner,
            pending: Pending::default(),
            loose: LooseFolders::default(),
            cleared: RefCell::default(),
            is_rehearsal: false,
            progress: Progress::default(),
            recent: Recent::default(),
        })
    }

    /// Opens the repository for a rehearsal: new objects live in memory until it is closed, and refs cannot move.
    pub fn rehearsal(path: impl AsRef<Path>) -> Result<Repo, GitError> {
        /// Ranks before libgit2's own stores, so that all new objects go there.
        const FIRST: i32 = 1_000;
        let repo = Repo { is_rehearsal: true, ..Repo::open(path)? };
        let doing = "preparing a store in memory";
        let odb = repo.inner.odb().map_err(GitError::failed(doing))?;
        odb.add_new_mempack_backend(FIRST).map_err(GitError::failed(doing))?;
        drop(odb);
        Ok(repo)
    }

    /// Reports progress of work on this repository to `progress`.
    #[must_use]
    pub fn watched(self, progress: &Progress) -> Repo {
        Repo { progress: progress.clone(), ..self }
    }

    /// Returns the handle for the progress of work on this repository.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Points HEAD to a ref, which need not exist yet.
    pub fn set_head(&self, name: &str) -> Result<(), GitError> {
        let made = self.inner.reference_symbolic("HEAD", name, true, "berth");
        made.map(|_| ()).map_err(GitError::failed(format!("pointing HEAD to `{name}`")))
    }

    /// The repository's own folder: `.git`, or the root of a bare one.
    pub fn path(&self) -> &Path {
        self.inner.path()
    }

    /// Returns the folder that all work trees of the repository share: [`Repo::path`] unless this is a linked one.
    pub fn shared_path(&self) -> &Path {
        self.inner.commondir()
    }

    /// Returns the root of the repository around a folder. `None` if the folder is a root itself, or in no
    /// repository.
    pub fn root_above(folder: &Path) -> Option<PathBuf> {
        let folder = folder.canonicalize().ok()?;
        let found = git2::Repository::discover(&folder).ok()?;
        let root = found.workdir().unwrap_or(found.path()).canonicalize().ok()?;
        (root != folder && folder.starts_with(&root)).then_some(root)
    }

    /// Reports whether a folder holds Git's own files: a bare repository or a `.git`.
    pub fn is_git_folder(folder: &Path) -> bool {
        let Ok(repo) = git2::Repository::open(folder) else { return false };
        let same =
            |path: &Path| matches!((path.canonicalize(), folder.canonicalize()), (Ok(a), Ok(b)) if a == b);
        same(repo.path())
    }

    /// Writes all pending objects to the repository.
    pub fn flush(&self) -> Result<(), GitError> {
        self.loose.forget();
        self.pending.flush(&self.inner)
    }

    /// Drops pending objects and the failure to write them, for a new attempt. The caller must not use ids from the
    /// old one.
    pub fn start_over(&self) {
        self.pending.drop_all();
    }

    /// Prepares reading an object: flushes it if it is pending, otherwise checks that its file is undamaged.
    pub(super) fn flush_for(&self, id: Oid) -> Result<(), GitError> {
        if self.pending.has(id) {
            self.flush()
        } else {
            self.loose.refuse_damaged(self.inner.commondir(), id)
        }
    }

    /// Reads the bytes of an object of this type, as Git stores it.
    pub(super) fn raw_object<Bytes>(&self, kind: ObjectType, id: Oid) -> Result<Bytes, GitError>
    where
        Bytes: for<'o> From<&'o [u8]>,
    {
        self.flush_for(id)?;
        let odb = self.inner.odb().map_err(GitError::failed("opening the object database"))?;
        let doing = || format!("reading {kind} {id}");
        let object = odb.read(id).map_err(GitError::failed(doing()))?;
        match object.kind() {
            found if found == kind => Ok(object.data().into()),
            found => Err(GitError::Failed { doing: doing(), message: format!("it is a {found}") }),
        }
    }

    /// Finds the only commit whose id has this prefix of at least seven digits. `None` for other texts, even names
    /// that look like ids, and if no commit or several match.
    pub fn commit_of_id(&self, start: &str) -> Result<Option<CommitId>, GitError> {
        if !(7..=40).contains(&start.len()) || !start.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        self.flush()?;
        match self.inner.find_commit_by_prefix(start) {
            Ok(commit) => Ok(Some(CommitId::of(commit.id()))),
            Err(error) if names_nothing(error.code()) => Ok(None),
            Err(error) => Err(GitError::failed(format!("looking up `{start}`"))(error)),
        }
    }

    /// Reports whether the commit is in this repository; a shallow clone lacks some.
    pub fn has_commit(&self, id: CommitId) -> bool {
        self.find_commit(id).is_ok()
    }

    /// Reports whether the clone is shallow, so that its history is cut off.
    pub fn is_shallow(&self) -> bool {
        self.inner.is_shallow()
    }

    pub fn commit(&self, id: CommitId) -> Result<CommitInfo, GitError> {
        let commit = self.find_commit(id)?;
        let author = commit.author();
        Ok(CommitInfo {
            id,
            tree: TreeId::of(commit.tree_id()),
            parents: commit.parent_ids().map(CommitId::of).collect(),
            message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
            seconds: commit.time().seconds(),
            author: String::from_utf8_lossy(author.name_bytes()).into_owned(),
            email: String::from_utf8_lossy(author.email_bytes()).into_owned(),
        })
    }

    pub(super) fn find_commit(&self, id: CommitId) -> Result<git2::Commit<'_>, GitError> {
        self.flush_for(id.oid())?;
        self.inner.find_commit(id.oid()).map_err(GitError::failed(format!("reading commit {id}")))
    }

    /// Returns the ref that HEAD points to, even if it has no commit. `None` for a detached HEAD.
    pub fn head_branch(&self) -> Result<Option<String>, GitError> {
        let doing = "reading HEAD";
        let head = self.inner.find_reference("HEAD").map_err(GitError::failed(doing))?;
        Ok(head.symbolic_target().map_err(GitError::failed(doing))?.map(str::to_owned))
    }

    /// Resolves symbolic refs to the full name of a direct one; `None` for a missing ref.
    pub fn direct_ref(&self, name: &str) -> Result<Option<String>, GitError> {
        let doing = || format!("reading `{name}`");
        match self.inner.find_reference(name).and_then(|found| found.resolve()) {
            Ok(direct) => Ok(Some(direct.name().map_err(GitError::failed(doing()))?.to_owned())),
            Err(error) if names_nothing(error.code()) => Ok(None),
            Err(error) => Err(GitError::failed(doing())(error)),
        }
    }

    /// Lists the entries of one tree, in Git's order.
    pub fn tree(&self, id: TreeId) -> Result<Vec<Entry>, GitError> {
        let Some(tree) = self.find_tree(id)? else { return Ok(Vec::new()) };
        Ok(tree
            .iter()
            .map(|entry| Entry { name: entry.name_bytes().to_vec(), kind: kind_of(&entry) })
            .collect())
    }

    /// Returns the entry at a path below a tree, without lists of the other entries.
    pub fn entry_at(&self, root: TreeId, path: &str) -> Result<Option<EntryKind>, GitError> {
        let mut kind = EntryKind::Folder(root);
        for part in path.split('/') {
            let EntryKind::Folder(id) = kind else { return Ok(None) };
            let Some(tree) = self.find_tree(id)? else { return Ok(None) };
            match tree.get_name(part) {
                Some(entry) => kind = kind_of(&entry),
                None => return Ok(None),
            }
        }
        Ok(Some(kind))
    }

    /// Returns the folders of these names, without a list of the other entries of a large tree.
    pub fn folders_named<'n>(
        &self,
        id: TreeId,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<BTreeMap<String, TreeId>, GitError> {
        let Some(tree) = self.find_tree(id)? else { return Ok(BTreeMap::new()) };
        let folder = |name: &str| match kind_of(&tree.get_name(name)?) {
            EntryKind::Folder(id) => Some((name.to_owned(), id)),
            EntryKind::File(_) | EntryKind::Other { .. } => None,
        };
        Ok(names.into_iter().filter_map(folder).collect())
    }

    /// Returns `None` for the empty tree, which may be missing in a repository.
    fn find_tree(&self, id: TreeId) -> Result<Option<git2::Tree<'_>>, GitError> {
        if id == TreeId::EMPTY {
            return Ok(None);
        }
        self.flush_for(id.oid())?;
        self.inner.find_tree(id.oid()).map(Some).map_err(GitError::failed(format!("reading tree {id}")))
    }

    /// Returns the size of a blob without reading it.
    pub fn blob_size(&self, id: ContentId) -> Result<u64, GitError> {
        if self.pending.has(oid(id.0)) {
            self.flush()?;
        }
        let odb = self.inner.odb().map_err(GitError::failed("opening the object database"))?;
        let header = odb.read_header(oid(id.0)).map_err(GitError::failed(format!("reading blob {id}")));
        Ok(header?.0 as u64)
    }

    /// Returns a blob's bytes.
    pub fn blob(&self, id: ContentId) -> Result<Vec<u8>, GitError> {
        self.flush_for(oid(id.0))?;
        let blob = self.inner.find_blob(oid(id.0)).map_err(GitError::failed(format!("reading blob {id}")))?;
        Ok(blob.content().to_vec())
    }
}

/// Reports whether the error means that a name resolves to no commit.
pub(super) fn names_nothing(code: ErrorCode) -> bool {
    use ErrorCode::{Ambiguous, InvalidSpec, NotFound, Peel, UnbornBranch};
    matches!(code, NotFound | UnbornBranch | InvalidSpec | Ambiguous | Peel)
}

fn cannot_open(path: String, error: &git2::Error) -> GitError {
    let message = error.message();
    let extension = message.strip_prefix("unsupported extension name ");
    match (error.code(), extension) {
        (ErrorCode::Owner, _) => GitError::ForeignOwner { path },
        (_, Some(extension)) => GitError::Unsupported { path, extension: extension.to_owned() },
        (ErrorCode::NotFound, _) if !Path::new(&path).exists() => GitError::NoSuchFolder { path },
        (ErrorCode::NotFound, _) => match Repo::root_above(Path::new(&path)) {
            Some(root) => GitError::BelowTheRoot { path, root: root.display().to_string() },
            None => GitError::NotARepository { path },
        },
        _ if message.contains("object format") => {
            GitError::Unsupported { path, extension: "extensions.objectformat".to_owned() }
        }
        _ => GitError::Failed { doing: format!("opening `{path}`"), message: message.to_owned() },
    }
}

fn kind_of(entry: &git2::TreeEntry<'_>) -> EntryKind {
    EntryKind::of(u32::try_from(entry.filemode_raw()).unwrap_or_default(), bytes_of(entry.id()))
}
