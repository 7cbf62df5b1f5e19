//! The change between two published states, grouped by the edits that caused it.

use std::collections::BTreeSet;

use super::planned::read_object;
use crate::flags::state;
use crate::output::plan_forms::reasons::Reasons;
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::diag::did_you_mean;
use berth_base::model::{Cluster, Fleet, Shared};
use berth_engine::causes::Causes;
use berth_engine::consequences::folded::FoldedPlan;
use berth_engine::consequences::folding::{ToFold, fold};
use berth_engine::plan::{Plan, plan};
use berth_git::Repo;
use berth_hub::publish::CurrentState;

/// The changes between two states, grouped by the edits that caused them.
pub(crate) struct PublishedChange {
    pub changes: Plan,
    pub folded: FoldedPlan,
    pub fleet: Shared<Fleet>,
    pub reasons: Reasons,
    pub causes: Causes,
}

impl PublishedChange {
    /// Compares two states, for one cluster if `cluster` is set. Reasons and causes are known if the repository has
    /// the later source.
    pub fn between(
        [before, after]: [&CurrentState; 2],
        repo: &Repo,
        cluster: Option<&str>,
        ui: &Ui,
    ) -> Result<PublishedChange, CommandError> {
        let mut inputs = ui.watching("reading the fleet", || state::publication_inputs(repo, after, before));
        let of_source = inputs.as_ref().map(|inputs| inputs.fleet());
        let fleet = of_source.clone().unwrap_or_else(|| Shared::from(names_alone([before, after])));
        let mut changes = plan(&before.state, &after.state);
        if let Some(cluster) = cluster {
            known(cluster, &fleet, [before, after])?;
            changes = changes.of_cluster(cluster);
        }
        let reasons = match of_source {
            Some(fleet) => {
                let (state, now) = (&after.state, after.trailers.now.unwrap_or_default());
                Reasons::traced(&changes, &fleet, state, &state.facts, now)
            }
            None => Reasons::default(),
        };
        let causes = match &mut inputs {
            Some(inputs) => ui.watching("tracing causes", || {
                inputs.causes(repo, &after.state, |built| built.state.clone())
            })?,
            None => Causes::default(),
        };
        let mut folded = fold(ToFold {
            wanted: &changes,
            before: &before.state,
            after: &after.state,
            fleet: &fleet,
            causes: &causes,
            read: &mut |id| read_object(repo, id),
            held: &|_, _| false,
            reasons: &|key, cluster| reasons.get(key, cluster),
        });
        if let Some(cluster) = cluster {
            folded.narrow(cluster);
        }
        Ok(PublishedChange { changes, folded, fleet, reasons, causes })
    }
}

/// Makes a fleet of just the clusters' names.
fn names_alone(states: [&CurrentState; 2]) -> Fleet {
    let named = |name: &String| {
        let cluster = Cluster { name: name.as_str().into(), ..Cluster::default() };
        (name.clone(), Shared::from(cluster))
    };
    let names = states.into_iter().flat_map(|one| one.state.folders.keys());
    Fleet { clusters: names.map(named).collect(), ..Fleet::default() }
}

fn known(cluster: &str, fleet: &Fleet, states: [&CurrentState; 2]) -> Result<(), CommandError> {
    let of_states = states.into_iter().flat_map(|one| one.state.folders.keys());
    let names: BTreeSet<&str> = fleet.clusters.keys().chain(of_states).map(String::as_str).collect();
    if names.contains(cluster) {
        return Ok(());
    }
    let error = CommandError::usage(format!("no cluster `{cluster}` in these states"));
    Err(match did_you_mean(cluster, names) {
        Some(near) => error.hint(near),
        None => error,
    })
}
