//! The inputs of a placement's decision → its digest, and the next moment at which time alone changes a
//! verdict.
//!
//! The digest covers the policy, clusters by name, and exactly the parts of each cluster that the rules read;
//! never the decisions of other placements. It covers the clusters that the placement has, and those that it
//! could pick: a refused cluster changes nothing. If the decision reports refused clusters, or spreads its
//! picks over all clusters, the digest covers every candidate. Time counts through verdicts only. Each part
//! is hashed once for equal candidates, however many placements read it.

use sha2::{Digest as _, Sha256};

use super::candidates::{Candidates, Open};
use super::cluster_table::{Row, Table, reaches, resource_of};
use super::filter::{eligibility, expiry, flip, is_ready, untolerated};
use super::policy_encoding::{self, Encoder};
use super::policy_reads::{self, Read, Reads};
use super::remembered::Remembered;
use super::score::valid;
use berth_base::model::placement::{Filter, Policy, ScoreRule, Selection};
use berth_base::model::{Cluster, Digest, Effect, Timestamp};

/// Part of every digest: another text makes all placements be decided again.
const ENGINE: &str = "berth engine 1";

/// Represents all clusters where candidates are not computed yet.
const EVERYBODY: u32 = u32::MAX;

/// The hashes so far, by candidates and by the part read; `None` represents the names.
#[derive(Default)]
pub(super) struct Digests<'f> {
    columns: Remembered<(u32, Option<Read<'f>>), Column>,
}

#[derive(Clone, Copy)]
struct Column {
    hash: [u8; 32],
    flips: Option<Timestamp>,
}

/// Reports whether a decision with this many picks depends on clusters that it could not pick.
pub(super) fn covers_all(policy: &Policy, picks: usize) -> bool {
    let is_short = match policy.selection {
        Selection::First(count) => picks < count,
        Selection::All | Selection::Exactly(_) | Selection::InTurn(_) => false,
    };
    let spreads =
        |rule: &ScoreRule| matches!(rule, ScoreRule::Spread(constraints) if !constraints.is_empty());
    picks == 0 || is_short || policy.scorers.iter().any(|scorer| spreads(&scorer.rule))
}

impl<'f> Digests<'f> {
    /// Returns the digest of a decision with these picks.
    pub(super) fn of(&self, table: &Table<'_>, open: &Open, picks: &[Row], policy: &'f Policy) -> Digest {
        let covers_all = covers_all(policy, picks.len());
        let covered = if covers_all { &open.all } else { &open.passing };
        let (mut encoder, reads) = begin(ENGINE, policy);
        encoder.tag(u8::from(covers_all));
        self.columns(&mut encoder, table, covered, &reads);
        let mut rest = covered.rows.iter().peekable();
        for row in picks.iter().filter(|row| !reaches(&mut rest, **row)) {
            let cluster = table.cluster(*row);
            encoder.text(&cluster.name);
            for read in &reads {
                encode_read(&mut encoder, table, *row, cluster, read);
            }
        }
        finish(&encoder)
    }

    /// Returns the first moment at which time alone changes a verdict of a policy on any cluster.
    pub(super) fn flips_of(
        &self,
        table: &Table<'_>,
        candidates: &Candidates,
        policy: &'f Policy,
    ) -> Option<Timestamp> {
        let mut reads = Reads::new();
        policy_reads::of_policy(policy, &mut reads);
        self.earliest(self.flips(table, &policy.candidates), table, || candidates.clone(), reads)
    }

    /// Returns the next moment at which time alone changes a filter's verdict on any cluster.
    pub(super) fn flips(&self, table: &Table<'_>, filters: &'f [Filter]) -> Option<Timestamp> {
        let mut reads = Reads::new();
        policy_reads::of_filters(filters, &mut reads);
        let everybody =
            || Candidates { id: Some(EVERYBODY), rows: table.rows().collect::<Vec<Row>>().into() };
        self.earliest(None, table, everybody, reads)
    }

    fn earliest(
        &self,
        first: Option<Timestamp>,
        table: &Table<'_>,
        candidates: impl Fn() -> Candidates,
        reads: Reads<'f>,
    ) -> Option<Timestamp> {
        let is_timed = |read: &Read<'_>| {
            matches!(read, Read::Tolerated(_) | Read::Eligible(_) | Read::Score(..) | Read::Replaced(_))
        };
        let timed = reads.into_iter().filter(is_timed);
        timed.fold(first, |flips, read| earlier(flips, self.column(table, &candidates(), Some(read)).flips))
    }

    fn columns(&self, encoder: &mut Encoder, table: &Table<'_>, candidates: &Candidates, reads: &Reads<'f>) {
        for read in std::iter::once(None).chain(reads.iter().map(|read| Some(*read))) {
            encoder.bytes.extend_from_slice(&self.column(table, candidates, read).hash);
        }
    }

    fn column(&self, table: &Table<'_>, candidates: &Candidates, read: Option<Read<'f>>) -> Column {
        let key = candidates.id.map(|id| (id, read));
        if let Some(column) = key.and_then(|key| self.columns.get(&key)) {
            return column;
        }
        let (mut encoder, mut flips) = (Encoder::default(), None);
        encoder.count(candidates.rows.len());
        for row in candidates.rows.iter() {
            let cluster = table.cluster(*row);
            match &read {
                None => encoder.text(&cluster.name),
                Some(read) => flips = earlier(flips, encode_read(&mut encoder, table, *row, cluster, read)),
            }
        }
        let column = Column { hash: Sha256::digest(&encoder.bytes).into(), flips };
        match key {
            Some(key) => self.columns.keep(key, column),
            None => column,
        }
    }
}

