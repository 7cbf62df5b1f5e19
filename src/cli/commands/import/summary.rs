//! The summary of an import, as text and as JSON.

use crate::output::results::NameForm;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::import::Gathered;
use crate::import::first_state::{First, Move};
use berth_base::text::counted;
use berth_git::CommitId;
use berth_git::shared_refs::Refs;

/// The summary of an import.
#[derive(Debug)]
pub struct ImportSummary<'a> {
    pub server: &'a str,
    pub out: &'a Path,
    pub gathered: &'a Gathered,
    pub files: &'a BTreeMap<String, String>,
    /// True if a first commit was requested.
    pub wanted: bool,
    pub begun: &'a Option<(CommitId, First)>,
}

impl ImportSummary<'_> {
    pub fn text(&self, refs: &Refs) -> String {
        let mut text = format!(
            "{} from {} in {}\n",
            counted(self.files.len(), "object"),
            self.server,
            self.out.display()
        );
        for (kind, count) in self.gathered.counts() {
            let _ = writeln!(text, "{count:>7}  {kind}");
        }
        match self.begun {
            Some((commit, first)) => {
                let objects: usize = first.state.folders.values().map(|folder| folder.len()).sum();
                let _ = writeln!(
                    text,
                    "{} begins with {}: {} on {}, {}",
                    refs.rendered,
                    commit.short(),
                    counted(objects, "object"),
                    counted(first.state.folders.len(), "cluster"),
                    match first.moves.len() {
                        0 => "all as berth places them".to_owned(),
                        moves => format!("{} different from berth's decisions", counted(moves, "workload")),
                    }
                );
                let _ = writeln!(
                    text,
                    "keep this line outside the repository, to prove all later commits: berth verify \
                     --root {commit}"
                );
                text.push_str("next: look at the files, commit them, then `berth plan`\n");
            }
            None if self.gathered.missing.is_empty() => {
                text.push_str("next: look at the files, and commit them");
                if !self.wanted {
                    text.push_str("; use --repo to begin the rendered branch with the live placement");
                }
                text.push('\n');
            }
            None => {}
        }
        text
    }

    pub fn form(&self) -> ImportResult<'_> {
        ImportResult {
            server: self.server,
            out: self.out.display().to_string(),
            objects: self.gathered.counts(),
            files: self.files.keys().map(String::as_str).collect(),
            secrets: self.gathered.secrets,
            missing: self.gathered.missing.iter().map(ToString::to_string).collect(),
            commit: self.begun.as_ref().map(|(commit, _)| commit.to_string()),
            moves: self.begun.iter().flat_map(|(_, first)| &first.moves).map(MoveForm::of).collect(),
        }
    }
}

/// The import of a hub, for programs.
#[derive(Serialize)]
pub(super) struct ImportResult<'a> {
    server: &'a str,
    out: String,
    objects: BTreeMap<String, usize>,
    files: Vec<&'a str>,
    secrets: usize,
    missing: Vec<String>,
    commit: Option<String>,
    moves: Vec<MoveForm<'a>>,
}

#[derive(Serialize)]
struct MoveForm<'a> {
    #[serde(flatten)]
    name: NameForm,
    file: &'a str,
    loses: Vec<MovedStatus<'a>>,
    gains: Vec<MovedStatus<'a>>,
    replicas: Vec<MovedReplicas<'a>>,
}

#[derive(Serialize)]
struct MovedStatus<'a> {
    cluster: &'a str,
    status: &'a str,
}

#[derive(Serialize)]
struct MovedReplicas<'a> {
    cluster: &'a str,
    before: Option<i64>,
    after: Option<i64>,
}

impl<'a> MoveForm<'a> {
    fn of(one: &'a Move) -> MoveForm<'a> {
        let statuses = |all: &'a [(String, String)]| {
            all.iter().map(|(cluster, status)| MovedStatus { cluster, status }).collect()
        };
        let replicas = |(cluster, before, after): &'a (String, Option<i64>, Option<i64>)| MovedReplicas {
            cluster,
            before: *before,
            after: *after,
        };
        MoveForm {
            name: NameForm::of(&one.key),
            file: &one.file,
            loses: statuses(&one.loses),
            gains: statuses(&one.gains),
            replicas: one.replicas.iter().map(replicas).collect(),
        }
    }
}
