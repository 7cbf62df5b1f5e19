//! A pull request on a forge: found in the environment of a CI run, written to as one comment and one commit status.
//!
//! - [`environment`]: the variables of a CI run, an event's file and flags → a [`PullRequest`], or what is missing.
//! - [`client`]: a pull request and a token → a [`Client`], which keeps one comment up to date and sets a status.
//!   It speaks the APIs of GitHub, GitLab, and Gitea with Forgejo.
//! - [`token`]: a credential that nothing prints.
//!
//! A client blocks the thread that calls it: a review writes a handful of requests and has nothing else to do.
//!
//! ```no_run
//! use berth_forge::{Client, Given, Marker, State, Status, environment};
//!
//! # fn review() -> Result<(), Box<dyn std::error::Error>> {
//! let variables = std::env::vars().collect();
//! let event = environment::event_file(&variables).map(std::fs::read_to_string).transpose()?;
//! let pull_request = environment::read(&variables, event.as_deref(), &Given::default())?;
//! if let Some(token) = environment::token(&variables, pull_request.forge) {
//!     let client = Client::new(&pull_request, token);
//!     let comment = client.put_comment(&Marker::new("clusters/prod"), "### 2 clusters change")?;
//!     let status = Status::new(State::Success, "2 clusters change").link(comment.url);
//!     client.set_status(&pull_request.head_commit, &status)?;
//! }
//! # Ok(())
//! # }
//! ```

pub mod client;
pub mod environment;
#[cfg(test)]
mod testing;
pub mod token;

pub use client::{Client, ForgeError, Marker, Protection, Pushers, PutComment, State, Status, Written};
pub use environment::{EnvironmentError, Forge, Given, Links, PullRequest, Repository};
pub use token::Token;
