//! The arguments that several commands share, and their values.

pub(crate) mod applier;
pub(crate) mod fleet;
pub(crate) mod kubeconfig;
pub(crate) mod names;
pub(crate) mod pass;
pub(crate) mod registry;
pub(crate) mod remote;
pub(crate) mod signing;
pub(crate) mod state;
pub(crate) mod telemetry;
