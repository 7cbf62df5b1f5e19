//! One placement as its own system would describe it: metadata and a status, in that system's form.

use serde_json::{Value as Json, json};

use crate::dialects::{DIALECTS, Described, Detail, Dialects, Placed, Reported, RolloutView};
use crate::state::State;
use berth_base::model::member::placed;
use berth_base::model::release::Releases;
use berth_base::model::staged::{Run, RunProgress, Standing};
use berth_base::model::{Decision, Fleet, Key, Member, Observed};

/// The reports of members, and everything that they are compared with.
#[derive(Clone, Copy, Debug)]
pub struct DescribeInputs<'s> {
    /// The fleet behind the current decisions, if it can still be read.
    pub fleet: Option<&'s Fleet>,
    pub observed: Observed<'s>,
    /// The current state, for the releases of workloads and the verdicts on them.
    pub state: Option<&'s State>,
    pub dialects: Dialects,
}

impl<'s> DescribeInputs<'s> {
    /// Returns the inputs without a fleet, for all dialects.
    pub fn new(observed: Observed<'s>) -> DescribeInputs<'s> {
        DescribeInputs { fleet: None, observed, state: None, dialects: DIALECTS }
    }

    fn rollout(&self, workload: &Key) -> Option<RolloutView<'s>> {
        let state = self.state?;
        Some(RolloutView { releases: state.releases.get(workload)?, facts: &state.facts })
    }
}

/// Returns the object with its status.
pub fn describe(decision: &Decision, known: DescribeInputs<'_>) -> Json {
    let members = known.observed.members();
    let placed: Vec<_> = placed(decision, &members).collect();
    let rollout = known.rollout(&decision.key);
    let views: Vec<_> = placed.iter().map(|(_, member)| member.map(Member::view)).collect();
    let in_report =
        placed.iter().zip(&views).zip(decision.picks.iter()).map(|(((cluster, _), member), pick)| Placed {
            cluster,
            member: member.as_ref(),
            waits: Releases::has_waiting(rollout.map(|rollout| rollout.releases), pick),
        });
    let elsewhere = members.iter().filter(|member| !decision.has(member.name)).map(Member::view);
    let elsewhere = elsewhere.filter(|member| member.problem_of(&decision.objects).is_some());
    let reported = Reported {
        decision,
        placed: in_report.collect(),
        elsewhere: elsewhere.collect(),
        detail: Detail::Full,
    };
    let (fleet, decisions) = (known.fleet, known.state.map(|state| &state.decisions));
    let described = Described { decision, fleet, decisions, placed, rollout, reported };
    let status = known.dialects.iter().find_map(|dialect| (dialect.shown.describe)(&described));
    let clusters = || decision.picks.iter().map(|pick| &pick.cluster).collect::<Vec<_>>();
    let status = status.unwrap_or_else(|| json!({"clusters": clusters()}));
    object(&decision.key, &decision.source, &status)
}

/// Returns a staged run with its status. `progress` is absent before the run begins.
pub fn describe_run(
    run: &Run,
    progress: Option<&RunProgress>,
    standing: &Standing,
    dialects: Dialects,
) -> Json {
    let status = dialects.iter().find_map(|dialect| (dialect.shown.describe_run)(run, progress, standing));
    object(&run.key, &run.origin.file, &status.unwrap_or_default())
}

fn object(key: &Key, source: &str, status: &Json) -> Json {
    let mut metadata = json!({"name": &*key.name});
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(&*key.namespace);
    }
    json!({
        "kind": &*key.kind,
        "group": &*key.group,
        "metadata": metadata,
        "source": source,
        "status": status,
    })
}

#[cfg(test)]
mod tests;
