//! HTTP within limits of time and size: a client for requests to servers, and a listener for requests to berth.
//!
//! - [`client`]: a client for one address. It trusts the machine's certificate authorities and follows no redirects.
//!   [`with_retries`]: retries a request. [`server_time`]: a server's clock. [`Secret`]: text that is never printed.
//! - [`listener`]: answers requests of strangers.

pub mod client;
pub mod listener;
mod secret;

pub use client::server_time;
pub use client::{PAUSES, Retry, with_retries};
pub use secret::Secret;
