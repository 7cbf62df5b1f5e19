//! The verdict on a plan, or on an error without one, in all its forms.

use serde_json::Value as Json;

use crate::output::plan_forms::{PlanReport, failure_markdown};
use crate::planning::planned::{FailOn, Planned};
use crate::process::exit::{CommandError, Exit};
use berth_forge::State;

/// The result of a review.
#[derive(Debug)]
pub(super) struct Verdict {
    pub exit: Exit,
    pub state: State,
    /// A title of one line.
    pub title: String,
    pub markdown: String,
    /// The forms that exist only with a plan.
    pub lines: Option<Lines>,
}

/// Problems and effects at the lines that they concern.
#[derive(Debug)]
pub(super) struct Lines {
    pub workflow_commands: String,
    pub sarif: Json,
    pub code_quality: Json,
}

impl Verdict {
    pub fn of(planned: &Planned, report: &PlanReport<'_>, fail_on: &[FailOn]) -> Verdict {
        let exit = planned.exit(fail_on);
        let state = match exit {
            Exit::Done => State::Success,
            // Only an approval is missing.
            Exit::Held if planned.refused.is_empty() => State::Pending,
            _ => State::Failure,
        };
        let title = match planned.refused.is_empty() {
            false => format!("`berth run` would refuse it; {}", report.title()),
            true => report.title(),
        };
        let lines = Lines {
            workflow_commands: report.workflow_commands(),
            sarif: report.sarif(),
            code_quality: report.code_quality(),
        };
        Verdict { exit, state, title, markdown: report.markdown(), lines: Some(lines) }
    }

    /// Adds a last line to the comment.
    #[must_use]
    pub fn with_line(mut self, line: Option<String>) -> Verdict {
        self.markdown.extend(line.map(|line| format!("\n{line}\n")));
        self
    }

    /// Makes a verdict from an error, because an earlier commit's comment must not stay.
    pub fn of_error(error: &CommandError) -> Verdict {
        let state = if error.exit == Exit::Faulty { State::Failure } else { State::Error };
        let title = error.message.lines().next().unwrap_or_default().to_owned();
        Verdict { exit: error.exit, state, title, markdown: failure_markdown(error), lines: None }
    }
}
