//! The ways in which members apply a placement's objects → the annotations for members.

use std::collections::BTreeMap;

use berth_base::model::annotation::{APPLY, APPLY_WHEN, CO_OWNERS, COMPARE, ON_CONFLICT, ORPHAN, TAKE_OVER};

/// The ways in which members apply objects. The default is that of placements without a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applying {
    pub method: Method,
    pub take_over: TakeOver,
    /// Objects may have further owners.
    pub co_owners: bool,
    /// Fields of a live object that its manifest lacks count as differences.
    pub compares_all: bool,
    /// Changes made in the cluster stay until the manifest changes.
    pub keeps_drift: bool,
    /// Objects stay when they are no longer placed.
    pub orphans: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    ClientSide,
    ServerSide {
        /// Takes over fields that other writers have set.
        force: bool,
    },
    /// Reports differences without writing anything.
    Compare,
}

/// The treatment of existing objects that berth did not create.
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
    /// Returns the annotations. The defaults of a missing strategy are written out, because a member without
    /// annotations would use its own.
    pub fn annotations(self) -> BTreeMap<String, String> {
        let take_over = match self.take_over {
            TakeOver::Always => "true",
            TakeOver::WithoutDifference => "if-no-diff",
            TakeOver::Never => "never",
        };
        let method = match self.method {
            Method::Compare => Some((APPLY, "report-diff")),
            Method::ServerSide { force: false } => None,
            // A three-way merge writes its fields whoever wrote them before.
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
