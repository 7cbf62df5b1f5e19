//! Reads the present clusters of a Federated object from `status.clusters`, and their replicas from its overrides.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::settle::REPLICAS;
use crate::import::{Placed, Standing};

/// States in which the member has no object of KubeFed's.
const ABSENT: [&str; 4] = ["AlreadyExists", "CreationFailed", "CreationTimedOut", "ManagedLabelFalse"];

/// States of an object that is being removed and still has its former form.
const LEAVING: [&str; 5] =
    ["DeletionFailed", "DeletionTimedOut", "LabelRemovalFailed", "LabelRemovalTimedOut", "WaitingForRemoval"];

pub(super) fn placed(object: &Json) -> Placed {
    let clusters = list(object, "/status/clusters").iter().filter_map(|entry| {
        let word = entry.get("status").and_then(Json::as_str).unwrap_or_default();
        Some((entry.get("name")?.as_str()?.to_owned(), standing(word)))
    });
    Placed { clusters: clusters.collect(), replicas: replicas(object), ..Placed::default() }
}

fn standing(word: &str) -> Standing {
    let there = !ABSENT.contains(&word);
    let doubtful = there && !word.is_empty() && !LEAVING.contains(&word);
    Standing { there, doubtful, word: word.to_owned() }
}

fn replicas(object: &Json) -> BTreeMap<String, i64> {
    let of_entry = |entry: &Json| {
        let cluster = entry.get("clusterName")?.as_str()?;
        let operations = entry.get("clusterOverrides")?.as_array()?;
        let ours =
            operations.iter().rev().find(|one| one.get("path").and_then(Json::as_str) == Some(REPLICAS))?;
        Some((cluster.to_owned(), ours.get("value")?.as_i64()?))
    };
    list(object, "/spec/overrides").iter().filter_map(of_entry).collect()
}

fn list<'a>(object: &'a Json, pointer: &str) -> &'a [Json] {
    object.pointer(pointer).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}
