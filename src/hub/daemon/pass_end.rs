//! The reports when passes begin and end: the log, with the results of a pass and of its previews, and hooks for
//! metrics and Events.

use std::time::Duration;

use tracing::{error, info, warn};

use super::error::PassError;
use super::pass::{PassOutcome, PassResult};
use super::previews::PreviewChange;
use crate::publish::rollout_steps::Turn;
use berth_base::diag::{Diagnostic, Severity, harmless_line};

/// The end of a pass.
#[derive(Clone, Copy, Debug)]
pub enum PassEnd<'a> {
    /// Another daemon publishes; this one only fetched.
    StoodBy,
    /// Nothing moved since the last pass, so no pass was made.
    Spared,
    Done(&'a PassResult),
    Failed(&'a PassError),
    /// The pass panicked, which is a bug.
    Crashed,
}

pub trait PassHooks: Send {
    /// Called when a pass begins.
    fn begins(&mut self);

    /// Called when this daemon, one of several, becomes or stops being the one that publishes.
    fn leads(&mut self, leads: bool);

    /// Called when the settings changed; `well` is false if they are invalid.
    fn reloaded(&mut self, well: bool);

    /// Called when a pass ended, with its duration. The next pass waits until this returns.
    fn ended(&mut self, end: PassEnd<'_>, took: Duration);
}

pub(super) fn report(passed: &PassResult) {
    for diagnostic in passed.diagnostics.shown() {
        log(diagnostic);
    }
    for (severity, more) in passed.diagnostics.not_shown() {
        warn!(more, severity = severity.word(), "further diagnostics are not logged");
    }
    let counts = passed.plan.counts();
    if let PassOutcome::Published { commit, seq } = passed.outcome {
        info!(
            %commit,
            seq,
            removed = counts.removed,
            changed = counts.changed,
            added = counts.added,
            clusters = counts.clusters,
            "published"
        );
    }
    for step in &passed.rollout_steps {
        let Some(halt) = &step.halt else { continue };
        let (workload, release) = (&step.key, halt.release);
        match &halt.turn {
            Turn::Halted { reason } => warn!(%workload, release, reason, "rollout halted"),
            Turn::TakenBack { to, reason } => warn!(%workload, release, to, reason, "rollout taken back"),
            Turn::Continues | Turn::Replaces(_) => info!(%workload, release, "rollout continues"),
        }
    }
    for held in &passed.held {
        warn!(workload = %held.key, removes = held.losses(), approve = held.approval_of_all(), "held for approval");
    }
    info!(source = %passed.source, held = passed.held.len(), errors = passed.errors(), "pass done");
}

pub(super) fn report_previews(followed: Result<Vec<PreviewChange>, PassError>) {
    let changes = match followed {
        Ok(changes) => changes,
        Err(problem) => {
            warn!(error = %problem, hint = problem.hint(), "the previews could not be brought up to date");
            return;
        }
    };
    for change in changes {
        match change {
            PreviewChange::Made { of, on, commit } => info!(of, on, %commit, "previewed"),
            PreviewChange::Removed { on } => info!(on, "preview removed"),
            PreviewChange::Failed { of, why } => warn!(of, why = %harmless_line(&why), "no preview"),
        }
    }
}

/// Logs a diagnostic at its own level, with its place as fields.
fn log(diagnostic: &Diagnostic) {
    let at = diagnostic.at.as_ref();
    let file = at.map(|at| harmless_line(&at.file).into_owned());
    let (line, column) = (at.map(|at| at.line).filter(|line| *line > 0), at.map(|at| at.column));
    let column = column.filter(|_| line.is_some());
    let hint = diagnostic.hint.as_deref().map(|hint| harmless_line(hint).into_owned());
    let message = harmless_line(&diagnostic.message);
    match diagnostic.severity {
        Severity::Error => error!(file, line, column, hint, "{message}"),
        Severity::Warning => warn!(file, line, column, hint, "{message}"),
        Severity::Note => info!(file, line, column, hint, "{message}"),
    }
}
