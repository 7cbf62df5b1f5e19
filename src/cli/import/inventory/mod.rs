//! Imports ClusterProfiles of any manager: the inventory, without any placement.
//!
//! A cluster may have a profile in the namespace of each of its users. Profiles of the same manager become one file.
//! Conditions are dropped, because a file would keep them for ever, and so are access data, because members pull.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::{Gathered, Importer, Options, objects, take};
use berth_engine::dialects::inventory::{GROUP, KIND, VERSION};
use berth_member::live::{Host, LiveError, Query, Resource};

pub(crate) const IMPORTER: Importer = Importer {
    name: "clusterprofiles",
    about: "Import the inventory of a hub with ClusterProfiles",
    details: "Brings in each cluster once, however many namespaces have its profile, with its labels, properties \
              and version. Conditions are left out, since they would not change in a file: members report on \
              their clusters. Nothing is placed by profiles, so that no first commit is made.",
    examples: "Example:\n  berth import clusterprofiles --context hub --out fleet",
    namespace: None,
    gather,
    settle: |_, _| {},
};

fn gather(host: &dyn Host, _: &Options) -> Result<Gathered, LiveError> {
    let resource = Resource::new(GROUP, VERSION, "clusterprofiles", KIND, true);
    let mut gathered = Gathered::default();
    let profiles = match host.list(&[Query::all(resource)]).into_iter().next() {
        Some(Ok(profiles)) => profiles,
        Some(Err(LiveError::NotServed { .. })) | None => {
            let (server, group) = (host.server().to_owned(), GROUP.to_owned());
            return Err(LiveError::NoHub { server, system: "the Cluster Inventory API".to_owned(), group });
        }
        Some(Err(error)) if error.is_final() => return Err(error),
        Some(Err(error)) => {
            gathered.missing.push(error);
            return Ok(gathered);
        }
    };
    for (name, mut profiles) in by_name(profiles) {
        // A profile that stays comes before one that is being deleted.
        profiles.sort_by_key(|profile| {
            (objects::is_deleting(profile), text(profile, "/metadata/namespace").to_owned())
        });
        let mut profiles = profiles.into_iter();
        let Some(first) = profiles.next() else { continue };
        let manager = text(&first, "/spec/clusterManager/name").to_owned();
        let others: Vec<Json> = profiles.collect();
        let foreign = others.iter().find(|one| text(one, "/spec/clusterManager/name") != manager);
        if let Some(foreign) = foreign {
            let message = format!(
                "`{name}` has profiles of `{manager}` and of `{}`; that of `{manager}` was imported",
                text(foreign, "/spec/clusterManager/name")
            );
            gathered.warn(message, Some("give one of the clusters another name, if they are not the same"));
        } else if others.iter().any(|one| facts(one) != facts(&first)) {
            let message = format!(
                "the profiles of `{name}` differ; that of namespace `{}` was imported",
                text(&first, "/metadata/namespace")
            );
            gathered.warn(message, None);
        }
        take(&mut gathered, first, cleaned);
    }
    Ok(gathered)
}

fn by_name(profiles: Vec<Json>) -> BTreeMap<String, Vec<Json>> {
    let mut found: BTreeMap<String, Vec<Json>> = BTreeMap::new();
    for profile in profiles {
        found.entry(text(&profile, "/metadata/name").to_owned()).or_default().push(profile);
    }
    found
}

/// Returns the imported part of a profile, except for its namespace.
fn facts(profile: &Json) -> Json {
    let mut profile = profile.clone();
    cleaned(&mut profile);
    profile["metadata"]["namespace"] = Json::Null;
    profile
}

fn cleaned(profile: &mut Json) {
    let of_property = |one: &Json| json!({"name": one["name"], "value": one["value"]});
    let properties = profile.pointer("/status/properties").and_then(Json::as_array);
    let properties: Vec<Json> = properties.into_iter().flatten().map(of_property).collect();
    let version = profile.pointer("/status/version").filter(|version| !version.is_null()).cloned();
    objects::object(profile);
    let mut status = Map::new();
    status.extend(version.map(|version| ("version".to_owned(), version)));
    if !properties.is_empty() {
        status.insert("properties".to_owned(), properties.into());
    }
    if !status.is_empty() {
        profile["status"] = status.into();
    }
}

fn text<'a>(profile: &'a Json, pointer: &str) -> &'a str {
    profile.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}
