//! The result of `berth sync --once` and `--dry-run`, and how it is printed.

use super::sync_text::{plan_text, previews_text};
use crate::output::results::{Format, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit};
use berth_git::GitError;
use berth_member::sync::SyncOutcome;

/// The result of `--once` and of `--dry-run`.
#[derive(Debug)]
pub(crate) struct OnceResult {
    pub outcome: SyncOutcome,
    /// The folder is older than it may be.
    pub stale: Option<CommandError>,
    /// The status could not be written into the repository.
    pub unreported: Option<GitError>,
    /// The remote could not be asked, so the last fetched folder was used.
    pub trouble: Option<CommandError>,
    pub pushed: Option<PushedReport>,
}

impl OnceResult {
    /// Prints the plan, with at most so many writes, and what there is to say beside it.
    pub fn print(&self, format: Format, dry_run: bool, most: usize, ui: &Ui) {
        let SyncOutcome { plan, previews, notes, applied, .. } = &self.outcome;
        match format {
            Format::Text => {
                ui.out(&plan_text(plan, dry_run, most, ui));
                if !previews.is_empty() {
                    ui.out(&previews_text(previews, ui));
                }
            }
            format => format.write(ResultKind::SyncPlan, plan.to_json(), ui),
        }
        for said in notes.iter().chain(&applied.differences).chain(&applied.problems) {
            ui.status(&format!("{}: {}", said.object, said.message));
        }
        if let Some(suspension) = &applied.suspended {
            ui.status(&suspension.to_string());
        }
        if let Some(problem) = &self.stale {
            ui.error(problem);
        }
        if let Some(problem) = &self.unreported {
            ui.status(&format!("the status could not be reported: {problem}"));
        }
        if let Some(problem) = &self.trouble {
            ui.error(problem);
            ui.status("using the last fetched folder");
        }
        if let Some(pushed) = &self.pushed {
            pushed.print(ui);
        }
    }

    pub fn exit(&self) -> Exit {
        let applied = &self.outcome.applied;
        let unpushed = self.pushed.as_ref().and_then(|pushed| pushed.failure.as_ref());
        let faults = [
            (!applied.problems.is_empty()).then_some(Exit::Unhealthy),
            applied.suspended.as_ref().map(|_| Exit::Held),
            self.stale.as_ref().map(|problem| problem.exit),
            self.unreported.as_ref().map(|_| Exit::Unreachable),
            self.trouble.as_ref().map(|problem| problem.exit),
            unpushed.filter(|(_, lacks_rights)| !lacks_rights).map(|(problem, _)| problem.exit),
        ];
        faults.into_iter().flatten().fold(Exit::Done, Exit::worst)
    }
}

/// The result of pushing the status to the remote.
#[derive(Debug)]
pub(crate) struct PushedReport {
    pub cleared_locks: Vec<String>,
    /// The failure, and whether it is merely a lack of rights. Members work without the right to push.
    pub failure: Option<(CommandError, bool)>,
}

impl PushedReport {
    pub fn print(&self, ui: &Ui) {
        for lock in &self.cleared_locks {
            ui.status(&format!("removed `{lock}`, a stale lock left by a process that has exited"));
        }
        let Some((failure, _)) = &self.failure else { return };
        ui.status(&format!("the status could not be reported: {}", failure.message));
        if let Some(hint) = &failure.hint {
            ui.status(&format!("  hint: {hint}"));
        }
    }
}
