//! The details of each placement.

use std::collections::BTreeMap;

use berth_base::model::{Action, Applies, Key, Operation, Override, Term, Workload};
use berth_base::packed::View;
use berth_base::parallel;
use berth_base::text::cut;
use berth_engine::consequences::field_changes::HIDDEN;
use berth_engine::consequences::folded::{FoldedPlan, Move, Section};
use berth_engine::rollouts::RolloutProgress;
use serde_json::Value as Json;

use crate::cell::{Cell, CellState, shortened};
use crate::form::{ChangeLine, Exception, OverrideForm, Place, PlacementDetails, RolloutBrief, place, runs};
use crate::grid::{Grid, PlacedCell, Row};
use crate::inputs::{Publication, SiteInputs};
use crate::publications::title;
use crate::reasons::Explanation;
use crate::rollouts::is_on_its_way;

/// The number of objects by name, of overrides, and of publications in a history.
const MOST_OBJECTS: usize = 20;
const MOST_OVERRIDES: usize = 50;
const MOST_CHANGES: usize = 20;

/// The length of a value.
const LONGEST_VALUE: usize = 200;

/// Returns the details of each placement, by its name in the page.
pub(crate) fn details(
    inputs: &SiteInputs<'_>,
    grid: &Grid<'_>,
    explanations: Vec<Explanation>,
) -> BTreeMap<String, PlacementDetails> {
    let histories = histories(inputs);
    let rows: Vec<(&Row<'_>, Explanation)> = grid.rows.iter().zip(explanations).collect();
    let details = parallel::map(&rows, |(row, explanation)| {
        let history = histories.get(&row.decision.key).map(Vec::as_slice).unwrap_or_default();
        (row.id.clone(), of_row(inputs, row, explanation, history))
    });
    details.into_iter().collect()
}

fn of_row(
    inputs: &SiteInputs<'_>,
    row: &Row<'_>,
    explanation: &Explanation,
    history: &[&Publication],
) -> PlacementDetails {
    let decision = row.decision;
    let key = &decision.key;
    let placement = inputs.fleet.and_then(|fleet| fleet.placements.get(key));
    let workload = inputs.fleet.and_then(|fleet| fleet.workloads.get(key));
    let condition = decision.condition.as_ref();
    PlacementDetails {
        at: placement.map_or_else(|| (decision.source.clone(), 0), |placement| place(&placement.origin)),
        rule: explanation.rule.clone(),
        objects: decision.objects.iter().take(MOST_OBJECTS).map(ToString::to_string).collect(),
        object_count: decision.objects.len(),
        funnel: explanation.funnel.clone(),
        reasons: explanation.reasons.clone(),
        reason_of: explanation.reason_of.clone(),
        scorers: explanation.scorers.clone(),
        scored: explanation.scored.clone(),
        overrides: workload.map(|workload| overrides(workload)).unwrap_or_default(),
        rollout: inputs.rollout(key).map(brief),
        exceptions: exceptions(row, inputs),
        since: runs(row.cells.iter().map(|placed| u32::try_from(placed.since).unwrap_or_default())),
        condition: condition
            .map(|condition| shortened(&format!("{}: {}", condition.reason, condition.message))),
        history: history.iter().take(MOST_CHANGES).map(|publication| change_line(publication, key)).collect(),
    }
}

fn brief(rollout: &RolloutProgress) -> RolloutBrief {
    let (reached, picked) = rollout.reached();
    RolloutBrief {
        id: is_on_its_way(rollout).then(|| crate::rollouts::id(rollout)),
        strategy: rollout.strategy.map(str::to_owned),
        release: rollout.release,
        last_good: rollout.good,
        state: rollout.state.word().to_owned(),
        reason: shortened(&rollout.reason),
        reached,
        picked,
    }
}

/// Groups the copies that are not in sync by their condition.
fn exceptions(row: &Row<'_>, inputs: &SiteInputs<'_>) -> Vec<Exception> {
    let releases = inputs.state.releases.get(&row.decision.key);
    let mut alike: BTreeMap<(&Cell, Option<u64>), Vec<u32>> = BTreeMap::new();
    for PlacedCell { column, pick, cell, .. } in &row.cells {
        if cell.state > CellState::InSync {
            let release = releases.and_then(|releases| releases.of_pick(pick));
            extend_runs(alike.entry((cell, release)).or_default(), *column as u32);
        }
    }
    let exception = |((cell, release), clusters): ((&Cell, Option<u64>), Vec<u32>)| Exception {
        state: cell.state.number(),
        words: cell.words.clone(),
        since: cell.since.map(|since| since.as_second()),
        release,
        clusters,
    };
    let mut all: Vec<Exception> = alike.into_iter().map(exception).collect();
    all.sort_by_key(|exception| std::cmp::Reverse(exception.state));
    all
}

/// Adds the next position to pairs of a first position and a length.
fn extend_runs(runs: &mut Vec<u32>, position: u32) {
    match runs.as_mut_slice() {
        [.., first, length] if *first + *length == position => *length += 1,
        _ => runs.extend([position, 1]),
    }
}

/// Returns the publications that changed each placement, the newest first.
fn histories<'p>(inputs: &'p SiteInputs<'_>) -> BTreeMap<&'p Key, Vec<&'p Publication>> {
    let mut found: BTreeMap<&Key, Vec<&Publication>> = BTreeMap::new();
    for publication in inputs.history {
        for key in publication.touched.keys() {
            found.entry(key).or_default().push(publication);
        }
    }
    found
}

