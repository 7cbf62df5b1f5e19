//! `berth simulate`: what follows if clusters are lost, tainted or labelled.
//!
//! The files with these changes are in a commit that exists in memory alone, and that commit is rehearsed like any other
//! change: one pipeline decides for the real fleet and for this one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use clap_complete::engine::ArgValueCandidates;
use serde::Serialize;

use super::mark;
use crate::editing::working_tree::{Edit, WorkingTree};
use crate::flags::fleet::RepoArg;
use crate::flags::names;
use crate::output::results::{Format, ResultKind};
use crate::output::ui::{Tone, Ui};
use crate::planning::planned::{PlanRequest, Revisions, StepArgs};
use crate::planning::rehearsal::{Change, Rehearsed, Revision};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::{Diagnostics, did_you_mean, harmless_line};
use berth_base::meta::parse_requirements;
use berth_base::model::{Decision, Key, Timestamp};
use berth_base::text::{counted, some_of};
use berth_engine::gate::Deadline;
use berth_git::{CommitId, EntryKind, Identity, Repo, Writer, read_source};

/// The number of placements of each sort that the text names, and of clusters of a placement.
const MOST_NAMED: usize = 10;

/// Show who moves where if clusters are lost, tainted or labelled
///
/// Decides exactly as `run` would if the files of clusters were removed or edited so. Shows which placements move, which
/// are left on fewer clusters, which have no cluster left, what leaves later by a deadline, what the gate would hold and
/// which policy tests fail. With --each, the clusters of each value of a label are lost in turn. Nothing is written.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth simulate --lose oslo\n  berth simulate --lose region=north --cordon turin\n  berth simulate --taint 'oslo gpu=broken:NoSelect' --label 'turin lisbon tier=gold'\n  berth simulate --each region -o json"
)]
pub(crate) struct SimulateArgs {
    /// Lose this cluster, or all with these labels, as kubectl selects: `region=north,tier!=test`; may be repeated
    #[arg(long, value_name = "CLUSTER|SELECTOR", add = ArgValueCandidates::new(names::clusters))]
    lose: Vec<String>,
    /// Lose, one after another, the clusters of each value of this label
    #[arg(long, value_name = "LABEL")]
    each: Option<String>,
    /// Keep new work off this cluster, or all with these labels, as `berth cordon` does; may be repeated
    #[arg(long, value_name = "CLUSTER|SELECTOR", add = ArgValueCandidates::new(names::clusters))]
    cordon: Vec<String>,
    /// Change taints, in the words of `berth taint`: clusters, and taints; may be repeated
    #[arg(long, value_name = "WORDS")]
    taint: Vec<String>,
    /// Change labels, in the words of `berth label`: clusters, and labels; may be repeated
    #[arg(long, value_name = "WORDS")]
    label: Vec<String>,
    /// Revision to begin with, merged into the source branch
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    head: String,
    #[command(flatten)]
    repo: RepoArg,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    step: StepArgs,
}

pub(crate) fn cmd_simulate(args: &SimulateArgs, ui: &Ui) -> Outcome {
    let repo = Repo::rehearsal(&args.repo.path)?.watched(ui.progress());
    let located = args.step.locate(&args.repo.path, &repo, ui)?;
    let head = Revision { name: args.head.clone(), commit: repo.require(&args.head)? };
    let revisions = Revisions { base: None, head, source: None, is_merged: true };
    let asked = PlanRequest::gather(located, revisions, &repo, |_| ())?;
    ui.status(&asked.words());
    let exit = match asked.judge(&args.step, &repo, ui)? {
        Ok(note) => {
            let mut notes = Diagnostics::new();
            notes.extend(note);
            ui.diagnostics(&notes);
            Exit::Done
        }
        Err(refusal) => {
            ui.error(&refusal);
            refusal.exit
        }
    };
    let source = asked.change.source;
    let tree = WorkingTree::of_files(&args.repo.path, read_source(&repo, source)?);
    ui.diagnostics(&tree.unreadable());
    let clock = ui.now();
    let edited = EditedFleet::of(args, tree, clock)?;
    // New taints are dated now, so that they must not be judged for an earlier moment.
    let at = Some(args.step.now.unwrap_or(clock));
    let mut scenarios = Vec::new();
    for (name, lost) in losses(args, &edited.tree)? {
        let change = edited.without(&repo, source, (&name, &lost))?;
        let base = Some(Revision { name: args.head.clone(), commit: source });
        let request =
            PlanRequest { located: asked.located.clone(), base, change, subject: asked.subject.clone() };
        let rehearsed =
            ui.watching("deciding for that fleet", || request.rehearse_at(at, &args.step, &repo, clock))?;
        scenarios.push(Scenario::of(name, lost, &rehearsed));
    }
    match args.output {
        Format::Text => scenarios.iter().for_each(|scenario| ui.out(scenario.text(ui).trim_end())),
        format => format.write(ResultKind::Simulation, &Simulation { scenarios: &scenarios }, ui),
    }
    Ok(exit)
}

