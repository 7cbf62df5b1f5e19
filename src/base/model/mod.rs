//! The neutral model: the target of every dialect, and the input of the engine.
//!
//! Plain values without the behaviour of one system, without serde, without I/O. People's wishes are in
//! [`placement`] and [`workload`]; the actual clusters in [`cluster`], [`status`] and
//! [`member`]; berth's answer in [`decision`].

pub mod annotation;
pub mod applier;
pub mod cluster;
pub mod content;
pub mod decision;
pub mod fleet;
pub mod key;
pub(crate) mod label_keys;
pub mod map;
pub mod member;
pub mod named;
pub mod object;
pub mod path;
mod pick_cursor;
pub mod placement;
pub mod pointer;
pub mod quantity;
pub mod release;
pub mod rollout;
pub mod rollout_policy;
pub mod schedule;
pub mod selector;
pub mod shared;
pub mod staged;
pub mod status;
pub mod workload;

pub use applier::Applier;
pub use cluster::{Cluster, ClusterView, Effect, Expression, Taint};
pub use content::{ContentError, ContentId, Contents, Folder, FolderEntry, Folders, differences};
pub use decision::{Condition, Decision, Digest, Failure, Group, Pick, PickDetails, Refused};
pub use fleet::{Approval, Fleet};
pub use key::{Key, PlacementRef};
pub use label_keys::LabelKeys;
pub use map::Map;
pub use member::{Member, MemberCursor, MemberState, MemberView, Observed, Published};
pub use object::{IdParts, Object, ObjectId, ObjectWrite, WriteChain};
pub use pick_cursor::{AnyPicked, PickCursor, rows_among};
pub use placement::{Placement, Policy, Source};
pub use pointer::Pointer;
pub use quantity::Quantity;
pub use selector::{Comparison, Measure, PropertyRequirement, Requirement, Selector, Term};
pub use shared::Shared;
pub use status::ClusterStatus;
pub use workload::{Action, Alternative, Applies, Operation, Override, Template, Verb, Workload};

/// The apiVersion of berth's own kinds.
pub const API_VERSION: &str = "berth.dev/v1alpha1";

/// A moment, in UTC. Always an argument, never from a clock.
pub type Timestamp = jiff::Timestamp;