fn change_line(publication: &Publication, key: &Key) -> ChangeLine {
    let explained = publication.explained.as_ref();
    ChangeLine {
        sequence: publication.sequence,
        published: publication.published.as_second(),
        source: publication.source.clone(),
        title: title(publication),
        moves: explained.map(|plan| moves(plan, key)),
        at: explained.and_then(|plan| edit(plan, key)),
    }
}

/// Counts the clusters that lost a placement, got another form, and gained it.
fn moves(plan: &FoldedPlan, key: &Key) -> [usize; 3] {
    let mut moves = [0; 3];
    for consequence in plan.sections.iter().flat_map(|section| &section.consequences) {
        let index = match consequence.move_ {
            Move::Leaves => 0,
            Move::Changes => 1,
            Move::Joins => 2,
        };
        let places = consequence.places.iter().filter(|(keys, _)| keys.contains(key));
        moves[index] += places.map(|(_, clusters)| clusters.len()).sum::<usize>();
    }
    moves
}

/// Finds the place of the first edit that changed a placement.
fn edit(plan: &FoldedPlan, key: &Key) -> Option<Place> {
    let concerns = |section: &&Section| {
        section
            .consequences
            .iter()
            .flat_map(|consequence| &consequence.places)
            .any(|(keys, _)| keys.contains(key))
    };
    let mut causes = plan.sections.iter().filter(concerns).flat_map(|section| &section.causes);
    causes.find_map(|cause| cause.places.first()).map(place)
}

/// Returns a workload's overrides as they change its template. The values of Secrets are hidden.
pub(crate) fn overrides(workload: &Workload) -> Vec<OverrideForm> {
    let all = workload.overrides.iter().flat_map(|change| of_override(change, workload));
    all.take(MOST_OVERRIDES).collect()
}

fn of_override(change: &Override, workload: &Workload) -> Vec<OverrideForm> {
    let to = clusters_in_words(&change.clusters);
    match &change.action {
        Action::Delete => vec![OverrideForm {
            to,
            path: "the whole object".to_owned(),
            before: None,
            after: None,
            at: place(&change.origin),
        }],
        Action::Patch(operations) => {
            let form = |operation: &Operation| of_operation(&to, change, operation, workload);
            operations.iter().map(form).collect()
        }
    }
}

fn of_operation(to: &str, change: &Override, operation: &Operation, workload: &Workload) -> OverrideForm {
    let changed = || workload.templates.iter().filter(|template| change.concerns(&template.object.id));
    // An override of an object without a template may still name a Secret, or be meant for one.
    let names_secret = change.objects.iter().flat_map(|objects| objects.iter()).any(|id| id.is_secret());
    let has_template = changed().next().is_some();
    let is_secret = names_secret || !has_template || changed().any(|template| template.object.id.is_secret());
    let shown = |value: &Json| if is_secret { HIDDEN.to_owned() } else { value_in_words(value) };
    let path = operation.path.to_string();
    let before = changed().find_map(|template| template.object.content.pointer(&path));
    let before = before.map(View::to_json);
    OverrideForm {
        to: to.to_owned(),
        path,
        before: before.as_ref().map(shown),
        after: operation
            .value
            .as_ref()
            .map(shown)
            .or_else(|| operation.from.as_ref().map(ToString::to_string)),
        at: place(&operation.at),
    }
}

fn clusters_in_words(clusters: &Applies) -> String {
    match clusters {
        Applies::To(name) => name.clone(),
        Applies::AnyOf(terms) => {
            let words: Vec<String> = terms.iter().map(term_in_words).collect();
            words.join(" or ")
        }
        Applies::First(index, alternatives) => alternatives.get(*index).map_or_else(
            || "every other cluster".to_owned(),
            |one| {
                let names = one.clusters.iter().cloned();
                let labels = one
                    .labels
                    .iter()
                    .map(|labels| term_in_words(&Term { labels: labels.clone(), ..Term::default() }));
                names.chain(labels).collect::<Vec<_>>().join(" or ")
            },
        ),
    }
}

fn term_in_words(term: &Term) -> String {
    let pairs = term.labels.requirements.iter().chain(&term.claims.requirements).map(ToString::to_string);
    let properties = term.properties.iter().map(ToString::to_string);
    let expression = (!term.expressions.is_empty()).then(|| "an expression holds".to_owned());
    let words: Vec<String> = pairs.chain(properties).chain(expression).collect();
    if words.is_empty() { "every cluster".to_owned() } else { words.join(", ") }
}

fn value_in_words(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    cut(&text, LONGEST_VALUE)
}
