//! Makes the first state of a rendered branch from the imported fleet and the present placement, in which every
//! object stays where it is.
//!
//! If berth's decision equals the hub's, it becomes current, with its digest. Otherwise the hub's clusters are kept,
//! without a digest: the first pass decides again, and its plan shows exactly these changes.
//!
//! With [`adopt`], all of a hub's current decisions get the digests of berth's inputs, so that they stay until the inputs
//! change. A hub may have picked other clusters of equal fitness, for example by their load at the time. That is no reason
//! to move anything. berth decides again only if a cluster is no longer eligible or another number is required.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Placed, some_of};
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::{
    Action, ContentError, Contents, Decision, Fleet, Folders, Key, Map, Override, Pick, PickDetails, Shared,
    Source, Template, Timestamp, Workload,
};
use berth_base::text::counted;
use berth_engine::decide::{self, Decided};
use berth_engine::state::State;
use berth_engine::{release, render};

/// The reason of a cluster in an imported decision.
const REASON: &str = "placed there before the import";

/// The first state, and its differences from berth's own decisions.
#[derive(Debug)]
pub struct First {
    pub state: State,
    pub moves: Vec<Move>,
    pub diagnostics: Diagnostics,
}

/// A difference between berth's decision and the hub's current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub key: Key,
    pub file: String,
    /// Added clusters, each with the hub's word for the object's state there.
    pub gains: Vec<(String, String)>,
    pub loses: Vec<(String, String)>,
    /// Changed replicas: cluster, before, after.
    pub replicas: Vec<(String, Option<i64>, Option<i64>)>,
}

/// Returns the hub's current decisions in the form of berth's own.
pub fn in_force(fleet: &Fleet, placed: &BTreeMap<Key, Placed>) -> Map<Key, Decision> {
    let decision = |(key, placed): (&Key, &Placed)| {
        let placement = fleet.placements.get(key)?;
        let divided = matches!(&placement.source, Source::Own(policy) if policy.division.is_some());
        let there = placed
            .clusters
            .iter()
            .filter(|(name, standing)| standing.there && fleet.clusters.contains_key(*name));
        let picks: Shared<Vec<Pick>> = there
            .map(|(name, _)| {
                let details = PickDetails {
                    reason: REASON.to_owned(),
                    replicas: placed.replicas.get(name).copied().filter(|_| divided),
                    scores: placed.scores.get(name).cloned().unwrap_or_default(),
                    group: placed.groups.get(name).cloned(),
                    pending: placed.pending.contains(name),
                    leaving: false,
                    held: false,
                };
                Pick::new(name.as_str(), details)
            })
            .collect();
        let source = placement.origin.file.to_string();
        Some((key.clone(), Decision { picks, ..Decision::new(key.clone(), source) }))
    };
    placed.iter().filter_map(decision).collect()
}

/// Makes the first state. `decided` contains berth's decisions after `live`.
pub(crate) fn first_state(
    fleet: &Fleet,
    mut decided: Decided,
    live: Map<Key, Decision>,
    placed: &BTreeMap<Key, Placed>,
    contents: &mut dyn Contents,
) -> Result<First, ContentError> {
    let asked = release::asked(fleet);
    let mut moves = Vec::new();
    let mut decisions = Map::new();
    for (key, live) in live {
        let Some(mut wanted) = decided.decisions.remove(&key) else { continue };
        // Clusters that a requested rollout of the hub has not reached keep waiting.
        let waits =
            |cluster: &str| asked.contains(&key) && live.pick(cluster).is_some_and(|pick| pick.pending);
        if wanted.picks.iter().any(|pick| waits(&pick.cluster)) {
            wanted.picks.iter_mut().for_each(|pick| pick.pending = waits(&pick.cluster));
        }
        let found = compare(&live, &wanted, placed.get(&key), fleet.workloads.get(&key).map(|one| &**one));
        decisions.insert(key, if found.is_some() { live } else { wanted });
        moves.extend(found);
    }
    let (no_decisions, no_folders) = (Map::new(), Folders::default());
    let previous = render::Previous { decisions: &no_decisions, folders: &no_folders };
    let rendered = render::render(fleet, &mut decisions, previous, contents)?;
    let mut diagnostics = rendered.diagnostics;
    diagnostics.extend(moves.iter().map(Move::warning));
    report_doubts(fleet, placed, &mut diagnostics);
    diagnostics.sort();
    let state = State { decisions, folders: rendered.folders, facts: decided.facts, ..State::default() };
    Ok(First { state, moves, diagnostics })
}

