//! `berth label`, `berth taint`, `berth cordon` and `berth uncordon`: labels and taints of clusters, in the files that
//! describe them. Cordoning is a taint that keeps new workloads off a cluster and leaves existing ones.

use clap_complete::engine::ArgValueCandidates;

use crate::editing::mark::taints::{self, TaintList};
use crate::editing::mark::{Chosen, DocumentChanges, EditResult, MarkArgs, labels, mark, marked, sort_words};
use crate::editing::working_tree::{Edit, WorkingTree};
use crate::flags::fleet::moment;
use crate::flags::names;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome};
use berth_base::diag::did_you_mean;
use berth_base::model::Timestamp;
use berth_engine::dialects::cluster_kinds;

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
    let (names, requests) = label_requests(&args.words)?;
    mark(&args.mark, &names, ui, |chosen| in_each(chosen, &requests, args.overwrite))
}

/// Returns the files with labels that the words of `berth label --overwrite` ask for.
pub(super) fn labelled(tree: &WorkingTree, words: &[String]) -> Result<Vec<Edit>, CommandError> {
    let (names, requests) = label_requests(words)?;
    marked(tree, &names, |chosen| in_each(chosen, &requests, true))
}

/// Reads the words of `berth label`: names of clusters, and labels.
fn label_requests(words: &[String]) -> Result<(Vec<String>, Vec<labels::LabelRequest>), CommandError> {
    let (names, requests) = sort_words(words, labels::is_wish, labels::parse)?;
    if requests.is_empty() {
        return Err(
            CommandError::usage("no label is given").hint("write KEY=VALUE to set one, KEY- to remove one")
        );
    }
    if let Some(twice) = requests
        .iter()
        .enumerate()
        .find(|(at, request)| requests[..*at].iter().any(|one| one.key() == request.key()))
    {
        return Err(CommandError::usage(format!("the label `{}` is given twice", twice.1.key())));
    }
    Ok((names, requests))
}

fn in_each<'t>(chosen: &Chosen<'t>, requests: &[labels::LabelRequest], overwrite: bool) -> EditResult<'t> {
    let (mut done, mut problems) = (Vec::new(), Vec::new());
    for document in &chosen.documents {
        match labels::outcome(&labels::labels_of(document.found), requests, overwrite) {
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

/// Set and remove taints of clusters
///
/// Edits the files that describe the clusters, and changes no other line. A ManagedCluster has the effects
/// NoSelect, NoSelectIfNew and PreferNoSelect, a MemberCluster has NoSchedule, a KubeFedCluster has no taints. A new
/// taint of a ManagedCluster says since when it is there; one that is there already keeps its moment.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth taint oslo gpu=broken:NoSelect\n  berth taint oslo gpu-\n  berth taint oslo turin gpu=broken:NoSelect-\n  berth taint -l region=north upgrade:NoSelectIfNew --dry-run"
)]
pub(crate) struct TaintArgs {
    /// Names of clusters, and taints: KEY[=VALUE]:EFFECT to set, KEY[=VALUE][:EFFECT]- to remove
    #[arg(value_name = "CLUSTER|TAINT", required = true)]
    words: Vec<String>,
    /// Change the value of a taint with the same key and effect
    #[arg(long)]
    overwrite: bool,
    /// Date new taints at this moment (RFC 3339), in place of now
    #[arg(long, value_name = "TIME", value_parser = moment)]
    now: Option<Timestamp>,
    #[command(flatten)]
    mark: MarkArgs,
}

pub(crate) fn cmd_taint(args: &TaintArgs, ui: &Ui) -> Outcome {
    let (names, requests) = taint_requests(&args.words)?;
    let since = since(args.now);
    mark(&args.mark, &names, ui, |chosen| in_those_that_can(chosen, &requests, args.overwrite, &since))
}

/// Returns the files with taints that the words of `berth taint --overwrite` ask for.
pub(super) fn tainted(
    tree: &WorkingTree,
    words: &[String],
    now: Timestamp,
) -> Result<Vec<Edit>, CommandError> {
    let (names, requests) = taint_requests(words)?;
    let since = since(Some(now));
    marked(tree, &names, |chosen| in_those_that_can(chosen, &requests, true, &since))
}

/// Reads the words of `berth taint`: names of clusters, and taints.
fn taint_requests(words: &[String]) -> Result<(Vec<String>, Vec<taints::TaintRequest>), CommandError> {
    let (names, requests) = sort_words(words, taints::is_wish, taints::parse)?;
    if requests.is_empty() {
        let error = CommandError::usage("no taint is given");
        return Err(error.hint("write KEY=VALUE:EFFECT to set one, KEY- to remove all of a key"));
    }
    let mut faults: Vec<String> = requests.iter().filter_map(unknown_effect).collect();
    let mut set: Vec<(&str, &str)> = Vec::new();
    for request in &requests {
        let taints::TaintRequest::Add(taint) = request else { continue };
        if set.contains(&(&taint.key, &taint.effect)) {
            faults.push(format!("the taint `{}:{}` is given twice", taint.key, taint.effect));
        }
        set.push((&taint.key, &taint.effect));
        let gone = |one: &taints::TaintRequest| {
            matches!(one, taints::TaintRequest::Remove { key, effect, .. }
                if *key == taint.key && effect.as_ref().is_none_or(|effect| *effect == taint.effect))
        };
        if requests.iter().any(gone) {
            faults.push(format!("the taint `{}:{}` is both set and removed", taint.key, taint.effect));
        }
    }
    if !faults.is_empty() {
        return Err(CommandError::usage(faults.join("\n")));
    }
    Ok((names, requests))
}

