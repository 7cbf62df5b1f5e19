//! `berth vendor`: brings charts and bases of others into the repository, with a lock that says where they came from.

use std::path::PathBuf;

use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::text::counted;
use berth_git::transport::GitTransport;
use berth_git::{EntryKind, Repo, Scratch};
use berth_registry::Access;
use berth_vendor::base::{self, BaseRequest};
use berth_vendor::lock::{LOCK, is_folder};
use berth_vendor::{ChartAddress, Fetched, Lock, Origin, VendorError, Vendored, chart, folder};

use crate::flags::fleet::RepoArg;
use crate::flags::registry::RegistryArgs;
use crate::flags::remote::RemoteArgs;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome, exit_for};
use crate::process::files;

/// Bring charts and bases of others into the repository
///
/// A source names a folder of the same commit, so charts and bases of others are vendored: their files are in the
/// repository, and `vendor.lock` says where they came from. An update is a commit, whose plan shows what it changes in every
/// cluster.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth vendor chart charts/web oci://registry.example.com/charts/web 1.4.2"
)]
pub(crate) struct VendorArgs {
    #[command(subcommand)]
    command: VendorCommand,
}

#[derive(Debug, clap::Subcommand)]
enum VendorCommand {
    Chart(ChartArgs),
    Base(BaseArgs),
    Update(UpdateArgs),
    Fetch(FetchArgs),
    Check(CheckArgs),
}

/// Bring a Helm chart into a folder
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  berth vendor chart charts/web oci://registry.example.com/charts/web 1.4.2\n  berth vendor chart charts/web https://charts.example.com/web"
)]
struct ChartArgs {
    /// The folder, from the root of the repository
    folder: String,
    /// `oci://REGISTRY/CHART`, or `https://REPOSITORY/CHART`
    address: String,
    /// The version; without it, the newest that is released
    #[arg(value_name = "VERSION")]
    wanted: Option<String>,
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// Bring a Kustomize base, or any other folder of a Git repository, into a folder
///
/// A repository that needs a login is reached by ssh, with the key of `BERTH_SSH_KEY`. The token of the fleet's own remote is
/// never sent.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth vendor base bases/site https://git.example.com/site.git v1.2.0 --path deploy/base"
)]
struct BaseArgs {
    /// The folder, from the root of the repository
    folder: String,
    /// The address of the Git repository
    address: String,
    /// A branch, a tag, or the full id of a commit
    #[arg(value_name = "REF")]
    reference: String,
    /// The folder there; without it, all of the repository
    #[arg(long, value_name = "FOLDER", default_value = "", hide_default_value = true)]
    path: String,
    #[command(flatten)]
    repo: RepoArg,
}

/// Bring a vendored folder to the newest version, or to another one
///
/// The newest commit of its branch or tag is that of a base.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  berth vendor update charts/web\n  berth vendor update charts/web 1.5.0")]
struct UpdateArgs {
    /// The vendored folder, from the root of the repository
    folder: String,
    /// A version of the chart; of a base, a branch, a tag or a commit
    #[arg(value_name = "VERSION")]
    wanted: Option<String>,
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    servers: LockArgs,
}

/// Bring every vendored folder to the version in `vendor.lock`
///
/// For a lock in which somebody, or a bot, edited a version, and for folders that differ from the lock.
#[derive(Debug, clap::Args)]
struct FetchArgs {
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    servers: LockArgs,
}

/// Check that vendored folders have the files that `vendor.lock` names
///
/// `berth plan` and `berth review` do this too, for the commit that they show.
#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// Also fetch each version again, and check that its server still has the same
    #[arg(long)]
    online: bool,
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    servers: LockArgs,
}

pub(crate) fn cmd_vendor(args: &VendorArgs, ui: &Ui) -> Outcome {
    match &args.command {
        VendorCommand::Chart(args) => args.run(ui),
        VendorCommand::Base(args) => args.run(ui),
        VendorCommand::Update(args) => args.run(ui),
        VendorCommand::Fetch(args) => args.run(ui),
        VendorCommand::Check(args) => args.run(ui),
    }
}

