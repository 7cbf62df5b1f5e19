//! The outline of a grouped plan: headings with the causes, and a line for every consequence.
//!
//! Text, Markdown and annotations use the same lines, so that all forms have the same content.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::harmless_line;
use berth_base::model::Key;
use berth_base::text::{counted, some_of};
use berth_engine::causes::How;
use berth_engine::consequences::field_changes::{FieldChange, HIDDEN};
use berth_engine::consequences::folded::{
    ClusterWords, Consequence, FoldedCause, FoldedPlan, Move, ObjectDetail, ReplicaMove, Section,
};
use berth_engine::consequences::risks::Risk;
use berth_engine::gate::{Deadline, Held, Why};
use berth_engine::plan::{Change, ClusterChange};

/// The number of names, places, fields and reasons in a line, and the length of a value.
const NAMES: usize = 5;
const CLUSTERS: usize = 20;
const PLACES: usize = 3;
const FIELDS: usize = 8;
const REASONS: usize = 2;
const VALUE: usize = 60;

/// A line of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub sign: Sign,
    /// 0 for a consequence, 1 for a detail of it.
    pub depth: usize,
    pub words: String,
}

/// The kind of a line, shown by its first character and colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Removed,
    Changed,
    Added,
    /// Unchanged until an approval
    Held,
    /// A risk or a problem
    Attention,
    /// A detail of the line above
    More,
}

/// Some changes, with their causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub headings: Vec<String>,
    pub lines: Vec<Line>,
}

/// Returns the parts of a plan, in the plan's order. `all_fields` lists all fields of changed objects.
pub(super) fn parts(plan: &FoldedPlan, clusters: &ClusterWords<'_>, all_fields: bool) -> Vec<Part> {
    let most_fields = if all_fields { usize::MAX } else { FIELDS };
    let parts = plan.sections.iter().map(|section| Words { clusters, section, most_fields }.part());
    let idle = (!plan.idle.is_empty()).then(|| Part {
        headings: vec!["edits that change no cluster now".to_owned()],
        lines: causes(&plan.idle).into_iter().map(|words| line(Sign::More, 0, words)).collect(),
    });
    parts.chain(idle).collect()
}

/// Lists the reasons for holding workloads: each reason once, with its workloads.
pub(super) fn held_lines(held: &[Held]) -> Vec<Line> {
    let mut by_reason: BTreeMap<String, Vec<&Key>> = BTreeMap::new();
    for one in held {
        let why = one.why.iter().map(|why| match why {
            // Each workload has its own number of clusters.
            Why::Clusters { lost, of, lately: 0 } if lost == of => {
                "it would be removed from all of its clusters".into()
            }
            other => other.words(),
        });
        for reason in why.chain(one.notes()).chain(one.deadlines()) {
            by_reason.entry(reason).or_default().push(&one.key);
        }
    }
    let told = by_reason.into_iter().map(|(reason, keys)| {
        let who = if keys.len() > NAMES { workloads(&keys) } else { names(keys.iter().copied()) };
        line(Sign::Held, 0, format!("{who}: {reason}"))
    });
    told.collect()
}

/// Lists the clusters that leave and join the fleet.
pub(super) fn cluster_lines(change: &ClusterChange) -> Vec<Line> {
    let sides = [(Sign::Removed, "leave", &change.lost), (Sign::Added, "join", &change.gained)];
    let told = sides.into_iter().filter(|(_, _, clusters)| !clusters.is_empty());
    let told = told.map(|(sign, verb, clusters)| {
        let verb = if clusters.len() == 1 { format!("{verb}s") } else { verb.to_owned() };
        line(sign, 0, format!("{} {verb}", some_of(clusters.iter(), CLUSTERS)))
    });
    told.collect()
}

