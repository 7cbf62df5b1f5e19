//! One message to a webhook of somebody else. Its address is a secret: who knows it may write there.

use std::fmt;
use std::time::Duration;

use serde_json::Value as Json;
use ureq::http::{Request, header};

use super::error::ForgeError;
use super::http::{agent, harmless};
use super::{PAUSES, with_retries};
use crate::token::Token;

/// The address of a webhook. Nothing prints it.
#[derive(Clone)]
pub struct Hook {
    address: Token,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook(…)")
    }
}

impl Hook {
    /// Takes an address over `https`, or `http` on this machine. `None` for anything else.
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
        is_fit.then(|| Hook { address: Token::new(address) })
    }

    /// Posts a message. It is tried again while the other side is busy or away.
    pub fn post(&self, message: &Json) -> Result<(), ForgeError> {
        with_retries(PAUSES, || self.try_post(message))
    }

    fn try_post(&self, message: &Json) -> Result<(), ForgeError> {
        let api = || "the webhook".to_owned();
        let unreachable =
            |why: String| ForgeError::Unreachable { api: api(), reason: harmless(&self.address, &why) };
        let address = self.address.secret();
        let request = Request::post(address).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(message.to_string()).map_err(|error| unreachable(error.to_string()))?;
        let answer = agent(address).run(request).map_err(|error| unreachable(error.to_string()))?;
        let status = answer.status();
        let asked = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        match status.as_u16() {
            200..=299 => Ok(()),
            429 | 500..=599 => Err(ForgeError::HookBusy {
                reason: status.to_string(),
                retry_after: asked.map(Duration::from_secs),
            }),
            _ => Err(ForgeError::HookRefused { reason: status.to_string() }),
        }
    }
}
