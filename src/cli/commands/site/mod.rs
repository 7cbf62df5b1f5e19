//! `berth site --out DIR`: the fleet as a page of files.
//!
//! - [`map`]: `berth map`, the map as text. [`gathered`]: reads everything that the page shows. [`history`]: reads the publications.
//! - [`stamp`]: reports whether an earlier page is still true. [`folder`]: writes the files that changed.

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
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    history: usize,
    /// Trace the causes of this many publications, the newest ones
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
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

impl PageArgs {
    /// Returns the arguments of a view without publications.
    fn without_history(repo: RepoArg, state: StateArgs) -> PageArgs {
        PageArgs { at: None, history: 1, causes: 0, file_link: None, commit_link: None, repo, state }
    }

    /// Makes the page of a record. `inputs` is the digest of what it is made from.
    pub fn site(&self, located: &Located, inputs: String, ui: &Ui) -> Result<Site, CommandError> {
        let processed = located.state.processed.as_ref();
        if let Some(branch) = processed.and_then(|processed| processed.branch.as_deref()) {
            self.state.fetch_source(located.path(), branch)?;
        }
        let gathered = Gathered::read(self, located, inputs, ui)?;
        Ok(ui.watching("making the page", || gathered.site()))
    }

    fn links(&self) -> Option<Links> {
        let (file, commit) = self.file_link.clone().zip(self.commit_link.clone())?;
        Some(Links { file, commit })
    }
}

pub(crate) fn cmd_site(args: &SiteArgs, ui: &Ui) -> Outcome {
    let _turn = folder::take_turn(&args.out, ui)?;
    let existing = folder::existing(&args.out)?;
    let page = &args.page;
    let opened = page.state.open(&page.repo.path)?;
    let search = page.state.search(&opened.path)?;
    let inputs = stamp::digest(page, &opened)?;
    if let Some(files) = folder::up_to_date(&args.out, &inputs, ui.now()) {
        ui.status(&summary(args, files, 0));
        return Ok(Exit::Done);
    }
    let located = Located::find_in(opened, search, ui)?;
    let site = page.site(&located, inputs, ui)?;
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