/// Lists the later removals by deadlines.
pub(super) fn deadline_lines(deadlines: &[Deadline], clusters: &ClusterWords<'_>) -> Vec<Line> {
    let told = deadlines.iter().map(|one| {
        let clusters = clusters.describe(one.clusters());
        line(Sign::Removed, 0, format!("at {}: {} leaves {clusters}", one.at, one.key))
    });
    told.collect()
}

pub(super) fn line(sign: Sign, depth: usize, words: impl AsRef<str>) -> Line {
    Line { sign, depth, words: harmless_line(words.as_ref()).into_owned() }
}

/// Describes a single workload by kind and name, several by their number.
fn workloads(keys: &[&Key]) -> String {
    match keys {
        [one] => one.to_string(),
        several => counted(several.len(), "workload"),
    }
}

/// Returns the names of workloads, with their kinds if two have the same name.
fn names<'k>(keys: impl IntoIterator<Item = &'k Key>) -> String {
    let keys: Vec<&Key> = keys.into_iter().collect();
    let mut known = BTreeSet::new();
    match keys.iter().all(|key| known.insert((&key.namespace, &key.name))) {
        true => some_of(keys.iter().map(|key| key.full_name()), NAMES),
        false => some_of(&keys, NAMES),
    }
}

/// Describes a section of the plan.
struct Words<'a> {
    clusters: &'a ClusterWords<'a>,
    section: &'a Section,
    most_fields: usize,
}

