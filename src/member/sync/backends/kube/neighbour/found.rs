//! What a survey of the cluster found.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::standing::{Observed, Standing};
use crate::sync::health::Health;
use crate::sync::plan::Live;
use berth_base::model::ObjectId;

/// The time after which objects are read again although the program's record did not change.
pub(super) const LOOKS_INTERVAL: Duration = Duration::from_secs(60);

/// The kinds that no program removes without berth, in any folder.
pub(super) const GUARDED: [(&str, &str); 3] =
    [("", "Namespace"), ("", "PersistentVolumeClaim"), ("apiextensions.k8s.io", "CustomResourceDefinition")];

/// The state of the cluster, as the last survey found it.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The versions of the program's record and of its source, and the moment: for them the objects were read.
    pub seen: Option<(Json, Json, Instant)>,
    pub standing: Option<Standing>,
    pub wanted: BTreeMap<ObjectId, Observed>,
    /// The health of wanted objects that could not be read.
    pub unseen: BTreeMap<ObjectId, Health>,
    /// True if the program's message names a wanted object.
    pub names_any: bool,
    /// Objects that are left for berth to remove.
    pub left: BTreeMap<ObjectId, Live>,
    pub is_healthy: bool,
}
