//! The text of a round of `berth sync`, real or `--dry-run`.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::output::changes::coloured;
use crate::output::ui::{Tone, Ui};
use berth_base::diag::harmless_line;
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;
use berth_base::text::counted;
use berth_member::sync::backends::Preview;
use berth_member::sync::plan::SyncPlan;

/// The most writes that are named without `-v`.
pub(crate) const SOME: usize = 30;

/// The most objects that one sync names as waited for.
const WAITS: usize = 5;

/// Tells people what a sync waits for, each object again where its state changes.
pub(crate) fn tell_waits(ui: &Ui) -> impl FnMut(&[Problem], Option<Duration>) {
    let mut told = BTreeSet::new();
    move |waiting, most| {
        wait_lines(&told, waiting, most).iter().for_each(|line| ui.status(line));
        told = waiting.iter().cloned().collect();
    }
}

fn wait_lines(told: &BTreeSet<Problem>, waiting: &[Problem], most: Option<Duration>) -> Vec<String> {
    let most = most.map(|most| format!(", at most {} s", most.as_secs())).unwrap_or_default();
    let new: Vec<&Problem> = waiting.iter().filter(|problem| !told.contains(problem)).collect();
    let line = |problem: &&Problem| {
        let why = problem.message.strip_prefix("not healthy yet: ").unwrap_or(&problem.message);
        harmless_line(&format!("waiting for {}: {why}{most}", problem.object)).into_owned()
    };
    let more = new.len().saturating_sub(WAITS);
    let more = (more > 0).then(|| format!("waiting for {}{most}", counted(more, "more object")));
    new.iter().take(WAITS).map(line).chain(more).collect()
}

/// The plan, with at most so many writes. Removed, released and kept objects are always listed.
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
        let told = waiting.iter().cloned().collect();
        assert_eq!(wait_lines(&told, &waiting, most), [""; 0]);
        let next = [problem("web", "not healthy yet: 1 of 5 replicas are ready")];
        assert_eq!(
            wait_lines(&told, &next, None),
            ["waiting for Deployment.apps shop/web: 1 of 5 replicas are ready"]
        );
        let many: Vec<Problem> = (0..8).map(|number| problem(&number.to_string(), "no")).collect();
        assert_eq!(
            wait_lines(&nothing, &many, None).last().map(String::as_str),
            Some("waiting for 3 more objects")
        );
    }
}
