//! The one place that prints: data to stdout, everything else to stderr.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "all output goes through this file")]

use std::io::{IsTerminal as _, Write as _};

use crate::diag::{Diagnostic, Diagnostics, Severity};

/// Streams and colours of this process.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    quiet: bool,
    colour_out: bool,
    colour_err: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// What a colour means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
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
    pub fn new(quiet: bool, choice: ColourChoice) -> Ui {
        let allowed = |terminal: bool| match choice {
            ColourChoice::Always => true,
            ColourChoice::Never => false,
            ColourChoice::Auto => {
                terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        };
        Ui {
            quiet,
            colour_out: allowed(std::io::stdout().is_terminal()),
            colour_err: allowed(std::io::stderr().is_terminal()),
        }
    }

    /// Whether stdout shows colours.
    pub fn colours(&self) -> bool {
        self.colour_out
    }

    /// Data. A closed pipe ends the program quietly, as other tools do.
    pub fn out(&self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| if text.ends_with('\n') { Ok(()) } else { stdout.write_all(b"\n") });
        if written.and_then(|()| stdout.flush()).is_err() {
            std::process::exit(0);
        }
    }

    /// JSON data.
    pub fn json(&self, value: &serde_json::Value) {
        self.out(&format!("{value:#}"));
    }

    /// What a person should know and a program need not. Silent with `--quiet`.
    pub fn status(&self, text: &str) {
        if !self.quiet {
            self.err(text);
        }
    }

    /// An error of the command itself.
    pub fn error(&self, error: &super::exit::CommandError) {
        self.err(&tint_first_word(&error.to_string(), "error", Tone::Bad, self.colour_err));
    }

    /// Every diagnostic, notes only where not quiet.
    pub fn diagnostics(&self, diagnostics: &Diagnostics) {
        for diagnostic in diagnostics.iter() {
            if diagnostic.severity != Severity::Note || !self.quiet {
                self.diagnostic(diagnostic);
            }
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
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// Colours text meant for stdout.
    pub fn tint(&self, text: &str, tone: Tone) -> String {
        paint(text, tone, self.colour_out)
    }
}

/// `1 error`, `2 errors`.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn paint(text: &str, tone: Tone, on: bool) -> String {
    if on { format!("\x1b[{}m{text}\x1b[0m", tone.code()) } else { text.to_owned() }
}

fn tint_first_word(text: &str, word: &str, tone: Tone, on: bool) -> String {
    if on { text.replacen(word, &paint(word, tone, true), 1) } else { text.to_owned() }
}
