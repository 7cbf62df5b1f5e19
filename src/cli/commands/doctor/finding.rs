//! The results of checks.

use serde::Serialize;

use crate::output::ui::{Tone, Ui};
use crate::process::exit::Exit;
use berth_base::text::counted;
use berth_git::transport::TransportError;

/// The severity of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Level {
    Good,
    NotKnown,
    Warning,
    Fault,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Good => "good",
            Level::NotKnown => "not known",
            Level::Warning => "warning",
            Level::Fault => "fault",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Level::Good => Tone::Good,
            Level::NotKnown => Tone::Faint,
            Level::Warning => Tone::Warn,
            Level::Fault => Tone::Bad,
        }
    }
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The part of the setup.
    check: &'static str,
    level: Level,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// The results so far.
#[derive(Debug, Default, Serialize)]
pub(super) struct Findings {
    #[serde(rename = "findings")]
    list: Vec<Finding>,
    #[serde(skip)]
    check: &'static str,
    #[serde(skip)]
    is_unreachable: bool,
}

impl Findings {
    /// Sets the part of the setup for the next results.
    pub fn begin(&mut self, check: &'static str) {
        self.check = check;
    }

    pub fn good(&mut self, message: impl Into<String>) {
        self.push(Level::Good, message.into(), None);
    }

    pub fn not_known(&mut self, message: impl Into<String>) {
        self.push(Level::NotKnown, message.into(), None);
    }

    pub fn warning(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.push(Level::Warning, message.into(), Some(hint.into()));
    }

    pub fn fault(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.push(Level::Fault, message.into(), Some(hint.into()));
    }

    pub fn push(&mut self, level: Level, message: String, hint: Option<String>) {
        self.list.push(Finding { check: self.check, level, message, hint });
    }

    /// Adds that something is unreachable, so that the following checks are skipped.
    pub fn unreachable(&mut self, error: &TransportError) {
        self.is_unreachable = true;
        let hint = error.hint().unwrap_or_else(|| "check the address, the network and the server".to_owned());
        self.fault(error.to_string(), hint);
    }

    /// Records that a server is unreachable.
    pub fn cannot_be_reached(&mut self) {
        self.is_unreachable = true;
    }

    pub fn exit(&self) -> Exit {
        match self.list.iter().any(|one| matches!(one.level, Level::Fault | Level::Warning)) {
            _ if self.is_unreachable => Exit::Unreachable,
            true => Exit::Faulty,
            false => Exit::Done,
        }
    }

    pub fn text(&self, ui: &Ui) -> String {
        let mut lines = Vec::new();
        for Finding { level, message, hint, .. } in &self.list {
            lines.push(format!("{} {message}", ui.tint(&format!("{:<9}", level.word()), level.tone())));
            lines.extend(hint.iter().map(|hint| format!("{:<10}hint: {hint}", "")));
        }
        let count = |level| self.list.iter().filter(|one| one.level == level).count();
        let (faults, warnings, not_known) =
            (count(Level::Fault), count(Level::Warning), count(Level::NotKnown));
        lines.push(format!(
            "{}, {}, {not_known} not known",
            counted(faults, "fault"),
            counted(warnings, "warning")
        ));
        lines.join("\n")
    }
}
