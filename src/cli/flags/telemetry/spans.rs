//! Converts passes and rounds to spans: the work, and its steps below it.

use std::time::{Duration, SystemTime};

use berth_base::backoff::chance;
use berth_base::progress::Beginning;
use berth_hub::daemon::{PassEnd, PassOutcome};
use berth_member::sync::SyncError;
use berth_member::sync::backends::NotAdmitted;
use berth_member::sync::sync_loop::Sync;
use berth_telemetry::otlp::{Span, Value};

/// The end of a piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkEnd {
    name: &'static str,
    said: Vec<(&'static str, Value)>,
    failure: Option<String>,
}

fn text(text: impl ToString) -> Value {
    Value::Text(text.to_string())
}

fn number(number: impl TryInto<i64>) -> Value {
    Value::Number(number.try_into().unwrap_or(i64::MAX))
}

/// Describes a pass, except a look that found nothing to do.
pub(super) fn of_pass(end: PassEnd<'_>) -> Option<WorkEnd> {
    let (said, failure) = match end {
        PassEnd::StoodBy | PassEnd::Spared => return None,
        PassEnd::Failed(error) => (vec![("berth.result", text("failed"))], Some(error.to_string())),
        PassEnd::Crashed => (vec![("berth.result", text("crashed"))], Some("a bug in berth".to_owned())),
        PassEnd::Done(passed) => {
            let mut said = vec![
                ("berth.source", text(passed.source)),
                ("berth.errors", number(passed.errors())),
                ("berth.held_workloads", number(passed.held.len())),
            ];
            match passed.outcome {
                PassOutcome::Unchanged => said.push(("berth.result", text("unchanged"))),
                PassOutcome::Published { commit, seq } => said.extend([
                    ("berth.result", text("published")),
                    ("berth.commit", text(commit)),
                    ("berth.sequence", number(seq)),
                ]),
            }
            (said, None)
        }
    };
    Some(WorkEnd { name: "pass", said, failure })
}

/// Describes a round that failed, changed something or reported.
pub(super) fn of_round(round: &Sync) -> Option<WorkEnd> {
    let outcome = match &round.result {
        Err(SyncError::NotAdmitted(NotAdmitted::Standby(_))) => return None,
        Err(error) => {
            let said = vec![("berth.result", text("failed"))];
            return Some(WorkEnd { name: "round", said, failure: Some(error.to_string()) });
        }
        Ok(outcome) => outcome,
    };
    let changed = outcome.written + outcome.pruned;
    if changed == 0 && !matches!(round.reported, Ok(true)) {
        return None;
    }
    let problems = outcome.applied.problems.len();
    let said = vec![
        ("berth.result", text(if problems == 0 { "done" } else { "problems" })),
        ("berth.sequence", number(outcome.applied.sequence)),
        ("berth.written", number(outcome.written)),
        ("berth.removed", number(outcome.pruned)),
        ("berth.problems", number(problems)),
    ];
    Some(WorkEnd { name: "round", said, failure: None })
}

/// Converts the work to one trace. Each step lasts until the next one begins.
pub(super) fn trace(end: WorkEnd, steps: &[Beginning], took: Duration, ended: SystemTime) -> Vec<Span> {
    let (trace, id) = (u128::from(chance()) << 64 | u128::from(chance()), chance());
    let begun = ended.checked_sub(took).unwrap_or(ended);
    let WorkEnd { name, said, failure } = end;
    let mut spans = vec![Span { trace, id, parent: None, name, begun, ended, said, failure }];
    let ends = steps.iter().skip(1).map(|step| step.at).chain([ended]);
    spans.extend(steps.iter().zip(ends).map(|(step, until)| Span {
        trace,
        id: chance(),
        parent: Some(id),
        name: step.name,
        begun: step.at.clamp(begun, ended),
        ended: until.clamp(begun, ended),
        said: Vec::new(),
        failure: None,
    }));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lie_within_their_work_one_after_the_other() {
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let step = |name, seconds| Beginning { name, at: at(seconds) };
        let end = WorkEnd { name: "pass", said: Vec::new(), failure: None };
        let steps = [step("early", 1), step("fetching", 11), step("pushing", 14)];
        let spans = trace(end, &steps, Duration::from_secs(10), at(20));
        let lengths: Vec<_> = spans.iter().map(|span| (span.name, span.begun, span.ended)).collect();
        let wanted = [("pass", 10, 20), ("early", 10, 11), ("fetching", 11, 14), ("pushing", 14, 20)];
        assert_eq!(lengths, wanted.map(|(name, begun, ended)| (name, at(begun), at(ended))));
        assert!(
            spans[1..].iter().all(|step| step.parent == Some(spans[0].id) && step.trace == spans[0].trace)
        );
    }
}
