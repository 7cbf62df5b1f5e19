//! The ways in which members apply a placement's objects → the annotations that tell them.

use std::collections::BTreeMap;

use berth_base::model::annotation::{APPLY, APPLY_WHEN, CO_OWNERS, COMPARE, ON_CONFLICT, ORPHAN, TAKE_OVER};

/// The ways in which members apply objects. The default is that of placements without a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applying {
    pub method: Method,
    pub take_over: TakeOver,
    /// Objects may have owners besides.
    pub co_owners: bool,
    /// What an object has beside its manifest counts as a difference.
    pub compares_all: bool,
    /// What was changed in the cluster stays until the manifest changes.
    pub keeps_drift: bool,
    /// Objects that are no longer placed stay.
    pub orphans: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    ClientSide,
    ServerSide {
        /// Takes fields over that others have set.
        force: bool,
    },
    /// Differences are reported, and nothing is written.
    Compare,
}

/// The treatment of objects that nobody of ours made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOver {
    Always,
    WithoutDifference,
    Never,
}

impl Default for Applying {
    fn default() -> Applying {
        Applying {
            method: Method::ClientSide,
            take_over: TakeOver::Always,
            co_owners: false,
            compares_all: false,
            keeps_drift: false,
            orphans: false,
        }
    }
}

impl Applying {
    /// A missing strategy gets its defaults written out, since a member without them would follow its own.
    pub fn annotations(self) -> BTreeMap<String, String> {
        let take_over = match self.take_over {
            TakeOver::Always => "true",
            TakeOver::WithoutDifference => "if-no-diff",
            TakeOver::Never => "never",
        };
        let method = match self.method {
            Method::Compare => Some((APPLY, "report-diff")),
            Method::ServerSide { force: false } => None,
            // A three-way merge writes its fields whoever has written them before.
            Method::ServerSide { force: true } | Method::ClientSide => Some((ON_CONFLICT, "force")),
        };
        let asked = [
            Some((TAKE_OVER, take_over)),
            (!self.co_owners).then_some((CO_OWNERS, "refused")),
            self.compares_all.then_some((COMPARE, "full")),
            self.keeps_drift.then_some((APPLY_WHEN, "if-not-drifted")),
            self.orphans.then_some((ORPHAN, "true")),
            method,
        ];
        let asked = asked.into_iter().flatten();
        asked.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}
