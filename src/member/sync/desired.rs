//! Reads the files of a cluster's folder into the objects that a backend should hold.
//!
//! Each file must contain exactly one object whose identity matches its path. Any other file becomes a [`Blocked`]
//! entry: its object is neither written nor removed. Messages never quote a file that may contain a Secret.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use super::cluster_folder::{ClusterFolder, FolderListing};
use berth_base::diag::{Severity, is_harmless};
use berth_base::model::{ContentId, ObjectId, annotation, object, path};
use berth_base::parallel;
use berth_base::yaml::{self, Limits};
use berth_git::{GitError, Repo};

/// A wanted object. Stored as text, along with the parts that every sync needs.
#[derive(Clone, PartialEq)]
pub struct Desired {
    pub id: ObjectId,
    /// The object as YAML.
    pub bytes: Arc<[u8]>,
    /// True if a part of the object comes from a Secret, although the object is not one.
    pub sealed: bool,
    /// Shared with the preceding object of the folder if equal.
    heading: Arc<Heading>,
    /// The blob that the object was read from.
    blob: Option<ContentId>,
}

/// The parts of an object that are stored besides its text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heading {
    api_version: String,
    annotations: Annotations,
}

/// An object's annotations for the syncer, which many objects share.
pub type Annotations = Arc<BTreeMap<String, String>>;

// The content may be a Secret.
impl fmt::Debug for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desired").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The objects of a whole folder.
#[derive(Clone, Debug, Default)]
pub struct DesiredSet {
    pub objects: BTreeMap<ObjectId, Desired>,
    /// Objects that cannot be read or built, by the path of their file. Each stays unchanged.
    pub blocked: BTreeMap<String, Blocked>,
}

/// An object that stays unchanged, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub id: ObjectId,
    pub message: String,
    /// The object's workload, if it is known.
    pub workload: Option<String>,
}

impl Desired {
    /// Builds a wanted object from its content. `None` if it has no identity.
    pub fn new(object: &Json, sealed: bool) -> Option<Desired> {
        let heading = Arc::new(Heading::of(object));
        let bytes = yaml::emit(object).into_bytes().into();
        Some(Desired { id: ObjectId::of(object)?, bytes, sealed, heading, blob: None })
    }

    /// Parses the object.
    pub fn object(&self) -> Json {
        let read = yaml::read(&self.bytes, &Limits::of_a_part());
        read.documents.first().map(|document| document.root.to_json()).unwrap_or_default()
    }

    /// Returns one of berth's annotations.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.heading.annotations.get(name).map(String::as_str)
    }

    pub fn annotations(&self) -> &Annotations {
        &self.heading.annotations
    }

    pub fn api_version(&self) -> &str {
        &self.heading.api_version
    }

    /// Shares equal parts with another object, to save memory.
    fn share(&mut self, other: &Desired) {
        self.id.share_parts(&other.id);
        if self.heading == other.heading {
            self.heading = other.heading.clone();
        }
    }

    /// Reports whether messages must not show its content.
    pub fn is_secret(&self) -> bool {
        self.sealed || self.id.is_secret()
    }

    /// Returns the object's workload; empty if the object names none.
    pub fn workload(&self) -> &str {
        self.annotation(annotation::WORKLOAD).unwrap_or_default()
    }
}

/// Returns an object's annotations for the syncer, without the hash of its applied form.
pub(crate) fn own_annotations(object: &Json) -> BTreeMap<String, String> {
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations")?.as_object());
    let is_own = |name: &str| {
        name.starts_with(annotation::PREFIX) && name != annotation::APPLIED || name == annotation::HELM_POLICY
    };
    let own = annotations.into_iter().flatten().filter(|(name, _)| is_own(name));
    own.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

impl Heading {
    fn of(object: &Json) -> Heading {
        let api_version = object.get("apiVersion").and_then(Json::as_str).unwrap_or_default().to_owned();
        Heading { api_version, annotations: Arc::new(own_annotations(object)) }
    }
}

impl DesiredSet {
    /// Reports whether the folder has no objects.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.blocked.is_empty()
    }

    /// Blocks an object: it stays unchanged, for this reason.
    pub fn block(&mut self, id: &ObjectId, message: impl Into<String>) {
        let workload = self.objects.remove(id).map(|desired| desired.workload().to_owned());
        let blocked = Blocked { id: id.clone(), message: message.into(), workload };
        self.blocked.insert(path::of_object(id), blocked);
    }

    /// Reports whether an object's path, a path below it, or its whole folder was unreadable.
    pub(crate) fn is_blocked(&self, id: &ObjectId) -> bool {
        let place = path::of_object(id);
        let folder = place.split_once('/').map_or("", |(folder, _)| folder);
        let below = format!("{place}/");
        let mut beneath = self.blocked.range(below.clone()..);
        let is_folder = beneath.next().is_some_and(|(path, _)| path.starts_with(&below));
        is_folder || self.blocked.contains_key(&place) || self.blocked.contains_key(folder)
    }
}

