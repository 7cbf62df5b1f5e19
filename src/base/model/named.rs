//! Functions of dialects in the model, each known by a name.

use std::fmt;

use super::cluster_view::View;
use super::placement::{AS_WRITTEN, NormalForm, SAYS_NOTHING, Wording};

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

/// The functions that the model of one dialect names.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    pub wordings: &'static [Wording],
    pub normal_forms: &'static [NormalForm],
    pub views: &'static [View],
}

impl Functions {
    pub const NONE: Functions = Functions { wordings: &[], normal_forms: &[], views: &[] };
}

/// The functions of all dialects, and those that every model may name.
#[derive(Clone, Copy, Debug)]
pub struct AllFunctions(pub &'static [&'static Functions]);

impl AllFunctions {
    pub fn wording(&self, name: &str) -> Option<Wording> {
        let all = self.0.iter().flat_map(|functions| functions.wordings);
        all.chain([&SAYS_NOTHING]).find(|one| one.name == name).copied()
    }

    pub fn normal_form(&self, name: &str) -> Option<NormalForm> {
        let all = self.0.iter().flat_map(|functions| functions.normal_forms);
        all.chain([&AS_WRITTEN]).find(|one| one.name == name).copied()
    }

    pub fn view(&self, name: &str) -> Option<View> {
        self.0.iter().flat_map(|functions| functions.views).find(|one| one.name == name).copied()
    }
}
