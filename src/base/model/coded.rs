//! The parts of a fleet ↔ bytes, so that another process goes on from the fleet that it was.

use jiff::Timestamp;

use super::applier::Applier;
use super::approval::Approval;
use super::cluster::{
    AddOnScore, Agent, Cluster, Effect, Report, Silence, Standing, Taint, WorkloadName, WorkloadReport,
};
use super::cluster_view::{Expression, View};
use super::content::ContentId;
use super::decision::{Condition, Digest};
use super::encoding;
use super::fleet::{Doubt, Fleet};
use super::key::Key;
use super::map::Map;
use super::named::AllFunctions;
use super::object::{IdParts, Object, ObjectId};
use super::overrides::{Action, Applies, Operation, Override, Verb};
use super::placement::{
    AgentLimits, Blocked, Choice, ClusterSet, Division, EvenConstraint, Filter, Follow, GroupSize, Grouping,
    NamedCluster, NormalForm, Placement, Policy, Preference, Ranking, Reach, Retention, Rule, ScoreRule,
    Scorer, Selection, Share, Sorter, Source, SpreadConstraint, Toleration, Wording,
};
use super::placement_ref::PlacementRef;
use super::pointer::Pointer;
use super::quantity::Quantity;
use super::rollout::{Amount, GroupRef, Pace, Rolling, Rollout, Stage, StageTask, Strategy};
use super::rollout_policy::{
    Abort, Freeze, GateApproval, OnFailure, Pin, PolicyName, PolicyStrategy, Restart, RolloutPolicy,
    WorkloadPattern,
};
use super::schedule::{self, Schedule};
use super::selector::{Comparison, Measure, PropertyRequirement, Requirement, Selector, Term};
use super::shared::Shared;
use super::staged::{Run, RunState, Side, StageApproval, StageGate, StageStrategy};
use super::workload::{ReplicasAt, Retained, Template, Workload};
use crate::codec::coded::Coded;
use crate::codec::{Decoder, Encoder};
use crate::coded;
use crate::diag::{Diagnostic, Pos};
use crate::packed::Packed;

coded!(struct Fleet {
    clusters,
    placements,
    workloads,
    labels,
    statuses,
    replaced,
    approvals,
    rollout_policies,
    named_policies,
    runs,
    stage_strategies,
    stage_approvals,
    doubt,
    list_kinds,
});
coded!(struct Doubt { everything, objects, files });

coded!(struct Cluster {
    name,
    origins,
    labels,
    claims,
    taints,
    properties,
    capacity,
    allocatable,
    available,
    scores,
    workloads,
    namespaces,
    details,
    leaving,
    standing,
    applier,
    taints_of_silence,
    silence,
});
coded!(struct AddOnScore { value, index, valid_until });
coded!(struct WorkloadName { kind, namespace, name });
coded!(struct WorkloadReport { capacity });
coded!(enum Standing { 0 = Assumed, 1 = Reported(report) });
coded!(struct Report { ready, agent, taints });
coded!(struct Agent { joined, healthy, heartbeat });
coded!(struct Taint { key, value, effect, effect_word, since, frozen });
coded!(struct Silence { since, frozen });
coded!(enum Effect { 0 = Refuse, 1 = RefuseNew, 2 = Prefer });