/// Begins a digest with the policy, and returns the parts of clusters that it reads.
fn begin<'f>(engine: &str, policy: &'f Policy) -> (Encoder, Reads<'f>) {
    let mut encoder = Encoder::default();
    encoder.text(engine);
    policy_encoding::policy(&mut encoder, policy);
    let mut reads = Reads::new();
    policy_reads::of_policy(policy, &mut reads);
    (encoder, reads)
}

fn finish(encoder: &Encoder) -> Digest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&Sha256::digest(&encoder.bytes)[..16]);
    Digest(digest)
}

/// Encodes the part that one cluster has, and returns the next moment at which time alone changes it.
fn encode_read(
    encoder: &mut Encoder,
    table: &Table<'_>,
    row: Row,
    cluster: &Cluster,
    read: &Read<'_>,
) -> Option<Timestamp> {
    let mut flips = None;
    match read {
        Read::Label(key) => encoder.maybe(cluster.labels.get(*key), |encoder, text| encoder.text(text)),
        Read::Claim(key) => encoder.maybe(cluster.claims.get(*key), |encoder, text| encoder.text(text)),
        Read::Measure(measure) => {
            let amount = table.amounts(measure)[row as usize];
            encoder.maybe(amount, |encoder, amount| encoder.bytes.extend(amount.nanos().to_le_bytes()));
        }
        Read::Leaving => encoder.tag(u8::from(cluster.leaving)),
        Read::Taints => encoder.all(cluster.taints.iter(), |encoder, taint| {
            [&taint.key, &taint.value, &taint.effect_word].into_iter().for_each(|part| encoder.text(part));
            encoder.tag(match taint.effect {
                Effect::Refuse => 1,
                Effect::RefuseNew => 2,
                Effect::Prefer => 3,
            });
        }),
        Read::Tolerated(tolerations) => {
            let open: Vec<_> = untolerated(cluster, tolerations, table.now).collect();
            encoder.all(cluster.taints.iter(), |encoder, taint| {
                encoder.tag(u8::from(open.iter().any(|one| std::ptr::eq(*one, taint))));
            });
            let ends =
                cluster.taints.iter().filter(|taint| taint.frozen.is_none()).flat_map(|taint| {
                    tolerations.iter().filter_map(move |toleration| expiry(toleration, taint))
                });
            flips = ends.filter(|end| *end > table.now).min();
        }
        Read::Eligible(limits) => {
            let (verdict, until) = eligibility(cluster, *limits, table.now);
            encoder.maybe(verdict, |encoder, code| encoder.number(i64::from(code)));
            flips = until;
        }
        Read::Namespace(namespace) => {
            let holds = cluster.namespaces.as_ref().is_none_or(|listed| listed.contains(*namespace));
            encoder.tag(u8::from(holds));
        }
        Read::Resource(resource) => {
            let amount = resource_of(cluster, resource).map(f64::to_bits);
            encoder.maybe(amount, |encoder, bits| encoder.bytes.extend(bits.to_le_bytes()));
        }
        Read::Score(resource, name) => {
            let score = valid(cluster, &((*resource).to_owned(), (*name).to_owned()), table.now);
            encoder.maybe(score, |encoder, score| encoder.number(score.value));
            flips = score.and_then(|score| score.valid_until).map(flip);
        }
        Read::Ready => encoder.tag(u8::from(is_ready(cluster))),
        // The whole view counts, whatever the expression reads. An expression can read any score, however
        // old.
        Read::Shown(view) => {
            encoder.text(&(view.shown)(cluster).to_string());
            encoder.all(cluster.scores.iter(), |encoder, ((resource, name), score)| {
                encoder.text(resource);
                encoder.text(name);
                encoder.number(score.value);
                encoder.count(score.index);
            });
        }
        Read::Room(workload) => {
            let room = cluster.workloads.get(*workload).and_then(|report| report.capacity);
            encoder.maybe(room, Encoder::number);
        }
        Read::Replaced(seconds) => {
            let end = cluster.silence.and_then(|silence| silence.lasts(*seconds));
            encoder.tag(u8::from(end.is_some_and(|end| end <= table.now)));
            flips = end.filter(|end| *end > table.now);
        }
    }
    flips
}

/// Returns the earlier of two moments.
pub(super) fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}
