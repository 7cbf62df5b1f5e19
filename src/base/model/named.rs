//! Functions of dialects in the model, each identified by a name.

use std::fmt;

/// A function with a name that identifies it: no two functions of a type share a name.
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
