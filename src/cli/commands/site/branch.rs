//! The page on a Git branch, which hosts of static pages serve.
//!
//! The branch is a chain of commits, so that a push carries only the files that changed. After [`LONGEST`] commits the
//! chain begins anew with a commit without parents: nobody needs the pages of before, and Git can remove them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::gathered::Gathered;
use super::history::KnownHistory;
use super::{PageOptions, stamp};
use crate::flags::state::{Located, StateArgs};
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::model::ContentId;
use berth_git::transport::{
    GitTransport, RefPush, Transport as _, TransportError, Want, WorkingCopy, upkeep,
};
use berth_git::{CommitId, EntryKind, HashedBlob, Identity, Repo, TreeId, Writer, is_valid_ref};
use berth_hub::daemon::Settings;
use berth_hub::inputs::current_state::short;
use berth_site::form::Stamp;
use berth_site::{Site, SiteFile};

/// The number of commits after which the chain begins anew.
const LONGEST: usize = 100;

/// Makes GitHub Pages serve the files as they are.
const NO_JEKYLL: &str = ".nojekyll";

const BRANCHES: &str = "refs/heads/";

/// Keeps the page on a branch.
#[derive(Debug)]
pub(in crate::commands) struct PageBranch {
    /// The full name of the branch.
    name: String,
    repo: PathBuf,
    source: Option<String>,
    identity: Identity,
    options: PageOptions,
    /// The remote that has the branch, with a working copy for the page alone.
    remote: Option<(GitTransport, WorkingCopy)>,
    known: KnownHistory,
    /// The commit of the branch and its page, after the last update.
    last: Option<(CommitId, Stamp)>,
}

/// The effect of an update.
#[derive(Debug)]
pub(in crate::commands) enum PageUpdate {
    /// Nothing is published yet.
    NoState,
    /// The branch has the page.
    Unchanged,
    Written {
        commit: CommitId,
        files: usize,
    },
}

/// The tree of the branch.
#[derive(Debug)]
struct PageTree {
    tip: Option<CommitId>,
    tree: TreeId,
    files: BTreeMap<String, ContentId>,
    /// The first path that is no plain file.
    odd: Option<String>,
}

impl PageBranch {
    pub fn new(
        name: &str,
        settings: &Settings,
        options: PageOptions,
        remote: Option<(GitTransport, WorkingCopy)>,
    ) -> PageBranch {
        PageBranch {
            name: name.to_owned(),
            repo: settings.repo.clone(),
            source: settings.source.clone(),
            // Only publications are signed, so that nobody can present a page as one.
            identity: Identity { signer: None, ..settings.identity.clone() },
            options: PageOptions { branch: Some(name.to_owned()), ..options },
            remote,
            known: KnownHistory::default(),
            last: None,
        }
    }

    /// Returns the branch as people name it.
    pub fn shown(&self) -> &str {
        short(&self.name)
    }

    /// Returns the second from which the same refs may give another page.
    pub fn until(&self) -> Option<i64> {
        self.last.as_ref()?.1.until
    }

    /// Brings the branch to the page of the current state.
    pub fn update(&mut self, ui: &Ui) -> Result<PageUpdate, CommandError> {
        let opened = StateArgs::default().open(&self.repo)?;
        self.refuse_source(&opened.repo)?;
        let now = ui.now().as_second();
        let inputs = stamp::digest(&self.options, &opened)?;
        let holds = |stamp: &Stamp| stamp.holds(&inputs, now);
        let target = match &self.remote {
            Some((_, copy)) => Repo::open(copy.path())?,
            None => Repo::open(&self.repo)?,
        };
        if let Some((tip, stamp)) = &self.last
            && holds(stamp)
            && target.read_ref(&self.name)? == Some(*tip)
        {
            return Ok(PageUpdate::Unchanged);
        }
        let before = self.tree(&target)?;
        if let Some((tip, stamp)) = before.tip.zip(before.stamp(&target).filter(holds)) {
            self.last = Some((tip, stamp));
            return Ok(PageUpdate::Unchanged);
        }
        let search = StateArgs::default().search(&opened.path)?;
        let located = Located::find_in(opened, search, ui)?;
        if located.state.current.is_none() {
            return Ok(PageUpdate::NoState);
        }
        let gathered = Gathered::read(&self.options, &located, inputs, &mut self.known, ui)?;
        let site = ui.watching("making the page", || gathered.site());
        let update = self.write(&target, &before, &site)?;
        let tip = match update {
            PageUpdate::Written { commit, .. } => Some(commit),
            PageUpdate::Unchanged | PageUpdate::NoState => before.tip,
        };
        self.last = tip.zip(Some(site.head.stamp));
        Ok(update)
    }

