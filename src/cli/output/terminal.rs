//! A terminal's pager for long output, and its progress line for long work.

use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::ui::Ui;
use berth_base::progress::{Progress, WorkStage};

/// Shorter work shows no progress line.
const PATIENCE: Duration = Duration::from_millis(250);

/// The time for which a line stays before it may change.
const MOMENT: Duration = Duration::from_millis(100);

/// A progress line, and the thread that updates it. Dropping it removes the line.
#[derive(Debug)]
pub(crate) struct Bar {
    line: ProgressLine,
    end: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl Bar {
    /// Shows a line on the standard error. Without a thread, there is no line.
    pub fn start(progress: Progress) -> Bar {
        let line = ProgressLine::new(ProgressDrawTarget::hidden());
        let shown = line.clone();
        let (end, ended) = mpsc::channel();
        let thread = std::thread::Builder::new().name("progress".into());
        let drawing = thread.spawn(move || draw(shown, &progress, &ended)).ok();
        Bar { line, end: Some(end), drawing }
    }

    /// Hides the line while something else is printed.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.line.bar.suspend(print)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.end = None;
        if let Some(drawing) = self.drawing.take() {
            let _ = drawing.join();
        }
        self.line.bar.finish_and_clear();
    }
}

fn draw(mut line: ProgressLine, progress: &Progress, ended: &Receiver<()>) {
    let begun = Instant::now();
    let mut hidden = true;
    while ended.recv_timeout(MOMENT) == Err(RecvTimeoutError::Timeout) {
        if hidden && begun.elapsed() >= PATIENCE {
            line.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(15));
            hidden = false;
        }
        line.show(progress.stage());
    }
}

/// The line itself.
#[derive(Clone, Debug)]
struct ProgressLine {
    bar: ProgressBar,
    /// The number of the shown stage.
    number: u64,
}

impl ProgressLine {
    fn new(target: ProgressDrawTarget) -> ProgressLine {
        ProgressLine { bar: ProgressBar::with_draw_target(None, target), number: 0 }
    }

    /// Updates the line to the present stage.
    fn show(&mut self, stage: WorkStage) {
        if stage.number == 0 {
            return;
        }
        if stage.number != self.number {
            self.number = stage.number;
            self.bar.set_style(style(stage));
            self.bar.reset();
            match stage.total {
                Some(total) => self.bar.set_length(total),
                None => self.bar.unset_length(),
            }
        }
        self.bar.set_position(stage.done);
        self.bar.tick();
    }
}

/// Returns the style of a stage: amount, rate and remaining time if the total is known, else only the amount.
fn style(stage: WorkStage) -> ProgressStyle {
    let template = match stage.total {
        Some(_) => "{name} [{bar:16}] {counts}",
        None => "{spinner} {name}{counts}",
    };
    // Name and total come with the style, so that no stage is drawn with those of the previous one.
    let name = move |_: &ProgressState, out: &mut dyn Write| {
        let _ = out.write_str(stage.name);
    };
    let counts = move |state: &ProgressState, out: &mut dyn Write| match stage.total {
        Some(total) => of_all(state, total, out),
        None => so_far(state, out),
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.with_key("name", name).with_key("counts", counts).progress_chars("=> ").tick_chars("|/-\\ ")
}

fn of_all(state: &ProgressState, total: u64, out: &mut dyn Write) {
    let _ = write!(out, "{}/{}", HumanCount(state.pos()), HumanCount(total));
    if state.pos() > 0 {
        let _ = write!(out, ", {}, {:#} left", rate(state), HumanDuration(state.eta()));
    }
}

fn so_far(state: &ProgressState, out: &mut dyn Write) {
    if state.pos() > 0 {
        let _ = write!(out, ": {}, {}", HumanCount(state.pos()), rate(state));
    }
    let _ = write!(out, ", {:#}", HumanDuration(state.elapsed()));
}

/// Writes steps per second, with a decimal if there are few.
fn rate(state: &ProgressState) -> String {
    let rate = state.per_sec();
    if rate < 10.0 { format!("{rate:.1}/s") } else { format!("{}/s", HumanCount(rate as u64)) }
}

/// The exit code of a shell that does not find the command.
const MISSING: i32 = 127;

/// Shows a text in the pager: `BERTH_PAGER`, else `PAGER`, else `less`. Returns false if the text fits on the screen,
/// stdout is not a terminal, or the pager cannot run.
pub(super) fn page(text: &str, ui: &Ui) -> bool {
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
        // Ends at once if the text fits, shows colours, and leaves the text on the screen.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // A user who leaves the pager early needs no more text.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().is_ok_and(|ended| ended.code() != Some(MISSING))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal with a single line.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl Screen {
        fn text(&self) -> String {
            self.0.lock().unwrap().trim_end().to_owned()
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn line() -> (ProgressLine, Screen) {
        let screen = Screen::default();
        (ProgressLine::new(ProgressDrawTarget::term_like(Box::new(screen.clone()))), screen)
    }

    #[test]
    fn a_known_end_shows_how_much_how_fast_and_how_long() {
        let (mut line, screen) = line();
        line.show(WorkStage { name: "proving commits", number: 1, done: 0, total: Some(2_000) });
        let text = screen.text();
        assert!(text.starts_with("proving commits [") && text.ends_with("] 0/2,000"), "{text}");
        line.show(WorkStage { name: "proving commits", number: 1, done: 1_500, total: Some(2_000) });
        let text = screen.text();
        assert!(text.contains("=>") && text.contains("1,500/2,000, "), "{text}");
        assert!(text.contains("/s, ") && text.ends_with(" left"), "{text}");
    }

    #[test]
    fn an_unknown_end_shows_what_is_done_and_a_new_stage_begins_anew() {
        let (mut line, screen) = line();
        line.show(WorkStage { name: "rendering objects", number: 1, done: 1_234, total: None });
        assert!(screen.text().contains("rendering objects: 1,234, "), "{}", screen.text());
        line.show(WorkStage { name: "fetching", number: 2, done: 0, total: None });
        assert!(screen.text().ends_with("fetching, 0s"), "{}", screen.text());
    }

    #[test]
    fn what_is_printed_meets_no_line_and_the_end_leaves_none() {
        let (mut line, screen) = line();
        line.show(WorkStage::default());
        assert_eq!(screen.text(), "");
        line.show(WorkStage { name: "fetching", number: 1, done: 0, total: None });
        assert_ne!(screen.text(), "");
        assert_eq!(line.bar.suspend(|| screen.text()), "");
        assert_ne!(screen.text(), "");
        line.bar.finish_and_clear();
        assert_eq!(screen.text(), "");
    }
}
