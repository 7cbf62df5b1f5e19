//! Placing nowhere is no error, but somebody should know: a warning with the reasons summed up.

use crate::diag::{Diagnostic, Diagnostics};
use crate::model::placement::{Placement, Source};
use crate::model::{Decision, Refused};

const REASONS_NAMED: usize = 3;

/// Says what a person should know of a decision.
pub(super) fn about(placement: &Placement, decision: &Decision, diagnostics: &mut Diagnostics) {
    let message = decision.condition.as_ref().map(|condition| condition.message.as_str()).unwrap_or_default();
    let blocked = matches!(&placement.source, Source::Own(policy) if policy.blocked.is_some());
    let text = if blocked {
        format!("{}: {message}", decision.key)
    } else if decision.picks.is_empty() {
        let why = match decision.refused.as_slice() {
            [] if message.is_empty() => "there is no candidate".to_owned(),
            [] => message.to_owned(),
            refused => summed_up(refused),
        };
        format!("{} picks no cluster: {why}", decision.key)
    } else {
        return;
    };
    diagnostics.push(Diagnostic::warning(placement.origin.clone(), text));
}

fn summed_up(refused: &[Refused]) -> String {
    let clusters = |count| if count == 1 { "1 cluster".to_owned() } else { format!("{count} clusters") };
    let one = |refused: &Refused| format!("{} ({})", refused.reason, clusters(refused.clusters));
    let mut parts: Vec<_> = refused.iter().take(REASONS_NAMED).map(one).collect();
    let rest: usize = refused.iter().skip(REASONS_NAMED).map(|refused| refused.clusters).sum();
    if rest > 0 {
        parts.push(format!("other reasons ({})", clusters(rest)));
    }
    parts.join(", ")
}
