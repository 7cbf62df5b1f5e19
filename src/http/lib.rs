//! HTTP within limits of time and size: a client for servers that berth asks, and a listener for those who ask berth.
//!
//! - [`client`]: a client for one address, which trusts what the machine trusts and follows no redirect by itself.
//!   [`with_retries`]: a request that is tried again. [`server_time`]: the clock of a server.
//!   [`Secret`]: text that nothing prints.
//! - [`listener`]: answers to the requests of strangers.

pub mod client;
pub mod listener;
mod retry;
mod secret;
mod server_time;

pub use retry::{PAUSES, Retry, with_retries};
pub use secret::Secret;
pub use server_time::server_time;
