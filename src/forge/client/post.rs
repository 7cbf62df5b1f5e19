//! One signed status to a daemon of berth.

use berth_base::diag::harmless_line;
use ureq::Agent;
use ureq::http::Request;

use super::http::agent;

/// The bytes of an answer that are worth showing.
const LONGEST_REASON: usize = 300;

/// A daemon that takes statuses. It blocks its caller.
#[derive(Debug)]
pub struct StatusDesk {
    url: String,
    agent: Agent,
}

/// The reasons why a status is not kept. Texts of the other side are one harmless line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatusPostError {
    /// It would be refused again.
    #[error("`{url}` refuses the status: {reason}")]
    Refused { url: String, reason: String },
    #[error("`{url}` cannot take the status now: {reason}")]
    Busy { url: String, reason: String },
    #[error("`{url}` cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
}

impl StatusDesk {
    /// Takes an address over `https`, or over `http` where plain traffic is allowed. Connects to nothing yet.
    pub fn new(url: &str, allows_plain: bool) -> Option<StatusDesk> {
        let is_plain = url.strip_prefix("http://").filter(|_| allows_plain);
        let rest = url.strip_prefix("https://").or(is_plain)?;
        let is_fit =
            !rest.is_empty() && !rest.contains(['@', '#']) && url.chars().all(|c| c.is_ascii_graphic());
        is_fit.then(|| StatusDesk { url: url.to_owned(), agent: agent(url) })
    }

    /// Sends a status with its signature. It is in the repository when this returns well.
    pub fn send(&self, status: &[u8], signature: &str) -> Result<(), StatusPostError> {
        let url = || self.url.clone();
        let unreachable =
            |reason: &str| StatusPostError::Unreachable { url: url(), reason: harmless(reason) };
        let request = Request::post(&self.url).header("berth-signature", signature);
        let request = request.header("content-type", "application/yaml").body(status);
        let request = request.map_err(|error| unreachable(&error.to_string()))?;
        let mut answer = self.agent.run(request).map_err(|error| unreachable(&error.to_string()))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let said = answer.body_mut().with_config().limit(1 << 16).read_to_string().unwrap_or_default();
        let reason = harmless(&format!("{} ({})", said.trim(), status.as_u16()));
        Err(match status.as_u16() {
            408 | 429 | 500..=599 => StatusPostError::Busy { url: url(), reason },
            _ => StatusPostError::Refused { url: url(), reason },
        })
    }
}

fn harmless(text: &str) -> String {
    harmless_line(&text.chars().take(LONGEST_REASON).collect::<String>()).into_owned()
}
