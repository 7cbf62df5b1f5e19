//! Taints and the tolerations that let them pass.

use super::{Check, Code};
use crate::decide::cluster_table::{Row, Table};
use berth_base::model::placement::Toleration;
use berth_base::model::{Cluster, Effect, Taint, Timestamp};

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
