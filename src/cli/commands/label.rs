//! `berth label`: labels of clusters, in the files that describe them.

use crate::editing::mark::{Chosen, MarkArgs, Wanted, labels, mark, sort_words};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome};

/// Set and remove labels of clusters
///
/// Edits the files that describe the clusters: one line changes, and comments, order and formatting stay.
/// A cluster that several kinds describe gets a label in each of its documents, so that none contradicts
/// another. `KEY=VALUE` sets a label, `KEY-` removes it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth label oslo env=prod\n  berth label oslo turin env=test tier- --overwrite\n  berth label -l region=north maintenance=tuesday --dry-run"
)]
pub(crate) struct LabelArgs {
    /// Names of clusters, and labels: KEY=VALUE to set, KEY- to remove
    #[arg(value_name = "CLUSTER|LABEL", required = true)]
    words: Vec<String>,
    /// Change a label that has another value
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    mark: MarkArgs,
}

pub(crate) fn cmd_label(args: &LabelArgs, ui: &Ui) -> Outcome {
    let (names, wishes) = sort_words(&args.words, labels::is_wish, labels::parse)?;
    if wishes.is_empty() {
        return Err(
            CommandError::usage("no label is given").hint("write KEY=VALUE to set one, KEY- to remove one")
        );
    }
    if let Some(twice) =
        wishes.iter().enumerate().find(|(at, wish)| wishes[..*at].iter().any(|one| one.key() == wish.key()))
    {
        return Err(CommandError::usage(format!("the label `{}` is given twice", twice.1.key())));
    }
    mark(&args.mark, &names, ui, |chosen| in_each(chosen, &wishes, args.overwrite))
}

fn in_each<'t>(chosen: &Chosen<'t>, wishes: &[labels::Wish], overwrite: bool) -> Wanted<'t> {
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for document in &chosen.documents {
        match labels::outcome(&labels::labels_of(document.found), wishes, overwrite) {
            Ok(outcome) => done.push((*document, outcome)),
            Err(problem) => problems.push(format!("{problem} ({})", document.file)),
        }
    }
    // A label in one of several documents is changed there; the others need no edit.
    for index in 0..done.len() {
        let others_change = done
            .iter()
            .enumerate()
            .any(|(other, (_, outcome))| other != index && !outcome.changes.is_empty());
        if others_change && done[index].1.changes.is_empty() {
            done[index].1.notes.clear();
        }
    }
    if problems.is_empty() { Ok(done) } else { Err(problems) }
}
