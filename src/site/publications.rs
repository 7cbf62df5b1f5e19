//! Publications: lines for lists, and the details of each.

use std::collections::BTreeMap;

use berth_base::text::{cut, some_of};
use berth_engine::consequences::folded::{
    Consequence, FoldedCause, FoldedPlan, Move, ObjectDetail, ReplicaMove, Section,
};
use berth_engine::gate::messages::ALLOW_DELETE;

use crate::cell::shortened;
use crate::form::{
    CauseForm, ChangesForm, ConsequenceForm, FieldForm, HeldForm, MOST_NAMES, ObjectForm, PlacesForm,
    PublicationDetails, PublicationLine, SectionForm, place,
};
use crate::grid::Grid;
use crate::inputs::{ChangeCounts, Held, Publication, SiteInputs, words_of};

/// The number of names in a move of replicas, of reasons, and of objects of a consequence.
const MOST_REPLICAS: usize = 6;
const MOST_REASONS: usize = 8;
const MOST_OBJECTS: usize = 20;

/// The length of a message.
const LONGEST_MESSAGE: usize = 10_000;

/// Returns a publication as people call it: the subject of its source, or the first line of its own message.
pub(crate) fn title(publication: &Publication) -> String {
    let own =
        || publication.message.lines().next().unwrap_or_default().trim_start_matches("berth: ").to_owned();
    let subject = publication.subject.clone().filter(|subject| !subject.is_empty());
    shortened(&subject.unwrap_or_else(own))
}

/// Returns a line for lists.
pub(crate) fn line(publication: &Publication) -> PublicationLine {
    PublicationLine {
        sequence: publication.sequence,
        published: publication.published.as_second(),
        source: publication.source.clone(),
        title: title(publication),
        changes: publication.changes.map(changes),
        held: publication.held.len(),
    }
}

/// Returns the details of all publications, by number.
pub(crate) fn details(inputs: &SiteInputs<'_>, grid: &Grid<'_>) -> BTreeMap<u64, PublicationDetails> {
    inputs
        .history
        .iter()
        .map(|publication| (publication.sequence, of_publication(publication, grid)))
        .collect()
}

fn of_publication(publication: &Publication, grid: &Grid<'_>) -> PublicationDetails {
    let explained = publication.explained.as_ref();
    PublicationDetails {
        sequence: publication.sequence,
        commit: publication.commit.clone(),
        parent: publication.parent.clone(),
        source: publication.source.clone(),
        published: publication.published.as_second(),
        digest: publication.digest.clone(),
        title: title(publication),
        message: cut(&publication.message, LONGEST_MESSAGE),
        changes: publication.changes.map(changes),
        held: publication.held.iter().map(|one| held(one, grid)).collect(),
        approvals: publication.approvals.iter().map(|line| shortened(line)).collect(),
        rollback: publication.rollback.clone(),
        sections: explained.map(|plan| sections(plan, grid)),
        idle: explained.map(|plan| plan.idle.iter().map(cause).collect()).unwrap_or_default(),
    }
}

pub(crate) fn held(held: &Held, grid: &Grid<'_>) -> HeldForm {
    HeldForm { placement: grid.id(&held.key), approval: format!("{ALLOW_DELETE}: {}", held.digest) }
}

pub(crate) fn changes(counts: ChangeCounts) -> ChangesForm {
    let ChangeCounts { removed, changed, added, clusters } = counts;
    ChangesForm { removed, changed, added, clusters }
}

fn sections(plan: &FoldedPlan, grid: &Grid<'_>) -> Vec<SectionForm> {
    let form = |section: &Section| SectionForm {
        causes: section.causes.iter().map(cause).collect(),
        how: section.how.and_then(words_of).map(str::to_owned),
        consequences: section.consequences.iter().map(|found| consequence(found, grid)).collect(),
        replicas: section.replicas.iter().map(replicas).collect(),
    };
    plan.sections.iter().map(form).collect()
}

pub(crate) fn cause(cause: &FoldedCause) -> CauseForm {
    CauseForm { words: shortened(&cause.words), at: cause.places.first().map(place), changes: cause.changes }
}

pub(crate) fn consequence(change: &Consequence, grid: &Grid<'_>) -> ConsequenceForm {
    let places = change.places.iter().map(|(keys, clusters)| PlacesForm {
        placements: keys.iter().take(MOST_NAMES).map(|key| grid.id(key)).collect(),
        clusters: clusters.iter().take(MOST_NAMES).cloned().collect(),
        count: clusters.len(),
    });
    let reasons = change.reasons.iter().take(MOST_REASONS).map(|(words, count)| (*count, shortened(words)));
    ConsequenceForm {
        move_: move_word(change.move_).to_owned(),
        held: change.is_held,
        orphaning: change.is_orphaning,
        places: places.collect(),
        reasons: reasons.collect(),
        objects: [change.copies.removed, change.copies.changed, change.copies.added],
        details: change.objects.iter().take(MOST_OBJECTS).map(object).collect(),
    }
}

pub(crate) fn move_word(move_: Move) -> &'static str {
    match move_ {
        Move::Leaves => "leaves",
        Move::Changes => "changes",
        Move::Joins => "joins",
    }
}

fn object(detail: &ObjectDetail) -> ObjectForm {
    let name = detail.object.as_ref().map_or_else(|| detail.kind.to_string(), ToString::to_string);
    let fields = detail.fields.iter().flat_map(|fields| fields.iter());
    let field = |change: &berth_engine::consequences::field_changes::FieldChange| FieldForm {
        path: change.path.clone(),
        before: change.before.clone(),
        after: change.after.clone(),
    };
    ObjectForm { change: detail.change.word().to_owned(), name, fields: fields.map(field).collect() }
}

pub(crate) fn replicas(moved: &ReplicaMove) -> String {
    let number = |number: &Option<i64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    let clusters = moved
        .clusters
        .iter()
        .map(|(name, before, after)| format!("{name} {} → {}", number(before), number(after)));
    let held = if moved.is_held { "held: " } else { "" };
    let clusters = some_of(clusters, MOST_REPLICAS);
    format!("{held}replicas of {}: {} → {} ({clusters})", moved.key.full_name(), moved.before, moved.after)
}
