//! Checks that a cluster can take work: it is not leaving; its agent has joined, is healthy and reports;
//! and its taints are tolerated.

use super::{Check, Code};
use crate::decide::cluster_table::{Row, Table};
use berth_base::model::cluster::Readiness;
use berth_base::model::placement::{AgentLimits, Toleration};
use berth_base::model::{Cluster, Effect, Taint, Timestamp};

pub(super) struct NotLeaving<'a>(pub(super) &'a Table<'a>);

impl Check for NotLeaving<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        self.0.cluster(row).leaving.then_some(0)
    }

    fn words(&self) -> String {
        "not leaving the fleet".to_owned()
    }

    fn summary(&self, _code: Code) -> String {
        "leaving the fleet".to_owned()
    }
}

pub(super) struct Ready<'a>(pub(super) &'a Table<'a>);

impl Check for Ready<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        (!is_ready(self.0.cluster(row))).then_some(0)
    }

    fn words(&self) -> String {
        "ready".to_owned()
    }

    fn summary(&self, _code: Code) -> String {
        "not ready".to_owned()
    }
}

/// Reports whether the cluster's last report says that it is ready. A cluster without a report counts as
/// ready; a cluster whose member is silent does not.
pub(in crate::decide) fn is_ready(cluster: &Cluster) -> bool {
    if cluster.silence.is_some() {
        return false;
    }
    let Readiness::Reported(report) = &cluster.standing else { return true };
    let agent_is_well = report
        .agent
        .as_ref()
        .is_none_or(|agent| agent.joined != Some(false) && agent.healthy.is_none_or(|(healthy, _)| healthy));
    report.ready != Some(false) && agent_is_well
}

pub(super) struct Eligible<'a> {
    pub(super) table: &'a Table<'a>,
    pub(super) limits: AgentLimits,
}

/// The faults of a cluster, by code.
const REASONS: [&str; 8] = [
    "leaving the fleet",
    "its agent has not joined",
    "its agent has sent no heartbeat",
    "its agent's last heartbeat is too old",
    "its agent does not report its health",
    "its agent has been unhealthy for too long",
    "reported as not ready",
    "its member is silent",
];

/// Returns the current fault of a cluster, and the moment at which time may change it.
pub(in crate::decide) fn eligibility(
    cluster: &Cluster,
    limits: AgentLimits,
    now: Timestamp,
) -> (Option<Code>, Option<Timestamp>) {
    if cluster.leaving {
        return (Some(0), None);
    }
    if cluster.silence.is_some() {
        return (Some(7), None);
    }
    let Readiness::Reported(report) = &cluster.standing else { return (None, None) };
    let Some(agent) = &report.agent else { return ((report.ready == Some(false)).then_some(6), None) };
    let Some(heartbeat) = agent.heartbeat else { return (Some(2), None) };
    let heard_until = after(heartbeat, limits.heartbeat_seconds);
    if now > heard_until {
        return (Some(3), None);
    }
    // Without another fault, silence finally counts as one.
    let silent_from = Some(flip(heard_until));
    if agent.joined != Some(true) {
        return (Some(1), silent_from);
    }
    match agent.healthy {
        None => (Some(4), silent_from),
        Some((true, _)) => (None, silent_from),
        Some((false, since)) => {
            let bearable_until = since.map_or(Timestamp::MIN, |since| after(since, limits.unhealthy_seconds));
            match now > bearable_until {
                true => (Some(5), silent_from),
                false => (None, Some(flip(heard_until.min(bearable_until)))),
            }
        }
    }
}

