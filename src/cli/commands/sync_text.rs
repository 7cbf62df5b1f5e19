//! The text of a round of `berth sync`, real or `--dry-run`.

use super::line_diff::coloured;
use super::ui::{Tone, Ui};
use berth_base::model::ObjectId;
use berth_base::text::counted;
use berth_member::sync::backends::Preview;
use berth_member::sync::plan::SyncPlan;

/// The most writes that are named without `-v`.
pub(crate) const SOME: usize = 30;

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