/// The repository with its lock.
struct VendorTree {
    root: PathBuf,
    lock: Lock,
    /// Takes what is fetched.
    scratch: Scratch,
}

impl VendorTree {
    fn open(repo: &RepoArg) -> Result<VendorTree, CommandError> {
        let root = Repo::root_above(&repo.path).unwrap_or_else(|| repo.path.clone());
        let scratch = Repo::open(&root)?.scratch()?;
        if Repo::is_git_folder(&root) {
            let error = CommandError::usage(format!("`{}` has no work tree", root.display()));
            return Err(error.hint("run this in a clone"));
        }
        let path = root.join(LOCK);
        let lock = match path.symlink_metadata() {
            Err(_) => Lock::default(),
            Ok(about) if about.is_file() => {
                let text = std::fs::read_to_string(&path);
                Lock::parse(&text.map_err(|error| CommandError::io("reading vendor.lock", &error))?)?
            }
            Ok(_) => return Err(CommandError::usage(format!("{LOCK} is no plain file"))),
        };
        Ok(VendorTree { root, lock, scratch })
    }

    /// Returns the entry of a vendored folder.
    fn entry(&self, folder: &str) -> Result<&Vendored, CommandError> {
        self.lock.folders.get(folder).ok_or_else(|| {
            let near = berth_base::diag::did_you_mean(folder, self.lock.folders.keys().map(String::as_str));
            let error = CommandError::usage(format!("{LOCK} has no folder `{folder}`"));
            error.hint(
                near.unwrap_or_else(|| "`berth vendor chart` and `berth vendor base` add one".to_owned()),
            )
        })
    }

    /// Refuses a folder with files that nobody vendored, or that somebody edited.
    fn refuse_edited(&self, folder: &str, fetched: &Fetched) -> Result<(), CommandError> {
        let Some(tree) = folder::tree_of(self.scratch.repo(), &self.root, folder)? else { return Ok(()) };
        let known = self.lock.folders.get(folder).map(|entry| &entry.tree);
        match known {
            Some(known) if *known == tree || fetched.tree.to_string() == tree => Ok(()),
            Some(_) => {
                let error = CommandError::usage(format!("`{folder}` was edited since it was vendored"));
                Err(error.hint("undo the edits, or remove the folder"))
            }
            None => {
                let error = CommandError::usage(format!("`{folder}` has files that nobody vendored"));
                Err(error.hint("remove it, or name another folder"))
            }
        }
    }

    /// Refuses a folder whose files would be lost, because neither a commit nor the lock has them.
    fn refuse_uncommitted(&self, folder: &str) -> Result<(), CommandError> {
        let scratch = self.scratch.repo();
        let Some(tree) = folder::tree_of(scratch, &self.root, folder)? else { return Ok(()) };
        let repo = Repo::open(&self.root)?;
        let head = repo.resolve("HEAD")?.map(|head| repo.commit(head)).transpose()?;
        let committed = head.map(|head| repo.entry_at(head.tree, folder)).transpose()?.flatten();
        let is_committed = matches!(committed, Some(EntryKind::Folder(id)) if id.to_string() == tree);
        if is_committed || self.lock.folders.get(folder).is_some_and(|entry| entry.tree == tree) {
            return Ok(());
        }
        let error = CommandError::usage(format!("`{folder}` has edits that no commit has"));
        Err(error.hint("commit them, undo them, or remove the folder"))
    }

