//! Finds the smallest edits of the fleet's files with which a placement picks a cluster.
//!
//! [`candidates`] lists edits of fields that the placement's rules read. [`search`] applies each in memory, lets the
//! engine decide again, and keeps those with which the cluster is picked. [`edits`] makes edits of single values,
//! with their places.

mod candidates;
mod edits;
mod search;

use std::fmt::Write as _;

use serde::{Serialize, Serializer};

pub(crate) use search::find;

use crate::output::ui::{Tone, Ui};
use berth_base::diag::{Pos, harmless_line};
use berth_base::model::Key;
use berth_base::text::{counted, some_of};

/// The number of remedies printed, and of names in a line.
const SHOWN: usize = 8;
const NAMES: usize = 3;

/// The edits found, and the number of edits tried.
#[derive(Debug, Default)]
pub(crate) struct Remedies {
    /// All have the same size: no smaller edit helps.
    pub found: Vec<Remedy>,
    pub tried: usize,
    /// The step that refused the cluster.
    pub reason: String,
}

/// Edits that together let the placement pick the cluster.
#[derive(Debug)]
pub(crate) struct Remedy {
    pub edits: Vec<Shown>,
    /// Other clusters that the placement then picks, or no longer picks.
    pub gained: Vec<String>,
    pub lost: Vec<String>,
    /// Other placements whose clusters change.
    pub others: Vec<Key>,
}

/// The description of an edit, such as `label env: prd → prod`, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub at: Pos,
    pub words: String,
}

impl Remedies {
    pub fn text(&self, ui: &Ui) -> String {
        let tried = counted(self.tried, "edit");
        if self.found.is_empty() {
            let line = format!("no edit of the fleet's files was found that makes it picked ({tried} tried)");
            return format!("\n{}\n  {}\n", ui.tint(&line, Tone::Warn), harmless_line(&self.reason));
        }
        let title = match self.found.len() {
            1 => "it would be picked with",
            _ => "it would be picked with any one of",
        };
        let mut text = format!("\n{}\n", ui.tint(title, Tone::Strong));
        for remedy in self.found.iter().take(SHOWN) {
            for (index, edit) in remedy.edits.iter().enumerate() {
                let sign = if index == 0 { "*" } else { "  and" };
                let _ = writeln!(text, "  {sign} {}: {}", place(&edit.at), harmless_line(&edit.words));
            }
            for effect in remedy.effects() {
                let _ = writeln!(text, "      {}", harmless_line(&effect));
            }
        }
        if self.found.len() > SHOWN {
            let _ = writeln!(text, "  and {}", counted(self.found.len() - SHOWN, "other edit"));
        }
        text
    }
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = RemedyForm {
            edits: self.edits.iter().map(EditForm::of).collect(),
            gained: &self.gained,
            lost: &self.lost,
            other_placements: self.others.iter().map(ToString::to_string).collect(),
        };
        form.serialize(serializer)
    }
}

/// A remedy, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RemedyForm<'a> {
    edits: Vec<EditForm<'a>>,
    gained: &'a [String],
    lost: &'a [String],
    other_placements: Vec<String>,
}

#[derive(Serialize)]
struct EditForm<'a> {
    file: &'a str,
    line: Option<u32>,
    words: &'a str,
}

impl<'a> EditForm<'a> {
    fn of(Shown { at, words }: &'a Shown) -> EditForm<'a> {
        EditForm { file: &at.file, line: (at.line > 0).then_some(at.line), words }
    }
}

impl Remedy {
    /// Describes the other effects.
    fn effects(&self) -> Vec<String> {
        let mut effects = Vec::new();
        for (verb, clusters) in [("picks", &self.gained), ("loses", &self.lost)] {
            if !clusters.is_empty() {
                effects.push(format!("it also {verb} {}", some_of(clusters, NAMES)));
            }
        }
        if !self.others.is_empty() {
            let count = counted(self.others.len(), "other placement");
            let verb = if self.others.len() == 1 { "picks or loses" } else { "pick or lose" };
            effects.push(format!(
                "{count} {verb} clusters by it: {}",
                some_of(self.others.iter().map(Key::full_name), NAMES)
            ));
        }
        effects
    }
}

/// Writes a place as `clusters/oslo.yaml:7`. A new file has no line.
fn place(at: &Pos) -> String {
    let file = harmless_line(&at.file);
    if at.line > 0 { format!("{file}:{}", at.line) } else { format!("{file} (new)") }
}
