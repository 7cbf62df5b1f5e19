//! `berth log NAME`: the publications that changed a placement, a cluster or an object.

use clap_complete::engine::ArgValueCandidates;
use serde::Serialize;

use super::entry::{Entries, Entry, Traced};
use super::{HistoryArgs, subject, title};
use crate::flags::names;
use crate::output::results::Format;
use crate::output::results::ResultKind;
use crate::output::table::table;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{Exit, Outcome};
use berth_base::text::counted;
use berth_hub::history::Events;

/// List the publications that changed a placement, a cluster or an object
///
/// Each line says what a publication changed, why, and who made and approved the change. The newest is first. Lines
/// beyond --causes have the subjects of their commits, which is fast, in place of the edited lines.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth log web\n  berth log cluster/oslo --limit 5\n  berth log ConfigMap/shop/web --cluster oslo -o json"
)]
pub(crate) struct LogArgs {
    /// A placement, an object as KIND/NAMESPACE/NAME, or a cluster as cluster/NAME
    #[arg(add = ArgValueCandidates::new(names::placements))]
    name: String,
    /// List the changes in this cluster alone
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(names::clusters))]
    cluster: Option<String>,
    /// List this many publications
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    /// Trace the causes of this many publications, the newest ones
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    causes: usize,
    #[command(flatten)]
    history: HistoryArgs,
}

/// A history, for programs.
#[derive(Serialize)]
struct History {
    /// The subject of the history, as people write it.
    subject: String,
    /// The publications that changed it, newest first.
    items: Vec<Entry>,
    /// Earlier publications changed it too.
    more: bool,
}

pub(crate) fn cmd_log(args: &LogArgs, ui: &Ui) -> Outcome {
    let located = args.history.open(ui)?;
    let current = args.history.current(&located)?;
    let repo = located.repo();
    let subject = subject::find(repo, &current, &args.name, args.cluster.as_deref())?;
    let entries = Entries { repo, branch: &located.state.refs.rendered, subject: &subject, ui };
    let mut events = Events::of(repo, current.commit, subject.clone())?;
    let mut items = Vec::new();
    for event in events.by_ref().take(args.limit) {
        let traced = if items.len() < args.causes { Traced::All } else { Traced::No };
        items.push(entries.entry(&event?, traced)?);
    }
    let more = items.len() == args.limit && events.next().transpose()?.is_some();
    let history = History { subject: title(&subject), items, more };
    match args.history.output {
        Format::Text => ui.paged(&text(&history, ui)),
        format => format.write(ResultKind::History, &history, ui),
    }
    Ok(Exit::Done)
}

fn text(history: &History, ui: &Ui) -> String {
    let subject = ui.tint(&history.subject, Tone::Strong);
    if history.items.is_empty() {
        return format!("{subject}: no publication in this clone changed it\n");
    }
    let heading = format!("{subject}: changed by {}", counted(history.items.len(), "publication"));
    let rows: Vec<Vec<String>> = history
        .items
        .iter()
        .map(|entry| {
            let number = entry.sequence.to_string();
            vec![number, entry.published.to_string(), entry.change_text(), entry.why_text(), entry.who_text()]
        })
        .collect();
    let mut text =
        format!("{heading}\n\n{}", table(&["NUMBER", "PUBLISHED", "CHANGE", "WHY", "BY"], &rows, ui));
    if history.more {
        text.push_str("\nearlier publications changed it too; `--limit` lists more\n");
    }
    text
}
