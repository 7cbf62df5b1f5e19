//! The summary of an import, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::import::Gathered;
use crate::import::first::First;
use berth_base::text::counted;
use berth_git::CommitId;
use berth_git::protocol::Refs;

/// The summary of an import.
#[derive(Debug)]
pub struct Shown<'a> {
    pub server: &'a str,
    pub out: &'a Path,
    pub gathered: &'a Gathered,
    pub files: &'a BTreeMap<String, String>,
    /// True if a first commit was requested.
    pub wanted: bool,
    pub begun: &'a Option<(CommitId, First)>,
}

impl Shown<'_> {
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

    pub fn json(&self) -> Json {
        let moves = self.begun.iter().flat_map(|(_, first)| &first.moves).map(|one| {
            let names = |all: &[(String, String)]| {
                all.iter()
                    .map(|(cluster, word)| json!({"cluster": cluster, "status": word}))
                    .collect::<Vec<_>>()
            };
            let replicas = one.replicas.iter();
            let replicas = replicas.map(
                |(cluster, before, after)| json!({"cluster": cluster, "before": before, "after": after}),
            );
            json!({
                "kind": &*one.key.kind, "namespace": &*one.key.namespace, "name": &*one.key.name,
                "file": one.file, "loses": names(&one.loses), "gains": names(&one.gains),
                "replicas": replicas.collect::<Vec<_>>(),
            })
        });
        json!({
            "server": self.server,
            "out": self.out.display().to_string(),
            "objects": self.gathered.counts(),
            "files": self.files.keys().collect::<Vec<_>>(),
            "secrets": self.gathered.secrets,
            "missing": self.gathered.missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "commit": self.begun.as_ref().map(|(commit, _)| commit.to_string()),
            "moves": moves.collect::<Vec<_>>(),
        })
    }
}
