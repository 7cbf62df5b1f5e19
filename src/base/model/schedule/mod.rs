//! Schedules: recurring moments, in the five fields of cron and a time zone.
//!
//! Fields are minute, hour, day of the month, month and day of the week, with names, ranges, lists and steps.
//! If neither day field begins with `*`, matching one of them is enough. A time that the clock skips counts
//! at the end of the gap; a repeated time counts the first time. Time zones come from the bundled database,
//! so that every machine computes the same.

#[cfg(test)]
mod tests;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp};

/// The search limit in days: two leap days can be eight years apart.
const MOST_DAYS: usize = 366 * 9;

/// A cron schedule. It has no time zone of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    text: String,
    /// Ascending, like the hours.
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Field,
    months: Field,
    weekdays: Field,
}

/// The numbers of a field, one bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    bits: u64,
    /// The field begins with `*`, so only the other day field decides.
    is_open: bool,
}

/// The allowed form of one field.
struct FieldForm {
    name: &'static str,
    low: u8,
    high: u8,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const FORMS: [FieldForm; 5] = [
    FieldForm { name: "minute", low: 0, high: 59, names: &[] },
    FieldForm { name: "hour", low: 0, high: 23, names: &[] },
    FieldForm { name: "day of the month", low: 1, high: 31, names: &[] },
    FieldForm { name: "month", low: 1, high: 12, names: &MONTHS },
    FieldForm { name: "day of the week", low: 0, high: 7, names: &WEEKDAYS },
];

impl Schedule {
    /// Reads the five fields; the error names the wrong one, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Schedule, String> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts.as_slice() else {
            return Err(format!(
                "has {} fields, but needs five: minute, hour, day of the month, month, day of the week",
                parts.len()
            ));
        };
        let [minute, hour, day, month, weekday] = FORMS;
        let (minutes, hours) = (minute.read(minutes)?.numbers(), hour.read(hours)?.numbers());
        let (days, months) = (day.read(days)?, month.read(months)?);
        let mut weekdays = weekday.read(weekdays)?;
        // Sunday is both 0 and 7.
        weekdays.bits |= weekdays.bits >> 7;
        let schedule = Schedule { text: text.to_owned(), minutes, hours, days, months, weekdays };
        if !schedule.ever_comes() {
            return Err("never comes: none of its months has such a day".to_owned());
        }
        Ok(schedule)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first scheduled moment after `moment`.
    pub fn next(&self, moment: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let date = zone.to_datetime(moment).date();
        let dates = std::iter::successors(Some(date), |date| date.tomorrow().ok()).take(MOST_DAYS);
        dates.filter(|date| self.is_on(*date)).find_map(|date| {
            let passed = self.passed(date, moment, zone);
            (passed < self.times()).then(|| self.nth(date, passed, zone)).flatten()
        })
    }

    /// Returns the last scheduled moment that is not after `moment`.
    pub fn last(&self, moment: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // If the clock goes back over midnight, a time of tomorrow has already passed.
        let date = zone.to_datetime(moment).date();
        let date = date.tomorrow().unwrap_or(date);
        let dates = std::iter::successors(Some(date), |date| date.yesterday().ok()).take(MOST_DAYS);
        dates.filter(|date| self.is_on(*date)).find_map(|date| {
            let passed = self.passed(date, moment, zone);
            passed.checked_sub(1).and_then(|index| self.nth(date, index, zone))
        })
    }

    /// Returns the number of times on each day.
    fn times(&self) -> usize {
        self.minutes.len() * self.hours.len()
    }

