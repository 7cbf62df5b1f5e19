//! The systems whose objects berth reads, a folder each.
//!
//! A dialect is a parser: it turns its kinds into the neutral model and names the filters, scorers, selection
//! and conditions of its semantics. It also answers all questions of other parts about its kinds. A new
//! dialect is a folder and a row in [`DIALECTS`].

mod clusters;
mod described;
pub mod inventory;
mod kinds;
pub mod kubefed;
pub mod kubefleet;
pub mod object_scopes;
pub mod ocm;
mod readings;
mod rollouts;
mod variants;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

pub use clusters::{ClusterKind, NewCluster};
pub use described::{Described, Detail, Placed, Reported};
pub use kinds::{AccessRole, Bearing, CarriedObject, PlacementFields, ReadKind, SetFields};
pub use readings::{ReadingContext, ReadingContexts, Readings};
pub use rollouts::{RolloutView, RunApproval, StagedRuns};
pub(crate) use rollouts::{duration, written_strategy};

use berth_base::diag::{Diagnostics, Pos, Severity};
use berth_base::model::rollout_policy::RolloutPolicy;
use berth_base::model::staged::{Run, RunProgress, StageApproval, StageStrategy, Standing};
use berth_base::model::{
    Applies, Approval, Cluster, ClusterStatus, IdParts, Key, Map, ObjectId, Placement, Shared, Workload,
};
use berth_base::packed::Packed;
use berth_base::yaml::{Node, Questions, Scope};

/// A document of the source tree, shared between passes.
pub type Document = Shared<ParsedDocument>;

/// A document that has an apiVersion and a kind.
#[derive(Clone, Debug, Default)]
pub struct ParsedDocument {
    pub key: Key,
    pub version: String,
    pub at: Pos,
    /// Packed, because passes keep most documents and do not read them.
    pub root: Packed,
    /// `None` for a last good form: its readings are not cached.
    pub readings: Option<Readings>,
    pub variants: Variants,
}

/// The forms that a rendered object has in some clusters.
#[derive(Clone, Debug, Default)]
pub enum Variants {
    #[default]
    None,
    Of {
        source: Arc<Key>,
        forms: Arc<[Variant]>,
    },
    /// Its source cannot be rendered, or not be read, and so the forms are not known.
    Unknown,
}

/// The form of a rendered object in some clusters.
#[derive(Clone, Debug)]
pub struct Variant {
    pub clusters: Applies,
    /// `None` where these clusters do not get the object.
    pub document: Option<Document>,
}

impl ParsedDocument {
    /// Unpacks the document, for a reader.
    pub fn open(&self) -> Node {
        Node::unpack(self.root.view())
    }

    /// Returns the identity of the described object.
    pub fn id(&self) -> ObjectId {
        let Key { kind, namespace, name, group } = self.key.clone();
        IdParts { group, kind, namespace, name }.into()
    }
}

/// A dialect's claim to a document, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The document belongs to another dialect.
    Foreign,
    /// Clusters, on which every placement may depend.
    Inventory,
    /// Placements, sets and bindings, on which some placements depend.
    Policy,
    /// Workloads and their overrides.
    Workload,
    /// A hub's own bookkeeping, skipped with a note.
    Bookkeeping,
    /// An unknown kind of this dialect's group.
    Unknown,
}

/// The dialects that a source is read with.
pub type Dialects = &'static [&'static Dialect];

/// All dialects.
pub const DIALECTS: Dialects = &[&kubefed::DIALECT, &kubefleet::DIALECT, &ocm::DIALECT, &inventory::DIALECT];

/// Returns the cluster kinds of all dialects.
pub fn cluster_kinds() -> impl Iterator<Item = &'static ClusterKind> {
    DIALECTS.iter().filter_map(|dialect| dialect.cluster_kind)
}

/// Reports whether a document of this key describes a cluster.
pub fn describes_cluster(key: &Key) -> bool {
    let kinds = cluster_kinds().map(|kind| (kind.group, kind.kind));
    kinds.chain([(inventory::GROUP, inventory::KIND)]).any(|kind| kind == (&*key.group, &*key.kind))
}

/// One system: its parser, and facts about its kinds. [`Dialect::BLANK`] fills in the fields that a dialect
/// does not need.
#[derive(Debug)]
pub struct Dialect {
    pub name: &'static str,
    /// Claims the dialect's documents: returns one claim per document.
    pub claim: fn(&[Document]) -> Vec<Claim>,
    pub lower: fn(&Input<'_>, &mut Lowered),
    /// Returns the bearing on others of a document with this claim.
    pub bearing: fn(&Document, Claim) -> Bearing,
    /// Its API groups, to compare misspelt groups with.
    pub groups: &'static [&'static str],
    /// Earlier API groups of its kinds.
    pub retired_groups: &'static [&'static str],
    /// Its kinds, to compare a misspelt kind with.
    pub kinds: &'static [&'static str],
    /// Returns the kinds that it reads.
    pub reads: fn() -> Vec<ReadKind>,
    /// The kind that describes clusters.
    pub cluster_kind: Option<&'static ClusterKind>,
    /// Reports whether an object of this kind is a placement, whose decision other systems may read.
    pub is_placement: fn(&Key) -> bool,
    /// Labels by which its placements select clusters by name: a cluster without the label gets its own name
    /// as the value.
    pub name_labels: &'static [&'static str],
    /// The documents that steer its staged runs.
    pub staged_runs: Option<&'static StagedRuns>,
    /// Groups and kinds of cluster-scoped objects.
    pub cluster_scoped: &'static [(&'static str, &'static str)],
    /// The role of an object for access rules.
    pub access_role: fn(&Key) -> AccessRole<'_>,
    /// Returns the objects inside a document.
    pub carried_objects: fn(&Document) -> Vec<CarriedObject>,
    /// Settings under the dialect's name in berth.yaml, enabled unless they are `false`.
    pub switches: &'static [&'static str],
    /// The texts and statuses for hubs and people.
    pub shown: Shown,
}

