//! A web server's clock, from the date of its answers.

use berth_base::model::Timestamp;

use crate::client::{Client, PATIENCE, Request, Roots};

/// Asks a server for its time, without credentials. `None` if the answer has no readable date.
pub fn server_time(url: &str) -> Option<Timestamp> {
    let answer = Client::new(url, &Roots::default()).send(Request::head(url), None, PATIENCE).ok()?;
    read(answer.headers().get("date")?.to_str().ok()?)
}

/// Reads a date in HTTP's format: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn read(date: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [_, day, month, year, time, "GMT"] = date.split(' ').collect::<Vec<_>>()[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    format!("{year}-{month:02}-{day}T{time}Z").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_an_answer_is_a_moment() {
        let moment = "1994-11-06T08:49:37Z".parse().ok();
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), moment);
        for odd in ["", "Sun, 06 Nov 1994 08:49:37 CET", "Sunday, 06-Nov-94 08:49:37 GMT", "x y z"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