    /// Brings a folder to what was fetched, writes the lock, and prints what was brought.
    fn put(&mut self, folder: &str, fetched: &Fetched, ui: &Ui) -> Result<(), CommandError> {
        let vendored = fetched.vendored();
        let repo = self.scratch.repo();
        let has_files = folder::tree_of(repo, &self.root, folder)?.as_ref() == Some(&vendored.tree);
        if !has_files {
            folder::write(repo, fetched.tree, &self.root, folder)?;
        }
        let is_known = self.lock.folders.insert(folder.to_owned(), vendored.clone()) == Some(vendored);
        if !is_known {
            files::write_whole(&self.root.join(LOCK), self.lock.text().as_bytes())?;
        }
        let origin = &fetched.origin;
        if has_files && is_known {
            ui.out(&format!("{folder}: {origin}, nothing changed"));
        } else {
            ui.out(&format!(
                "{folder}: {origin} ({})\nnext: commit, and look at `berth plan`",
                origin.digest()
            ));
        }
        Ok(())
    }

    /// The same for a folder that a person named. Refuses edits, which a commit may have.
    fn put_unedited(&mut self, folder: &str, fetched: &Fetched, ui: &Ui) -> Outcome {
        self.refuse_edited(folder, fetched)?;
        self.put(folder, fetched, ui)?;
        Ok(Exit::Done)
    }

    /// Fetches another version of what an origin names. Without one, the newest counts.
    fn fetch(
        &self,
        origin: &Origin,
        wanted: Option<&str>,
        access: &LockAccess,
    ) -> Result<Fetched, CommandError> {
        let repo = self.scratch.repo();
        match origin {
            Origin::Chart { chart, .. } => {
                Ok(chart::fetch(repo, &ChartAddress::parse(chart)?, wanted, &access.registry)?)
            }
            Origin::Base { git, reference, path, .. } => {
                let request = BaseRequest { git, reference: wanted.unwrap_or(reference), path };
                Ok(base::fetch(repo, &access.transport(git)?, request)?)
            }
        }
    }

    /// Fetches what the lock has once more. Fails if the server has something else by now.
    fn fetch_again(
        &self,
        folder: &str,
        locked: &Vendored,
        access: &LockAccess,
    ) -> Result<Fetched, CommandError> {
        let fetched = match &locked.origin {
            Origin::Chart { version, .. } => self.fetch(&locked.origin, Some(version), access)?,
            Origin::Base { git, reference, path, commit } => {
                let request = BaseRequest { git, reference, path };
                base::fetch_again(self.scratch.repo(), &access.transport(git)?, request, commit)?
            }
        };
        match locked.replaced(folder, &fetched.vendored()) {
            None => Ok(fetched),
            Some(fault) => {
                let error = CommandError::new(Exit::Faulty, fault.message);
                Err(error
                    .hint(format!("`berth vendor update {folder} {}` accepts it", locked.origin.wanted())))
            }
        }
    }
}

/// The access to the servers that a lock names.
struct LockAccess {
    registry: Access,
    git: RemoteArgs,
    allows_local: bool,
}

impl LockAccess {
    /// Returns the remote at an address. A lock is a file of the repository, which others edit.
    fn transport(&self, git: &str) -> Result<GitTransport, CommandError> {
        let is_scp = !git.contains("://") && git.contains('@') && git.contains(':');
        let is_remote = is_scp
            || ["https://", "http://", "ssh://", "git://"].iter().any(|scheme| git.starts_with(scheme));
        if !is_remote && !self.allows_local {
            let error = CommandError::usage(format!("{LOCK} names `{git}`, which is on this machine"));
            return Err(error.hint("`--local` allows such addresses"));
        }
        self.git.reach_without_token(git)
    }
}