impl Words<'_> {
    fn part(&self) -> Part {
        let mut lines = Vec::new();
        self.section.consequences.iter().for_each(|one| self.consequence(one, &mut lines));
        lines.extend(self.section.replicas.iter().map(|moved| line(Sign::Changed, 0, replicas(moved))));
        lines.extend(self.risks().into_iter().map(|risk| line(Sign::Attention, 0, risk)));
        Part { headings: self.headings(), lines }
    }

    fn headings(&self) -> Vec<String> {
        let how = match self.section.how {
            None => return vec!["without a known cause".to_owned()],
            Some(How::First) => return vec!["the first publication".to_owned()],
            Some(How::Earlier) => "earlier edits, which were held or are still on their way",
            Some(How::Imported) => {
                return vec!["the imported state, which has the hub's placement".to_owned()];
            }
            Some(How::Alone) => "",
            Some(How::Together) => "together, none alone is enough:",
            Some(How::Parts) => "each makes a part:",
            Some(How::Each) => "each alone is enough:",
            Some(How::Untraced) => "one or more of these:",
        };
        let how = (!how.is_empty()).then(|| how.to_owned());
        how.into_iter().chain(causes(&self.section.causes)).collect()
    }

    fn consequence(&self, one: &Consequence, lines: &mut Vec<Line>) {
        let sign = match (one.is_held, one.move_) {
            (true, _) => Sign::Held,
            (false, Move::Leaves) => Sign::Removed,
            (false, Move::Joins) => Sign::Added,
            (false, Move::Changes) => changes_sign(&one.objects),
        };
        let held = if one.is_held { "held: " } else { "" };
        if one.places.len() <= PLACES {
            for (keys, clusters) in &one.places {
                let keys: Vec<&Key> = keys.iter().collect();
                let clusters = self.clusters.describe(clusters.iter().map(String::as_str));
                lines.push(line(sign, 0, format!("{held}{}", sentence(one, &keys, &clusters))));
                if keys.len() > 1 {
                    lines.push(line(Sign::More, 1, names(keys.iter().copied())));
                }
            }
        } else {
            let keys: Vec<&Key> = one.places.iter().flat_map(|(keys, _)| keys).collect();
            let clusters = one.places.iter().flat_map(|(_, clusters)| clusters).map(String::as_str);
            let clusters = self.clusters.describe(clusters);
            lines.push(line(sign, 0, format!("{held}{}", sentence(one, &keys, &clusters))));
            lines.push(line(Sign::More, 1, names(keys.iter().copied())));
        }
        if one.is_orphaning {
            lines.push(line(Sign::More, 1, "the objects stay there, and nobody owns them"));
        }
        let shown = shown_of(one.reasons.len(), REASONS);
        for (reason, _) in one.reasons.iter().take(shown) {
            lines.push(line(Sign::More, 1, reason));
        }
        if one.reasons.len() > shown {
            let more = counted(one.reasons.len() - shown, "other reason");
            lines.push(line(Sign::More, 1, format!("and {more}")));
        }
        for detail in &*one.objects {
            if one.objects.len() > 1 {
                lines.push(line(Sign::More, 1, format!("{} {}", detail_name(detail), detail.change.word())));
            }
            self.fields(detail, lines);
        }
    }

    fn fields(&self, detail: &ObjectDetail, lines: &mut Vec<Line>) {
        let Some(fields) = &detail.fields else {
            return lines.push(line(Sign::More, 1, "too many objects differ to compare their fields"));
        };
        let shown = shown_of(fields.len(), self.most_fields);
        for field in fields.iter().take(shown) {
            lines.push(line(Sign::More, 1, self.field(field)));
        }
        if fields.len() > shown {
            let more = counted(fields.len() - shown, "other field");
            lines.push(line(Sign::More, 1, format!("and {more}")));
        }
    }

    /// Describes a field with its values, unless the only cause already names them.
    fn field(&self, field: &FieldChange) -> String {
        let values = values(field);
        match self.section.causes.as_slice() {
            [cause] if cause.words.ends_with(&format!(": {values}")) => format!("{} as edited", field.path),
            _ => format!("{}: {values}", field.path),
        }
    }

    /// Describes each kind of risk in one line.
    fn risks(&self) -> Vec<String> {
        let mut lost: Vec<&Key> = Vec::new();
        let mut told = Vec::new();
        for risk in &self.section.risks {
            match risk {
                Risk::TakesAlong { object } => told.push(match &*object.kind {
                    "Namespace" => format!("{object} goes with every object in it"),
                    "PersistentVolumeClaim" => format!("{object} goes, and its data may go with it"),
                    _ => format!("{object} goes with every object of its kind"),
                }),
                Risk::LastCopy { key } => lost.push(key),
                Risk::LeavesData { object, .. } => {
                    told.push(format!("{object} leaves its data behind"));
                }
                Risk::Immutable { object, field } => {
                    told.push(format!("{object}: clusters refuse to change {field}, so it must be replaced"));
                }
                Risk::SecretKeys { object, keys } => {
                    told.push(format!("{object} changes the keys {}", some_of(keys, NAMES)));
                }
                Risk::Emptied { clusters } => {
                    let names = self.clusters.describe(clusters.iter().map(String::as_str));
                    let stays = if self.section.has_held() { "would stay" } else { "stays" };
                    told.push(format!("no object {stays} in {names}"));
                }
                Risk::Share { clusters, of } => told.push(format!("reaches {clusters} of {of} clusters")),
            }
        }
        if !lost.is_empty() {
            told.insert(0, format!("takes the last copy of {}", names(lost.iter().copied())));
        }
        let shown = shown_of(told.len(), 2 * NAMES);
        let more = told.len().saturating_sub(shown);
        told.truncate(shown);
        if more > 0 {
            told.push(format!("and {}", counted(more, "other risk")));
        }
        told
    }
}

/// Returns the number of lines to show. A single further line is shown itself, since "and 1 other" would take the
/// same space.
fn shown_of(all: usize, most: usize) -> usize {
    if all <= most.saturating_add(1) { all } else { most }
}

/// Writes a line for each cause, and one for further causes.
fn causes(causes: &[FoldedCause]) -> Vec<String> {
    let shown = shown_of(causes.len(), NAMES);
    let told = causes.iter().take(shown).map(|cause| harmless_line(&heading(cause)).into_owned());
    let left = causes.len().saturating_sub(shown);
    let more = (left > 0).then(|| format!("and {}", counted(left, "other edit")));
    told.chain(more).collect()
}

