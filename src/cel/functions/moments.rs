//! Moments and durations: read from text, compared, added, and split into parts in UTC. There is no "now".

use jiff::SignedDuration;
use jiff::tz::TimeZone;

use super::{CallResult, Function, text_of, whole_of};
use crate::types::Type::{Int, Moment, Span, Text};
use crate::value::Value;
use berth_base::model::Timestamp;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("timestamp", &[Moment], Moment, |_, values| Ok(values[0].clone())),
    Function::global("timestamp", &[Text], Moment, |_, values| {
        let text = text_of(&values[0]);
        text.parse()
            .map(Value::Moment)
            .map_err(|_| format!("`{text}` is no moment such as `2024-02-01T00:00:00Z`"))
    }),
    Function::global("timestamp", &[Int], Moment, |_, values| {
        let moment = Timestamp::from_second(whole_of(&values[0])).ok();
        moment.map(Value::Moment).ok_or_else(out_of_reach)
    }),
    Function::global("duration", &[Span], Span, |_, values| Ok(values[0].clone())),
    Function::global("duration", &[Text], Span, |_, values| {
        let text = text_of(&values[0]);
        span(text)
            .map(Value::Span)
            .ok_or_else(|| format!("`{text}` is no span of time such as `90s` or `1h30m`"))
    }),
    Function::global("_+_", &[Moment, Span], Moment, |_, values| shift(&values[0], &values[1], false)),
    Function::global("_+_", &[Span, Moment], Moment, |_, values| shift(&values[1], &values[0], false)),
    Function::global("_-_", &[Moment, Span], Moment, |_, values| shift(&values[0], &values[1], true)),
    Function::global("_-_", &[Moment, Moment], Span, |_, values| match values {
        [Value::Moment(a), Value::Moment(b)] => within_reach(a.duration_since(*b)),
        _ => Err(out_of_reach()),
    }),
    Function::global("_+_", &[Span, Span], Span, |_, values| spans(values, SignedDuration::checked_add)),
    Function::global("_-_", &[Span, Span], Span, |_, values| spans(values, SignedDuration::checked_sub)),
    Function::method("getFullYear", &[Moment], Int, |_, values| part(values, |at| i64::from(at.year()))),
    Function::method("getMonth", &[Moment], Int, |_, values| part(values, |at| i64::from(at.month()) - 1)),
    Function::method("getDate", &[Moment], Int, |_, values| part(values, |at| i64::from(at.day()))),
    Function::method("getDayOfMonth", &[Moment], Int, |_, values| part(values, |at| i64::from(at.day()) - 1)),
    Function::method("getDayOfYear", &[Moment], Int, |_, values| {
        part(values, |at| i64::from(at.day_of_year()) - 1)
    }),
    Function::method("getDayOfWeek", &[Moment], Int, |_, values| {
        part(values, |at| i64::from(at.weekday().to_sunday_zero_offset()))
    }),
    Function::method("getHours", &[Moment], Int, |_, values| part(values, |at| i64::from(at.hour()))),
    Function::method("getMinutes", &[Moment], Int, |_, values| part(values, |at| i64::from(at.minute()))),
    Function::method("getSeconds", &[Moment], Int, |_, values| part(values, |at| i64::from(at.second()))),
    Function::method("getMilliseconds", &[Moment], Int, |_, values| {
        part(values, |at| i64::from(at.millisecond()))
    }),
    Function::method("getHours", &[Span], Int, |_, values| whole(values, |span| span.as_hours())),
    Function::method("getMinutes", &[Span], Int, |_, values| whole(values, |span| span.as_mins())),
    Function::method("getSeconds", &[Span], Int, |_, values| whole(values, |span| span.as_secs())),
    Function::method("getMilliseconds", &[Span], Int, |_, values| {
        whole(values, |span| i64::try_from(span.as_millis()).unwrap_or_default())
    }),
];

fn out_of_reach() -> String {
    "this is no moment or span of time that can be kept".to_owned()
}

fn shift(moment: &Value, by: &Value, back: bool) -> CallResult {
    let (Value::Moment(moment), Value::Span(span)) = (moment, by) else { return Err(out_of_reach()) };
    let shifted = if back { moment.checked_sub(*span) } else { moment.checked_add(*span) };
    shifted.map(Value::Moment).map_err(|_| out_of_reach())
}

fn spans(values: &[Value], of: fn(SignedDuration, SignedDuration) -> Option<SignedDuration>) -> CallResult {
    match values {
        [Value::Span(a), Value::Span(b)] => of(*a, *b).ok_or_else(out_of_reach).and_then(within_reach),
        _ => Err(out_of_reach()),
    }
}

/// Checks the limit of durations, which are 64 bits of nanoseconds: about 292 years.
fn within_reach(span: SignedDuration) -> CallResult {
    let fits = i64::try_from(span.as_nanos()).is_ok();
    fits.then_some(Value::Span(span)).ok_or_else(out_of_reach)
}

fn part(values: &[Value], of: fn(jiff::civil::DateTime) -> i64) -> CallResult {
    match &values[0] {
        Value::Moment(moment) => Ok(Value::Int(of(TimeZone::UTC.to_datetime(*moment)))),
        _ => Err(out_of_reach()),
    }
}

fn whole(values: &[Value], of: fn(&SignedDuration) -> i64) -> CallResult {
    match &values[0] {
        Value::Span(span) => Ok(Value::Int(of(span))),
        _ => Err(out_of_reach()),
    }
}

/// Reads a duration in Go's form: a sign, then numbers with their units.
fn span(text: &str) -> Option<SignedDuration> {
    const UNITS: [(&str, i128); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut nanos: i128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > 30 {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        nanos = nanos.checked_add(digits.checked_mul(factor)?.checked_div(scale)?)?;
        rest = tail;
    }
    let nanos = i64::try_from(nanos).ok()?;
    Some(SignedDuration::from_nanos(if negative { -nanos } else { nanos }))
}

/// Writes seconds as a floating-point number, with as few digits as possible.
pub(super) fn span_text(span: SignedDuration) -> String {
    let seconds = span.as_secs() as f64 + f64::from(span.subsec_nanos()) / 1e9;
    format!("{seconds}s")
}