/// Reads every file of the folder.
pub fn read(folder: &ClusterFolder) -> DesiredSet {
    let files = folder.objects.iter().map(|(path, bytes)| File { path, bytes: bytes.clone(), blob: None });
    let mut reader = Reader::default();
    for (path, made) in read_all(files.collect()) {
        reader.put(path, made);
    }
    reader.finish(&folder.strange)
}

/// Reads the files of a folder in Git. Reuses an object of `earlier` that has the same blob.
pub(crate) fn read_listed(
    repo: &Repo,
    listing: &FolderListing,
    earlier: &DesiredSet,
) -> Result<DesiredSet, GitError> {
    let (mut known, mut new) = (Vec::new(), Vec::new());
    for (path, blob) in &listing.files {
        let before = earlier.objects.get(&id_from_path(path));
        let is_same = |before: &&Desired| before.blob == Some(*blob) && path::of_object(&before.id) == *path;
        let same = before.filter(is_same).cloned();
        if same.is_none() {
            new.push(File { path, bytes: repo.blob(*blob)?.into(), blob: Some(*blob) });
        }
        known.push(same);
    }
    let mut new = read_all(new);
    let mut reader = Reader::default();
    for known in known {
        match known {
            Some(known) => reader.objects.push(known),
            None => new.next().into_iter().for_each(|(path, made)| reader.put(path, made)),
        }
    }
    Ok(reader.finish(&listing.strange))
}

/// A file of the folder.
struct File<'a> {
    path: &'a String,
    bytes: Arc<[u8]>,
    blob: Option<ContentId>,
}

/// Reads files on all processors. Results are in the files' order.
fn read_all(files: Vec<File<'_>>) -> impl Iterator<Item = (&String, Result<Desired, String>)> {
    let made = parallel::map(&files, |file| read_file(file.path, &file.bytes, file.blob));
    files.into_iter().map(|file| file.path).zip(made)
}

/// Collects the objects of a folder, file by file.
#[derive(Default)]
struct Reader {
    objects: Vec<Desired>,
    blocked: BTreeMap<String, Blocked>,
}

impl Reader {
    fn put(&mut self, file: &str, made: Result<Desired, String>) {
        match made {
            Ok(mut desired) => {
                if let Some(last) = self.objects.last() {
                    desired.share(last);
                }
                self.objects.push(desired);
            }
            Err(message) => drop(self.blocked.insert(file.to_owned(), unreadable(file, message))),
        }
    }

    fn finish(mut self, strange: &BTreeMap<String, String>) -> DesiredSet {
        for (place, message) in strange {
            self.blocked.insert(place.clone(), unreadable(place, message.clone()));
        }
        let objects = self.objects.into_iter().map(|desired| (desired.id.clone(), desired)).collect();
        DesiredSet { objects, blocked: self.blocked }
    }
}

fn unreadable(place: &str, message: String) -> Blocked {
    Blocked { id: id_from_path(place), message, workload: None }
}

fn read_file(file: &str, bytes: &Arc<[u8]>, blob: Option<ContentId>) -> Result<Desired, String> {
    let read = yaml::read(bytes, &Limits::of_a_part());
    if let Some(fault) = read.faults.iter().find(|fault| fault.severity == Severity::Error) {
        let quotable = !may_hold_secret(file, bytes);
        let what = if quotable { fault.message.as_str() } else { "<redacted: the file may hold a Secret>" };
        return Err(format!("its file cannot be read, at {}:{}: {what}", fault.at.line, fault.at.column));
    }
    let [document] = read.documents.as_slice() else {
        return Err(format!("its file holds {} objects, not one", read.documents.len()));
    };
    let object = document.root.to_json();
    let id = ObjectId::of(&object)
        .filter(|id| !id.kind.is_empty() && !id.name.is_empty() && is_printable(id))
        .ok_or("its file holds no object with a usable apiVersion, kind and metadata.name")?;
    if let Some(key) = object::list_field(&object) {
        return Err(format!("its file holds a list in `{key}`, not an object"));
    }
    let wanted = path::of_object(&id);
    if wanted != file {
        return Err(format!("its file holds {id}, which belongs in `{wanted}`"));
    }
    Ok(Desired { id, bytes: bytes.clone(), sealed: false, heading: Arc::new(Heading::of(&object)), blob })
}

fn may_hold_secret(file: &str, bytes: &[u8]) -> bool {
    let word = b"Secret";
    file.contains("Secret") || bytes.windows(word.len()).any(|window| window == word)
}

