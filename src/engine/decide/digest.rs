//! The inputs of a placement's decision → its digest, and the next moment at which a verdict changes by
//! itself.
//!
//! The digest covers the policy, the candidates by name, and exactly the parts of each candidate that the
//! rules read; never the decisions of other placements. Time counts through verdicts only. Each part is
//! hashed once for equal candidates, however many placements read it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::candidates::Candidates;
use super::cluster_table::{Row, Table, resource_of};
use super::filter::{eligibility, expiry, flip, is_ready, untolerated};
use super::policy_encoding::{self, Encoder};
use super::policy_reads::{self, Read, Reads};
use super::score::valid;
use berth_base::model::placement::{Filter, Policy};
use berth_base::model::{Cluster, Digest, Effect, Timestamp};

/// Goes into every digest: a new number makes every placement decided again.
const ENGINE: &str = "berth engine 1";

/// Stands for all clusters where candidates are not made yet.
const EVERYBODY: u32 = u32::MAX;

/// Hashes made so far, by candidates and by the thing read; `None` stands for the names.
#[derive(Default)]
pub(super) struct Digests<'f> {
    columns: RefCell<BTreeMap<(u32, Option<Read<'f>>), Column>>,
}

#[derive(Clone, Copy)]
struct Column {
    hash: [u8; 32],
    flips: Option<Timestamp>,
}

impl<'f> Digests<'f> {
    /// The digest of a decision, and the first moment at which it will be another one by itself.
    pub(super) fn of(
        &self,
        table: &Table<'_>,
        candidates: &Candidates,
        policy: &'f Policy,
    ) -> (Digest, Option<Timestamp>) {
        let mut encoder = Encoder::default();
        encoder.text(ENGINE);
        policy_encoding::policy(&mut encoder, policy);
        let mut read = Reads::new();
        policy_reads::of_policy(policy, &mut read);
        let names = self.column(table, candidates, None);
        encoder.bytes.extend_from_slice(&names.hash);
        let mut flips = self.flips(table, &policy.candidates);
        for read in read {
            let column = self.column(table, candidates, Some(read));
            encoder.bytes.extend_from_slice(&column.hash);
            flips = earlier(flips, column.flips);
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&Sha256::digest(&encoder.bytes)[..16]);
        (Digest(digest), flips)
    }

    /// Returns the next moment at which a filter's verdict on any cluster changes by itself.
    pub(super) fn flips(&self, table: &Table<'_>, filters: &'f [Filter]) -> Option<Timestamp> {
        let mut read = Reads::new();
        policy_reads::of_filters(filters, &mut read);
        let timed = read.into_iter().filter(|read| matches!(read, Read::Tolerated(_) | Read::Eligible(_)));
        let everybody = Candidates { id: EVERYBODY, rows: table.rows().collect::<Vec<Row>>().into() };
        timed.fold(None, |flips, read| earlier(flips, self.column(table, &everybody, Some(read)).flips))
    }

    fn column(&self, table: &Table<'_>, candidates: &Candidates, read: Option<Read<'f>>) -> Column {
        let key = (candidates.id, read);
        if let Some(column) = self.columns.borrow().get(&key) {
            return *column;
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
        self.columns.borrow_mut().insert(key, column);
        column
    }
}

/// Encodes one cluster's value of the thing read, and returns the next moment at which it changes by itself.
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
        // The whole view counts, whatever the expression reads. Methods may return any score, however old.
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
