//! A folder as the backend: each object is a file, at its path in the rendered folder.
//!
//! `.berth/inventory.json` lists berth's objects with the hashes of their files. It lists an object from
//! before its file is created until after the file is removed, so that a crash never orphans a file.
//! Strangers' files stay unchanged.
//!
//! An entry with `applied` owns any file in its place: a changed file is drift. An entry with only `pending`
//! owns the file only if it has exactly that hash: after a crash between the entry and the write, a
//! stranger's file may be there.
//!
//! A folder's suspension is a file beside the inventory, `.berth/suspended.json`.

pub(super) mod files;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::{Apply, Backend, BackendError, Record};
use crate::sync::desired::Desired;
use crate::sync::plan::{Form, Live, Prune, Version};
use crate::sync::suspension;
use berth_base::model::status::Suspension;
use berth_base::model::{API_VERSION, ObjectId, Timestamp, path};
use berth_base::progress::Progress;
use files::{Lock, Root, WriteOptions, hash_of};

const INVENTORY: &str = ".berth/inventory.json";
const LOCK: &str = ".berth/lock";

/// A folder that holds one cluster's objects.
pub struct FolderBackend {
    root: Root,
    /// The inventory as last read or written. `None` if the folder has none.
    inventory: Option<Inventory>,
    /// The earlier entries of objects about to be removed.
    leaving: BTreeMap<ObjectId, Entry>,
    /// Entries whose places hold strangers' files.
    stale: Vec<ObjectId>,
    lock: Option<Lock>,
    progress: Progress,
}

// The inventory holds hashes of Secrets.
impl fmt::Debug for FolderBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FolderBackend").field("root", &self.root).finish_non_exhaustive()
    }
}

impl FolderBackend {
    /// Opens a folder, which need not exist yet. Changes nothing.
    pub fn open(path: &Path) -> Result<FolderBackend, BackendError> {
        let root = Root::new(path)?;
        let (leaving, stale) = (BTreeMap::new(), Vec::new());
        Ok(FolderBackend { root, inventory: None, leaving, stale, lock: None, progress: Progress::default() })
    }

    fn read_inventory(&self) -> Result<Option<Inventory>, BackendError> {
        let Some(bytes) = self.root.read(INVENTORY)? else { return Ok(None) };
        let unusable = |message| BackendError::Failed(format!("`{INVENTORY}` cannot be used: {message}"));
        Inventory::from_bytes(&bytes).map(Some).map_err(unusable)
    }

    fn write_inventory(&self) -> Result<(), BackendError> {
        let inventory = self.inventory.clone().unwrap_or_default();
        self.root.write_durably(INVENTORY, &inventory.to_bytes())
    }

    /// Reads one object's place. Returns `None` if there is neither a file nor an inventory entry.
    fn look(&self, id: &ObjectId, entry: Option<&Entry>, wanted: Option<&Desired>) -> Option<Live> {
        let annotations = entry.map(|entry| entry.annotations.clone()).unwrap_or_default().into();
        let (owned, form) = match self.root.hash(&path::of_object(id)) {
            Err(error) => (entry.is_some(), Form::Faulty(error.to_string())),
            Ok(None) => (true, entry.map(|_| Form::Absent)?),
            Ok(Some((hash, size))) => {
                let owned = entry.is_some_and(|entry| entry.owns(&hash, size));
                let equal = wanted.is_some_and(|wanted| hash_of(&wanted.bytes) == hash);
                // A write whose completion was not recorded is repeated, and then recorded.
                let settled = entry.is_none_or(|entry| {
                    entry.pending.is_none() && entry.applied.as_deref() == Some(hash.as_str())
                });
                (owned, Form::There { version: Version(hash), same: equal && (settled || !owned) })
            }
        };
        Some(Live { owned, form, annotations, stays: None })
    }

    fn apply_one(&mut self, item: &Apply<'_>) -> Result<(), BackendError> {
        let (id, bytes) = (&item.desired.id, &item.desired.bytes);
        let place = path::of_object(id);
        self.check_unchanged(&place, item.seen)?;
        let how =
            WriteOptions { replace: item.seen.is_some(), private: item.desired.is_secret(), durable: false };
        self.root.write(&place, bytes, how)?;
        let entry = self.inventory.get_or_insert_default().entries.entry(id.clone()).or_default();
        *entry = Entry { applied: Some(hash_of(bytes)), pending: None, ..entry.clone() };
        Ok(())
    }

    fn delete_one(&mut self, prune: &Prune) -> Result<(), BackendError> {
        if prune.seen.is_some() && !prune.orphan {
            let place = path::of_object(&prune.id);
            self.check_unchanged(&place, prune.seen.as_ref())?;
            self.root.remove(&place)?;
        }
        self.leaving.remove(&prune.id);
        self.inventory.get_or_insert_default().entries.remove(&prune.id);
        Ok(())
    }

    fn check_unchanged(&self, place: &str, seen: Option<&Version>) -> Result<(), BackendError> {
        let now = self.root.hash(place)?;
        if now.map(|(hash, _)| hash).as_ref() == seen.map(|seen| &seen.0) {
            return Ok(());
        }
        Err(BackendError::Failed(format!("`{place}` was changed by another process")))
    }
}

impl Backend for FolderBackend {
    fn record(&mut self) -> Result<Option<Record>, BackendError> {
        self.inventory = self.read_inventory()?;
        Ok(self.inventory.as_ref().map(|inventory| inventory.record.clone()))
    }