/// Returns the moment for new taints, in Kubernetes' notation.
pub fn since(now: Option<Timestamp>) -> String {
    let now = now.unwrap_or_else(Timestamp::now);
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Applies each request to every document whose kind supports its effect.
fn in_those_that_can<'t>(
    chosen: &Chosen<'t>,
    requests: &[taints::TaintRequest],
    overwrite: bool,
    since: &str,
) -> EditResult<'t> {
    let mut problems = Vec::new();
    for request in requests {
        let fits = |one: &&str| request.effect().is_none_or(|effect| effect == *one);
        if !chosen.documents.iter().any(|document| document.kind.effects.iter().any(fits)) {
            problems.push(refusal(chosen, request.effect()));
        }
    }
    let mut done = Vec::new();
    for document in chosen.documents.iter().filter(|document| !document.kind.effects.is_empty()) {
        let known = |request: &&taints::TaintRequest| {
            request.effect().is_none_or(|effect| document.kind.effects.contains(&effect))
        };
        let requests: Vec<taints::TaintRequest> = requests.iter().filter(known).cloned().collect();
        let since = document.kind.dated.then_some(since);
        match taints::outcome(&TaintList::of(document.found), &requests, overwrite, since) {
            Ok(outcome) => done.push((*document, outcome)),
            Err(problem) => problems.push(format!("{problem} ({})", document.file)),
        }
    }
    if problems.is_empty() { Ok(done) } else { Err(problems) }
}

/// Explains why no document of a cluster can have the taint.
fn refusal(chosen: &Chosen<'_>, effect: Option<&str>) -> String {
    let kind = |document: &crate::editing::mark::Described<'_>| match document.kind.effects {
        [] => format!("a {} has labels and no taints", document.kind.kind),
        effects => format!("a {}'s taints have the effect {}", document.kind.kind, effects.join(", ")),
    };
    let kinds: Vec<String> = chosen.documents.iter().map(kind).collect();
    let taint =
        effect.map_or_else(|| "a taint".to_owned(), |effect| format!("a taint with the effect `{effect}`"));
    let instead = if chosen.documents.iter().all(|document| document.kind.effects.is_empty()) {
        "; `berth label` sets what placements select by, and `berth join NAME --dialect ocm` adds a description that has taints"
    } else {
        ""
    };
    format!("it cannot have {taint}: {}{instead}", kinds.join("; "))
}

fn unknown_effect(request: &taints::TaintRequest) -> Option<String> {
    let known = || cluster_kinds().flat_map(|kind| kind.effects).copied();
    let effect = request.effect().filter(|effect| !known().any(|one| one == *effect))?;
    let of = cluster_kinds().filter(|kind| !kind.effects.is_empty());
    let of: Vec<String> = of.map(|kind| format!("{} ({})", kind.effects.join(", "), kind.kind)).collect();
    let near = did_you_mean(effect, known()).map_or_else(String::new, |near| format!("; {near}"));
    Some(format!("no taint has the effect `{effect}`, only {}{near}", of.join(" and ")))
}

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
    mark(&args.mark, &args.clusters, ui, |chosen| each(chosen, cordon, &since))
}

/// Returns the files with the taints that `berth cordon` sets.
pub(super) fn cordoned(
    tree: &WorkingTree,
    clusters: &[String],
    now: Timestamp,
) -> Result<Vec<Edit>, CommandError> {
    let since = since(Some(now));
    marked(tree, clusters, |chosen| each(chosen, cordon, &since))
}

fn cordon(effect: &str) -> taints::TaintRequest {
    let [key, effect] = [CORDONED, effect].map(str::to_owned);
    taints::TaintRequest::Add(taints::Taint { key, value: String::new(), effect })
}

pub(crate) fn cmd_uncordon(args: &UncordonArgs, ui: &Ui) -> Outcome {
    mark(&args.mark, &args.clusters, ui, |chosen| {
        each(
            chosen,
            |_| taints::TaintRequest::Remove { key: CORDONED.to_owned(), value: None, effect: None },
            "",
        )
    })
}

fn each<'t>(
    chosen: &Chosen<'t>,
    request: impl Fn(&str) -> taints::TaintRequest,
    since: &str,
) -> EditResult<'t> {
    let mut done = Vec::new();
    for document in &chosen.documents {
        let Some(effect) = document.kind.cordon else {
            let note =
                format!("{} has no taints: placements of its system read only labels", document.kind.kind);
            done.push((*document, DocumentChanges { notes: vec![note], ..DocumentChanges::default() }));
            continue;
        };
        let since = document.kind.dated.then_some(since);
        let outcome = taints::outcome(&TaintList::of(document.found), &[request(effect)], true, since)
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