coded!(struct Placement { key, origin, source, named });
coded!(struct NamedCluster { name, at });
coded!(enum Source { 0 = Own(policy), 1 = Follows(follow) });
coded!(struct Follow { placements, filters, condition });
coded!(struct PlacementRef { kind, namespace, name, at });
coded!(struct Policy {
    candidates,
    filters,
    scorers,
    ranking,
    selection,
    retention,
    replace_after,
    groups,
    division,
    blocked,
    condition,
    text,
});
coded!(struct Filter { rule, by });
coded!(enum Rule {
    0 = Nowhere(why),
    1 = Named(names),
    2 = Labels(selector),
    3 = AnyOf(terms),
    4 = InSets(sets),
    5 = NotLeaving,
    6 = Eligible(limits),
    7 = Tolerates(tolerations),
    8 = HoldsNamespace(namespace),
    9 = Ready,
    10 = Reachable(reach),
});
coded!(struct Reach { folder, clusters });
coded!(struct ClusterSet { name, members });
coded!(struct AgentLimits { heartbeat_seconds, unhealthy_seconds });
coded!(struct Toleration { key, value, effect, seconds });
coded!(struct Scorer { name, weight, rule });
coded!(enum ScoreRule {
    0 = Steady,
    1 = Balance,
    2 = Allocatable(resource),
    3 = AddOn { resource, score },
    4 = Preferred(preferences),
    5 = Spread(constraints),
    6 = Even(constraints),
    7 = Among(sorter),
});
coded!(struct Preference { weight, term, sorter });
coded!(struct Sorter { measure, ascending });
coded!(struct SpreadConstraint { key, max_skew, required });
coded!(struct EvenConstraint { key, of_claims, max_skew, required });
coded!(enum Ranking { 0 = SumThenName, 1 = PartsThenNameDescending });
coded!(enum Selection { 0 = All, 1 = First(count), 2 = Exactly(names), 3 = InTurn(choices) });
coded!(struct Choice { name, terms, count, least });
coded!(enum Retention { 0 = None, 1 = SamePolicy(form) });
coded!(struct Grouping { size, named });
coded!(enum GroupSize { 0 = Count(count), 1 = Percent(percent) });
coded!(struct Division {
    by,
    origin,
    workload,
    total,
    shares,
    others,
    rebalance,
    hash_key,
    among,
    then,
});
coded!(struct Share { floor, ceiling, weight });
coded!(struct Blocked { condition, keep_earlier });
coded!(struct Condition { kind, status, reason, message });

coded!(struct Selector { requirements });
coded!(enum Requirement {
    0 = Is(key, value),
    1 = In(key, values),
    2 = NotIn(key, values),
    3 = Exists(key),
    4 = DoesNotExist(key),
});
coded!(struct Term { labels, claims, properties, expressions });
coded!(struct PropertyRequirement { measure, comparison, than });
coded!(enum Measure { 0 = Property(name), 1 = Capacity(name), 2 = Allocatable(name), 3 = Available(name) });
coded!(enum Comparison {
    0 = Greater,
    1 = GreaterOrEqual,
    2 = Equal,
    3 = NotEqual,
    4 = Less,
    5 = LessOrEqual,
});
coded!(struct Expression { text, view });

coded!(struct Workload { key, origin, templates, overrides, replicas, frozen, strategy });
coded!(struct ReplicasAt { path, by, origin });
coded!(struct Template { object, final_labels, sync_annotations, retained });
coded!(struct Retained { path, clusters });
coded!(struct Object { id, origin, content });
coded!(struct IdParts { group, kind, namespace, name });
coded!(struct Override { by, origin, clusters, objects, action });
coded!(enum Applies { 0 = To(cluster), 1 = AnyOf(terms) });
coded!(enum Action { 0 = Patch(operations), 1 = Delete });
coded!(struct Operation { verb, path, from, value, replace_may_add, from_the_end, variables, at });
coded!(enum Verb { 0 = Add, 1 = Remove, 2 = Replace, 3 = Move, 4 = Copy, 5 = Test });

coded!(enum Strategy {
    0 = AtOnce,
    1 = Progressive(rollouts),
    2 = Rolling(rolling),
    3 = Stages(stages),
    4 = Runs,
});
coded!(struct Rollout { placement, pace, first, soak_seconds, deadline_seconds, max_failures });
coded!(enum Pace { 0 = Together, 1 = ByCluster(most), 2 = ByGroup });
coded!(enum GroupRef { 0 = Name(name), 1 = Index(index) });
coded!(struct Rolling { max_unavailable, max_surge, period_seconds, wanted, asked });
coded!(struct Stage { name, selector, sorted_by, at_a_time, before, after });
coded!(enum StageTask { 0 = Approval, 1 = Wait(seconds) });
coded!(enum Amount { 0 = Count(count), 1 = Percent(percent) });

coded!(struct RolloutPolicy {
    key,
    origin,
    workloads,
    strategy,
    on_failure,
    freezes,
    paused,
    pins,
    after,
    together,
    approved,
    aborted,
    restarted,
});
coded!(enum PolicyStrategy { 0 = Written(strategy), 1 = Staged { name, at } });
coded!(struct WorkloadPattern { at, kind, namespace, name });
coded!(enum OnFailure { 0 = Halt, 1 = RollBack });
coded!(struct Pin { at, clusters, selector, release, reason });
coded!(struct GateApproval { workload, release, gate });
coded!(struct Abort { workload, release, reason });
coded!(struct Restart { workload, release, times });
coded!(struct PolicyName { name, at });
coded!(struct StageStrategy { key, origin, stages });
coded!(struct Run { key, origin, workload, workload_at, strategy, strategy_at, release, state });
coded!(enum RunState { 0 = Initialize, 1 = Run, 2 = Stop });
coded!(struct StageApproval { key, origin, run, gate, approved });
coded!(struct StageGate { stage, side });
coded!(enum Side { 0 = Before, 1 = After });
coded!(struct Approval { origin, digest, expires, reason });