/// The texts and statuses of a system for hubs and people. [`Shown::NOTHING`] fills in the fields that a
/// dialect does not need.
#[derive(Debug)]
pub struct Shown {
    /// Short names of kinds, as in kubectl.
    pub short_names: &'static [(&'static str, &'static str)],
    /// Returns the fields of a placement to which `explain` suggests edits; `None` for another kind.
    pub placement_fields: fn(&Key) -> Option<&'static PlacementFields>,
    /// Returns the status of a placement in the system's form; `None` for another system's placement.
    pub describe: fn(&Described<'_>) -> Option<Json>,
    /// Returns the status of a staged run in the system's form; `None` for another system's run. The progress
    /// is absent before the run begins.
    pub describe_run: fn(&Run, Option<&RunProgress>, &Standing) -> Option<Json>,
    /// Returns the status of a workload for the fleet report, if the system has one.
    pub report: fn(&Reported<'_>) -> Option<Json>,
    /// Returns the advice for a plain object on which a hub would act: the way to do the same with berth.
    pub acted_on_by_hub: fn(&Key) -> Option<&'static str>,
    /// Returns the changes between two sets of files that a hub would refuse. Equal files may be left out.
    pub refused_by_hub: fn(&[FileText], &[FileText]) -> Diagnostics,
}

/// A file's path and bytes.
pub type FileText = (Arc<str>, Arc<[u8]>);

impl Shown {
    pub const NOTHING: Shown = Shown {
        short_names: &[],
        placement_fields: |_| None,
        describe: |_| None,
        describe_run: |_, _, _| None,
        report: |_| None,
        acted_on_by_hub: |_| None,
        refused_by_hub: |_, _| Diagnostics::new(),
    };
}

impl Dialect {
    /// A dialect without any kinds.
    pub const BLANK: Dialect = Dialect {
        name: "",
        claim: |documents| vec![Claim::Foreign; documents.len()],
        lower: |_, _| {},
        bearing: |_, _| Bearing::Together,
        groups: &[],
        retired_groups: &[],
        kinds: &[],
        reads: Vec::new,
        cluster_kind: None,
        is_placement: |_| false,
        name_labels: &[],
        staged_runs: None,
        cluster_scoped: &[],
        access_role: |_| AccessRole::Plain,
        carried_objects: |_| Vec::new(),
        switches: &[],
        shown: Shown::NOTHING,
    };

    /// Reports whether a key belongs to a cluster.
    pub fn is_cluster(&self, key: &Key) -> bool {
        self.cluster_kind.is_some_and(|one| *key.group == *one.group && *key.kind == *one.kind)
    }
}

/// The input of a dialect.
#[derive(Debug)]
pub struct Input<'a> {
    /// The documents that it claimed as inventory, policy or workload, in path order.
    pub documents: Vec<&'a Document>,
    /// Plain Kubernetes objects that a placement may select, in path order.
    pub plain: &'a [&'a Document],
    /// The severity of an unknown field.
    pub unknown_fields: Severity,
    /// The disabled ones of its [`Dialect::switches`].
    pub switched_off: Vec<&'static str>,
    /// All dialects of this load.
    pub dialects: Dialects,
    /// The contexts in which documents are read.
    pub contexts: &'a ReadingContexts,
    /// Records the fields that readers ask for, to generate schemas.
    pub asked: Option<Arc<Questions>>,
}

impl Input<'_> {
    /// Returns the scope for reading a document.
    pub fn scope(&self, document: &Document, unknown_fields: Severity) -> Scope {
        Scope::new(document.at.file.clone(), unknown_fields).asking(self.asked.clone())
    }
}

/// The parts of a fleet that a dialect makes from its documents.
#[derive(Debug, Default)]
pub struct Lowered {
    pub clusters: Vec<Shared<Cluster>>,
    pub placements: Vec<Shared<Placement>>,
    pub workloads: Vec<Shared<Workload>>,
    pub statuses: Map<String, Shared<ClusterStatus>>,
    pub approvals: Vec<Approval>,
    pub rollout_policies: Vec<RolloutPolicy>,
    pub runs: Vec<Run>,
    pub stage_strategies: Vec<StageStrategy>,
    pub stage_approvals: Vec<StageApproval>,
    /// Documents with the identity of a placement that they replaced.
    pub replaced: BTreeMap<Key, Key>,
    /// See [`berth_base::model::Fleet::list_kinds`].
    pub list_kinds: BTreeSet<(String, String)>,
    pub diagnostics: Diagnostics,
    /// Indexes into [`Input::plain`] of the objects that some placement selects.
    pub selected: BTreeSet<usize>,
    /// Documents (indexes into [`Input::documents`]) with a fault of their own: their last good form is used.
    pub faulty: BTreeSet<usize>,
}
