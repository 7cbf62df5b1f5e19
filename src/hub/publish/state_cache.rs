//! The current state ↔ bytes, so that a process can begin without reading the state from Git.

use super::rendered_state::{CurrentState, Ids};
use super::trailers::Trailers;
use berth_base::codec::{Decoder, Encoder};
use berth_base::model::ContentId;
use berth_engine::state::codec;
use berth_git::{CommitId, GitError, Repo, TreeId};

/// Encodes a state. `None` if its commit also holds changes by others.
pub fn encode_current(encoder: &mut Encoder, current: &CurrentState) -> Option<()> {
    if !current.foreign.is_empty() || current.trailers.digest.is_none() {
        return None;
    }
    codec::encode(encoder, &current.state);
    encoder.list(current.ids.clusters.iter(), |encoder, (cluster, id)| {
        encoder.text(cluster);
        encoder.raw(&id.0);
    });
    encoder.list(current.ids.decisions.iter(), |encoder, (key, id)| {
        codec::put_key(encoder, key);
        encoder.raw(&id.0);
    });
    encoder.list(current.ids.releases.iter(), |encoder, (key, id)| {
        codec::put_key(encoder, key);
        encoder.raw(&id.0);
    });
    encoder.list(current.ids.facts.iter(), |encoder, (cluster, id)| {
        encoder.text(cluster);
        encoder.raw(&id.0);
    });
    Some(())
}

/// Decodes the state cached for this commit.
pub fn decode_current(
    decoder: &mut Decoder<'_>,
    repo: &Repo,
    commit: CommitId,
) -> Result<Option<CurrentState>, GitError> {
    let Some((state, ids)) = decode(decoder) else { return Ok(None) };
    let info = repo.commit(commit)?;
    let Some(trailers) = Trailers::read(&info.message) else { return Ok(None) };
    let (tree, seconds) = (info.tree, info.seconds);
    let foreign = berth_base::diag::Diagnostics::new();
    Ok(Some(CurrentState { commit, tree, state, ids, trailers, seconds, foreign }))
}

fn decode(decoder: &mut Decoder<'_>) -> Option<(berth_engine::state::State, Ids)> {
    let state = codec::decode(decoder)?;
    let clusters = decoder.list(|decoder| Some((decoder.string()?, TreeId(decoder.raw()?))))?;
    let decisions = decoder.list(|decoder| Some((codec::key(decoder)?, ContentId(decoder.raw()?))))?;
    let releases = decoder.list(|decoder| Some((codec::key(decoder)?, ContentId(decoder.raw()?))))?;
    let facts = decoder.list(|decoder| Some((decoder.string()?, ContentId(decoder.raw()?))))?;
    Some((state, Ids { clusters, decisions, facts, releases }))
}
