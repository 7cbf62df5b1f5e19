//! The outcome of a status sent by POST, as an answer and as a label of a counter.

use berth_http::listener::{Answer, StatusCode};

/// The outcome of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The status was stored in the repository.
    Kept,
    /// The status was already stored.
    Known,
    /// A newer status is known, or its time is too far ahead.
    Untimely(String),
    Unsigned(String),
    /// The key may not report for the cluster.
    Refused(String),
    Unreadable(String),
    NoLength,
    TooLarge,
    TooMany,
    /// The status may be accepted later, or by another daemon.
    Unavailable(&'static str),
}

/// The values of the label.
pub const RESULTS: [&str; 8] =
    ["kept", "known", "untimely", "unsigned", "refused", "unreadable", "too_many", "unavailable"];

impl Fate {
    /// Returns the value of the label.
    pub fn word(&self) -> &'static str {
        match self {
            Fate::Kept => "kept",
            Fate::Known => "known",
            Fate::Untimely(_) => "untimely",
            Fate::Unsigned(_) => "unsigned",
            Fate::Refused(_) => "refused",
            Fate::Unreadable(_) | Fate::NoLength | Fate::TooLarge => "unreadable",
            Fate::TooMany => "too_many",
            Fate::Unavailable(_) => "unavailable",
        }
    }

    pub fn answer(self) -> Answer {
        let (status, text) = match self {
            Fate::Kept | Fate::Known => return Answer::plain(StatusCode::NO_CONTENT, ""),
            Fate::Untimely(why) => (StatusCode::CONFLICT, why),
            Fate::Unsigned(why) => (StatusCode::UNAUTHORIZED, why),
            Fate::Refused(why) => (StatusCode::FORBIDDEN, why),
            Fate::Unreadable(why) => (StatusCode::BAD_REQUEST, why),
            Fate::NoLength => {
                (StatusCode::LENGTH_REQUIRED, "the request has no valid `content-length`".to_owned())
            }
            Fate::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the status is too long".to_owned()),
            Fate::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too many requests".to_owned()),
            Fate::Unavailable(why) => (StatusCode::SERVICE_UNAVAILABLE, why.to_owned()),
        };
        Answer::plain(status, format!("{text}\n"))
    }
}
