//! A state ↔ compact bytes, so that a process need not ask Git for every file of the current state.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{State, ledger_file, releases_file};
use berth_base::codec::coded::Coded;
use berth_base::codec::{Decoder, Encoder};
use berth_base::model::encoding::{key, put_key};
use berth_base::model::map::EntryMap;
use berth_base::model::release::Releases;
use berth_base::model::shared::ByAllocation;
use berth_base::model::{
    Condition, ContentId, Decision, Digest, Failure, Folder, FolderEntry, Group, Pick, PickDetails, Refused,
    Shared,
};
use berth_base::packed::Packed;

pub fn encode(encoder: &mut Encoder, state: &State) {
    let lists = PickLists::of(state);
    encoder.list(lists.in_order.iter(), |encoder, picks| put_list(encoder, picks));
    encoder.list(state.decisions.values(), |encoder, decision| {
        encoder.count(lists.number(&decision.picks));
        put_all_but_picks(encoder, decision);
    });
    encoder.list(state.folders.iter(), |encoder, (cluster, folder)| {
        encoder.text(cluster);
        folder.encode(encoder, put_folder);
    });
    state.facts.put(encoder);
    encoder.list(state.releases.values(), |encoder, releases| {
        encoder.bytes(releases_file::write(releases).as_bytes());
        let all: Vec<_> = releases.all().collect();
        encoder.list(all.into_iter(), |encoder, release| {
            encoder.signed(i64::try_from(release.number).unwrap_or(i64::MAX));
            encoder.raw(&release.inputs.0);
        });
    });
    encoder.list(state.kept.iter(), |encoder, (path, id)| {
        encoder.text(path);
        encoder.raw(&id.0);
    });
    encoder.bytes(ledger_file::write(&state.ledger).as_bytes());
}

pub fn decode(decoder: &mut Decoder<'_>) -> Option<State> {
    let lists: Vec<Shared<Vec<Pick>>> = decoder.list(list)?;
    let decisions: Vec<Decision> = decoder.list(|decoder| {
        let picks = lists.get(usize::try_from(decoder.number()?).ok()?)?;
        all_but_picks(decoder, picks.clone())
    })?;
    let folders =
        decoder.list(|decoder| Some((decoder.string()?, Folder::stored(decoder.part()?, folder))))?;
    let facts = Coded::get(decoder)?;
    let releases: Vec<Releases> = decoder.list(|decoder| {
        let text = decoder.bytes()?;
        let inputs: BTreeMap<_, _> = decoder
            .list(|decoder| Some((u64::try_from(decoder.signed()?).ok()?, ContentId(decoder.raw()?))))?;
        releases_file::read(text, &inputs).ok()
    })?;
    let kept = decoder.list(|decoder| Some((decoder.string()?, ContentId(decoder.raw()?))))?;
    let ledger = ledger_file::read(decoder.bytes()?).ok()?.into();
    Some(State {
        ledger,
        decisions: decisions.into_iter().map(|one| (one.key.clone(), one)).collect(),
        folders,
        facts,
        releases: releases.into_iter().map(|one| (one.key.clone(), one.into())).collect(),
        kept,
    })
}

fn put_folder(encoder: &mut Encoder, folder: &EntryMap<FolderEntry>) {
    encoder.list(folder.iter(), |encoder, (path, id)| {
        encoder.text(path);
        encoder.id(&id.0);
    });
}

fn folder(decoder: &mut Decoder<'_>) -> Option<EntryMap<FolderEntry>> {
    decoder.list(|decoder| Some((decoder.text()?, ContentId(decoder.id()?)).into()))
}

/// The lists of picks of a state, in the order of the decisions. One that many decisions share is there once.
struct PickLists<'s> {
    in_order: Vec<&'s Shared<Vec<Pick>>>,
    numbers: BTreeMap<ByAllocation<'s, Vec<Pick>>, usize>,
}

