//! The inventory of a folder: berth's objects with the hashes of their files, as JSON.
//!
//! An entry with `applied` owns any file in its place: a changed file is drift. An entry with only `pending` owns the
//! file only if it has exactly that hash: after a crash between the entry and the write, a stranger's file may be
//! there.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use crate::sync::backends::Record;
use berth_base::model::API_VERSION;
use berth_base::model::ObjectId;

const KIND: &str = "Inventory";

/// Everything that berth owns in a folder, and the record of the last sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    pub record: Record,
    pub entries: BTreeMap<ObjectId, Entry>,
}

/// The entry of one object's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The hash of the content last written.
    pub applied: Option<String>,
    /// The hash of the content about to be written or removed.
    pub pending: Option<String>,
    /// The object's `berth.dev/` annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Inventory {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let objects: Vec<Json> = self.entries.iter().map(|(id, entry)| entry_to_json(id, entry)).collect();
        let form = json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "fleet": self.record.fleet,
            "cluster": self.record.cluster,
            "sequence": self.record.sequence,
            "tree": self.record.tree,
            "objects": objects,
        });
        format!("{form:#}\n").into_bytes()
    }

    /// Reads an inventory. Any fault makes all of it unusable: a partial inventory would own too little.
    pub fn from_bytes(bytes: &[u8]) -> Result<Inventory, String> {
        let form: Json = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let version = text(&form, "apiVersion")?;
        if (version.as_str(), text(&form, "kind")?.as_str()) != (API_VERSION, KIND) {
            return Err(format!("it is not a {KIND} of {API_VERSION}"));
        }
        let record = Record {
            fleet: text(&form, "fleet")?,
            cluster: text(&form, "cluster")?,
            sequence: form.get("sequence").and_then(Json::as_u64).ok_or("`sequence` is not a number")?,
            tree: text(&form, "tree")?,
        };
        let objects = form.get("objects").and_then(Json::as_array).ok_or("`objects` is not a list")?;
        let entries = objects.iter().map(entry_from_json).collect::<Result<_, String>>()?;
        Ok(Inventory { record, entries })
    }
}

impl Entry {
    /// Reports whether a file with this hash and size is berth's.
    pub fn owns(&self, hash: &str, size: u64) -> bool {
        // After a power failure a file may exist without its content. Removing an empty file loses nothing.
        self.applied.is_some() || self.pending.as_deref() == Some(hash) || size == 0
    }
}

fn entry_to_json(id: &ObjectId, entry: &Entry) -> Json {
    let mut form = Map::new();
    let parts = [("group", &id.group), ("kind", &id.kind), ("namespace", &id.namespace), ("name", &id.name)];
    for (key, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
        form.insert(key.to_owned(), json!(&**part));
    }
    for (key, hash) in [("applied", &entry.applied), ("pending", &entry.pending)] {
        if let Some(hash) = hash {
            form.insert(key.to_owned(), json!(hash));
        }
    }
    if !entry.annotations.is_empty() {
        form.insert("annotations".to_owned(), json!(entry.annotations));
    }
    Json::Object(form)
}

fn entry_from_json(form: &Json) -> Result<(ObjectId, Entry), String> {
    let maybe = |key: &str| form.get(key).map(|_| text(form, key)).transpose();
    let annotations = form.get("annotations").and_then(Json::as_object).into_iter().flatten();
    let annotation = |(name, value): (&String, &Json)| Some((name.clone(), value.as_str()?.to_owned()));
    let id = ObjectId::new(
        &maybe("group")?.unwrap_or_default(),
        &text(form, "kind")?,
        &maybe("namespace")?.unwrap_or_default(),
        &text(form, "name")?,
    );
    let entry = Entry {
        applied: maybe("applied")?,
        pending: maybe("pending")?,
        annotations: annotations.filter_map(annotation).collect(),
    };
    Ok((id, entry))
}

fn text(form: &Json, key: &str) -> Result<String, String> {
    form.get(key).and_then(Json::as_str).map(str::to_owned).ok_or_else(|| format!("`{key}` is not text"))
}
