//! Addresses, verdicts, and real exchanges with a repository of this machine.

mod addresses;
mod exchanging;
mod verdicts;
