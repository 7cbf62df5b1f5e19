//! A value that is decoded when it is looked at first.

use std::fmt;
use std::sync::OnceLock;

use super::Decoder;
use super::file::Part;

/// A value, or its place in a file.
pub struct Later<T> {
    value: OnceLock<T>,
    /// Most values have no place in a file, or lose it soon: they need no room for it.
    stored: Option<Box<Stored<T>>>,
}

struct Stored<T> {
    part: Part,
    decode: fn(&mut Decoder<'_>) -> Option<T>,
    /// Stands for a value that cannot be decoded. The file then counts as damaged.
    nothing: fn() -> T,
}

impl<T> fmt::Debug for Later<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Later").field("part", &self.part()).finish_non_exhaustive()
    }
}

impl<T> Later<T> {
    pub fn of(value: T) -> Later<T> {
        Later { value: value.into(), stored: None }
    }

    /// Takes a part of a file. A value that cannot be decoded is the default one.
    pub fn stored(part: Part, decode: fn(&mut Decoder<'_>) -> Option<T>) -> Later<T>
    where
        T: Default,
    {
        let stored = Stored { part, decode, nothing: T::default };
        Later { value: OnceLock::new(), stored: Some(stored.into()) }
    }

    pub fn value(&self) -> &T {
        let decoded = || {
            let Stored { part, decode, nothing } = self.stored.as_deref().expect("it has a value or a place");
            part.decode(decode).unwrap_or_else(nothing)
        };
        self.value.get_or_init(decoded)
    }

    /// Returns the value to change. It is no longer that of the file.
    pub fn value_mut(&mut self) -> &mut T {
        self.value();
        self.stored = None;
        self.value.get_mut().expect("it has a value")
    }

    /// Returns the part of a file that holds this very value.
    pub fn part(&self) -> Option<&Part> {
        self.stored.as_ref().map(|stored| &stored.part)
    }

    /// Returns the part, if nobody has looked at the value.
    pub fn undecoded(&self) -> Option<&Part> {
        self.part().filter(|_| self.value.get().is_none())
    }
}