impl<'s> PickLists<'s> {
    fn of(state: &'s State) -> PickLists<'s> {
        let mut lists = PickLists { in_order: Vec::new(), numbers: BTreeMap::new() };
        for decision in state.decisions.values() {
            let picks = &decision.picks;
            lists.numbers.entry(ByAllocation(picks)).or_insert_with(|| {
                lists.in_order.push(picks);
                lists.in_order.len() - 1
            });
        }
        lists
    }

    fn number(&self, picks: &Shared<Vec<Pick>>) -> usize {
        self.numbers[&ByAllocation(picks)]
    }
}

fn put_list(encoder: &mut Encoder, picks: &Shared<Vec<Pick>>) {
    picks.encode(encoder, |encoder, picks| put_picks(encoder, picks));
}

fn list(decoder: &mut Decoder<'_>) -> Option<Shared<Vec<Pick>>> {
    Some(Shared::stored(decoder.part()?, picks))
}

pub fn put_decision(encoder: &mut Encoder, decision: &Decision) {
    put_list(encoder, &decision.picks);
    put_all_but_picks(encoder, decision);
}

pub fn decision(decoder: &mut Decoder<'_>) -> Option<Decision> {
    let picks = list(decoder)?;
    all_but_picks(decoder, picks)
}

fn put_all_but_picks(encoder: &mut Encoder, decision: &Decision) {
    put_key(encoder, &decision.key);
    encoder.text(&decision.source);
    encoder.list(decision.refused.iter(), |encoder, refused| {
        encoder.text(&refused.reason);
        encoder.count(refused.clusters);
    });
    encoder.maybe(decision.condition.as_ref(), |encoder, condition| {
        encoder.flag(condition.status);
        [&condition.kind, &condition.reason, &condition.message]
            .into_iter()
            .for_each(|text| encoder.text(text));
    });
    encoder.maybe(decision.digest, |encoder, digest| encoder.raw(&digest.0));
    encoder.maybe(decision.policy.as_ref(), |encoder, policy| encoder.bytes(policy.bytes()));
    decision.objects.put(encoder);
    encoder.list(decision.failures.iter(), |encoder, failure| {
        encoder.text(&failure.cluster);
        failure.object.put(encoder);
        failure.of_override.put(encoder);
        encoder.text(&failure.reason);
    });
}

fn all_but_picks(decoder: &mut Decoder<'_>, picks: Shared<Vec<Pick>>) -> Option<Decision> {
    Some(Decision {
        key: key(decoder)?,
        source: decoder.string()?,
        picks,
        refused: decoder.list(|decoder| {
            Some(Refused { reason: decoder.string()?, clusters: decoder.number()?.try_into().ok()? })
        })?,
        condition: decoder.maybe(|decoder| {
            let status = decoder.flag()?;
            let (kind, reason) = (decoder.string()?, decoder.string()?);
            Some(Condition { kind, status, reason, message: decoder.string()? })
        })?,
        digest: decoder.maybe(|decoder| Some(Digest(decoder.raw()?)))?,
        policy: decoder.maybe(|decoder| decoder.bytes().map(Packed::stored))?,
        objects: Coded::get(decoder)?,
        failures: decoder.list(|decoder| {
            let cluster = decoder.string()?;
            let (object, of_override) = Coded::get(decoder)?;
            Some(Failure { cluster, object, of_override, reason: decoder.string()? })
        })?,
    })
}

/// Most picks say the same as the one before them.
fn put_picks(encoder: &mut Encoder, picks: &[Pick]) {
    let mut last: Option<&Pick> = None;
    encoder.list(picks.iter(), |encoder, pick| {
        encoder.text(&pick.cluster);
        let is_new = last.is_none_or(|last| last.details != pick.details);
        encoder.maybe(is_new.then_some(&*pick.details), put_details);
        last = Some(pick);
    });
}

fn picks(decoder: &mut Decoder<'_>) -> Option<Vec<Pick>> {
    let mut last: Option<Arc<PickDetails>> = None;
    let mut picks: Vec<Pick> = decoder.list(|decoder| {
        let cluster = decoder.text()?;
        if let Some(new) = decoder.maybe(details)? {
            last = Some(new.into());
        }
        Some(Pick::new(cluster, last.clone()?))
    })?;
    Pick::share_details(&mut picks);
    Some(picks)
}

fn put_details(encoder: &mut Encoder, details: &PickDetails) {
    let PickDetails { reason, replicas, scores, group, pending, leaving, held } = details;
    encoder.text(reason);
    encoder.maybe(*replicas, Encoder::signed);
    encoder.list(scores.iter(), |encoder, (name, score)| {
        encoder.text(name);
        encoder.signed(*score);
    });
    encoder.maybe(group.as_ref(), |encoder, group| {
        encoder.count(group.index);
        encoder.text(&group.name);
    });
    [pending, leaving, held].into_iter().for_each(|flag| encoder.flag(*flag));
}

fn details(decoder: &mut Decoder<'_>) -> Option<PickDetails> {
    Some(PickDetails {
        reason: decoder.string()?,
        replicas: decoder.maybe(Decoder::signed)?,
        scores: decoder.list(|decoder| Some((decoder.string()?, decoder.signed()?)))?,
        group: decoder.maybe(|decoder| {
            Some(Group { index: decoder.number()?.try_into().ok()?, name: decoder.string()? })
        })?,
        pending: decoder.flag()?,
        leaving: decoder.flag()?,
        held: decoder.flag()?,
    })
}
