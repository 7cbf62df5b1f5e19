//! The diagnostics of a change that were there before it, so that a review can tell new ones from old ones.

use std::collections::BTreeMap;

use super::new_faults::without_lines;
use super::slips;
use crate::process::exit::CommandError;
use berth_base::diag::{Diagnostic, Diagnostics, Severity};
use berth_base::model::{Key, Timestamp};
use berth_git::{CommitId, Repo};
use berth_hub::inputs::{BuildCache, LocatedState, PassInputs, Reports, SourceCommit, UnpublishedContents};

/// The diagnostics of a source before a change, each without its line, by their number.
#[derive(Debug, Default)]
pub(crate) struct StandingFaults(BTreeMap<(Severity, String, String), usize>);

impl StandingFaults {
    /// Reads the source before a change. The slips of these workloads are among the diagnostics.
    pub fn of<'k>(
        repo: &Repo,
        located: &LocatedState,
        reports: Reports,
        before: CommitId,
        workloads: impl Iterator<Item = &'k Key>,
        clock: Timestamp,
    ) -> Result<StandingFaults, CommandError> {
        let current = located.current.as_ref();
        let source = SourceCommit { repo, commit: before, rules: None, current };
        let inputs = PassInputs::commit(source, reports, clock, BuildCache::default())?;
        let built = inputs.build(&mut UnpublishedContents::naming(&inputs)?)?;
        let workloads = workloads.filter_map(|key| built.fleet.workloads.get(key));
        let slips = slips::of(workloads.map(|workload| &**workload), inputs.tree());
        let mut standing = StandingFaults::default();
        for one in built.diagnostics.iter().chain(inputs.odd_reports.iter()).chain(slips.iter()) {
            *standing.0.entry(fault(one)).or_default() += 1;
        }
        Ok(standing)
    }

    /// Takes those of a change that were there before, and not more often.
    pub fn among(mut self, found: &Diagnostics) -> Diagnostics {
        let mut known = Diagnostics::new();
        for one in found.iter() {
            if let Some(left) = self.0.get_mut(&fault(one)).filter(|left| **left > 0) {
                *left -= 1;
                known.push(one.clone());
            }
        }
        known
    }
}

fn fault(one: &Diagnostic) -> (Severity, String, String) {
    let file = one.at.as_ref().map(|at| at.file.to_string()).unwrap_or_default();
    (one.severity, file, without_lines(&one.message))
}
