//! Addresses, error messages, and real exchanges with a repository on this machine.

mod addresses;
mod exchanging;
mod verdicts;
