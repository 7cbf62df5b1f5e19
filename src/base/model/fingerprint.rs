//! A digest of a value of the model, by which two processes of one build find that they read the same.

use std::hash::{Hash, Hasher};

use sha2::{Digest as _, Sha256};

/// Equal fingerprints mean equal values, but for functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 16]);

/// Collects what a value hands to its hasher: all of its fields, each text and list with its end or length.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

impl Fingerprint {
    pub fn of<T: Hash + ?Sized>(value: &T) -> Fingerprint {
        let mut bytes = Bytes::default();
        value.hash(&mut bytes);
        let mut id = [0; 16];
        id.copy_from_slice(&Sha256::digest(&bytes.0)[..16]);
        Fingerprint(id)
    }
}
