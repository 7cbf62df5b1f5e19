//! The inputs of the last repair of cluster refs ↔ bytes, for the next process.

use std::collections::BTreeSet;

use super::cluster_ref_cache::{ClusterRefCache, Settled, Sound};
use super::rendered_state::CurrentState;
use berth_base::codec::{Decoder, Encoder};
use berth_base::model::{Cluster, Map, Shared, Timestamp};
use berth_engine::report::Published;
use berth_git::signature::PublicKey;
use berth_git::{CommitId, TreeId};

impl ClusterRefCache {
    /// Encodes the last repair, without its clusters. `None` if it was one of another state.
    pub(crate) fn encode(&self, encoder: &mut Encoder, current: &CurrentState) -> Option<()> {
        let settled = self.settled.as_ref().filter(|settled| settled.rendered == current.commit)?;
        let Settled {
            rendered: _,
            trees,
            is_own: _,
            clusters: _,
            applied_by_others,
            refs,
            key,
            fleet,
            alive,
        } = settled;
        if *trees != current.trees || *refs != self.listed {
            return None;
        }
        encoder.list(applied_by_others.iter(), |encoder, name| encoder.text(name));
        encoder.list(refs.iter(), |encoder, (name, CommitId(id))| {
            encoder.text(name);
            encoder.raw(id);
        });
        encoder.maybe(key.as_ref(), |encoder, key| encoder.text(&key.line()));
        encoder.maybe(fleet.as_ref(), |encoder, fleet| encoder.text(fleet));
        encoder.maybe(*alive, |encoder, alive| encoder.signed(alive.as_second()));
        let folders: Option<Vec<(&String, u64, TreeId)>> = self
            .folders
            .iter()
            .map(|(cluster, published)| Some((cluster, published.sequence, published.tree.parse().ok()?)))
            .collect();
        encoder.list(folders?.into_iter(), |encoder, (cluster, sequence, TreeId(id))| {
            encoder.text(cluster);
            encoder.number(sequence);
            encoder.raw(&id);
        });
        let sound: Vec<_> = refs.values().filter(|commit| self.sound.commits.contains(commit)).collect();
        encoder.number(self.sound.until);
        encoder.list(sound.into_iter(), |encoder, CommitId(id)| encoder.raw(id));
        Some(())
    }

    /// Decodes the repair that made the refs of a state, from these clusters.
    pub(crate) fn decode(
        decoder: &mut Decoder<'_>,
        current: &CurrentState,
        clusters: Option<Map<String, Shared<Cluster>>>,
    ) -> Option<ClusterRefCache> {
        let applied_by_others = decoder.list::<_, BTreeSet<String>>(Decoder::string)?;
        let refs: Map<String, CommitId> =
            decoder.list(|decoder| Some((decoder.string()?, CommitId(decoder.raw()?))))?;
        let key = decoder.maybe(|decoder| PublicKey::read(&decoder.text()?))?;
        let fleet = decoder.maybe(Decoder::string)?;
        let alive = decoder.maybe(|decoder| Timestamp::from_second(decoder.signed()?).ok())?;
        let settled = clusters.map(|clusters| Settled {
            rendered: current.commit,
            trees: current.trees.clone(),
            is_own: current.foreign.is_empty(),
            clusters,
            applied_by_others,
            refs: refs.clone(),
            key,
            fleet,
            alive,
        });
        let folders = decoder.list(|decoder| {
            let (cluster, sequence) = (decoder.string()?, decoder.number()?);
            Some((cluster, Published { sequence, tree: TreeId(decoder.raw()?).to_string() }))
        })?;
        let until = decoder.number()?;
        let sound = Sound { until, commits: decoder.list(|decoder| Some(CommitId(decoder.raw()?)))? };
        let mut cache = ClusterRefCache::default();
        (cache.listed, cache.folders) = (refs, folders);
        // Without the clusters, the first repair looks at all refs. What was sound under another key tells it nothing.
        if settled.is_some() {
            (cache.sound, cache.settled) = (sound, settled);
        }
        Some(cache)
    }
}
