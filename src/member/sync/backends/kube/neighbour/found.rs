//! The result of a survey of the cluster.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::standing::{Observed, Standing};
use crate::sync::health::Health;
use crate::sync::plan::Live;
use berth_base::model::ObjectId;

/// The interval at which objects are read again while the program's record is unchanged.
pub(super) const LOOKS_INTERVAL: Duration = Duration::from_secs(60);

/// The kinds that no program removes without berth.
pub(super) const GUARDED: [(&str, &str); 3] =
    [("", "Namespace"), ("", "PersistentVolumeClaim"), ("apiextensions.k8s.io", "CustomResourceDefinition")];

/// The state of the cluster at the last survey.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The versions of the program's record and source that the objects were read for, and the moment.
    pub seen: Option<(Json, Json, Instant)>,
    pub standing: Option<Standing>,
    pub wanted: BTreeMap<ObjectId, Observed>,
    /// The health of wanted objects that were unreadable.
    pub unseen: BTreeMap<ObjectId, Health>,
    /// True if the program's message names a wanted object.
    pub names_any: bool,
    /// Objects that the program leaves for berth to remove.
    pub left: BTreeMap<ObjectId, Live>,
    pub is_healthy: bool,
}
