//! Runs the rendering cases of work sets, from their files to the objects each cluster gets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::decide::decide;
use crate::load::{History, load};
use crate::render::{Previous, render};
use berth_base::model::{ContentError, ContentId, Contents, Timestamp};
use berth_base::source::read_dir;
use berth_base::yaml::Limits;

/// Contents by a running number.
#[derive(Default)]
struct ReadingCache(Vec<Vec<u8>>);

impl Contents for ReadingCache {
    fn put(&mut self, bytes: &[u8]) -> Result<ContentId, ContentError> {
        let index = self.0.iter().position(|known| known == bytes).unwrap_or(self.0.len());
        if index == self.0.len() {
            self.0.push(bytes.to_vec());
        }
        let mut id = [0; 20];
        id[..8].copy_from_slice(&(index as u64).to_be_bytes());
        Ok(ContentId(id))
    }
}

impl ReadingCache {
    fn get(&self, id: ContentId) -> &[u8] {
        let index = id.0[..8].iter().fold(0_usize, |index, byte| index << 8 | usize::from(*byte));
        &self.0[index]
    }
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ocm-render").join(name)
}

/// By cluster, the objects as text without what is berth's own.
type Objects = BTreeMap<String, BTreeSet<String>>;

fn rendered(case: &Path) -> Objects {
    let tree = read_dir(&case.join("fleet"), &Limits::default()).expect("the fleet is there");
    let loaded = load(&tree, History::None);
    let errors: Vec<_> = loaded.diagnostics.errors().collect();
    assert!(errors.is_empty(), "{errors:?}");
    let mut decisions =
        decide(&loaded.fleet, &BTreeMap::new(), &BTreeMap::new(), Timestamp::UNIX_EPOCH).decisions;
    let (nothing, empty) = (BTreeMap::new(), BTreeMap::new());
    let previous = Previous { decisions: &nothing, folders: &empty };
    let mut memory = ReadingCache::default();
    let rendered =
        render(&loaded.fleet, &mut decisions, previous, &mut memory).expect("memory takes everything");
    let object = |id: &ContentId| {
        let read = berth_base::yaml::reader::read(memory.get(*id), &Limits::default());
        plain(read.documents[0].root.to_json()).to_string()
    };
    let folder = |(name, folder): (&String, &berth_base::model::Folder)| {
        (name.clone(), folder.values().map(object).collect())
    };
    rendered.folders.iter().filter(|(_, folder)| !folder.is_empty()).map(folder).collect()
}

fn plain(mut object: Json) -> Json {
    let metadata = object["metadata"].as_object_mut().expect("an object has metadata");
    for key in ["labels", "annotations"] {
        if let Some(Json::Object(pairs)) = metadata.get_mut(key) {
            pairs.retain(|key, _| !key.starts_with("berth.dev/"));
            if pairs.is_empty() {
                metadata.remove(key);
            }
        }
    }
    object
}

fn expected(case: &Path) -> Objects {
    let entries = |path: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(path).map(|all| all.map(|one| one.unwrap().path()).collect()).unwrap_or_default()
    };
    let object = |path: &PathBuf| {
        let json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        plain(json).to_string()
    };
    let folder = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, entries(path).iter().map(object).collect())
    };
    entries(&case.join("expected")).iter().filter(|path| path.is_dir()).map(folder).collect()
}

#[test]
fn every_picked_cluster_gets_the_manifests_as_they_are_written() {
    for name in [
        "no-bound-set",
        "one-placement",
        "overlapping-placements",
        "several-placements",
        "tainted-cluster-dropped",
    ] {
        assert_eq!(rendered(&case(name)), expected(&case(name)), "{name}");
    }
}