    fn show_progress(&mut self, progress: &Progress) {
        self.progress = progress.clone();
    }

    fn suspended(&mut self, now: Timestamp) -> Option<Suspension> {
        read(&self.root, now)
    }

    fn survey(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
    ) -> Result<BTreeMap<ObjectId, Live>, BackendError> {
        self.progress.begin("reading the live objects");
        let known = self.inventory.clone().unwrap_or_default().entries;
        let mut live = BTreeMap::new();
        for id in desired.keys().chain(known.keys()) {
            if live.contains_key(id) {
                continue;
            }
            if let Some(found) = self.look(id, known.get(id), desired.get(id)) {
                live.insert(id.clone(), found);
            }
        }
        let stranger = |id: &&ObjectId| live.get(*id).is_some_and(|found: &Live| !found.owned);
        self.stale = known.keys().filter(stranger).cloned().collect();
        Ok(live)
    }

    fn begin(
        &mut self,
        record: &Record,
        writes: &[Apply<'_>],
        prunes: &[&Prune],
    ) -> Result<(), BackendError> {
        self.progress.begin_of("applying objects", writes.len() + prunes.len());
        self.root.make()?;
        // A lock left by a sync that ended early would block this one.
        self.lock = None;
        self.lock = Some(self.root.lock(LOCK)?);
        if self.read_inventory()? != self.inventory {
            return Err(BackendError::Failed(format!("`{INVENTORY}` was changed by another syncer")));
        }
        let inventory = self.inventory.get_or_insert_default();
        for (id, _) in inventory.entries.iter().filter(|(_, entry)| entry.pending.is_some()) {
            // A failure here is reported when the object is written.
            let _ = self.root.clear_temporary(&path::of_object(id));
        }
        inventory.record = record.clone();
        for id in std::mem::take(&mut self.stale) {
            inventory.entries.remove(&id);
        }
        for item in writes {
            let entry = inventory.entries.entry(item.desired.id.clone()).or_default();
            entry.pending = Some(hash_of(&item.desired.bytes));
            entry.annotations = BTreeMap::clone(item.desired.annotations());
        }
        self.leaving.clear();
        for prune in prunes {
            let Some(entry) = inventory.entries.get_mut(&prune.id) else { continue };
            self.leaving.insert(prune.id.clone(), entry.clone());
            // From now on berth owns the file only with the content last seen, not a file that replaces it.
            let seen = prune.seen.as_ref().map(|seen| seen.0.clone());
            (entry.applied, entry.pending) = (None, seen);
        }
        self.write_inventory()
    }

    fn apply(&mut self, batch: &[Apply<'_>]) -> Vec<Result<(), BackendError>> {
        let progress = self.progress.clone();
        batch.iter().map(|item| self.apply_one(item)).inspect(|_| progress.add(1)).collect()
    }

    fn delete(&mut self, batch: &[&Prune]) -> Vec<Result<(), BackendError>> {
        let progress = self.progress.clone();
        batch.iter().map(|prune| self.delete_one(prune)).inspect(|_| progress.add(1)).collect()
    }

    fn remove_record(&mut self) -> Result<(), BackendError> {
        if self.read_inventory()?.is_some() {
            self.root.remove(INVENTORY)?;
        }
        self.inventory = None;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        let stayed = std::mem::take(&mut self.leaving);
        self.inventory.get_or_insert_default().entries.extend(stayed);
        let written = self.write_inventory();
        self.lock = None;
        written
    }
}

const KIND: &str = "Inventory";

/// Everything that berth owns in a folder, and the record of the last sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Inventory {
    pub record: Record,
    pub entries: BTreeMap<ObjectId, Entry>,
}

/// The entry of one object's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// The hash of the content last written.
    pub applied: Option<String>,
    /// The hash of the content about to be written or removed.
    pub pending: Option<String>,
    /// The object's `berth.dev/` annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Inventory {
    fn to_bytes(&self) -> Vec<u8> {
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

const FILE: &str = ".berth/suspended.json";

/// Reads the suspension, unless it has ended. An unreadable file suspends too.
fn read(root: &Root, now: Timestamp) -> Option<Suspension> {
    let unreadable = || Suspension { reason: format!("`{FILE}` cannot be read"), until: None };
    let bytes = match root.read(FILE) {
        Ok(bytes) => bytes?,
        Err(_) => return Some(unreadable()),
    };
    let Ok(form) = serde_json::from_slice::<Json>(&bytes) else { return Some(unreadable()) };
    let text = |key: &str| form.get(key).and_then(Json::as_str);
    suspension::read(text("reason").or(Some("")), text("until"), now)
}

/// Suspends or resumes a folder. Returns true if it was suspended before.
pub fn suspend(folder: &Path, suspension: Option<&Suspension>) -> Result<bool, BackendError> {
    let mut root = Root::new(folder)?;
    let was = root.read(FILE)?.is_some();
    match suspension {
        Some(suspension) => {
            root.make()?;
            let mut form = json!({ "reason": suspension.reason });
            if let Some(until) = suspension.until {
                form["until"] = json!(until.to_string());
            }
            root.write_durably(FILE, format!("{form:#}\n").as_bytes())?;
        }
        None if was => root.remove(FILE)?,
        None => {}
    }
    Ok(was)
}