    /// Returns the number of a day's times that are not after a moment. The times ascend, because clock
    /// changes keep their order.
    fn passed(&self, date: Date, moment: Timestamp, zone: &TimeZone) -> usize {
        let (mut low, mut high) = (0, self.times());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.nth(date, middle, zone).is_some_and(|time| time <= moment) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn nth(&self, date: Date, index: usize, zone: &TimeZone) -> Option<Timestamp> {
        let hour = self.hours.get(index / self.minutes.len())?;
        let minute = self.minutes.get(index % self.minutes.len())?;
        moment_of(date.at(*hour, *minute, 0, 0), zone)
    }

    fn is_on(&self, date: Date) -> bool {
        let has = |field: Field, number: i8| u8::try_from(number).is_ok_and(|number| field.has(number));
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let is_day = if self.days.is_open || self.weekdays.is_open { day && weekday } else { day || weekday };
        is_day && has(self.months, date.month())
    }

    fn ever_comes(&self) -> bool {
        let first = Date::constant(2000, 1, 1);
        let dates = std::iter::successors(Some(first), |date| date.tomorrow().ok());
        dates.take(MOST_DAYS).any(|date| self.is_on(date))
    }
}

impl Field {
    fn has(self, number: u8) -> bool {
        self.bits >> number & 1 == 1
    }

    fn numbers(self) -> Vec<i8> {
        (0..64_i8).filter(|number| self.bits >> number & 1 == 1).collect()
    }
}

impl FieldForm {
    fn read(&self, text: &str) -> Result<Field, String> {
        let mut bits = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(self.step(step)?)),
                None => (part, None),
            };
            let (from, to) = match range.split_once('-') {
                _ if range == "*" || range == "?" => (self.low, self.high),
                Some((from, to)) => (self.number(from)?, self.number(to)?),
                None if step.is_some() => (self.number(range)?, self.high),
                None => (self.number(range)?, self.number(range)?),
            };
            if from > to {
                let name = self.name;
                return Err(format!("has the {name} `{range}`, whose end comes before its start"));
            }
            let numbers = (from..=to).step_by(usize::from(step.unwrap_or(1)));
            bits |= numbers.fold(0, |bits, number| bits | 1 << number);
        }
        Ok(Field { bits, is_open: text.starts_with(['*', '?']) })
    }

    fn step(&self, text: &str) -> Result<u8, String> {
        let step = text.parse().ok().filter(|step| *step > 0);
        step.ok_or_else(|| {
            format!("has the step `{text}` in its {}, but a step must be from 1 to 255", self.name)
        })
    }

    fn number(&self, text: &str) -> Result<u8, String> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = named.and_then(|index| u8::try_from(index).ok()).map(|index| index + self.low);
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = named.or_else(|| text.parse().ok().filter(|_| is_number));
        number.filter(|number| (self.low..=self.high).contains(number)).ok_or_else(|| {
            let names = match self.names {
                [first, .., last] => format!(" or {first} to {last}"),
                _ => String::new(),
            };
            let FieldForm { name, low, high, .. } = self;
            format!("has the {name} `{text}`, but it must be from {low} to {high}{names}")
        })
    }
}

/// Returns the time zone with an IANA name.
pub fn time_zone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

/// Returns the nearest name of a time zone.
pub fn nearest_time_zone(name: &str) -> Option<String> {
    let all: Vec<String> =
        TimeZoneDatabase::bundled().available().map(|one| one.as_str().to_owned()).collect();
    let same =
        all.iter().find(|one| one.eq_ignore_ascii_case(name)).map(|one| format!("did you mean `{one}`?"));
    same.or_else(|| crate::diag::did_you_mean(name, all.iter().map(String::as_str)))
}

/// Adds seconds in local time: 24 hours end at the same time of the next day, even across a clock change.
pub fn add_on_the_wall(moment: Timestamp, seconds: i64, zone: &TimeZone) -> Timestamp {
    let span = Span::new().try_seconds(seconds).ok();
    let end = span.and_then(|span| zone.to_datetime(moment).checked_add(span).ok());
    end.and_then(|end| moment_of(end, zone)).unwrap_or(Timestamp::MAX)
}

/// Returns the moment at which a clock first shows a time, or skips it.
fn moment_of(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let moment = zone.to_ambiguous_timestamp(time);
    let is_gap = matches!(moment.offset(), AmbiguousOffset::Gap { .. });
    let moment = moment.compatible().ok()?;
    // The start of a gap is shifted to its very end, which does not precede itself.
    let after = moment.checked_add(Span::new().seconds(1)).ok()?;
    let gap_end = || zone.preceding(after).next().map(|transition| transition.timestamp());
    if is_gap { gap_end().or(Some(moment)) } else { Some(moment) }
}
