//! The pager: long output on a terminal, a screen at a time.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::ui::Ui;

/// The exit code with which a shell tells that there is no such command.
const MISSING: i32 = 127;

/// Shows a text in the pager: `BERTH_PAGER`, else `PAGER`, else `less`. Returns false where the text fits the
/// screen, nobody watches, or the pager cannot be run.
pub(super) fn show(text: &str, ui: &Ui) -> bool {
    let terminal = ui.out_is_terminal().then(terminal_size::terminal_size).flatten();
    let fits = terminal.is_none_or(|(_, rows)| text.lines().count() < usize::from(rows.0));
    if fits {
        return false;
    }
    let named = ["BERTH_PAGER", "PAGER"].into_iter().find_map(|name| ui.environment().get(name));
    let pager = named.unwrap_or_else(|| "less".into());
    if pager.is_empty() || pager == "cat" {
        return false;
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(&pager).stdin(Stdio::piped());
    if ui.environment().get("LESS").is_none() {
        // Ends at once where the text fits, shows colours, and leaves the text on the screen.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // Whoever leaves the pager early has seen enough.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().is_ok_and(|ended| ended.code() != Some(MISSING))
}