fn after(moment: Timestamp, seconds: i64) -> Timestamp {
    let end = moment.checked_add(jiff::SignedDuration::from_secs(seconds));
    end.unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// Returns the first moment after a limit, in whole seconds as Kubernetes counts. A cluster still passes at
/// the limit itself.
pub(in crate::decide) fn flip(limit: Timestamp) -> Timestamp {
    let whole = Timestamp::from_second(limit.as_second()).unwrap_or(limit);
    after(whole, 1)
}

impl Check for Eligible<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        eligibility(self.table.cluster(row), self.limits, self.table.now).0
    }

    fn words(&self) -> String {
        "fit to take work".to_owned()
    }

    fn summary(&self, code: Code) -> String {
        REASONS.get(code as usize).map_or_else(String::new, |reason| (*reason).to_owned())
    }

    fn detail(&self, code: Code, row: Row) -> String {
        let summary = self.summary(code);
        let cluster = self.table.cluster(row);
        if let Some(silence) = cluster.silence {
            return format!("{summary} since {}", silence.since);
        }
        let Readiness::Reported(report) = &cluster.standing else { return summary };
        let since = report.agent.as_ref().and_then(|agent| match code {
            3 => agent.heartbeat,
            5 => agent.healthy.and_then(|(_, since)| since),
            _ => None,
        });
        since.map_or(summary.clone(), |since| format!("{summary}: {since}"))
    }
}

pub(super) struct Tolerates<'a> {
    pub(super) table: &'a Table<'a>,
    pub(super) tolerations: &'a [Toleration],
    /// Marks the placement's current clusters, by row.
    pub(super) is_current: &'a [bool],
}

impl Tolerates<'_> {
    fn first(&self, row: Row) -> Option<&Taint> {
        let stays = self.is_current.get(row as usize).copied().unwrap_or(false);
        let refuses = |taint: &&Taint| match taint.effect {
            Effect::Refuse => true,
            Effect::RefuseNew => !stays,
            Effect::Prefer => false,
        };
        let mut open = untolerated(self.table.cluster(row), self.tolerations, self.table.now);
        open.find(refuses)
    }
}

impl Check for Tolerates<'_> {
    fn refuse(&self, row: Row) -> Option<Code> {
        if !self.table.is_tainted(row) {
            return None;
        }
        self.first(row).map(|taint| self.table.taint(taint))
    }

    fn words(&self) -> String {
        "every taint is tolerated".to_owned()
    }

    fn summary(&self, code: Code) -> String {
        format!("taint {} is not tolerated", self.table.taint_text(code))
    }

    fn detail(&self, code: Code, row: Row) -> String {
        let summary = self.summary(code);
        let Some(taint) = self.first(row) else { return summary };
        let limited = self.tolerations.iter().filter(|toleration| fits(toleration, taint));
        match (limited.filter_map(|toleration| toleration.seconds).max(), taint.since) {
            (None, _) => summary,
            (Some(seconds), None) => {
                format!("{summary}: a toleration allows it for {seconds}s, but the taint has no start time")
            }
            (Some(seconds), Some(since)) => {
                format!("{summary}: its toleration for {seconds}s began at {since} and has expired")
            }
        }
    }
}

/// Returns the taints that no toleration allows at this moment.
pub(in crate::decide) fn untolerated<'a>(
    cluster: &'a Cluster,
    tolerations: &'a [Toleration],
    now: Timestamp,
) -> impl Iterator<Item = &'a Taint> {
    let tolerated = move |taint: &Taint| {
        let now = taint.frozen.map_or(now, |frozen| frozen.min(now));
        let lets_pass = |toleration: &Toleration| {
            fits(toleration, taint)
                && (toleration.seconds.is_none() || expiry(toleration, taint).is_some_and(|end| now < end))
        };
        tolerations.iter().any(lets_pass)
    };
    cluster.taints.iter().filter(move |taint| !tolerated(taint))
}

/// Returns the moment at which a matching toleration expires; `None` without a limit or if the beginning of
/// the taint is unknown.
pub(in crate::decide) fn expiry(toleration: &Toleration, taint: &Taint) -> Option<Timestamp> {
    let seconds = toleration.seconds.filter(|_| fits(toleration, taint))?;
    let end = taint.since?.as_second().saturating_add(seconds);
    // A moment beyond the range of timestamps means never: use the largest one.
    Some(Timestamp::from_second(end).unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX }))
}

/// Reports whether a toleration allows the taint for a limited time.
pub(in crate::decide) fn may_expire(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| toleration.seconds.is_some() && fits(toleration, taint))
}

fn fits(toleration: &Toleration, taint: &Taint) -> bool {
    let fits = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|wanted| wanted == has);
    fits(&toleration.key, &taint.key)
        && fits(&toleration.value, &taint.value)
        && fits(&toleration.effect, &taint.effect_word)
}
