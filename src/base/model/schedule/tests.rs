use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

fn next(schedule: &str, zone: &str, after: &str) -> String {
    let schedule = Schedule::parse(schedule).expect("a schedule");
    let zone = time_zone(zone).expect("a time zone");
    schedule.next(at(after), &zone).map_or("never".to_owned(), |moment| moment.to_string())
}

fn last(schedule: &str, zone: &str, before: &str) -> String {
    let schedule = Schedule::parse(schedule).expect("a schedule");
    let zone = time_zone(zone).expect("a time zone");
    schedule.last(at(before), &zone).map_or("never".to_owned(), |moment| moment.to_string())
}

#[test]
fn fields_have_names_ranges_lists_and_steps() {
    // 2026-01-01 is a Thursday.
    let from = "2026-01-01T00:00:00Z";
    for (schedule, moment) in [
        ("0 14 * * FRI", "2026-01-02T14:00:00Z"),
        ("0 14 * * 5", "2026-01-02T14:00:00Z"),
        ("30 8 * feb mon-fri", "2026-02-02T08:30:00Z"),
        ("*/20 * * * *", "2026-01-01T00:20:00Z"),
        ("5/20 * * * *", "2026-01-01T00:05:00Z"),
        ("10-40/15,50 3 * * *", "2026-01-01T03:10:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0 0 * * 7", "2026-01-04T00:00:00Z"),
        ("0 0 * * 0", "2026-01-04T00:00:00Z"),
        ("0 0 31 * *", "2026-01-31T00:00:00Z"),
        ("0 0 ? * ?", "2026-01-02T00:00:00Z"),
    ] {
        assert_eq!(next(schedule, "UTC", from), moment, "{schedule}");
    }
}

#[test]
fn one_of_two_named_days_is_enough_and_a_star_leaves_the_other_to_decide() {
    let from = "2026-01-01T00:00:00Z";
    assert_eq!(next("0 0 15 * SUN", "UTC", from), "2026-01-04T00:00:00Z");
    assert_eq!(next("0 0 3 * SUN", "UTC", from), "2026-01-03T00:00:00Z");
    // Every second day, and only if it is a Sunday.
    assert_eq!(next("0 0 */2 * SUN", "UTC", from), "2026-01-11T00:00:00Z");
}

#[test]
fn the_clock_of_the_place_counts() {
    let zone = "Europe/Berlin";
    assert_eq!(next("0 14 * * FRI", zone, "2026-01-01T00:00:00Z"), "2026-01-02T13:00:00Z");
    assert_eq!(next("0 14 * * FRI", zone, "2026-07-01T00:00:00Z"), "2026-07-03T12:00:00Z");
    assert_eq!(next("0 14 * * FRI", zone, "2026-01-02T13:00:00Z"), "2026-01-09T13:00:00Z");
    assert_eq!(last("0 14 * * FRI", zone, "2026-01-02T13:00:00Z"), "2026-01-02T13:00:00Z");
    assert_eq!(last("0 14 * * FRI", zone, "2026-01-02T12:59:59Z"), "2025-12-26T13:00:00Z");
}

#[test]
fn a_skipped_time_counts_at_the_end_of_the_gap_and_a_repeated_one_the_first_time() {
    let zone = "Europe/Berlin";
    // At 02:00 on 2026-03-29 the clock goes to 03:00.
    assert_eq!(next("30 2 * * *", zone, "2026-03-28T12:00:00Z"), "2026-03-29T01:00:00Z");
    assert_eq!(next("30 2 * * *", zone, "2026-03-29T01:00:00Z"), "2026-03-30T00:30:00Z");
    // At 03:00 on 2026-10-25 the clock goes back to 02:00.
    assert_eq!(next("30 2 * * *", zone, "2026-10-24T12:00:00Z"), "2026-10-25T00:30:00Z");
    assert_eq!(next("30 2 * * *", zone, "2026-10-25T00:30:00Z"), "2026-10-26T01:30:00Z");
    assert_eq!(last("30 2 * * *", zone, "2026-10-25T01:15:00Z"), "2026-10-25T00:30:00Z");
}

#[test]
fn a_clock_that_goes_back_over_midnight_repeats_nothing() {
    // At 00:00 on 2018-02-18 the clock of Sao Paulo goes back to 23:00 of the day before.
    let zone = "America/Sao_Paulo";
    assert_eq!(last("30 23 * * *", zone, "2018-02-18T02:10:00Z"), "2018-02-18T01:30:00Z");
    assert_eq!(next("30 23 * * *", zone, "2018-02-18T01:30:00Z"), "2018-02-19T02:30:00Z");
}

