//! The only place that prints: data to stdout, everything else to stderr.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, ErrorKind, Read};
use std::sync::PoisonError;

use super::terminal::Bar;
use super::{table, terminal};
use crate::process::exit::CommandError;
use crate::process::shell::{Clock, Environment, Shell, Streams};
use berth_base::diag::{Diagnostic, Diagnostics, Severity, is_harmless};
use berth_base::model::Timestamp;
use berth_base::progress::Progress;
use berth_base::text::counted;

/// The streams, colours, variables and clock of one command.
#[derive(Debug)]
pub(crate) struct Ui {
    streams: Streams,
    environment: Environment,
    clock: Clock,
    quiet: bool,
    colour_out: bool,
    colour_err: bool,
    /// The progress of long work. Counts nothing if nobody watches.
    progress: Progress,
    /// Shows the progress of long work.
    bar: RefCell<Option<Bar>>,
    /// True if a CI job's runner interprets lines of the output as commands.
    is_in_runner: bool,
    /// The first failure to write to stdout. Nothing is written after it.
    failure: RefCell<Option<std::io::Error>>,
}

/// The use of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Bad,
    Warn,
    Good,
    Faint,
    Strong,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Bad => "31",
            Tone::Warn => "33",
            Tone::Good => "32",
            Tone::Faint => "2",
            Tone::Strong => "1",
        }
    }
}

impl Ui {
    pub fn new(shell: &Shell, quiet: bool, choice: ColourChoice) -> Ui {
        let (streams, environment) = (shell.streams.clone(), shell.environment.clone());
        let is_unset = |name| environment.get(name).is_none_or(|value| value.is_empty());
        let is_true = |name| environment.get(name).is_some_and(|value| value == "true");
        let allowed = |terminal: bool| match choice {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto => terminal && is_unset("NO_COLOR"),
        };
        // CI may have a terminal that nobody watches.
        let is_watched = streams.err_is_terminal && !quiet && is_unset("CI");
        Ui {
            quiet,
            colour_out: allowed(streams.out_is_terminal),
            colour_err: allowed(streams.err_is_terminal),
            progress: if is_watched { Progress::counting() } else { Progress::default() },
            bar: RefCell::new(None),
            is_in_runner: ["GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS"].into_iter().any(is_true),
            failure: RefCell::new(None),
            clock: shell.clock,
            streams,
            environment,
        }
    }

    /// Returns a `Ui` that shows nothing, for work beside the passes of a daemon.
    pub fn silent() -> Ui {
        let shell = Shell {
            arguments: Vec::new(),
            environment: Environment::Process,
            streams: Streams::nowhere(),
            clock: Clock::OfMachine,
        };
        Ui::new(&shell, true, ColourChoice::Never)
    }

    /// Returns the present moment by the command's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the variables that the command sees.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the command's streams.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Reports whether stdout is a terminal.
    pub fn out_is_terminal(&self) -> bool {
        self.streams.out_is_terminal
    }

    /// Returns the number of columns of the terminal that shows stdout.
    pub fn out_width(&self) -> Option<usize> {
        self.streams.out_is_terminal.then(terminal_width).flatten()
    }

    /// Breaks sentences for stdout between words, if it is a terminal.
    pub fn prose(&self, text: &str) -> String {
        table::fitted(text, self.out_width())
    }

    /// Reads one line of the standard input.
    pub fn line_of_input(&self) -> std::io::Result<String> {
        let mut input = self.streams.input.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = String::new();
        // A terminal delivers one line at a time; further input is ignored.
        BufReader::new(&mut *input).read_line(&mut line)?;
        Ok(line)
    }

