//! The current state ↔ bytes, so that a process can begin without reading the state from Git.

use super::rendered_state::CurrentState;
use super::trailers::Trailers;
use berth_base::codec::{Decoder, Encoder};
use berth_base::model::Map;
use berth_engine::state::{State, codec};
use berth_git::{CommitId, GitError, Repo, TreeId};

/// Encodes a state. `None` if its commit also holds changes by others.
pub fn encode_current(encoder: &mut Encoder, current: &CurrentState) -> Option<()> {
    if !current.foreign.is_empty() || current.trailers.digest.is_none() {
        return None;
    }
    codec::encode(encoder, &current.state);
    encoder.list(current.trees.iter(), |encoder, (cluster, id)| {
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
    let Some((state, trees)) = decode(decoder) else { return Ok(None) };
    let info = repo.commit(commit)?;
    let Some(trailers) = Trailers::read(&info.message) else { return Ok(None) };
    let (tree, seconds) = (info.tree, info.seconds);
    let foreign = berth_base::diag::Diagnostics::new();
    Ok(Some(CurrentState { commit, tree, state, trees, trailers, seconds, foreign }))
}

fn decode(decoder: &mut Decoder<'_>) -> Option<(State, Map<String, TreeId>)> {
    let state = codec::decode(decoder)?;
    let trees = decoder.list(|decoder| Some((decoder.string()?, TreeId(decoder.raw()?))))?;
    Some((state, trees))
}
