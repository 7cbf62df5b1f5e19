//! What a round of `berth sync` does, or would do, as people read it.

use super::diff::coloured;
use super::ui::{Tone, Ui};
use berth_base::model::ObjectId;
use berth_base::text::counted;
use berth_member::sync::backends::Preview;
use berth_member::sync::plan::SyncPlan;

/// How many writes are named where nobody asked for all of them.
pub const SOME: usize = 30;

/// The plan, with so many of its writes. What is removed, let go or kept is never cut.
pub fn plan_text(plan: &SyncPlan, dry_run: bool, most: usize, ui: &Ui) -> String {
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
        text.push_str(&format!("  {:<9}  {}: it stays, and is nobody's from now on\n", "let go", prune.id));
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

/// What each write would change, line by line.
pub fn previews_text(previews: &[(ObjectId, Preview)], ui: &Ui) -> String {
    let text = |object: &serde_json::Value| berth_base::yaml::emit(object);
    let one = |(id, preview): &(ObjectId, Preview)| {
        let before = preview.before.as_ref().map(text).unwrap_or_default();
        coloured(&before, &text(&preview.after), &id.to_string(), ui)
    };
    previews.iter().map(one).collect()
}