    /// Reads the standard input, up to `most` bytes.
    pub fn input(&self, most: u64) -> std::io::Result<Vec<u8>> {
        let mut input = self.streams.input.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::new();
        (&mut *input).take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reports whether stdout shows colours.
    pub(crate) fn colours(&self) -> bool {
        self.colour_out
    }

    /// Returns the counter for the progress of long work.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Runs long work that begins with this stage, and shows its progress if somebody watches.
    pub fn watching<T>(&self, stage: &'static str, work: impl FnOnce() -> T) -> T {
        self.progress.begin(stage);
        self.bar.replace(self.progress.is_counting().then(|| Bar::start(self.progress.clone())));
        let done = work();
        self.bar.replace(None);
        done
    }

    /// Prints while the progress line is hidden.
    fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &*self.bar.borrow() {
            Some(bar) => bar.aside(print),
            None => print(),
        }
    }

    /// Prints data. If printing fails, the command continues: its work and exit code are still valid.
    pub fn out(&self, text: &str) {
        self.write(&self.no_commands(harmless(text, self.colour_out)));
    }

    /// Prints in place of what the terminal shows. A terminal that knows the marks around an update shows it at once.
    pub fn in_place<T>(&self, print: impl FnOnce() -> T) -> T {
        let mark = |code: &str| {
            if self.streams.out_is_terminal {
                let _ = self.aside(|| self.streams.print_exactly(code));
            }
        };
        mark("\x1b[?2026h\x1b[2J\x1b[H");
        let printed = print();
        mark("\x1b[?2026l");
        printed
    }

    /// Prints commands to a CI job's runner, which annotate lines.
    pub fn workflow_commands(&self, commands: &str) {
        self.write(&harmless(commands, false));
    }

    /// Prints data that may be longer than the screen. On a terminal, a pager shows it.
    pub fn paged(&self, text: &str) {
        let text = harmless(text, self.colour_out);
        if self.failure.borrow().is_some() || !self.aside(|| terminal::page(&text, self)) {
            self.write(&text);
        }
    }

    /// Prints JSON.
    pub fn json(&self, value: &serde_json::Value) {
        self.write(&json_for_terminals(&format!("{value:#}")));
    }

    /// Prints YAML.
    pub fn yaml(&self, value: &serde_json::Value) {
        self.write(&berth_base::yaml::emit(value));
    }

    fn write(&self, text: &str) {
        let mut failure = self.failure.borrow_mut();
        if failure.is_some() {
            return;
        }
        *failure = self.aside(|| self.streams.print(text)).err();
    }

    /// Returns the failure to write results. A pipe closed by its reader is not a failure.
    pub(crate) fn write_failure(&self) -> Option<CommandError> {
        let failure = self.failure.borrow();
        let error = failure.as_ref().filter(|error| error.kind() != ErrorKind::BrokenPipe)?;
        Some(write_error(error))
    }

    /// Prints a status line for people. `--quiet` silences it.
    pub fn status(&self, text: &str) {
        if !self.quiet {
            self.err(text);
        }
    }

    /// Prints an error of the command itself.
    pub fn error(&self, error: &CommandError) {
        self.err(&tint_first_word(&error.to_string(), "error", Tone::Bad, self.colour_err));
    }

    /// Prints the first diagnostics of each severity, and the number of further ones. `--quiet` hides notes.
    pub fn diagnostics(&self, diagnostics: &Diagnostics) {
        for diagnostic in diagnostics.shown() {
            if diagnostic.severity != Severity::Note || !self.quiet {
                self.diagnostic(diagnostic);
            }
        }
        for (severity, more) in diagnostics.not_shown() {
            self.status(&format!("and {}", counted(more, &format!("more {}", severity.word()))));
        }
        let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        if errors + warnings > 0 {
            self.status(&format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")));
        }
    }

    fn diagnostic(&self, diagnostic: &Diagnostic) {
        let tone = match diagnostic.severity {
            Severity::Error => Tone::Bad,
            Severity::Warning => Tone::Warn,
            Severity::Note => Tone::Faint,
        };
        self.err(&tint_first_word(
            &diagnostic.to_string(),
            diagnostic.severity.word(),
            tone,
            self.colour_err,
        ));
    }

    fn err(&self, text: &str) {
        let width = self.streams.err_is_terminal.then(terminal_width).flatten();
        let text = table::fitted(&harmless(text, self.colour_err), width);
        let text = self.no_commands(text.into());
        let _ = self.aside(|| self.streams.complain(&text));
    }

    fn no_commands<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        if self.is_in_runner { Cow::Owned(without_commands(&text)) } else { text }
    }

