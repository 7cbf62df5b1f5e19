//! The annotations of rendered objects for the syncer. `render` and the dialects write them, `sync` reads
//! them: only this file has their names.

/// The prefix of all their names.
pub const PREFIX: &str = "berth.dev/";
/// The workload of an object.
pub const WORKLOAD: &str = "berth.dev/workload";
/// Lets berth take over an object that it did not create: `"true"`, or `if-no-diff`.
pub const TAKE_OVER: &str = "berth.dev/take-over";
/// `disabled`: never removed. `first`: removed before its workload's new objects exist.
pub const PRUNE: &str = "berth.dev/prune";
/// Helm's: with `keep`, never removed.
pub const HELM_POLICY: &str = "helm.sh/resource-policy";
/// `"true"`: the object stays without an owner when it is no longer wanted.
pub const ORPHAN: &str = "berth.dev/orphan";
/// The parts of the object that the member owns.
pub const RETAIN: &str = "berth.dev/retain";
/// Kubernetes' DeleteOptions as JSON, for the removal.
pub const DELETE_OPTIONS: &str = "berth.dev/delete-options";
/// A number that orders the objects of one workload: lower ones must exist and be healthy first.
pub const WAVE: &str = "berth.dev/wave";
/// Objects and workloads that must exist and be healthy first, separated by commas.
pub const DEPENDS_ON: &str = "berth.dev/depends-on";
/// The treatment of fields that another manager owns: `fail`, `force` or `yield`.
pub const ON_CONFLICT: &str = "berth.dev/on-conflict";
/// Lets the member delete the object and create it again if a change is impossible otherwise.
pub const RECREATE: &str = "berth.dev/recreate";
/// Limits the writes to this object: `create-only`, `read-only` or `report-diff`. Unset: no limit.
pub const APPLY: &str = "berth.dev/apply";
/// `if-not-drifted`: changes made in the cluster stay until the manifest changes.
pub const APPLY_WHEN: &str = "berth.dev/apply-when";
/// `full`: fields of the live object that its manifest lacks count as differences.
pub const COMPARE: &str = "berth.dev/compare";
/// `refused`: the object may only have the owners in its manifest.
pub const CO_OWNERS: &str = "berth.dev/co-owners";
/// Fields, as JSON pointers, that are set only at creation: later the member owns them.
pub const INITIAL: &str = "berth.dev/initial";
/// Fields whose changes in the cluster stay until the manifest changes.
pub const TOLERATE: &str = "berth.dev/tolerate";
/// The reason for suspending an object's workload; on berth's own record, for suspending everything.
pub const SUSPEND: &str = "berth.dev/suspend";
/// The end of the suspension, in RFC 3339.
pub const SUSPEND_UNTIL: &str = "berth.dev/suspend-until";
/// The treatment of drift: `correct`, `report`, or `ignore-until=` and a time.
pub const DRIFT: &str = "berth.dev/drift";
/// JSON pointers, separated by commas: fields that belong to the cluster after the object's creation.
pub const IGNORE: &str = "berth.dev/ignore";
/// Managers, separated by commas, that keep the fields they set.
pub const IGNORE_MANAGERS: &str = "berth.dev/ignore-managers";
/// On live objects: the keyed hash of the object applied last.
pub const APPLIED: &str = "berth.dev/applied";
/// On live objects: a part of the object applied last came from a Secret, so no value of the object may be
/// shown.
pub const SEALED: &str = "berth.dev/sealed";

/// Reports whether Helm's policy keeps an object.
pub fn stays(policy: &str) -> bool {
    policy.trim().eq_ignore_ascii_case("keep")
}

/// All of these annotations of berth.
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