/// Describes a cause, as `clusters/oslo.yaml:7:10: label env: prod → prd`.
fn heading(cause: &FoldedCause) -> String {
    let words = &cause.words;
    match cause.places.as_slice() {
        [] if cause.changes == 1 => words.clone(),
        [] => format!("{words} ({})", counted(cause.changes, "report")),
        [one] => format!("{one}: {words}"),
        several => format!("{words} ({}: {})", counted(cause.changes, "edit"), some_of(several, PLACES)),
    }
}

fn sentence(one: &Consequence, keys: &[&Key], clusters: &str) -> String {
    let who = workloads(keys);
    let is_one = keys.len() == 1;
    let verb = match (one.move_, one.is_held, is_one) {
        (Move::Leaves, false, true) => "leaves",
        (Move::Leaves, false, false) => "leave",
        (Move::Leaves, true, _) => "would leave",
        (Move::Joins, false, true) => "joins",
        (Move::Joins, false, false) => "join",
        (Move::Joins, true, _) => "would join",
        (Move::Changes, false, _) => "in",
        (Move::Changes, true, _) => "would change in",
    };
    let who = match (one.move_, &*one.objects) {
        (Move::Changes, [detail]) if detail.object.is_some() && is_one => detail_name(detail),
        _ => who,
    };
    let copies = one.copies.removed + one.copies.changed + one.copies.added;
    match one.move_ {
        // The copies are counted over all places.
        _ if (2..=PLACES).contains(&one.places.len()) => format!("{who} {verb} {clusters}"),
        Move::Changes => format!("{who} {verb} {clusters}{}", extent(copies, one.copies.clusters)),
        _ if copies == 0 => format!("{who} {verb} {clusters}, without objects of its own"),
        _ => format!("{who} {verb} {clusters} ({})", counted(copies, "object")),
    }
}

/// Returns the number of copies, if it differs from that of clusters.
fn extent(copies: usize, clusters: usize) -> String {
    if copies == clusters { String::new() } else { format!(" ({})", counted(copies, "object")) }
}

fn changes_sign(objects: &[ObjectDetail]) -> Sign {
    let all = |change| objects.iter().all(|one| one.change == change);
    match (all(Change::Removed), all(Change::Added)) {
        (true, false) => Sign::Removed,
        (false, true) => Sign::Added,
        _ => Sign::Changed,
    }
}

fn detail_name(detail: &ObjectDetail) -> String {
    detail.object.as_ref().map_or_else(|| detail.kind.to_string(), ToString::to_string)
}

fn replicas(moved: &ReplicaMove) -> String {
    let held = if moved.is_held { "held: " } else { "" };
    let number = |number: &Option<i64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    let clusters = moved.clusters.iter();
    let clusters =
        clusters.map(|(name, before, after)| format!("{name} {} → {}", number(before), number(after)));
    let (name, before, after) = (moved.key.full_name(), moved.before, moved.after);
    format!("{held}replicas of {name}: {before} → {after} ({})", some_of(clusters, NAMES))
}

/// Writes `before → after`, cut to a readable length.
fn values(field: &FieldChange) -> String {
    match (&field.before, &field.after) {
        (Some(before), Some(after)) if before == HIDDEN && after == HIDDEN => {
            "changed (not shown)".to_owned()
        }
        (Some(before), Some(after)) => format!("{} → {}", value(before), value(after)),
        (Some(before), None) => format!("{} removed", value(before)),
        (None, Some(after)) => format!("{} added", value(after)),
        (None, None) => String::new(),
    }
}

fn value(text: &str) -> String {
    match text.lines().count() {
        0 | 1 if text.is_empty() => "\"\"".to_owned(),
        0 | 1 => shortened(text, VALUE),
        lines => format!("text of {lines} lines"),
    }
}

/// Cuts a text that is too long.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most - 1).collect();
    format!("{start}…")
}
