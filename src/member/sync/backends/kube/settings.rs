//! The settings of a Kubernetes backend.

use std::sync::Arc;
use std::time::Duration;

use super::drift::mode::DriftMode;
use super::tenant::Tenant;
use crate::live::Access;
use crate::sync::health::custom::HealthRules;
use crate::sync::override_objects::OverrideObjects;
use berth_lease::Lease;

/// The settings of a Kubernetes backend.
#[derive(Clone, Debug)]
pub struct Settings {
    pub access: Access,
    pub fleet: String,
    /// The namespace of the parent object.
    pub namespace: String,
    /// The number of concurrent requests.
    pub at_once: usize,
    /// The time an object may take to become healthy.
    pub deadline: Duration,
    /// People's rules for the health of their own kinds.
    pub rules: Arc<HealthRules>,
    /// The silence after which a watch counts as lost.
    pub silence: Duration,
    /// `None`: nothing keeps two syncers apart.
    pub lease: Option<Lease>,
    /// The account that writes the objects of a namespace; berth's own if unset.
    pub tenant: Option<Tenant>,
    /// Namespaces that are never removed; a name that ends with `*` is a prefix.
    pub protected: Vec<String>,
    /// The objects of that namespace that hold local overrides.
    pub overrides_from: Vec<OverrideObjects>,
    /// True if syncs are told as Events.
    pub events: bool,
    /// Tries every object that is not as wanted, because nothing is written: for people to see the server's answers.
    pub only_tries: bool,
    /// The treatment of drift where an object's annotation does not set it.
    pub drift: DriftMode,
}