    /// Colours text for stdout.
    pub(crate) fn tint(&self, text: &str, tone: Tone) -> String {
        paint(text, tone, self.colour_out)
    }
}

fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

/// Makes the error for results that could not be written.
pub(crate) fn write_error(error: &std::io::Error) -> CommandError {
    CommandError::io("writing to the standard output", error)
}

fn paint(text: &str, tone: Tone, on: bool) -> String {
    if on { format!("\x1b[{}m{text}\x1b[0m", tone.code()) } else { text.to_owned() }
}

fn tint_first_word(text: &str, word: &str, tone: Tone, on: bool) -> String {
    if on { text.replacen(word, &paint(word, tone, true), 1) } else { text.to_owned() }
}

/// Escapes control characters of foreign text (in names, subjects, messages), so that no file of a fleet can control
/// a terminal. Keeps berth's own colours.
fn harmless(text: &str, colours: bool) -> Cow<'_, str> {
    let stays = |c: char| is_harmless(c) || c == '\n' || c == '\t';
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let code = if colours { TONES.into_iter().find(|code| rest.starts_with(code)) } else { None };
        let taken = code.map_or(c.len_utf8(), str::len);
        match code {
            Some(code) => shown.push_str(code),
            None if stays(c) => shown.push(c),
            None => shown.extend(c.escape_default()),
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    Cow::Owned(shown)
}

/// Changes lines that the runners of GitHub, Gitea and Forgejo would interpret as commands: they begin with `::`
/// after white space, or contain `##[` anywhere.
fn without_commands(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let rest = line.trim_start();
        let (space, _) = line.split_at(line.len() - rest.len());
        shown.push_str(space);
        match rest.strip_prefix("::") {
            Some(rest) => {
                shown.push_str(": :");
                shown.push_str(&rest.replace("##[", "# #["));
            }
            None => shown.push_str(&rest.replace("##[", "# #[")),
        }
    }
    shown
}

/// Escapes control characters that JSON leaves unescaped. They occur only in strings, so escapes are valid.
fn json_for_terminals(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmless(c) || c == '\n' {
            shown.push(c);
        } else {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    shown
}

/// Every sequence that [`paint`] writes.
const TONES: [&str; 6] = ["\x1b[0m", "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[2m", "\x1b[1m"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_escapes_are_spelt_out_and_colours_stay() {
        let name = "web\x1b]0;gone\x07\r";
        assert_eq!(harmless(name, false), "web\\u{1b}]0;gone\\u{7}\\r");
        for tone in [Tone::Bad, Tone::Warn, Tone::Good, Tone::Faint, Tone::Strong] {
            let painted = paint("a\tb\n", tone, true);
            assert_eq!(harmless(&painted, true), painted);
            assert!(!harmless(&painted, false).contains('\x1b'));
        }
    }

    #[test]
    fn no_line_is_a_command_to_a_runner() {
        let text = "a ::b\n::error::x\n \t::stop-commands::y\nc ##[add-mask]z\n\n";
        let shown = "a ::b\n: :error::x\n \t: :stop-commands::y\nc # #[add-mask]z\n\n";
        assert_eq!(without_commands(text), shown);
    }

    #[test]
    fn json_shows_no_control_character_and_reads_the_same() {
        let value = serde_json::json!({"a\u{9b}": "b\x7f\u{202e}\x1b\n", "c": [1]});
        let text = json_for_terminals(&format!("{value:#}"));
        assert!(text.chars().all(|c| is_harmless(c) || c == '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
