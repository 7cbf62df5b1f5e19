//! What is done about an object that went away from what was applied: put right, said, or neither for a time.
//!
//! What an object says comes before what is said for the whole member. The moment is an argument.

use crate::sync::desired::Desired;
use berth_base::model::Timestamp;
use berth_base::model::annotation::DRIFT;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Correct,
    /// Only said, with who changed what.
    Report,
    /// Neither, until then.
    IgnoreUntil(Timestamp),
}

/// The mode of an object at a moment.
pub fn of(desired: &Desired, otherwise: Mode, now: Timestamp) -> Result<Mode, String> {
    let Some(text) = desired.annotation(DRIFT) else { return Ok(otherwise) };
    read(text.trim(), otherwise, now).ok_or_else(|| {
        format!(
            "its annotation `{DRIFT}` is none of `correct`, `report` and `ignore-until=` with a time as in 2026-01-31T12:00:00Z"
        )
    })
}

fn read(text: &str, otherwise: Mode, now: Timestamp) -> Option<Mode> {
    match text {
        "correct" => Some(Mode::Correct),
        "report" => Some(Mode::Report),
        text => {
            let until: Timestamp = text.strip_prefix("ignore-until=")?.trim().parse().ok()?;
            // A time that is over says nothing any more.
            Some(if now < until { Mode::IgnoreUntil(until) } else { otherwise })
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
        let read = |text: &str| read(text, Mode::Report, now);
        assert_eq!(read("correct"), Some(Mode::Correct));
        assert_eq!(read("report"), Some(Mode::Report));
        let later = "2026-01-31T12:00:01Z";
        assert_eq!(read(&format!("ignore-until={later}")), Some(Mode::IgnoreUntil(at(later))));
        assert_eq!(read("ignore-until=2026-01-31T12:00:00Z"), Some(Mode::Report));
        for bad in ["", "ignore", "ignore-until=", "ignore-until=tomorrow", "Report"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
