//! A Federated object while its parts are read.

use super::Context;
use crate::dialects::Document;
use berth_base::meta::Metadata;
use berth_base::yaml::Scope;

/// A Federated object and its context.
#[derive(Clone, Copy)]
pub(super) struct FederatedObject<'a> {
    pub(super) scope: &'a Scope,
    pub(super) document: &'a Document,
    pub(super) metadata: &'a Metadata,
    pub(super) context: &'a Context,
}
