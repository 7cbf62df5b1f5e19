//! The health rules of each kind, as data. The first check that applies decides.
//!
//! A kind without checks is healthy as soon as it exists.

use super::Health;
use Verdict::{Failed, Healthy, Progressing, ProgressingAs};

pub(super) struct Rule {
    pub(super) kinds: &'static [(&'static str, &'static str)],
    pub(super) checks: &'static [Check],
}

/// A check of one part of an object.
pub(super) enum Check {
    /// Progressing until the status is of the present generation.
    Observed,
    /// The same, but a status without a generation passes.
    ObservedIfAny,
    Condition {
        name: &'static str,
        when: When,
        is: &'static str,
        verdict: Verdict,
    },
    /// Applies if a text is one of these.
    Text {
        at: &'static str,
        is: &'static [&'static str],
        verdict: Verdict,
    },
    Flag {
        at: &'static str,
        verdict: Verdict,
    },
    /// Applies if a field is missing or empty, and the field of `only_if`, if any, has the given value.
    Absent {
        at: &'static str,
        only_if: Option<(&'static str, &'static str)>,
        verdict: Verdict,
    },
    AtLeast(Count),
    /// Compares two numbers: `at` must not exceed `of`.
    NoneBeyond {
        at: &'static str,
        of: &'static str,
        words: &'static str,
    },
    Same {
        at: &'static str,
        of: &'static str,
        words: &'static str,
    },
    /// Compares only the replicas above a StatefulSet's partition.
    Partition,
}

/// The case in which a condition decides.
pub(super) enum When {
    Status,
    /// The condition exists with another status.
    NotStatus,
    NotTrueOrAbsent,
    Reason,
}

pub(super) struct Count {
    pub(super) at: &'static str,
    pub(super) of: &'static str,
    /// The wanted number if the object does not set one.
    pub(super) or: i64,
    pub(super) words: &'static str,
}

