//! `--site DIR` of `berth plan` and `berth review`: a change as a page.

use std::path::{Path, PathBuf};

use super::folder;
use super::gathered::Gathered;
use super::{KnownHistory, PageOptions};
use crate::flags::state::{Located, StateArgs};
use crate::output::plan_forms::PlanReport;
use crate::output::ui::Ui;
use crate::planning::planned::{PlanRequest, Planned};
use crate::process::exit::CommandError;
use berth_git::Repo;
use berth_site::Site;
use berth_site::inputs::{ChangeSide, Held, PlannedChange};

/// The page of a change
#[derive(Debug, clap::Args)]
pub(crate) struct ChangePageArgs {
    /// Write the change as a page to this folder: its first step beside its end, with the fleet as it is now
    #[arg(long, value_name = "DIR")]
    site: Option<PathBuf>,
}

/// A change that was planned.
pub(crate) struct ToShow<'a> {
    /// The repository that has the objects of the plan.
    pub repo: &'a Repo,
    pub path: &'a Path,
    pub state: &'a StateArgs,
    pub request: &'a PlanRequest,
    pub planned: &'a Planned,
    pub report: &'a PlanReport<'a>,
}

impl ChangePageArgs {
    /// Writes the page, and returns its folder. Without the flag, or before the first publication, there is none.
    pub fn write(&self, change: &ToShow<'_>, ui: &Ui) -> Result<Option<&Path>, CommandError> {
        let Some(out) = &self.site else { return Ok(None) };
        if change.request.located.current.is_none() {
            ui.status("note: nothing is published yet, so that the change has no page");
            return Ok(None);
        }
        let _turn = folder::take_turn(out, ui)?;
        let existing = folder::existing(out)?;
        let located = Located::open_at(change.path, change.state, &change.request.located)?;
        let options = PageOptions::of(change.state);
        // The page of a change is always made anew, so that no digest stands for its inputs.
        let gathered = Gathered::read(&options, &located, String::new(), &mut KnownHistory::default(), ui)?;
        let gathered = gathered.with_change(change.planned_change());
        let site = ui.watching("making the page", || gathered.site());
        folder::write(out, &site, &existing)?;
        ui.status(&format!("the change as a page: {}", out.join(Site::INDEX).display()));
        Ok(Some(out))
    }
}

fn held(one: &berth_engine::gate::Held) -> Held {
    Held { key: one.key.clone(), digest: one.digest }
}

impl ToShow<'_> {
    fn planned_change(&self) -> PlannedChange {
        let (planned, report) = (self.planned, self.report);
        let now = planned.first_step();
        PlannedChange {
            title: report.title(),
            words: report.words.to_owned(),
            source: self.request.change.head.commit.to_string(),
            now: ChangeSide { counts: now.counts().into(), plan: planned.fold(self.repo, now) },
            end: ChangeSide { counts: planned.in_the_end().counts().into(), plan: planned.folded().clone() },
            held: planned.step.held.iter().filter(|one| one.has_own_reason()).map(held).collect(),
            remarks: report.remarks(),
        }
    }
}
