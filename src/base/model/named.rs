//! Functions of dialects in the model, each known by a name.

use std::fmt;

/// A function under a name, which identifies it: no two functions of a type share one.
#[derive(Clone, Copy)]
pub struct Named<F> {
    pub name: &'static str,
    pub function: F,
}

impl<F> PartialEq for Named<F> {
    fn eq(&self, other: &Named<F>) -> bool {
        self.name == other.name
    }
}

impl<F> Eq for Named<F> {}

impl<F> fmt::Debug for Named<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
