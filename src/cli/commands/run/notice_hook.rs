//! Posts one message to a webhook. Its address is a secret: anyone who knows it can post there.

use std::time::Duration;

use serde_json::Value as Json;

use crate::process::exit::{CommandError, Exit};
use berth_http::client::{Client, ClientError, PATIENCE, Request, Roots, header, retry_after, short_line};
use berth_http::{PAUSES, Retry, Secret, with_retries};

/// The characters of a failure's reason that are shown.
const LONGEST_REASON: usize = 200;

/// The address of a webhook. It is never printed.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    address: Secret,
}

/// The reasons why a webhook did not take a message.
#[derive(Debug, thiserror::Error)]
pub(super) enum HookError {
    #[error("the webhook is busy, after several tries: {reason}")]
    Busy { reason: String, retry_after: Option<Duration> },
    #[error("the webhook refuses the message: {0}")]
    Refused(String),
    #[error("the webhook cannot be reached: {0}")]
    Unreachable(String),
}

impl From<HookError> for CommandError {
    fn from(error: HookError) -> CommandError {
        let hint = match error {
            HookError::Refused(_) => "check the webhook's address, and the form of its messages",
            HookError::Busy { .. } | HookError::Unreachable(_) => "run it again later",
        };
        CommandError::new(Exit::Unreachable, error.to_string()).hint(hint)
    }
}

impl HookError {
    fn retry(&self) -> Retry {
        match self {
            HookError::Busy { retry_after, .. } => Retry::of_busy(*retry_after),
            HookError::Unreachable(_) => Retry::Soon,
            HookError::Refused(_) => Retry::Never,
        }
    }
}

impl Hook {
    /// Accepts an address over `https`, or over `http` on this machine. `None` for any other.
    pub fn new(address: &str) -> Option<Hook> {
        let address = address.trim();
        let is_local = || {
            let rest = address.strip_prefix("http://");
            rest.is_some_and(|rest| {
                ["127.0.0.1:", "localhost:", "[::1]:"].iter().any(|host| rest.starts_with(host))
                    && !rest.contains('@')
            })
        };
        let is_plain = address.chars().all(|c| c.is_ascii_graphic());
        let is_fit = is_plain && (address.starts_with("https://") || is_local());
        is_fit.then(|| Hook { address: Secret::new(address) })
    }

    /// Posts a message. Retries while the server is busy or unreachable.
    pub fn post(&self, message: &Json) -> Result<(), HookError> {
        with_retries(PAUSES, || self.try_post(message), HookError::retry)
    }

    fn try_post(&self, message: &Json) -> Result<(), HookError> {
        let unreachable = |error: ClientError| {
            let why = self.address.hide_in(&error.to_string());
            HookError::Unreachable(short_line(&why, LONGEST_REASON))
        };
        let address = self.address.reveal();
        let request = Request::post(address).header(header::CONTENT_TYPE, "application/json");
        let client = Client::new(address, &Roots::default());
        let body = message.to_string();
        let answer = client.send(request, Some(body.as_bytes()), PATIENCE).map_err(unreachable)?;
        let status = answer.status();
        match status.as_u16() {
            200..=299 => Ok(()),
            429 | 500..=599 => Err(HookError::Busy {
                reason: status.to_string(),
                retry_after: retry_after(answer.headers()),
            }),
            _ => Err(HookError::Refused(status.to_string())),
        }
    }
}