fn compare(
    live: &Decision,
    wanted: &Decision,
    placed: Option<&Placed>,
    workload: Option<&Workload>,
) -> Option<Move> {
    let word = |cluster: &str| {
        let standing = placed.and_then(|placed| placed.clusters.get(cluster));
        standing.map(|standing| standing.word.clone()).unwrap_or_default()
    };
    let missing_in = |one: &Decision, other: &Decision| -> Vec<(String, String)> {
        let names = one.picks.iter().map(|pick| &pick.cluster).filter(|name| !other.has(name));
        names.map(|name| (name.to_string(), word(name))).collect()
    };
    let (gains, loses) = (missing_in(wanted, live), missing_in(live, wanted));
    let both = wanted.picks.iter().filter_map(|after| Some((live.pick(&after.cluster)?, after)));
    // A copy without its own number has the template's.
    let own = workload.and_then(own_replicas);
    let number = |pick: &Pick| pick.replicas.or(own);
    let replicas = both.filter(|(before, after)| number(before) != number(after));
    let replicas: Vec<_> =
        replicas.map(|(before, after)| (after.cluster.to_string(), number(before), number(after))).collect();
    let same = gains.is_empty() && loses.is_empty() && replicas.is_empty();
    (!same).then(|| Move { key: live.key.clone(), file: wanted.source.clone(), gains, loses, replicas })
}

/// Returns the number of replicas in a workload's template, unless an override may set another one.
fn own_replicas(workload: &Workload) -> Option<i64> {
    let at = workload.replicas.as_ref()?;
    let sets_number = |one: &Override| match &one.action {
        Action::Patch(operations) => operations.iter().any(|operation| operation.path == at.path),
        Action::Delete => false,
    };
    if workload.overrides.iter().any(sets_number) {
        return None;
    }
    let number = |template: &Template| template.object.content.pointer(&at.path.to_string())?.as_i64();
    workload.templates.iter().find_map(number)
}

impl Move {
    fn warning(&self) -> Diagnostic {
        Diagnostic::warning(Pos::file(self.file.as_str()), self.to_string())
            .hint("see `berth plan` once the files are committed; the first run does it")
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clusters = |all: &[(String, String)]| {
            some_of(all.iter().map(|(name, word)| match word.as_str() {
                "" => format!("`{name}`"),
                word => format!("`{name}` ({word})"),
            }))
        };
        let number =
            |replicas: Option<i64>| replicas.map_or("none set".to_owned(), |count| count.to_string());
        let mut parts = Vec::new();
        if !self.loses.is_empty() {
            parts.push(format!("it is on {}, and berth does not place it there", clusters(&self.loses)));
        }
        if !self.gains.is_empty() {
            parts.push(format!("it is not on {}, and berth places it there", clusters(&self.gains)));
        }
        if !self.replicas.is_empty() {
            let changes = self.replicas.iter();
            let changes = changes.map(|(name, before, after)| {
                format!("`{name}` from {} to {}", number(*before), number(*after))
            });
            parts.push(format!("berth changes the replicas on {}", some_of(changes)));
        }
        write!(f, "{} differs from berth's decision: {}", self.key, parts.join("; "))
    }
}