/// The files of the fleet after the edits that all scenarios share.
struct EditedFleet {
    tree: WorkingTree,
    /// The edited files by path, each with its new text.
    edits: BTreeMap<String, Option<String>>,
}

impl EditedFleet {
    /// Labels, taints and cordons clusters.
    fn of(args: &SimulateArgs, tree: WorkingTree, since: Timestamp) -> Result<EditedFleet, CommandError> {
        let words = |text: &String| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut edited = EditedFleet { tree, edits: BTreeMap::new() };
        for label in &args.label {
            edited.apply(mark::labelled(&edited.tree, &words(label))?);
        }
        for taint in &args.taint {
            edited.apply(mark::tainted(&edited.tree, &words(taint), since)?);
        }
        if !args.cordon.is_empty() {
            let clusters: Vec<String> = chosen(&args.cordon, &edited.tree)?.into_iter().collect();
            edited.apply(mark::cordoned(&edited.tree, &clusters, since)?);
        }
        Ok(edited)
    }

    fn apply(&mut self, edits: Vec<Edit>) {
        self.tree = self.tree.edited(&edits);
        self.edits.extend(edits.into_iter().map(|edit| (edit.path, edit.text)));
    }

    /// Writes the commit in which the files of lost clusters are missing too, to memory.
    fn without(
        &self,
        repo: &Repo,
        source: CommitId,
        (name, lost): (&str, &BTreeSet<String>),
    ) -> Result<Change, CommandError> {
        let mut documents = Vec::new();
        for cluster in lost {
            let found = self.tree.documents_of(cluster)?;
            if found.is_empty() {
                let message =
                    format!("no file describes the cluster `{cluster}`, so that none can be left out");
                return Err(CommandError::usage(message));
            }
            documents.extend(found);
        }
        let mut edits = self.edits.clone();
        let removals = self.tree.without(&documents)?;
        edits.extend(removals.into_iter().map(|edit| (edit.path, edit.text)));
        let mut writer = Writer::new(repo)?;
        let mut entries = Vec::new();
        for (path, text) in &edits {
            let file = text.as_ref().map(|text| writer.blob(text.as_bytes())).transpose()?;
            entries.push((path.as_str(), file.map(EntryKind::File)));
        }
        let commit = repo.commit(source)?;
        let tree = writer.edited(commit.tree, entries)?;
        let message = format!("Simulate: {name}\n");
        let source = writer.commit(tree, &[source], &message, &Identity::default(), commit.seconds)?;
        let head = Revision { name: format!("the fleet {name}"), commit: source };
        Ok(Change { head, into: None, behind: 0, source })
    }
}

/// Returns the clusters to lose at once, each with a name for people.
fn losses(args: &SimulateArgs, tree: &WorkingTree) -> Result<Vec<(String, BTreeSet<String>)>, CommandError> {
    let always = chosen(&args.lose, tree)?;
    let edits = [("label", &args.label), ("taint", &args.taint), ("cordon", &args.cordon)];
    let edits = edits.iter().flat_map(|(verb, texts)| texts.iter().map(move |text| format!("{verb} {text}")));
    let edits: Vec<String> = edits.collect();
    let name = |lost: &[String]| {
        let lost = (!lost.is_empty()).then(|| format!("without {}", lost.join(" and ")));
        lost.into_iter().chain(edits.iter().cloned()).collect::<Vec<_>>().join(", ")
    };
    let Some(label) = &args.each else {
        if edits.is_empty() && always.is_empty() {
            let error = CommandError::usage("no change of the fleet is given");
            return Err(error.hint(
                "lose clusters with --lose or --each, or change them with --cordon, --taint or --label",
            ));
        }
        return Ok(vec![(name(&args.lose), always)]);
    };
    let clusters = &tree.loaded.fleet.clusters;
    let mut each: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for cluster in clusters.values() {
        if let Some(value) = cluster.labels.get(label.as_str()) {
            each.entry(value).or_insert_with(|| always.clone()).insert(cluster.name.to_string());
        }
    }
    if each.is_empty() {
        let keys: BTreeSet<&str> =
            clusters.values().flat_map(|cluster| cluster.labels.keys()).map(AsRef::as_ref).collect();
        let error = CommandError::usage(format!("no cluster has the label `{label}`"));
        return Err(error.hint(format!("clusters have {}", some_of(keys, MOST_NAMED))));
    }
    let with = |value: &str| [&[format!("{label}={value}")], args.lose.as_slice()].concat();
    Ok(each.into_iter().map(|(value, lost)| (name(&with(value)), lost)).collect())
}

