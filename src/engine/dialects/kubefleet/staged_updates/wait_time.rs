//! `waitTime`: hours, minutes and seconds in Go's form, such as `1h30m`.

use berth_base::diag::Diagnostic;
use berth_base::yaml::fields::Fields;

/// The longest duration that a hub can hold, in seconds: about 292 years.
const LONGEST: f64 = 9_223_372_036.0;

/// Reads the field `waitTime`, in whole seconds; a part of a second counts as one.
pub(super) fn wait_time(task: &mut Fields<'_>) -> Option<i64> {
    let text = task.str("waitTime")?;
    let seconds = seconds(text);
    if seconds.is_none() {
        let message = format!("{} is `{text}`, but must be a time above zero", task.path_of("waitTime"));
        let at = task.scope().pos(task.place_of("waitTime"));
        let hint = "write hours, minutes and seconds, such as `1h30m` or `45s`";
        task.scope().report(Diagnostic::error(at, message).hint(hint));
    }
    seconds
}

/// The seconds of a text such as `1h30m`; `None` where it has another form, or is zero or longer than a hub can hold.
fn seconds(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = rest.split_at(end);
        let is_number = !number.starts_with('.') && !number.ends_with('.') && number.matches('.').count() < 2;
        let number: f64 = number.parse().ok().filter(|_| is_number)?;
        sum += number
            * match unit.chars().next()? {
                'h' => 3600.0,
                'm' => 60.0,
                's' => 1.0,
                _ => return None,
            };
        rest = &unit[1..];
    }
    (sum > 0.0 && sum <= LONGEST).then(|| sum.ceil() as i64)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn hours_minutes_and_seconds_add_up() {
        for (text, wanted) in [
            ("1h", Some(3600)),
            ("1h30m", Some(5400)),
            ("1.5h", Some(5400)),
            ("45s", Some(45)),
            ("0.5s", Some(1)),
            ("10s10s", Some(20)),
            ("30m1h", Some(5400)),
        ] {
            assert_eq!(seconds(text), wanted, "{text}");
        }
        for text in
            ["", "0s", "1", "h", "1d", "1H", "-1h", "1h 30m", ".5h", "1.h", "1.2.3s", "500ms", "99999999h"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