    /// Refuses the branch that people edit. HEAD may name another one than at the start.
    fn refuse_source(&self, repo: &Repo) -> Result<(), CommandError> {
        let source = match self.source.as_deref() {
            None | Some("HEAD") => repo.head_branch()?,
            Some(source) => Some(full_name(source)),
        };
        match source == Some(self.name.clone()) {
            true => Err(is_source(self.shown())),
            false => Ok(()),
        }
    }

    /// Fetches the branch, and reads its tree. Refuses a branch that is not a page.
    fn tree(&self, target: &Repo) -> Result<PageTree, CommandError> {
        if let Some((transport, copy)) = &self.remote {
            match transport.fetch(copy.path(), &[Want::same(&self.name)], None) {
                Err(TransportError::NoSuchRef { .. }) => {
                    if let Some(old) = target.read_ref(&self.name)? {
                        target.delete_ref(&self.name, old)?;
                    }
                }
                done => done?,
            }
        }
        let Some(tip) = target.read_ref(&self.name)? else { return Ok(PageTree::empty()) };
        let tree = PageTree::read(target, tip)?;
        if let Some(path) = tree.foreign(target) {
            let message = format!("the branch `{}` is not a page: it has `{path}`", self.shown());
            return Err(CommandError::usage(message).hint("name a new branch with `--site`"));
        }
        Ok(tree)
    }

    /// Commits the changed files, and moves the branch.
    fn write(&self, target: &Repo, before: &PageTree, site: &Site) -> Result<PageUpdate, CommandError> {
        let (edits, files) = before.edits(target, site)?;
        if files == 0 {
            return Ok(PageUpdate::Unchanged);
        }
        let mut writer = Writer::new(target)?;
        let tree = writer.edited(before.tree, edits.iter().map(|(path, kind)| (path.as_str(), *kind)))?;
        let length = before.tip.map_or(0, |tip| target.first_parents(tip).take(LONGEST).count());
        let parents: Vec<CommitId> = before.tip.into_iter().filter(|_| length < LONGEST).collect();
        let message = format!("Show publication {}\n", site.head.shown.sequence);
        let commit = writer.commit(tree, &parents, &message, &self.identity, site.head.as_of)?;
        if let Some((transport, copy)) = &self.remote {
            let change = RefPush { name: self.name.clone(), old: before.tip, new: Some(commit) };
            transport.push(copy.path(), &[change], true)?;
        }
        target.move_ref(&self.name, before.tip, commit)?;
        if let Some((transport, copy)) = &self.remote
            && let Some(step) = upkeep::due(copy.path())
        {
            // The copy stays usable if it cannot be packed.
            let _ = transport.tidy(copy.path(), step);
        }
        Ok(PageUpdate::Written { commit, files })
    }
}

impl PageTree {
    /// Returns the tree of a missing branch.
    fn empty() -> PageTree {
        PageTree { tip: None, tree: TreeId::EMPTY, files: BTreeMap::new(), odd: None }
    }

    fn read(repo: &Repo, tip: CommitId) -> Result<PageTree, CommandError> {
        let tree = repo.commit(tip)?.tree;
        let mut page = PageTree { tip: Some(tip), tree, ..PageTree::empty() };
        page.list(repo, tree, "")?;
        Ok(page)
    }

    /// Lists the files of a folder. Only the page's own folders are read.
    fn list(&mut self, repo: &Repo, tree: TreeId, prefix: &str) -> Result<(), CommandError> {
        for entry in repo.tree(tree)? {
            let path = format!("{prefix}{}", String::from_utf8_lossy(&entry.name));
            match entry.kind {
                EntryKind::File(id) => {
                    self.files.insert(path, id);
                }
                EntryKind::Folder(tree) if prefix.is_empty() && Site::FOLDERS.contains(&path.as_str()) => {
                    self.list(repo, tree, &format!("{path}/"))?;
                }
                EntryKind::Folder(_) | EntryKind::Other { .. } => {
                    self.odd.get_or_insert(path);
                }
            }
        }
        Ok(())
    }