/// Returns the clusters with these names or labels, or the faults of all texts.
fn chosen(texts: &[String], tree: &WorkingTree) -> Result<BTreeSet<String>, CommandError> {
    let (mut names, mut faults) = (BTreeSet::new(), Vec::new());
    for text in texts {
        match named_or_labelled(text, tree) {
            Ok(found) => names.extend(found),
            Err(fault) => faults.push(fault),
        }
    }
    match faults.is_empty() {
        true => Ok(names),
        false => Err(CommandError::usage(faults.join("\n")).hint("`berth status` lists the clusters")),
    }
}

/// Returns the cluster with this name, or those with these labels.
fn named_or_labelled(text: &str, tree: &WorkingTree) -> Result<Vec<String>, String> {
    let clusters = &tree.loaded.fleet.clusters;
    if clusters.contains_key(text) {
        return Ok(vec![text.to_owned()]);
    }
    let selector = parse_requirements(text).map_err(|fault| format!("`{text}`: {fault}"))?;
    let meant = clusters.values().filter(|cluster| selector.matches(&cluster.labels));
    let names: Vec<String> = meant.map(|cluster| cluster.name.to_string()).collect();
    if names.is_empty() {
        let near = did_you_mean(text, clusters.keys().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!("; {near}"));
        return Err(format!("no cluster is named `{text}` or has such labels{near}"));
    }
    Ok(names)
}

/// The answer for programs.
#[derive(Serialize)]
struct Simulation<'a> {
    scenarios: &'a [Scenario],
}

/// The fleet after some changes.
#[derive(Debug, Serialize)]
struct Scenario {
    /// The changes in the user's words.
    name: String,
    lost: BTreeSet<String>,
    /// The placements that change, the worst first.
    placements: Vec<AffectedPlacement>,
    /// The copies that leave later.
    deadlines: Vec<LaterLeave>,
    /// The placements whose removals would wait for an approval.
    held: Vec<String>,
    /// The reasons why `run` would publish nothing.
    refused: Vec<String>,
    /// The policy tests that fail.
    policy: Vec<String>,
}

/// A placement whose copies leave clusters at a moment, as a toleration of a taint ends.
#[derive(Debug, Serialize)]
struct LaterLeave {
    at: Timestamp,
    placement: String,
    clusters: Vec<String>,
}

/// A placement before and after the changes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AffectedPlacement {
    placement: String,
    fate: Fate,
    /// The clusters that it leaves.
    from: Vec<Arc<str>>,
    /// The clusters that it comes to.
    to: Vec<Arc<str>>,
    clusters: BeforeAndAfter<usize>,
    /// Where replicas are assigned.
    replicas: Option<BeforeAndAfter<i64>>,
    /// The placement's own words on its new decision.
    condition: Option<String>,
}

#[derive(Debug, Serialize)]
struct BeforeAndAfter<T> {
    before: T,
    after: T,
}

/// The outcome for a placement, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
enum Fate {
    NoneLeft,
    Fewer,
    Moved,
    /// The same clusters have other replicas.
    Scaled,
    More,
}

const FATES: [(Fate, &str); 5] = [
    (Fate::NoneLeft, "no cluster is left for"),
    (Fate::Fewer, "on fewer clusters"),
    (Fate::Moved, "moved, on as many clusters"),
    (Fate::Scaled, "other replicas"),
    (Fate::More, "on more clusters"),
];

impl Scenario {
    fn of(name: String, lost: BTreeSet<String>, rehearsed: &Rehearsed) -> Scenario {
        let Rehearsed { step, refusals } = rehearsed;
        let (before, after) = (&step.inputs.current.decisions, step.built.end().decisions);
        let affected = before.iter().filter_map(|(key, old)| {
            let nothing = Decision::new(key.clone(), "");
            AffectedPlacement::of(key, old, after.get(key).unwrap_or(&nothing))
        });
        let mut placements: Vec<AffectedPlacement> = affected.collect();
        placements.sort_by_key(|placement| placement.fate);
        Scenario {
            name,
            lost,
            placements,
            deadlines: step.deadlines.iter().map(LaterLeave::of).collect(),
            held: step.held.iter().map(|held| held.key.to_string()).collect(),
            refused: refusals.iter().map(ToString::to_string).collect(),
            policy: step.policy.diagnostics().iter().map(|one| one.message.clone()).collect(),
        }
    }

