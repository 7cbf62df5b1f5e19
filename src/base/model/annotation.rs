//! The annotations that rendered objects carry for the syncer. Written by `render` and the dialects,
//! read by `sync`: their names are here and nowhere else.

/// The start of all their names.
pub const PREFIX: &str = "berth.dev/";
/// The workload of an object.
pub const WORKLOAD: &str = "berth.dev/workload";
/// Lets berth take over an object that it did not create: `"true"`, or `if-no-diff`.
pub const TAKE_OVER: &str = "berth.dev/take-over";
/// `disabled`: never removed. `first`: removed before its workload's new objects are there.
pub const PRUNE: &str = "berth.dev/prune";
/// `"true"`: left in place when it is no longer wanted, and nobody's from then on.
pub const ORPHAN: &str = "berth.dev/orphan";
/// The parts of the object that the member owns.
pub const RETAIN: &str = "berth.dev/retain";
/// Kubernetes' DeleteOptions as JSON, for the removal.
pub const DELETE_OPTIONS: &str = "berth.dev/delete-options";
/// A number that orders the objects of one workload: lower ones are there and healthy first.
pub const WAVE: &str = "berth.dev/wave";
/// Objects and workloads that are there and healthy first, with commas between them.
pub const DEPENDS_ON: &str = "berth.dev/depends-on";
/// The treatment of fields that somebody else owns: `fail`, `force` or `yield`.
pub const ON_CONFLICT: &str = "berth.dev/on-conflict";
/// Lets the member remove the object and create it anew where a change is impossible otherwise.
pub const RECREATE: &str = "berth.dev/recreate";
/// Limits the writes to this object: `create-only`, `read-only` or `report-diff`. Unset: no limit.
pub const APPLY: &str = "berth.dev/apply";
/// `if-not-drifted`: what was changed in the cluster stays until the manifest changes.
pub const APPLY_WHEN: &str = "berth.dev/apply-when";
/// `full`: what an object has beside its manifest counts as a difference.
pub const COMPARE: &str = "berth.dev/compare";
/// `refused`: it must have no owners but those of its manifest.
pub const CO_OWNERS: &str = "berth.dev/co-owners";
/// Fields, as JSON pointers, that count only when the object is made: where the member has them, they are its.
pub const INITIAL: &str = "berth.dev/initial";
/// Fields that, changed in the cluster, stay so until the manifest changes.
pub const TOLERATE: &str = "berth.dev/tolerate";
/// The reason why an object's workload is suspended; on berth's own record, why everything is.
pub const SUSPEND: &str = "berth.dev/suspend";
/// Until when, in RFC 3339.
pub const SUSPEND_UNTIL: &str = "berth.dev/suspend-until";
/// The treatment of drift: `correct`, `report`, or `ignore-until=` and a time.
pub const DRIFT: &str = "berth.dev/drift";
/// JSON pointers with commas between them: fields that are left to the cluster once the object is made.
pub const IGNORE: &str = "berth.dev/ignore";
/// Managers with commas between them, to whom the fields are left that they set.
pub const IGNORE_MANAGERS: &str = "berth.dev/ignore-managers";
/// On live objects: the keyed hash of what was applied last.
pub const APPLIED: &str = "berth.dev/applied";
/// On live objects: a part of what was applied last came from a Secret, so that no value of the object may be shown.
pub const SEALED: &str = "berth.dev/sealed";

/// All of them.
pub const ALL: [&str; 23] = [
    WORKLOAD,
    TAKE_OVER,
    PRUNE,
    ORPHAN,
    RETAIN,
    DELETE_OPTIONS,
    WAVE,
    DEPENDS_ON,
    ON_CONFLICT,
    RECREATE,
    APPLY,
    APPLY_WHEN,
    COMPARE,
    CO_OWNERS,
    INITIAL,
    TOLERATE,
    SUSPEND,
    SUSPEND_UNTIL,
    DRIFT,
    IGNORE,
    IGNORE_MANAGERS,
    APPLIED,
    SEALED,
];