    fn text(&self, repo: &Repo, path: &str) -> Option<Vec<u8>> {
        repo.blob(*self.files.get(path)?).ok()
    }

    /// Returns a path that shows that the tree is not a page. A page may have files of others, such as a `CNAME`.
    fn foreign(&self, repo: &Repo) -> Option<&str> {
        let is_own = |path: &&String| Site::is_own(path) || *path == NO_JEKYLL;
        let other = self.files.keys().find(|path| !is_own(path)).or(self.odd.as_ref())?;
        let is_page = self.text(repo, Site::HEAD).is_some_and(|text| Site::is_head(&text));
        (!is_page).then_some(other)
    }

    fn has(&self, file: &SiteFile) -> bool {
        let id = self.files.get(&file.path);
        id.is_some_and(|id| HashedBlob::of(&file.bytes).is_ok_and(|blob| blob.id() == *id))
    }

    /// Returns the stamp of the tree's page, if the page is whole.
    fn stamp(&self, repo: &Repo) -> Option<Stamp> {
        let text = String::from_utf8(self.text(repo, Site::HEAD)?).ok()?;
        let head = Site::read_head(&text).ok()?;
        let is_whole = self.files.contains_key(NO_JEKYLL)
            && Site::is_whole_tree(&head, &|file| self.has(file), &|path| self.files.contains_key(path));
        is_whole.then_some(head.stamp)
    }

    /// Writes the files that bring the tree to a page. Returns the edits of the tree, and their number.
    fn edits(
        &self,
        repo: &Repo,
        site: &Site,
    ) -> Result<(BTreeMap<String, Option<EntryKind>>, usize), CommandError> {
        let existing: BTreeSet<String> = self.files.keys().cloned().collect();
        let changes = site.changes(&existing, &|file| self.has(file));
        let mut writer = Writer::new(repo)?;
        let mut edits = BTreeMap::new();
        for file in &changes.write {
            edits.insert(file.path.clone(), Some(EntryKind::File(writer.new_blob(&file.bytes)?)));
        }
        for path in changes.remove {
            let bytes = self.text(repo, &path).unwrap_or_default();
            if Site::is_removable(&path, &bytes) {
                edits.insert(path, None);
            }
        }
        if !self.files.contains_key(NO_JEKYLL) {
            edits.insert(NO_JEKYLL.to_owned(), Some(EntryKind::File(writer.blob(b"")?)));
        }
        let count = edits.len();
        Ok((edits, count))
    }
}

/// Returns the full name of a branch or ref.
fn full_name(name: &str) -> String {
    match name.starts_with("refs/") {
        true => name.to_owned(),
        false => format!("{BRANCHES}{name}"),
    }
}

fn is_source(name: &str) -> CommandError {
    let error = CommandError::usage(format!("the page cannot be on `{name}`, the branch that people edit"));
    error.hint("name a new branch with `--site`, such as `berth/site`")
}

/// Returns the full name of the branch for a page. Refuses the branches that have another use.
pub(in crate::commands) fn page_branch(name: &str, settings: &Settings) -> Result<String, CommandError> {
    let full = full_name(name);
    let hint = "name a new branch with `--site`, such as `berth/site`";
    if !full.starts_with(BRANCHES) || !is_valid_ref(&full) {
        return Err(CommandError::usage(format!("`{name}` is not the name of a branch")).hint(hint));
    }
    if settings.source.as_deref().map(full_name).as_ref() == Some(&full) {
        return Err(is_source(name));
    }
    let refs = &settings.refs;
    let conflicts = |own: &str| {
        let own = own.trim_end_matches('/');
        let is_below = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        full == own || is_below(&full, own) || is_below(own, &full)
    };
    match [&refs.rendered, &refs.preview, &refs.cluster_branches].into_iter().find(|own| conflicts(own)) {
        Some(own) => {
            let own = short(own);
            let message = format!("the page cannot be on `{name}`: berth keeps something else on `{own}`");
            Err(CommandError::usage(message).hint(hint))
        }
        None => Ok(full),
    }
}