    fn text(&self, ui: &Ui) -> String {
        let Scenario { name, lost, placements, deadlines, held, refused, policy } = self;
        let title = match lost.len() {
            0 => name.clone(),
            lost => format!("{name}: {} lost", counted(lost, "cluster")),
        };
        let mut text = format!("{}\n", ui.tint(&harmless_line(&title), Tone::Strong));
        for (fate, heading) in FATES {
            let here: Vec<&AffectedPlacement> = placements.iter().filter(|one| one.fate == fate).collect();
            if !here.is_empty() {
                let _ = writeln!(text, "  {heading}: {}", here.len());
            }
            for placement in here.iter().take(MOST_NAMED) {
                let _ = writeln!(text, "    {}", harmless_line(&placement.line()));
            }
            if here.len() > MOST_NAMED {
                let _ = writeln!(text, "    and {} more: `-o json` has all", here.len() - MOST_NAMED);
            }
        }
        for LaterLeave { at, placement, clusters } in deadlines {
            let line = format!("at {at}, {placement} leaves {}", some_of(clusters, MOST_NAMED));
            let _ = writeln!(text, "  {}", harmless_line(&line));
        }
        if !held.is_empty() {
            let _ = writeln!(text, "  held until approved: {}", some_of(held, MOST_NAMED));
        }
        for (heading, lines) in [("`run` refuses it", refused), ("policy", policy)] {
            lines.iter().for_each(|line| {
                let _ = writeln!(text, "  {heading}: {}", harmless_line(line));
            });
        }
        if placements.is_empty() && deadlines.is_empty() {
            text.push_str("  no placement changes\n");
        }
        text
    }
}

impl LaterLeave {
    fn of(deadline: &Deadline) -> LaterLeave {
        LaterLeave {
            at: deadline.at,
            placement: deadline.key.to_string(),
            clusters: deadline.clusters().into_iter().map(str::to_owned).collect(),
        }
    }
}

impl AffectedPlacement {
    /// `None` if the placement stays where it is, with the same replicas.
    fn of(key: &Key, old: &Decision, new: &Decision) -> Option<AffectedPlacement> {
        let [before, after] = [old, new].map(clusters_of);
        let [from, to] = [(&before, &after), (&after, &before)]
            .map(|(one, other)| one.difference(other).cloned().collect::<Vec<Arc<str>>>());
        let [assigned, left] = [old, new].map(replicas_of);
        let replicas = (assigned.is_some() || left.is_some()).then(|| BeforeAndAfter {
            before: assigned.unwrap_or_default(),
            after: left.unwrap_or_default(),
        });
        let same_replicas = replicas.as_ref().is_none_or(|replicas| replicas.before == replicas.after);
        if from.is_empty() && to.is_empty() && same_replicas {
            return None;
        }
        let fate = match (before.len(), after.len()) {
            (1.., 0) => Fate::NoneLeft,
            (before, after) if after < before => Fate::Fewer,
            (before, after) if after > before => Fate::More,
            _ if from.is_empty() => Fate::Scaled,
            _ => Fate::Moved,
        };
        let condition = new.condition.as_ref().filter(|_| new.condition != old.condition);
        Some(AffectedPlacement {
            placement: key.to_string(),
            fate,
            from,
            to,
            clusters: BeforeAndAfter { before: before.len(), after: after.len() },
            replicas,
            condition: condition.map(|condition| format!("{}: {}", condition.reason, condition.message)),
        })
    }

    /// Returns a line such as `FederatedDeployment shop/web: leaves oslo; 3 → 2 clusters; 6 → 4 replicas`.
    fn line(&self) -> String {
        let AffectedPlacement { placement, from, to, clusters, replicas, condition, .. } = self;
        let [left, joined] = [from, to].map(|names| some_of(names, MOST_NAMED));
        let mut line = match (from.is_empty(), to.is_empty()) {
            (false, false) => format!("{placement}: {left} → {joined}"),
            (false, true) => format!("{placement}: leaves {left}"),
            (true, false) => format!("{placement}: comes to {joined}"),
            (true, true) => format!("{placement}: stays"),
        };
        if clusters.before != clusters.after {
            let _ = write!(line, "; {} → {} clusters", clusters.before, clusters.after);
        }
        if let Some(BeforeAndAfter { before, after }) = replicas.as_ref().filter(|it| it.before != it.after) {
            let _ = write!(line, "; {before} → {after} replicas");
        }
        if let Some(condition) = condition {
            let _ = write!(line, "; {condition}");
        }
        line
    }
}

/// The clusters that a decision picks, without those that a workload only leaves.
fn clusters_of(decision: &Decision) -> BTreeSet<Arc<str>> {
    decision.picks.iter().filter(|pick| !pick.leaving).map(|pick| pick.cluster.clone()).collect()
}

/// The assigned replicas in all clusters. `None` if none are assigned.
fn replicas_of(decision: &Decision) -> Option<i64> {
    let assigned = decision.picks.iter().filter(|pick| !pick.leaving).filter_map(|pick| pick.replicas);
    assigned.fold(None, |sum, replicas| Some(sum.unwrap_or(0_i64).saturating_add(replicas)))
}
