//! The storage of a key with its value.

use std::sync::Arc;

/// A key with its value.
pub trait Entry {
    type Key;
    type Value;

    fn key(&self) -> &Self::Key;

    fn value(&self) -> &Self::Value;
}

impl<K, V> Entry for (K, V) {
    type Key = K;
    type Value = V;

    fn key(&self) -> &K {
        &self.0
    }

    fn value(&self) -> &V {
        &self.1
    }
}

/// An entry that maps share, to save memory for equal entries.
impl<E: Entry> Entry for Arc<E> {
    type Key = E::Key;
    type Value = E::Value;

    fn key(&self) -> &E::Key {
        (**self).key()
    }

    fn value(&self) -> &E::Value {
        (**self).value()
    }
}
