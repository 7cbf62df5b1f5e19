//! The systems whose objects berth reads, a folder each.
//!
//! A dialect is a parser: it turns its kinds into the neutral model and names the filters, scorers,
//! selection and conditions its semantics need. Adding one is adding a folder and a row here.

mod cluster_kinds;
mod document_reader;
pub mod kubefed;
pub mod kubefleet;
mod new_cluster;
pub mod ocm;
mod reading_cache;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use cluster_kinds::{CLUSTER_KINDS, ClusterKind};
pub use new_cluster::NewCluster;

use berth_base::diag::{Diagnostics, Pos, Severity};
use berth_base::model::{
    Approval, Cluster, ClusterStatus, ContentId, Key, Object, Placement, Shared, Workload,
};

use berth_base::yaml::Node;

pub use reading_cache::{ReadingCache, ReadingContext};

/// A document of the source tree that has an apiVersion and a kind.
#[derive(Clone, Debug)]
pub struct Document {
    /// `None` for a document whose readings are not remembered: a last good form.
    pub id: Option<DocumentId>,
    pub key: Key,
    pub version: String,
    pub at: Pos,
    /// Shared, since most documents are equal from pass to pass.
    pub root: Arc<Node>,
}

/// The part of a file's bytes that a document was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentId {
    pub file: ContentId,
    /// The place of the text in the file, and the number of the object in the text.
    pub start: usize,
    pub item: usize,
}

/// A dialect's claim to a document, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Not of this dialect.
    Foreign,
    /// Clusters, on which every placement may depend.
    Inventory,
    /// Placements, sets and bindings, on which some placements depend.
    Policy,
    /// Workloads and their overrides.
    Workload,
    /// A hub's own bookkeeping, passed over with a note.
    Bookkeeping,
    /// A kind of this dialect's group that it does not know.
    Unknown,
}

/// The parser of one system.
#[derive(Debug)]
pub struct Dialect {
    pub name: &'static str,
    /// Claims the dialect's documents: returns one claim per document.
    pub claim: fn(&[Document]) -> Vec<Claim>,
    /// Its API groups, which misspelt ones are compared with.
    pub groups: &'static [&'static str],
    /// The kinds a misspelt one is compared with.
    pub kinds: &'static [&'static str],
    /// Returns the advice for a plain object that a hub would act on: the way to do the same with berth.
    pub acted_on_by_hub: fn(&Key) -> Option<&'static str>,
    pub lower: fn(&Input<'_>, &mut Lowered),
}

/// The input of a dialect.
#[derive(Debug)]
pub struct Input<'a> {
    /// The documents it claimed as inventory, policy or workload, in path order.
    pub documents: Vec<&'a Document>,
    /// Plain Kubernetes objects that a placement may select, in path order.
    pub plain: &'a [Arc<Object>],
    /// The severity of an unknown field.
    pub unknown_fields: Severity,
    /// Replaces ConfigMaps marked as envelopes by their contents, as older KubeFleets did.
    pub unwrap_config_maps: bool,
    /// Cached readings of unchanged documents.
    pub readings: &'a ReadingCache,
}

/// The parts of a fleet that a dialect makes from its documents.
#[derive(Debug, Default)]
pub struct Lowered {
    pub clusters: Vec<Shared<Cluster>>,
    pub placements: Vec<Shared<Placement>>,
    pub workloads: Vec<Shared<Workload>>,
    pub statuses: BTreeMap<String, ClusterStatus>,
    pub approvals: Vec<Approval>,
    /// See [`berth_base::model::Fleet::list_kinds`].
    pub list_kinds: BTreeSet<(String, String)>,
    pub diagnostics: Diagnostics,
    /// Indexes into [`Input::plain`] of the objects that some placement selects.
    pub selected: BTreeSet<usize>,
    /// Documents (indexes into [`Input::documents`]) whose own content is at fault, so that their last good form counts.
    pub faulty: BTreeSet<usize>,
}

/// All dialects.
pub const DIALECTS: &[&Dialect] = &[&kubefed::DIALECT, &kubefleet::DIALECT, &ocm::DIALECT];
