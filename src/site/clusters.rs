//! The details of each cluster.

use std::collections::BTreeMap;

use berth_base::model::selector::Labels;
use berth_base::model::{Cluster, ClusterStatus, Taint, Timestamp};
use berth_engine::report::ClusterLine;

use crate::cell::shortened;
use crate::form::{ClusterDetails, ClusterEvent, Fact, ObjectWords, TaintWords, place};
use crate::grid::Grid;
use crate::inputs::SiteInputs;
use crate::publications::{move_word, title};

/// The number of problems, of measurements, and of publications in a history.
const MOST_PROBLEMS: usize = 20;
const MOST_FACTS: usize = 40;
const MOST_EVENTS: usize = 20;

/// Returns the details of each cluster, by name.
pub(crate) fn details(inputs: &SiteInputs<'_>, grid: &Grid<'_>) -> BTreeMap<String, ClusterDetails> {
    let mut events = events(inputs, grid);
    let columns = &grid.columns;
    let named = |(name, labels): (&String, &Labels)| {
        let history = events.remove(name.as_str()).unwrap_or_default();
        (name.clone(), of_cluster(inputs, name, labels, history))
    };
    columns.names.iter().zip(&columns.labels).map(named).collect()
}

fn of_cluster(
    inputs: &SiteInputs<'_>,
    name: &str,
    labels: &Labels,
    history: Vec<ClusterEvent>,
) -> ClusterDetails {
    let cluster = inputs.fleet.and_then(|fleet| fleet.clusters.get(name)).map(|cluster| &**cluster);
    let status = inputs.members.and_then(|members| members.statuses.get(name)).map(|status| &**status);
    let line = line_of(inputs, name);
    let own = cluster.map(|cluster| &cluster.labels);
    let is_own = |key: &String| own.is_none_or(|own| own.contains_key(key));
    let labels = labels.iter().map(|(key, value)| (shortened(key), shortened(value)));
    let (own, reported): (Labels, Labels) = labels.partition(|(key, _)| is_own(key));
    let mut details = ClusterDetails {
        at: cluster.map(|cluster| cluster.origins.iter().map(place).collect()).unwrap_or_default(),
        labels: own,
        reported_labels: reported,
        taints: cluster.map(|cluster| cluster.taints.iter().map(taint).collect()).unwrap_or_default(),
        applier: cluster.and_then(|cluster| cluster.applier).map(|applier| applier.name.to_owned()),
        facts: facts(cluster, status),
        interval: status.and_then(interval),
        history,
        ..ClusterDetails::default()
    };
    let problems = inputs.members.map(|members| members.summary.problems_on(name)).unwrap_or_default();
    let words = |problem: &berth_base::model::status::Problem| -> ObjectWords {
        (problem.object.to_string(), shortened(&problem.message))
    };
    details.problems = problems.iter().take(MOST_PROBLEMS).map(words).collect();
    details.problem_count = problems.len();
    if let Some(line) = line {
        add_line(&mut details, line);
    }
    details
}

fn line_of<'s>(inputs: &SiteInputs<'s>, name: &str) -> Option<&'s ClusterLine> {
    let lines = inputs.members?.lines;
    let index = lines.binary_search_by(|line| line.name.as_str().cmp(name)).ok()?;
    lines.get(index)
}

fn add_line(details: &mut ClusterDetails, line: &ClusterLine) {
    details.state = Some(line.state.to_owned());
    let unreachable = line.unreachable_since.map(|since| match line.frozen_since {
        Some(frozen) => format!("unreachable since {since}; nothing is moved away from it since {frozen}"),
        None => format!("unreachable since {since}"),
    });
    let words = [line.failing.clone(), line.suspended.clone(), unreachable];
    details.words = words.iter().flatten().map(|words| shortened(words)).collect();
    details.published = line.published;
    details.applied = line.applied;
    details.objects = line.objects;
    details.reported = line.reported.map(Timestamp::as_second);
}

fn taint(taint: &Taint) -> TaintWords {
    let words = match taint.value.as_str() {
        "" => format!("{}:{}", taint.key, taint.effect_word),
        value => format!("{}={value}:{}", taint.key, taint.effect_word),
    };
    TaintWords { words: shortened(&words), since: taint.since.map(Timestamp::as_second) }
}

/// Returns the measurements of a cluster. The member's report wins over its file.
fn facts(cluster: Option<&Cluster>, status: Option<&ClusterStatus>) -> Vec<Fact> {
    let mut facts: BTreeMap<String, String> = BTreeMap::new();
    if let Some(cluster) = cluster {
        facts.extend(cluster.properties.clone());
        for (word, amounts) in [
            ("total", &cluster.capacity),
            ("allocatable", &cluster.allocatable),
            ("available", &cluster.available),
        ] {
            facts.extend(
                amounts.iter().map(|(resource, amount)| (format!("{word} {resource}"), amount.clone())),
            );
        }
    }
    facts.extend(status.iter().flat_map(|status| status.properties.clone()));
    facts.into_iter().take(MOST_FACTS).map(|(name, value)| (shortened(&name), shortened(&value))).collect()
}

/// Returns the seconds between a member's reports.
fn interval(status: &ClusterStatus) -> Option<i64> {
    let (reported, due) = (status.reported?, status.next_due?);
    Some(due.as_second().saturating_sub(reported.as_second()).max(0))
}

/// Returns the changes in each cluster, as far as publications are explained, the newest first.
fn events<'p>(inputs: &'p SiteInputs<'_>, grid: &Grid<'_>) -> BTreeMap<&'p str, Vec<ClusterEvent>> {
    let mut found: BTreeMap<&str, Vec<ClusterEvent>> = BTreeMap::new();
    for publication in inputs.history {
        let sections = publication.explained.iter().flat_map(|plan| &plan.sections);
        for consequence in sections.flat_map(|section| &section.consequences) {
            let event = |placement: String| ClusterEvent {
                sequence: publication.sequence,
                published: publication.published.as_second(),
                title: title(publication),
                move_: move_word(consequence.move_).to_owned(),
                held: consequence.is_held,
                placement,
            };
            for (keys, clusters) in &consequence.places {
                for cluster in clusters {
                    let events = found.entry(cluster).or_default();
                    let room = MOST_EVENTS.saturating_sub(events.len());
                    events.extend(keys.iter().take(room).map(|key| event(grid.id(key))));
                }
            }
        }
    }
    found
}