/// Implements [`Coded`] by two functions: one that takes a value apart, and one that puts it together again, if it can.
macro_rules! coded_by {
    ($name:ty, $take:expr, $make:expr) => {
        impl Coded for $name {
            fn put(&self, encoder: &mut Encoder) {
                let take: fn(&$name) -> _ = $take;
                take(self).put(encoder);
            }

            fn get(decoder: &mut Decoder<'_>) -> Option<$name> {
                let make: fn(&Decoder<'_>, _) -> Option<$name> = $make;
                let parts = Coded::get(decoder)?;
                make(decoder, parts)
            }
        }
    };
}

coded_by!(Quantity, |quantity| quantity.nanos().to_le_bytes(), |_, nanos| Some(Quantity::from_nanos(
    i128::from_le_bytes(nanos)
)));
coded_by!(Pointer, |pointer| pointer.parts().to_vec(), |_, parts: Vec<String>| Some(Pointer::of(parts)));
coded_by!(Digest, |digest| digest.0, |_, bytes| Some(Digest(bytes)));
coded_by!(ContentId, |id| id.0, |_, bytes| Some(ContentId(bytes)));
coded_by!(&'static Applier, |applier| applier.name.to_owned(), |_, name: String| Applier::named(&name));
coded_by!(Schedule, |schedule| schedule.text().to_owned(), |_, text: String| Schedule::parse(&text).ok());
coded_by!(
    Freeze,
    |freeze| {
        let Freeze { schedule, zone: _, zone_name, seconds, reason } = freeze;
        ((schedule.clone(), zone_name.clone()), (*seconds, reason.clone()))
    },
    |_, ((schedule, zone_name), (seconds, reason)): ((_, String), _)| {
        Some(Freeze { schedule, zone: schedule::time_zone(&zone_name)?, zone_name, seconds, reason })
    }
);
coded_by!(Wording, |wording| wording.name.to_owned(), |decoder, name: String| {
    decoder.statics::<AllFunctions>()?.wording(&name)
});
coded_by!(NormalForm, |form| form.name.to_owned(), |decoder, name: String| {
    decoder.statics::<AllFunctions>()?.normal_form(&name)
});
coded_by!(View, |view| view.name.to_owned(), |decoder, name: String| {
    decoder.statics::<AllFunctions>()?.view(&name)
});

impl Coded for ObjectId {
    fn put(&self, encoder: &mut Encoder) {
        IdParts::put(self, encoder);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<ObjectId> {
        IdParts::get(decoder).map(ObjectId::from)
    }
}

impl Coded for Key {
    fn put(&self, encoder: &mut Encoder) {
        encoding::put_key(encoder, self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Key> {
        encoding::key(decoder)
    }
}

impl Coded for Pos {
    fn put(&self, encoder: &mut Encoder) {
        encoding::put_pos(encoder, self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Pos> {
        encoding::pos(decoder)
    }
}

impl Coded for Diagnostic {
    fn put(&self, encoder: &mut Encoder) {
        encoding::put_diagnostic(encoder, self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Diagnostic> {
        encoding::diagnostic(decoder)
    }
}

impl Coded for Timestamp {
    fn put(&self, encoder: &mut Encoder) {
        encoding::put_moment(encoder, *self);
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Timestamp> {
        encoding::moment(decoder)
    }
}

impl Coded for Packed {
    fn put(&self, encoder: &mut Encoder) {
        encoder.bytes(self.bytes());
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Packed> {
        decoder.bytes().map(Packed::stored)
    }
}

impl<T: Coded + Default> Coded for Shared<T> {
    fn put(&self, encoder: &mut Encoder) {
        self.encode(encoder, |encoder, value| value.put(encoder));
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Shared<T>> {
        Some(Shared::stored(decoder.part()?, T::get))
    }
}

impl<K: Coded + Ord + Clone, V: Coded + Clone> Coded for Map<K, V> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.list(self.iter(), |encoder, (key, value)| {
            key.put(encoder);
            value.put(encoder);
        });
    }

    fn get(decoder: &mut Decoder<'_>) -> Option<Map<K, V>> {
        decoder.list(Coded::get)
    }
}
