//! The fleet's summary ↔ bytes, so that the next process makes the lines anew that show something that changed.

use std::collections::BTreeSet;

use super::lines::{ClusterLine, WorkloadLine};
use super::{FleetSummary, SummaryInputs, replace_line};
use crate::dialects::Detail;
use crate::state::State;
use berth_base::codec::coded::Coded;
use berth_base::codec::{Decoder, Encoder};
use berth_base::model::encoding::{key, moment, put_key, put_moment};
use berth_base::model::{Map, MemberState, Published, Shared};
use berth_base::packed::Packed;

impl FleetSummary {
    /// Encodes all but the decisions, the releases and the published folders. `None` unless these are those of a state
    /// and of its refs.
    pub fn encode(
        &self,
        encoder: &mut Encoder,
        current: &State,
        folders: &Map<String, Published>,
    ) -> Option<()> {
        let FleetSummary { detail: _, inputs, readers: _, troubled, totals: _, clusters, workloads } = self;
        let SummaryInputs { statuses, published, differing, decisions, releases, now } = inputs;
        if (decisions, releases, published) != (&current.decisions, &current.releases, folders) {
            return None;
        }
        statuses.put(encoder);
        encoder.list(differing.iter(), |encoder, (cluster, paths)| {
            encoder.text(cluster);
            paths.encode(encoder, |encoder, paths| {
                encoder.list(paths.iter(), |encoder, path| encoder.text(path));
            });
        });
        put_moment(encoder, *now);
        encoder.list(troubled.iter(), |encoder, (of, clusters)| {
            of.put(encoder);
            encoder.list(clusters.iter(), |encoder, cluster| encoder.text(cluster));
        });
        encoder.list(clusters.values(), put_cluster);
        encoder.list(workloads.iter(), |encoder, (key, line)| {
            put_key(encoder, key);
            line.encode(encoder, put_workload);
        });
        Some(())
    }

    /// Decodes the summary of a state and the folders of its refs.
    pub fn decode(
        decoder: &mut Decoder<'_>,
        current: &State,
        folders: &Map<String, Published>,
    ) -> Option<FleetSummary> {
        let inputs = SummaryInputs {
            statuses: Coded::get(decoder)?,
            published: folders.clone(),
            differing: decoder.list(|decoder| {
                let paths = |decoder: &mut Decoder<'_>| decoder.list::<_, BTreeSet<_>>(Decoder::string);
                Some((decoder.string()?, Shared::stored(decoder.part()?, paths)))
            })?,
            decisions: current.decisions.clone(),
            releases: current.releases.clone(),
            now: moment(decoder)?,
        };
        let troubled =
            decoder.list(|decoder| Some((Coded::get(decoder)?, decoder.list(Decoder::string)?)))?;
        let (mut clusters, mut totals) = (Map::new(), Default::default());
        let lines: Vec<ClusterLine> = decoder.list(cluster)?;
        for line in lines {
            let name = line.name.clone();
            replace_line(&mut clusters, &mut totals, &name, Some(line));
        }
        let workloads =
            decoder.list(|decoder| Some((key(decoder)?, Shared::stored(decoder.part()?, workload))))?;
        let (detail, readers) = (Detail::default(), None);
        Some(FleetSummary { detail, inputs, readers, troubled, totals, clusters, workloads })
    }
}

fn put_cluster(encoder: &mut Encoder, line: &ClusterLine) {
    let ClusterLine {
        applied, failing, name, objects, problems, published, reported, state, suspended, ..
    } = line;
    encoder.text(name);
    encoder.maybe(*applied, Encoder::number);
    encoder.maybe(failing.as_ref(), |encoder, failing| encoder.text(failing));
    encoder.maybe(*objects, Encoder::count);
    encoder.count(*problems);
    encoder.maybe(*published, Encoder::number);
    encoder.maybe(*reported, put_moment);
    encoder.text(state);
    encoder.maybe(suspended.as_ref(), |encoder, suspended| encoder.text(suspended));
}

fn cluster(decoder: &mut Decoder<'_>) -> Option<ClusterLine> {
    let number = |decoder: &mut Decoder<'_>| usize::try_from(decoder.number()?).ok();
    Some(ClusterLine {
        name: decoder.string()?,
        applied: decoder.maybe(Decoder::number)?,
        failing: decoder.maybe(Decoder::string)?,
        objects: decoder.maybe(number)?,
        problems: number(decoder)?,
        published: decoder.maybe(Decoder::number)?,
        reported: decoder.maybe(moment)?,
        state: MemberState::of_word(&decoder.text()?)?.word(),
        suspended: decoder.maybe(Decoder::string)?,
        reported_seconds_ago: None,
        unreachable_since: None,
        frozen_since: None,
    })
}

fn put_workload(encoder: &mut Encoder, line: &WorkloadLine) {
    let WorkloadLine { in_sync, kind, name, namespace, placed, status, with_problems } = line;
    [in_sync, placed].into_iter().for_each(|count| encoder.count(*count));
    [kind, namespace, name].into_iter().for_each(|text| encoder.text(text));
    encoder.maybe(status.as_ref(), |encoder, status| encoder.bytes(status.bytes()));
    encoder.list(with_problems.iter(), |encoder, cluster| encoder.text(cluster));
}

fn workload(decoder: &mut Decoder<'_>) -> Option<WorkloadLine> {
    let number = |decoder: &mut Decoder<'_>| usize::try_from(decoder.number()?).ok();
    Some(WorkloadLine {
        in_sync: number(decoder)?,
        placed: number(decoder)?,
        kind: decoder.string()?,
        namespace: decoder.string()?,
        name: decoder.string()?,
        status: decoder.maybe(|decoder| decoder.bytes().map(Packed::stored))?,
        with_problems: decoder.list(Decoder::string)?,
    })
}
