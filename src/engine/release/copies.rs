//! A workload's copies in one cluster's folder → the digest that names exactly these copies.
//!
//! Releases, reports and facts name copies by this digest. A verdict on other copies has another digest, so
//! it never counts for these copies.

use berth_base::model::{ContentId, Digest, ObjectId, path};
use sha2::{Digest as _, Sha256};

/// The paths of a workload's objects, which are the same in every cluster's folder.
#[derive(Clone, Debug)]
pub struct ObjectPaths<'a>(Vec<(&'a ObjectId, String)>);

/// A copy of an object in one cluster's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy<'a> {
    pub object: &'a ObjectId,
    pub path: &'a str,
    pub content: ContentId,
}

impl<'a> ObjectPaths<'a> {
    /// Returns the paths of these objects.
    pub fn of(objects: &'a [ObjectId]) -> ObjectPaths<'a> {
        ObjectPaths(objects.iter().map(|object| (object, path::of_object(object))).collect())
    }

    /// Returns the copies in a folder, given by its content at a path.
    pub fn copies(&self, mut content_at: impl FnMut(&str) -> Option<ContentId>) -> Vec<Copy<'_>> {
        let paths = self.0.iter();
        paths.filter_map(|(object, path)| Some(Copy { object, path, content: content_at(path)? })).collect()
    }
}

/// Returns the digest of a workload's copies in one cluster. Each is a path in the cluster's folder with its
/// content, in any order.
pub fn digest<'a>(copies: impl IntoIterator<Item = (&'a str, ContentId)>) -> Digest {
    let mut copies: Vec<(&str, ContentId)> = copies.into_iter().collect();
    copies.sort_unstable();
    let mut hash = Sha256::new();
    for (path, id) in copies {
        hash.update(path);
        // No path holds a NUL and all ids have one length, so two lists of copies never give the same bytes.
        hash.update([0]);
        hash.update(id.0);
        hash.update(b"\n");
    }
    let mut short = [0; 16];
    short.copy_from_slice(&hash.finalize()[..16]);
    Digest(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(copies: &[(&str, u8)]) -> Digest {
        digest(copies.iter().map(|(path, id)| (*path, ContentId([*id; 20]))))
    }

    #[test]
    fn a_digest_names_the_copies_in_any_order_and_no_others() {
        let copies = of(&[("hello/ConfigMap_a.yaml", 1), ("hello/ConfigMap_b.yaml", 2)]);
        assert_eq!(of(&[("hello/ConfigMap_b.yaml", 2), ("hello/ConfigMap_a.yaml", 1)]), copies);
        assert_ne!(of(&[("hello/ConfigMap_a.yaml", 1), ("hello/ConfigMap_b.yaml", 3)]), copies);
        assert_ne!(of(&[("hello/ConfigMap_a.yaml", 1), ("hello/ConfigMap_c.yaml", 2)]), copies);
        assert_ne!(of(&[("hello/ConfigMap_a.yaml", 1)]), copies);
        assert_ne!(of(&[]), copies);
    }

    #[test]
    fn a_digest_is_the_same_on_any_machine_and_in_any_version() {
        assert_eq!(of(&[]).to_string(), "e3b0c44298fc1c149afbf4c8996fb924");
        let one = Sha256::digest(
            b"a\0\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\n",
        );
        assert_eq!(of(&[("a", 1)]).0, one[..16]);
    }
}
