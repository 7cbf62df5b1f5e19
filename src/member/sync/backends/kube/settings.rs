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
    /// The user's rules for the health of other kinds.
    pub rules: Arc<HealthRules>,
    /// The silence after which a watch counts as lost.
    pub silence: Duration,
    /// `None`: two syncers can write at the same time.
    pub lease: Option<Lease>,
    /// The account that writes the objects of a namespace; berth's own if unset.
    pub tenant: Option<Tenant>,
    /// Namespaces that are never removed; a name that ends with `*` is a prefix.
    pub protected: Vec<String>,
    /// The objects of berth's namespace that contain local overrides.
    pub overrides_from: Vec<OverrideObjects>,
    /// Writes Events about syncs.
    pub events: bool,
    /// Tries every object that may differ from its wanted form. For commands that write nothing and show the server's
    /// answers.
    pub only_tries: bool,
    /// The treatment of drift, unless an object's annotation sets it.
    pub drift: DriftMode,
}
