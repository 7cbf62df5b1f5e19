//! The previews of branches, as `berth run --once` makes them.

use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::Timestamp;
use berth_hub::daemon::{Mirror, PreviewChange, Previews, Settings};
use berth_hub::inputs::current_state::short;

/// Brings the previews up to date, and says what was done.
pub(super) fn show_previews(
    settings: &Settings,
    now: Timestamp,
    mirror: Option<&mut Mirror>,
    ui: &Ui,
) -> Result<(), CommandError> {
    let mut faults = Diagnostics::new();
    for change in Previews::default().follow(settings, now, mirror, true)? {
        match change {
            PreviewChange::Made { of, on, commit } => {
                ui.out(&format!("previewed {} on {} ({})", short(&of), short(&on), commit.short()));
            }
            PreviewChange::Removed { on } => ui.out(&format!("removed the preview {}", short(&on))),
            PreviewChange::Failed { of, why } => {
                faults.push(Diagnostic::note(format!("`{}` has no preview: {why}", short(&of))));
            }
        }
    }
    ui.diagnostics(&faults);
    Ok(())
}
