//! The clusters of a fleet that a command is about.

use std::collections::BTreeSet;

use crate::flags::record;
use crate::process::exit::CommandError;
use berth_base::diag::did_you_mean;
use berth_base::meta::parse_requirements;
use berth_base::text::counted;
use berth_engine::release::labels::ClusterLabels;
use berth_engine::report::SummaryInputs;
use berth_git::Repo;
use berth_hub::inputs::LocatedState;

/// All clusters, or some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    /// These, which people named.
    Named(BTreeSet<String>),
    /// These, which have the labels.
    Labelled(BTreeSet<String>),
}

impl Selection {
    pub fn of(
        names: &[String],
        selector: Option<&str>,
        repo: &Repo,
        located: &LocatedState,
        gathered: &SummaryInputs,
    ) -> Result<Selection, CommandError> {
        let known: BTreeSet<&String> = gathered.published.keys().chain(gathered.statuses.keys()).collect();
        if let Some(missing) = names.iter().find(|name| !known.contains(name)) {
            let error = CommandError::usage(format!("no cluster `{missing}` in the published state"));
            let near = did_you_mean(missing, known.iter().map(|name| name.as_str()));
            return Err(error.hint(near.unwrap_or_else(|| {
                format!("choose one of {}; `berth status` lists all", counted(known.len(), "cluster"))
            })));
        }
        let names: BTreeSet<String> = names.iter().cloned().collect();
        let Some(selector) = selector else {
            return Ok(if names.is_empty() { Selection::All } else { Selection::Named(names) });
        };
        let selector = parse_requirements(selector)
            .map_err(|fault| CommandError::usage(format!("--selector: {fault}")))?;
        let Some(current) = &located.current else { return Ok(Selection::Labelled(names)) };
        let Some(inputs) = record::publication_inputs(repo, current, current) else {
            let error = CommandError::usage(
                "the labels of clusters are not known: the source of the current state is not in this clone",
            );
            return Err(error.hint("fetch the branch that people edit, or name clusters"));
        };
        let fleet = inputs.fleet();
        let labels = ClusterLabels::of(&fleet, &current.state.facts);
        let has = |name: &str| labels.get(name).is_some_and(|labels| selector.matches(labels));
        let mut chosen: BTreeSet<String> =
            fleet.clusters.keys().filter(|name| has(name)).map(|name| name.to_string()).collect();
        if !names.is_empty() {
            chosen.retain(|name| names.contains(name));
        }
        Ok(Selection::Labelled(chosen))
    }

    pub fn has(&self, cluster: &str) -> bool {
        match self {
            Selection::All => true,
            Selection::Named(names) | Selection::Labelled(names) => names.contains(cluster),
        }
    }
}
