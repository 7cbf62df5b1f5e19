//! `berth site --out DIR`: the fleet as a page of files; and the page on a Git branch, for `berth run --site`.
//!
//! - [`map`]: `berth map`, the map as text. [`change`]: the page of a change that is not published yet. [`gathered`]: reads everything that the page shows. [`history`]: reads the
//!   publications.
//! - [`stamp`]: reports whether an earlier page is still true. [`folder`], [`branch`]: write the files that changed.

pub(super) mod branch;
mod change;
mod folder;
mod gathered;
mod history;
mod map;
pub(super) mod stamp;

use std::path::PathBuf;

use crate::flags::fleet::RepoArg;
use crate::flags::state::{Located, StateArgs};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::text::counted;
use berth_site::Site;
use berth_site::inputs::Links;
use gathered::Gathered;
pub(super) use history::KnownHistory;

/// The number of publications on a page, and of those whose causes are traced.
const HISTORY: usize = 200;
const CAUSES: usize = 10;

pub(crate) use change::{ChangePageArgs, ToShow};
pub(crate) use map::{MapArgs, cmd_map};

/// Write the fleet as a page, to open from a folder or from any web server
///
/// The page shows what differs from the source, a map of placements and clusters, why each placement is where it is,
/// rollouts, and the history of publications. It needs nothing but its files and shows whatever the fleet repository
/// shows, without values of Secrets. Only files that changed are written.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth site --out public\n  berth site --out public --rendered https://git.example.com/fleet.git\n  berth site --out /tmp/then --at 12"
)]
pub(crate) struct SiteArgs {
    /// Folder to write: a new or empty one, or that of an earlier page
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    page: PageArgs,
}

/// The content of a page
#[derive(Debug, clap::Args)]
pub(super) struct PageArgs {
    /// Show this publication, in place of the newest: a number, a commit or any revision of the rendered branch
    #[arg(long, value_name = "PUBLICATION")]
    at: Option<String>,
    /// Show this many publications
    #[arg(long, value_name = "COUNT", default_value_t = HISTORY)]
    history: usize,
    /// Trace the causes of this many publications, the newest ones
    #[arg(long, value_name = "COUNT", default_value_t = CAUSES)]
    causes: usize,
    /// The address of a file's line at the forge, with {commit}, {file} and {line}; guessed from the remote where it
    /// is left out
    #[arg(long, value_name = "TEMPLATE", requires = "commit_link")]
    file_link: Option<String>,
    /// The address of a commit at the forge, with {commit}
    #[arg(long, value_name = "TEMPLATE", requires = "file_link")]
    commit_link: Option<String>,
    #[command(flatten)]
    pub repo: RepoArg,
    #[command(flatten)]
    pub state: StateArgs,
}

/// The choices of a page.
#[derive(Clone, Debug)]
pub(super) struct PageOptions {
    /// The publication to show, in place of the newest.
    pub at: Option<String>,
    pub history: usize,
    pub causes: usize,
    /// The addresses of files and commits. Without them, they are guessed from the remote.
    pub links: Option<Links>,
    /// The rendered branch that the user named.
    pub rendered: Option<String>,
    /// The address of the remote that has the state, if a command names one.
    pub address: Option<String>,
    /// The branch on which the page is kept. Its moves do not change the page.
    pub branch: Option<String>,
}

impl PageOptions {
    /// Returns the usual page of a state.
    fn of(state: &StateArgs) -> PageOptions {
        PageOptions {
            rendered: state.rendered.clone(),
            address: state.address().map(str::to_owned),
            ..PageOptions::default()
        }
    }
}

impl Default for PageOptions {
    fn default() -> PageOptions {
        PageOptions {
            at: None,
            history: HISTORY,
            causes: CAUSES,
            links: None,
            rendered: None,
            address: None,
            branch: None,
        }
    }
}

impl PageArgs {
    pub fn options(&self) -> PageOptions {
        let links = self.file_link.clone().zip(self.commit_link.clone());
        PageOptions {
            at: self.at.clone(),
            history: self.history,
            causes: self.causes,
            links: links.map(|(file, commit)| Links { file, commit }),
            ..PageOptions::of(&self.state)
        }
    }

    /// Makes the page of a record. `inputs` is the digest of what it is made from.
    pub fn site(
        &self,
        located: &Located,
        inputs: String,
        known: &mut KnownHistory,
        ui: &Ui,
    ) -> Result<Site, CommandError> {
        let processed = located.state.processed.as_ref();
        if let Some(branch) = processed.and_then(|processed| processed.branch.as_deref()) {
            self.state.fetch_source(located.path(), branch)?;
        }
        let gathered = Gathered::read(&self.options(), located, inputs, known, ui)?;
        Ok(ui.watching("making the page", || gathered.site()))
    }
}

pub(crate) fn cmd_site(args: &SiteArgs, ui: &Ui) -> Outcome {
    let _turn = folder::take_turn(&args.out, ui)?;
    let existing = folder::existing(&args.out)?;
    let page = &args.page;
    let opened = page.state.open(&page.repo.path)?;
    let search = page.state.search(&opened.path)?;
    let inputs = stamp::digest(&page.options(), &opened)?;
    if let Some(files) = folder::up_to_date(&args.out, &inputs, ui.now()) {
        ui.status(&summary(args, files, 0));
        return Ok(Exit::Done);
    }
    let located = Located::find_in(opened, search, ui)?;
    let site = page.site(&located, inputs, &mut KnownHistory::default(), ui)?;
    let written = folder::write(&args.out, &site, &existing)?;
    ui.status(&summary(args, site.files.len(), written));
    Ok(Exit::Done)
}

fn summary(args: &SiteArgs, files: usize, written: usize) -> String {
    let (files, folder) = (counted(files, "file"), args.out.display());
    match written {
        0 => format!("{folder} is up to date: {files}"),
        written => format!("wrote {written} of {files} to {folder}: open {folder}/index.html"),
    }
}