/// Walks minute by minute: a time counts when the clock first shows it, or skips it.
fn brute_force(schedule: &Schedule, zone: &TimeZone, from: Timestamp, minutes: i64) -> Vec<Timestamp> {
    let minute = Span::new().minutes(1);
    // Starts a day earlier, to notice a clock that has just gone back.
    let start = from.checked_sub(Span::new().hours(24)).expect("a moment");
    let mut shown = zone.to_datetime(start);
    let mut found = Vec::new();
    for index in 1..=minutes + 24 * 60 {
        let moment = start.checked_add(Span::new().minutes(index)).expect("a moment");
        let mut is_due = false;
        while shown < zone.to_datetime(moment) {
            shown = shown.checked_add(minute).expect("a time");
            is_due |= schedule.is_on(shown.date())
                && schedule.hours.contains(&shown.hour())
                && schedule.minutes.contains(&shown.minute());
        }
        found.extend(Some(moment).filter(|moment| is_due && *moment > from));
    }
    found
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn moments_are_those_of_a_walk_minute_by_minute(
        minute in proptest::sample::select(vec!["0", "30", "*/20", "15,45", "59"]),
        hour in proptest::sample::select(vec!["*", "2", "0,23", "1-3", "*/6"]),
        day in proptest::sample::select(vec!["* * *", "25-30 * *", "* * SUN", "29 * SAT", "*/2 * MON-FRI"]),
        // Each zone changes its clock in its own way, one of them by half an hour.
        place in proptest::sample::select(vec![
            ("Europe/Berlin", "2026-03-28T00:17:00Z"), ("Europe/Berlin", "2026-10-24T00:00:00Z"),
            ("America/New_York", "2026-03-07T12:00:00Z"), ("America/New_York", "2026-10-31T12:00:00Z"),
            ("Australia/Lord_Howe", "2026-04-04T00:00:00Z"), ("Australia/Lord_Howe", "2026-10-03T00:00:00Z"),
            ("America/Sao_Paulo", "2018-02-17T00:00:00Z"), ("America/Sao_Paulo", "2018-11-03T00:00:00Z"),
            ("Pacific/Apia", "2011-12-29T00:00:00Z"), ("UTC", "2026-02-27T23:59:00Z"),
        ]),
    ) {
        let schedule = Schedule::parse(&format!("{minute} {hour} {day}")).expect("a schedule");
        let (zone, from) = (time_zone(place.0).expect("a time zone"), at(place.1));
        let walked = brute_force(&schedule, &zone, from, 4 * 24 * 60);
        let mut now = from;
        for moment in walked {
            proptest::prop_assert_eq!(schedule.next(now, &zone), Some(moment));
            let before = moment.checked_sub(Span::new().seconds(1)).expect("a moment");
            let last = if now == from { schedule.last(from, &zone) } else { Some(now) };
            proptest::prop_assert_eq!(schedule.last(before, &zone), last);
            proptest::prop_assert_eq!(schedule.last(moment, &zone), Some(moment));
            now = moment;
        }
    }
}

#[test]
fn hours_are_those_on_the_wall() {
    let zone = time_zone("Europe/Berlin").expect("a time zone");
    // From Friday 14:00 to Monday 08:00, across the change to summer time.
    let end = add_on_the_wall(at("2026-03-27T13:00:00Z"), 66 * 3_600, &zone);
    assert_eq!(end, at("2026-03-30T06:00:00Z"));
}

#[test]
fn faults_name_the_field() {
    let fault = |text| Schedule::parse(text).expect_err("a fault");
    assert_eq!(
        fault("0 14 * *"),
        "has 4 fields, but needs five: minute, hour, day of the month, month, day of the week"
    );
    assert_eq!(
        fault("0 14 * * FRY"),
        "has the day of the week `FRY`, but it must be from 0 to 7 or SUN to SAT"
    );
    assert_eq!(fault("60 * * * *"), "has the minute `60`, but it must be from 0 to 59");
    assert_eq!(fault("0 +1 * * *"), "has the hour `+1`, but it must be from 0 to 23");
    assert_eq!(
        fault("0 0 * * FRI-MON"),
        "has the day of the week `FRI-MON`, whose end comes before its start"
    );
    assert_eq!(fault("*/0 * * * *"), "has the step `0` in its minute, but a step must be from 1 to 255");
    assert_eq!(fault("0 0 31 2,4 *"), "never comes: none of its months has such a day");
}

#[test]
fn unknown_time_zones_have_a_neighbour() {
    assert_eq!(time_zone("Europe/Berlim"), None);
    assert_eq!(nearest_time_zone("Europe/Berlim").as_deref(), Some("did you mean `Europe/Berlin`?"));
}
