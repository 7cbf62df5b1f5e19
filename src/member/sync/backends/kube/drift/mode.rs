//! The treatment of an object that others changed: correct it, report it, or ignore it for a time.
//!
//! An object's annotation overrides the member's setting. The moment is an argument.

use crate::sync::desired::Desired;
use berth_base::model::Timestamp;
use berth_base::model::annotation::DRIFT;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriftMode {
    #[default]
    Correct,
    /// Drift is only reported, with its authors.
    Report,
    /// Until this moment, drift is neither corrected nor reported.
    IgnoreUntil(Timestamp),
}

/// Returns the mode of an object at a moment.
pub fn of(desired: &Desired, otherwise: DriftMode, now: Timestamp) -> Result<DriftMode, String> {
    let Some(text) = desired.annotation(DRIFT) else { return Ok(otherwise) };
    read(text.trim(), otherwise, now).ok_or_else(|| {
        format!(
            "its annotation `{DRIFT}` is none of `correct`, `report` and `ignore-until=` with a time as in 2026-01-31T12:00:00Z"
        )
    })
}

fn read(text: &str, otherwise: DriftMode, now: Timestamp) -> Option<DriftMode> {
    match text {
        "correct" => Some(DriftMode::Correct),
        "report" => Some(DriftMode::Report),
        text => {
            let until: Timestamp = text.strip_prefix("ignore-until=")?.trim().parse().ok()?;
            // An end in the past has no effect.
            Some(if now < until { DriftMode::IgnoreUntil(until) } else { otherwise })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_and_ends_with_its_time() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-01-31T12:00:00Z");
        let read = |text: &str| read(text, DriftMode::Report, now);
        assert_eq!(read("correct"), Some(DriftMode::Correct));
        assert_eq!(read("report"), Some(DriftMode::Report));
        let later = "2026-01-31T12:00:01Z";
        assert_eq!(read(&format!("ignore-until={later}")), Some(DriftMode::IgnoreUntil(at(later))));
        assert_eq!(read("ignore-until=2026-01-31T12:00:00Z"), Some(DriftMode::Report));
        for bad in ["", "ignore", "ignore-until=", "ignore-until=tomorrow", "Report"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
