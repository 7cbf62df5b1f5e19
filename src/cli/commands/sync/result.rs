//! The result of `berth sync --once` and `--dry-run`, as text and JSON.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::output::changes::coloured;
use crate::output::results::{Format, ResultKind};
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit};
use berth_base::diag::harmless_line;
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;
use berth_base::text::counted;
use berth_git::GitError;
use berth_member::sync::SyncOutcome;
use berth_member::sync::backends::Preview;
use berth_member::sync::plan::SyncPlan;

/// The result of `--once` and of `--dry-run`.
#[derive(Debug)]
pub(crate) struct OnceResult {
    pub outcome: SyncOutcome,
    /// The folder is older than allowed.
    pub stale: Option<CommandError>,
    /// The status could not be written into the repository.
    pub unreported: Option<GitError>,
    /// The remote was unreachable, so the last fetched folder was used.
    pub trouble: Option<CommandError>,
    pub pushed: Option<PushedReport>,
}

impl OnceResult {
    /// Prints the plan, with at most `most` writes, and all notes.
    pub fn print(&self, format: Format, dry_run: bool, most: usize, ui: &Ui) {
        let SyncOutcome { plan, previews, notes, applied, .. } = &self.outcome;
        match format {
            Format::Text => {
                ui.out(&plan_text(plan, dry_run, most, ui));
                if !previews.is_empty() {
                    ui.out(&previews_text(previews, ui));
                }
            }
            format => format.write(ResultKind::SyncPlan, &plan.to_json(), ui),
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
    /// The failure, and true if it is only a missing right. Members work without the right to push.
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

/// The number of writes listed without `-v`.
pub(crate) const SOME: usize = 30;

/// The number of objects named as awaited in one sync.
const WAITS: usize = 5;

/// Prints the objects that a sync waits for, each again when its state changes.
pub(crate) fn print_waits(ui: &Ui) -> impl FnMut(&[Problem], Option<Duration>) {
    let mut shown = BTreeSet::new();
    move |waiting, most| {
        wait_lines(&shown, waiting, most).iter().for_each(|line| ui.status(line));
        shown = waiting.iter().cloned().collect();
    }
}

fn wait_lines(shown: &BTreeSet<Problem>, waiting: &[Problem], most: Option<Duration>) -> Vec<String> {
    let most = most.map(|most| format!(", at most {} s", most.as_secs())).unwrap_or_default();
    let new: Vec<&Problem> = waiting.iter().filter(|problem| !shown.contains(problem)).collect();
    let line = |problem: &&Problem| {
        let why = problem.message.strip_prefix("not healthy yet: ").unwrap_or(&problem.message);
        harmless_line(&format!("waiting for {}: {why}{most}", problem.object)).into_owned()
    };
    let more = new.len().saturating_sub(WAITS);
    let more = (more > 0).then(|| format!("waiting for {}{most}", counted(more, "more object")));
    new.iter().take(WAITS).map(line).chain(more).collect()
}

/// Lists the plan, with at most `most` writes. Removed, released and kept objects are always listed.
pub(crate) fn plan_text(plan: &SyncPlan, dry_run: bool, most: usize, ui: &Ui) -> String {
    let mut text = String::new();
    for write in plan.writes.iter().take(most) {
        text.push_str(&ui.tint(&format!("  {:<9}  {}\n", write.action.word(), write.id), Tone::Good));
    }
    if plan.writes.len() > most {
        text.push_str(&format!(
            "  and {} (-v names them)\n",
            counted(plan.writes.len() - most, "other write")
        ));
    }
    for prune in plan.removed() {
        text.push_str(&ui.tint(&format!("  {:<9}  {}\n", "remove", prune.id), Tone::Bad));
    }
    for prune in plan.orphaned() {
        text.push_str(&format!("  {:<9}  {}: it stays, and nobody owns it now\n", "let go", prune.id));
    }
    for held in &plan.held {
        text.push_str(&format!("  {:<9}  {}: {}\n", "keep", held.id, held.why.words()));
    }
    let counts = format!(
        "{}, {}, {} unchanged",
        counted(plan.writes.len(), "write"),
        counted(plan.removed().count(), "removal"),
        plan.unchanged.len()
    );
    format!("{}{counts}\n{text}", if dry_run { "would make " } else { "" })
}

/// Prints the change of each write, line by line.
pub(crate) fn previews_text(previews: &[(ObjectId, Preview)], ui: &Ui) -> String {
    let text = |object: &serde_json::Value| berth_base::yaml::emit(object);
    let one = |(id, preview): &(ObjectId, Preview)| {
        let before = preview.before.as_ref().map(text).unwrap_or_default();
        coloured(&before, &text(&preview.after), &id.to_string(), ui)
    };
    previews.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_again_where_its_state_changes() {
        let problem = |name: &str, message: &str| {
            Problem::failed(ObjectId::new("apps", "Deployment", "shop", name), message)
        };
        let waiting = [
            problem("api", "waits for Deployment.apps shop/web"),
            problem("web", "not healthy yet: 0 of 5 replicas are ready"),
        ];
        let (nothing, most) = (BTreeSet::new(), Some(Duration::from_secs(600)));
        assert_eq!(
            wait_lines(&nothing, &waiting, most),
            [
                "waiting for Deployment.apps shop/api: waits for Deployment.apps shop/web, at most 600 s",
                "waiting for Deployment.apps shop/web: 0 of 5 replicas are ready, at most 600 s",
            ]
        );
        let shown = waiting.iter().cloned().collect();
        assert_eq!(wait_lines(&shown, &waiting, most), [""; 0]);
        let next = [problem("web", "not healthy yet: 1 of 5 replicas are ready")];
        assert_eq!(
            wait_lines(&shown, &next, None),
            ["waiting for Deployment.apps shop/web: 1 of 5 replicas are ready"]
        );
        let many: Vec<Problem> = (0..8).map(|number| problem(&number.to_string(), "no")).collect();
        assert_eq!(
            wait_lines(&nothing, &many, None).last().map(String::as_str),
            Some("waiting for 3 more objects")
        );
    }
}
