//! The bytes of a file, which may be read when they are looked at first.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Weak};

type Read = Box<dyn FnOnce() -> Arc<[u8]> + Send>;

/// Bytes that clones share.
#[derive(Clone)]
pub struct FileBytes(Arc<LazyLock<Arc<[u8]>, Read>>);

/// Finds bytes as long as some file has them.
#[derive(Clone)]
pub struct WeakBytes(Weak<LazyLock<Arc<[u8]>, Read>>);

impl FileBytes {
    /// Takes bytes that are read when they are looked at first.
    pub fn later(read: impl FnOnce() -> Arc<[u8]> + Send + 'static) -> FileBytes {
        FileBytes(Arc::new(LazyLock::new(Box::new(read))))
    }

    pub fn downgrade(&self) -> WeakBytes {
        WeakBytes(Arc::downgrade(&self.0))
    }
}

impl<Bytes: Into<Arc<[u8]>>> From<Bytes> for FileBytes {
    fn from(bytes: Bytes) -> FileBytes {
        let bytes = bytes.into();
        let bytes = FileBytes::later(move || bytes);
        LazyLock::force(&bytes.0);
        bytes
    }
}

impl Deref for FileBytes {
    type Target = Arc<[u8]>;

    fn deref(&self) -> &Arc<[u8]> {
        &self.0
    }
}

impl fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileBytes").finish_non_exhaustive()
    }
}

impl WeakBytes {
    pub fn upgrade(&self) -> Option<FileBytes> {
        self.0.upgrade().map(FileBytes)
    }

    /// Reports whether some file has the bytes.
    pub fn is_in_use(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl fmt::Debug for WeakBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakBytes").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_when_they_are_looked_at_and_then_once() {
        let (told, count) = std::sync::mpsc::channel();
        let bytes = FileBytes::later(move || {
            told.send(()).expect("it is heard");
            b"k: v"[..].into()
        });
        let clone = bytes.clone();
        assert!(count.try_recv().is_err(), "nobody looked");
        assert_eq!((&**bytes, &**clone), (&b"k: v"[..], &b"k: v"[..]));
        assert_eq!(count.iter().count(), 1);
        let weak = bytes.downgrade();
        drop((bytes, clone));
        assert!(weak.upgrade().is_none() && !weak.is_in_use());
    }
}
