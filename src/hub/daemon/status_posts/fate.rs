//! The fate of a status that somebody sends, as an answer and as a label.

use berth_http::listener::{Answer, StatusCode};

/// The fate of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is in the repository.
    Kept,
    /// It was there already.
    Known,
    /// A newer one is known, or its time is not now.
    Untimely(String),
    Unsigned(String),
    /// The key does not speak for its cluster.
    Refused(String),
    Unreadable(String),
    NoLength,
    TooLarge,
    TooMany,
    /// It may be taken later, or by another daemon.
    Unavailable(&'static str),
}

/// The values of the label that counts statuses.
pub const RESULTS: [&str; 8] =
    ["kept", "known", "untimely", "unsigned", "refused", "unreadable", "too_many", "unavailable"];

impl Fate {
    /// The label that counts it.
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
            Fate::NoLength => (StatusCode::LENGTH_REQUIRED, "the request does not say its length".to_owned()),
            Fate::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the status is too long".to_owned()),
            Fate::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too many requests".to_owned()),
            Fate::Unavailable(why) => (StatusCode::SERVICE_UNAVAILABLE, why.to_owned()),
        };
        Answer::plain(status, format!("{text}\n"))
    }
}