/// Reports uncertain parts of the hub's records.
fn report_doubts(fleet: &Fleet, placed: &BTreeMap<Key, Placed>, found: &mut Diagnostics) {
    let warn = |message: String, hint: &str| Diagnostic::warning(Pos::file(""), message).hint(hint);
    let mut doubtful: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut gone: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut unread, mut frozen) = (BTreeSet::new(), BTreeSet::new());
    for (key, placed) in placed {
        if !fleet.placements.contains_key(key) {
            unread.insert(key.to_string());
        }
        let is_there = placed.clusters.values().any(|standing| standing.there);
        if is_there && fleet.workloads.get(key).is_some_and(|workload| workload.frozen) {
            frozen.insert(key.to_string());
        }
        for (cluster, standing) in &placed.clusters {
            if !fleet.clusters.contains_key(cluster) {
                *gone.entry(cluster).or_default() += 1;
            } else if standing.doubtful {
                *doubtful.entry((cluster, &standing.word)).or_default() += 1;
            }
        }
    }
    let mut warnings = Vec::new();
    for ((cluster, word), count) in doubtful {
        let message = format!(
            "the host reports {word} for {} on `{cluster}`; the copies there may differ from the host's",
            counted(count, "object")
        );
        warnings.push(warn(message, "the member's first sync applies the rendered form"));
    }
    for (cluster, count) in gone {
        let message = format!(
            "the host has {} on `{cluster}`, which is not a cluster of the fleet",
            counted(count, "object")
        );
        warnings.push(warn(message, "they stay there, unmanaged"));
    }
    if !frozen.is_empty() {
        let message =
            format!("{} is not propagated, so the first state has none of its copies", some_of(frozen));
        warnings
            .push(warn(message, "they stay unchanged in members, which adopt them once it is propagated"));
    }
    if !unread.is_empty() {
        let message = format!("berth cannot read {}, so the first state does not include", some_of(unread));
        warnings.push(warn(
            message,
            "correct the files; the plan then shows the copies as added, and members adopt them",
        ));
    }
    found.extend(warnings.into_iter().map(|warning| Diagnostic { at: None, ..warning }));
}

/// Returns the hub's decisions, with digests for those that can stay. `decided` contains berth's decisions after
/// them.
pub fn adopt(
    fleet: &Fleet,
    decided: &Map<Key, Decision>,
    live: Map<Key, Decision>,
    now: Timestamp,
) -> Map<Key, Decision> {
    let stands = |live: &Decision, wanted: &Decision| {
        live.picks.len() == wanted.picks.len()
            && (live.picks.iter().all(|pick| wanted.has(&pick.cluster))
                || is_only_ranked_otherwise(fleet, &all_of(&live.key, live), wanted, now))
    };
    let one = |(key, live): (Key, Decision)| {
        let decision = match decided.get(&key).filter(|_| ranks(fleet, &key)) {
            Some(wanted) if stands(&live, wanted) => Decision { picks: live.picks, ..wanted.clone() },
            _ => live,
        };
        (key, decision)
    };
    live.into_iter().map(one).collect()
}

/// Reports whether a placement ranks clusters and divides nothing among them.
fn ranks(fleet: &Fleet, key: &Key) -> bool {
    let source = fleet.placements.get(key).map(|placement| &placement.source);
    matches!(source, Some(Source::Own(policy)) if !policy.scorers.is_empty() && policy.division.is_none())
}

fn all_of(key: &Key, live: &Decision) -> Map<Key, Decision> {
    Map::from([(key.clone(), live.clone())])
}

/// Reports whether every cluster of the hub's decision passes berth's filters.
fn is_only_ranked_otherwise(
    fleet: &Fleet,
    hub: &Map<Key, Decision>,
    wanted: &Decision,
    now: Timestamp,
) -> bool {
    let Some(trace) = decide::explain(fleet, hub, &Map::new(), now, &wanted.key) else { return false };
    let is_fit = |name: &str| {
        let cluster = trace.clusters.iter().find(|one| one.cluster == name);
        cluster.is_some_and(|one| one.rank.is_some() && one.steps.iter().all(|step| step.passed))
    };
    hub.values().flat_map(|live| live.picks.iter()).all(|pick| is_fit(&pick.cluster))
}