/// The flags of commands that ask the servers in a lock
#[derive(Debug, clap::Args)]
struct LockArgs {
    /// Allow addresses of bases on this machine, such as `file:///srv/git/site.git`
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl LockArgs {
    fn access(&self) -> Result<LockAccess, CommandError> {
        let (registry, git) = (self.registry.access()?, RemoteArgs::of_environment()?);
        Ok(LockAccess { registry, git, allows_local: self.local })
    }
}

impl ChartArgs {
    fn run(&self, ui: &Ui) -> Outcome {
        let mut tree = VendorTree::open(&self.repo)?;
        let folder = folder_name(&self.folder)?;
        let address = ChartAddress::parse(&self.address)?;
        let access = self.registry.access()?;
        let fetched = chart::fetch(tree.scratch.repo(), &address, self.wanted.as_deref(), &access)?;
        tree.put_unedited(folder, &fetched, ui)
    }
}

impl BaseArgs {
    fn run(&self, ui: &Ui) -> Outcome {
        let mut tree = VendorTree::open(&self.repo)?;
        let folder = folder_name(&self.folder)?;
        let path = self.path.trim_matches('/');
        if !path.is_empty() && !is_folder(path) {
            return Err(CommandError::usage(format!("`{}` is no plain path of a folder", self.path)));
        }
        let transport = RemoteArgs::of_environment()?.reach_without_token(&self.address)?;
        let request = BaseRequest { git: &self.address, reference: &self.reference, path };
        let fetched = base::fetch(tree.scratch.repo(), &transport, request)?;
        tree.put_unedited(folder, &fetched, ui)
    }
}

impl UpdateArgs {
    fn run(&self, ui: &Ui) -> Outcome {
        let mut tree = VendorTree::open(&self.repo)?;
        let folder = folder_name(&self.folder)?;
        let origin = tree.entry(folder)?.origin.clone();
        let fetched = tree.fetch(&origin, self.wanted.as_deref(), &self.servers.access()?)?;
        tree.put_unedited(folder, &fetched, ui)
    }
}

impl FetchArgs {
    fn run(&self, ui: &Ui) -> Outcome {
        let mut tree = VendorTree::open(&self.repo)?;
        let access = self.servers.access()?;
        for (folder, vendored) in tree.lock.folders.clone() {
            tree.refuse_uncommitted(&folder)?;
            let fetched = match vendored.is_outdated() {
                true => tree.fetch(&vendored.origin, Some(vendored.origin.wanted()), &access)?,
                false => tree.fetch_again(&folder, &vendored, &access)?,
            };
            tree.put(&folder, &fetched, ui)?;
        }
        Ok(Exit::Done)
    }
}

impl CheckArgs {
    fn run(&self, ui: &Ui) -> Outcome {
        let tree = VendorTree::open(&self.repo)?;
        let access = self.servers.access()?;
        let mut found = Diagnostics::new();
        for (folder, vendored) in &tree.lock.folders {
            let there = folder::tree_of(tree.scratch.repo(), &tree.root, folder)?;
            found.extend(vendored.fault(folder, there.as_deref()));
            if self.online
                && !vendored.is_outdated()
                && let Err(error) = tree.fetch_again(folder, vendored, &access)
            {
                let message = format!("`{folder}`: {}", error.message);
                found.push(Diagnostic::error(Pos::file(LOCK), message).maybe_hint(error.hint));
            }
        }
        ui.diagnostics(&found);
        if found.is_empty() {
            let folders = counted(tree.lock.folders.len(), "vendored folder");
            ui.out(&format!("{folders}: as {LOCK} says"));
            return Ok(Exit::Done);
        }
        Ok(exit_for(&found).worst(Exit::Faulty))
    }
}

/// Returns a folder as the lock has it.
fn folder_name(folder: &str) -> Result<&str, CommandError> {
    let name = folder.strip_prefix("./").unwrap_or(folder).trim_end_matches('/');
    match is_folder(name) {
        true => Ok(name),
        false => {
            let error =
                CommandError::usage(format!("`{folder}` is no folder below the root of the repository"));
            Err(error.hint("write a path such as `charts/web`"))
        }
    }
}

impl From<VendorError> for CommandError {
    fn from(error: VendorError) -> CommandError {
        let hint = error.hint();
        let made = match error {
            VendorError::Wrong { message, .. } => CommandError::usage(message),
            VendorError::Server { message, .. } => CommandError::new(Exit::Unreachable, message),
            VendorError::Io { doing, error } => CommandError::io(&doing, &error),
            VendorError::Registry(error) => return error.into(),
            VendorError::Git(error) => return error.into(),
            VendorError::Transport(error) => return error.into(),
        };
        match hint {
            Some(hint) => made.hint(hint),
            None => made,
        }
    }
}