/// Returns the identity in a path, as far as the path contains it.
fn id_from_path(file: &str) -> ObjectId {
    let parts = || {
        let (folder, rest) = file.split_once('/')?;
        let (kind, name) = rest.strip_suffix(".yaml")?.split_once('_')?;
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let namespace = if folder == path::CLUSTER_SCOPE { String::new() } else { path::decode(folder)? };
        Some(ObjectId::new(&path::decode(group)?, &path::decode(kind)?, &namespace, &path::decode(name)?))
    };
    parts()
        .filter(is_printable)
        .unwrap_or_else(|| ObjectId::new("", "File", "", &file.escape_debug().to_string()))
}

/// Reports whether the identity can be shown: without control characters, which steer a terminal.
fn is_printable(id: &ObjectId) -> bool {
    [&id.group, &id.kind, &id.namespace, &id.name].iter().all(|part| part.chars().all(is_harmless))
}

/// Returns the group that a CRD defines, and the kind if it is known.
pub(super) fn defined_by(id: &ObjectId, object: Option<&Desired>) -> (String, Option<String>) {
    let content = object.map(Desired::object);
    let spec = content.as_ref().and_then(|content| content.get("spec"));
    let kind = spec.and_then(|spec| spec.get("names")?.get("kind")?.as_str().map(str::to_owned));
    // A CRD's name is `<plural>.<group>`.
    let group = id.name.split_once('.').map_or("", |(_, group)| group);
    (group.to_owned(), kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(file: &str, text: &str) -> DesiredSet {
        let objects = BTreeMap::from([(file.to_owned(), Arc::from(text.as_bytes()))]);
        read(&ClusterFolder {
            cluster: "a".to_owned(),
            sequence: 1,
            tree: "t".to_owned(),
            objects,
            strange: BTreeMap::new(),
            allow_prune: std::collections::BTreeSet::new(),
            applier: None,
            replaces: std::collections::BTreeSet::new(),
        })
    }

    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n";

    #[test]
    fn a_list_is_no_object() {
        let set =
            read_one("shop/ConfigMap_web.yaml", &format!("{MAP}items: [{{kind: ClusterRoleBinding}}]\n"));
        assert!(set.objects.is_empty());
        assert!(
            set.blocked["shop/ConfigMap_web.yaml"].message.contains("holds a list in `items`"),
            "{set:?}"
        );
    }

    #[test]
    fn an_object_in_its_place_is_wanted() {
        let set = read_one("shop/ConfigMap_web.yaml", MAP);
        assert!(set.blocked.is_empty(), "{set:?}");
        assert!(set.objects.contains_key(&ObjectId::new("", "ConfigMap", "shop", "web")));
    }

    #[test]
    fn an_object_in_the_place_of_another_blocks_that_place() {
        let set = read_one("shop/ConfigMap_other.yaml", MAP);
        assert!(set.objects.is_empty());
        let blocked = &set.blocked["shop/ConfigMap_other.yaml"];
        assert_eq!(blocked.id, ObjectId::new("", "ConfigMap", "shop", "other"));
        assert!(blocked.message.contains("shop/ConfigMap_web.yaml"), "{}", blocked.message);
    }

    #[test]
    fn a_folder_in_the_place_of_an_object_blocks_that_place() {
        let set = read_one("shop/ConfigMap_web.yaml/inside", "a: b\n");
        assert!(set.is_blocked(&ObjectId::new("", "ConfigMap", "shop", "web")));
        assert!(!set.is_blocked(&ObjectId::new("", "ConfigMap", "shop", "webs")));
    }

    #[test]
    fn no_object_and_two_objects_are_both_refused() {
        for text in ["# nothing\n".to_owned(), format!("{MAP}---\n{MAP}"), "just: text\n".to_owned()] {
            let set = read_one("shop/ConfigMap_web.yaml", &text);
            assert_eq!((set.objects.len(), set.blocked.len()), (0, 1), "{text}");
        }
    }

    #[test]
    fn a_broken_secret_is_never_quoted() {
        let text = "apiVersion: v1\nkind: Secret\nhunter2: a\nhunter2: *b\n";
        for file in ["shop/Secret_web.yaml", "shop/ConfigMap_web.yaml"] {
            let set = read_one(file, text);
            let message = &set.blocked[file].message;
            assert!(message.contains("<redacted") && !message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn a_path_gives_back_the_identity_it_was_made_from() {
        for id in [
            ObjectId::new("rbac.authorization.k8s.io", "ClusterRole", "", "system:node"),
            ObjectId::new("", "Namespace", "", "shop"),
            ObjectId::new("apps", "Deployment", "shop", "web.v2"),
        ] {
            assert_eq!(id_from_path(&path::of_object(&id)), id);
        }
        assert_eq!(&*id_from_path("a%/b").kind, "File");
        assert_eq!(&*id_from_path("é%").kind, "File");
    }
}
