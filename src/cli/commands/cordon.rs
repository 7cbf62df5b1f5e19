//! `berth cordon` and `berth uncordon`: a taint that keeps new workloads off a cluster and leaves existing ones.

use crate::process::exit::Outcome;
use clap_complete::engine::ArgValueCandidates;

use super::taint::since;
use crate::editing::mark::taints::{self, TaintList};
use crate::editing::mark::{Chosen, MarkArgs, Outcome as Change, Wanted, mark};
use crate::flags::fleet::moment;
use crate::flags::names;
use crate::output::ui::Ui;
use berth_base::model::Timestamp;

/// The key of the taint.
const CORDONED: &str = "berth.dev/cordoned";

/// Keep new work off clusters
///
/// Gives each the taint `berth.dev/cordoned` with the effect of its kind that leaves what is there:
/// NoSelectIfNew for a ManagedCluster, NoSchedule for a MemberCluster. A KubeFedCluster has no taints. Placements
/// that tolerate the key go on using the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth cordon oslo\n  berth cordon -l region=north --dry-run")]
pub(crate) struct CordonArgs {
    /// Names of clusters
    #[arg(value_name = "CLUSTER", add = ArgValueCandidates::new(names::clusters))]
    clusters: Vec<String>,
    /// Date the taint at this moment (RFC 3339), in place of now
    #[arg(long, value_name = "TIME", value_parser = moment)]
    now: Option<Timestamp>,
    #[command(flatten)]
    mark: MarkArgs,
}

/// Let new work onto clusters again
///
/// Takes the taint `berth.dev/cordoned` away that `berth cordon` gave them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth uncordon oslo\n  berth uncordon -l region=north")]
pub(crate) struct UncordonArgs {
    /// Names of clusters
    #[arg(value_name = "CLUSTER", add = ArgValueCandidates::new(names::clusters))]
    clusters: Vec<String>,
    #[command(flatten)]
    mark: MarkArgs,
}

pub(crate) fn cmd_cordon(args: &CordonArgs, ui: &Ui) -> Outcome {
    let since = since(args.now);
    mark(&args.mark, &args.clusters, ui, |chosen| {
        each(
            chosen,
            |effect| {
                let [key, effect] = [CORDONED, effect].map(str::to_owned);
                taints::Wish::Add(taints::Taint { key, value: String::new(), effect })
            },
            &since,
        )
    })
}

pub(crate) fn cmd_uncordon(args: &UncordonArgs, ui: &Ui) -> Outcome {
    mark(&args.mark, &args.clusters, ui, |chosen| {
        each(chosen, |_| taints::Wish::Remove { key: CORDONED.to_owned(), value: None, effect: None }, "")
    })
}

fn each<'t>(chosen: &Chosen<'t>, wish: impl Fn(&str) -> taints::Wish, since: &str) -> Wanted<'t> {
    let mut done = Vec::new();
    for document in &chosen.documents {
        let Some(effect) = document.kind.cordon else {
            let note =
                format!("{} has no taints: placements of its system read only labels", document.kind.kind);
            done.push((*document, Change { notes: vec![note], ..Change::default() }));
            continue;
        };
        let since = document.kind.dated.then_some(since);
        let outcome = taints::outcome(&TaintList::of(document.found), &[wish(effect)], true, since)
            .map_err(|problem| vec![problem])?;
        done.push((*document, outcome));
    }
    if chosen.documents.iter().all(|document| document.kind.cordon.is_none()) {
        let kinds: Vec<&str> = chosen.documents.iter().map(|document| document.kind.kind).collect();
        let problem = format!(
            "remove a label that placements select by (`berth label`), or add a description that has taints \
             (`berth join NAME --dialect ocm`): a {} has no taints",
            kinds.join(" or ")
        );
        return Err(vec![problem]);
    }
    Ok(done)
}
