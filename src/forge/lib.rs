//! A pull request on a forge: finds it in the environment of a CI run, and writes one comment and one commit status.
//!
//! - [`ci_run`]: finds a [`PullRequest`] in the variables of a CI run, an event's file and flags.
//! - [`client`]: maintains one comment of a pull request and sets a status. It supports the APIs of GitHub, GitLab,
//!   and Gitea with Forgejo.
//! - [`token`]: a credential that is never printed.
//!
//! A client blocks the calling thread: a review sends a handful of requests and has nothing else to do.
//!
//! ```no_run
//! use berth_forge::{Client, Given, Marker, State, Status, ci_run};
//!
//! # fn review() -> Result<(), Box<dyn std::error::Error>> {
//! let variables = std::env::vars().collect();
//! let event = ci_run::event_file(&variables).map(std::fs::read_to_string).transpose()?;
//! let pull_request = ci_run::read(&variables, event.as_deref(), &Given::default())?;
//! if let Some(token) = ci_run::token(&variables, pull_request.forge) {
//!     let client = Client::new(&pull_request, token);
//!     let comment = client.put_comment(&Marker::new("clusters/prod"), "### 2 clusters change")?;
//!     let status = Status::new(State::Success, "2 clusters change").link(comment.url);
//!     client.set_status(&pull_request.head_commit, &status)?;
//! }
//! # Ok(())
//! # }
//! ```

pub mod ci_run;
pub mod client;
#[cfg(test)]
mod testing;
pub mod token;

pub use ci_run::{EnvironmentError, Forge, Given, Links, PullRequest, Repository};
pub use client::{Client, ForgeError, Marker, Protection, Pushers, PutComment, State, Status, Written};
pub use token::Token;