pub(super) enum Verdict {
    Healthy,
    /// Not healthy yet; the message describes the finding.
    Progressing,
    Failed,
    /// Not healthy yet, with a fixed message.
    ProgressingAs(&'static str),
}

impl Verdict {
    pub(super) fn with(&self, words: impl FnOnce() -> String) -> Health {
        match self {
            Healthy => Health::Healthy,
            Progressing => Health::Progressing(words()),
            Failed => Health::Failed(words()),
            ProgressingAs(words) => Health::Progressing((*words).to_owned()),
        }
    }
}

const fn is_true(name: &'static str, verdict: Verdict) -> Check {
    Check::Condition { name, when: When::Status, is: "True", verdict }
}

const fn must_be_true(name: &'static str) -> Check {
    Check::Condition { name, when: When::NotTrueOrAbsent, is: "True", verdict: Progressing }
}

/// The checks of kinds without a rule: the conditions that controllers share.
pub(super) const GENERIC: &[Check] = &[
    Check::ObservedIfAny,
    is_true("Stalled", Failed),
    is_true("Reconciling", Progressing),
    Check::Condition { name: "Ready", when: When::NotStatus, is: "True", verdict: Progressing },
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        kinds: &[("apps", "Deployment")],
        checks: &[
            Check::Flag { at: "/spec/paused", verdict: Healthy },
            Check::Observed,
            Check::Condition {
                name: "Progressing",
                when: When::Reason,
                is: "ProgressDeadlineExceeded",
                verdict: Failed,
            },
            // Only this condition reports that a quota or a webhook refuses pods. It may admit them later.
            is_true("ReplicaFailure", Progressing),
            Check::AtLeast(Count {
                at: "/status/updatedReplicas",
                of: "/spec/replicas",
                or: 1,
                words: "replicas are updated",
            }),
            Check::NoneBeyond {
                at: "/status/replicas",
                of: "/status/updatedReplicas",
                words: "replicas of the previous form still exist",
            },
            Check::AtLeast(Count {
                at: "/status/availableReplicas",
                of: "/spec/replicas",
                or: 1,
                words: "replicas are available",
            }),
        ],
    },
    Rule {
        kinds: &[("apps", "StatefulSet")],
        checks: &[
            Check::Observed,
            Check::AtLeast(Count {
                at: "/status/readyReplicas",
                of: "/spec/replicas",
                or: 1,
                words: "replicas are ready",
            }),
            Check::Text { at: "/spec/updateStrategy/type", is: &["OnDelete"], verdict: Healthy },
            Check::Partition,
            Check::Same {
                at: "/status/currentRevision",
                of: "/status/updateRevision",
                words: "not all replicas are updated",
            },
        ],
    },
    Rule {
        kinds: &[("apps", "DaemonSet")],
        checks: &[
            Check::Observed,
            Check::Text { at: "/spec/updateStrategy/type", is: &["OnDelete"], verdict: Healthy },
            Check::AtLeast(Count {
                at: "/status/updatedNumberScheduled",
                of: "/status/desiredNumberScheduled",
                or: 0,
                words: "pods are updated",
            }),
            Check::AtLeast(Count {
                at: "/status/numberAvailable",
                of: "/status/desiredNumberScheduled",
                or: 0,
                words: "pods are available",
            }),
        ],
    },
    Rule {
        kinds: &[("apps", "ReplicaSet")],
        checks: &[
            Check::Observed,
            is_true("ReplicaFailure", Failed),
            Check::AtLeast(Count {
                at: "/status/availableReplicas",
                of: "/spec/replicas",
                or: 1,
                words: "replicas are available",
            }),
        ],
    },
    Rule {
        kinds: &[("batch", "Job")],
        checks: &[
            is_true("Failed", Failed),
            Check::Flag { at: "/spec/suspend", verdict: Healthy },
            is_true("Complete", Healthy),
            must_be_true("Complete"),
        ],
    },
    Rule {
        kinds: &[("", "Pod")],
        checks: &[
            Check::Text { at: "/status/phase", is: &["Succeeded"], verdict: Healthy },
            Check::Text { at: "/status/phase", is: &["Failed"], verdict: Failed },
            must_be_true("Ready"),
        ],
    },
    Rule {
        kinds: &[("", "PersistentVolumeClaim")],
        checks: &[
            Check::Text { at: "/status/phase", is: &["Lost"], verdict: Failed },
            Check::Text { at: "/status/phase", is: &["", "Pending"], verdict: Progressing },
        ],
    },
    Rule {
        kinds: &[("", "Service")],
        checks: &[Check::Absent {
            at: "/status/loadBalancer/ingress",
            only_if: Some(("/spec/type", "LoadBalancer")),
            verdict: ProgressingAs("its load balancer has no address"),
        }],
    },
    // Some Ingress controllers never report an address.
    Rule { kinds: &[("networking.k8s.io", "Ingress")], checks: &[] },
    Rule {
        kinds: &[("apiextensions.k8s.io", "CustomResourceDefinition")],
        checks: &[
            Check::Condition { name: "NamesAccepted", when: When::Status, is: "False", verdict: Failed },
            must_be_true("Established"),
        ],
    },
    Rule { kinds: &[("apiregistration.k8s.io", "APIService")], checks: &[must_be_true("Available")] },
    Rule {
        kinds: &[("", "Namespace")],
        checks: &[Check::Text { at: "/status/phase", is: &["Terminating"], verdict: Progressing }],
    },
    Rule {
        kinds: &[
            ("", "ConfigMap"),
            ("", "Endpoints"),
            ("", "LimitRange"),
            ("", "ResourceQuota"),
            ("", "Secret"),
            ("", "ServiceAccount"),
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            ("batch", "CronJob"),
            ("networking.k8s.io", "NetworkPolicy"),
            ("policy", "PodDisruptionBudget"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
            ("rbac.authorization.k8s.io", "Role"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("scheduling.k8s.io", "PriorityClass"),
            ("storage.k8s.io", "StorageClass"),
        ],
        checks: &[],
    },
];

pub(super) fn of(group: &str, kind: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.kinds.contains(&(group, kind)))
}
