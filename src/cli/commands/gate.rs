//! The gate's flags, and how what it holds is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::ui::{Tone, Ui};
use berth_base::model::{Key, LabelKeys};
use berth_base::text::{counted, some_of};
use berth_engine::gate::limits::Limit;
use berth_engine::gate::messages::stays;
use berth_engine::gate::{Deadline, Held, Limits, Percent, Span, Why};

/// The flags of the gate's limits.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Removals")]
pub(crate) struct GateArgs {
    /// Hold a workload that would lose more than this share of its clusters, or all; the first two are free
    #[arg(long, value_name = "SHARE", default_value = "50%", env = "BERTH_MAX_REMOVED_CLUSTERS")]
    max_removed_clusters: Percent,
    /// Hold removals of more than this share of one cluster's objects; the first ten are free
    #[arg(long, value_name = "SHARE", default_value = "50%", env = "BERTH_MAX_REMOVED_OBJECTS")]
    max_removed_objects: Percent,
    /// Hold all removals caused by statuses or time that reach more than this share of the clusters; the first two are free
    #[arg(long, value_name = "SHARE", default_value = "30%", env = "BERTH_MAX_EVICTED_CLUSTERS")]
    max_evicted_clusters: Percent,
    /// Treat namespaces, CRDs and volume claims like any other object
    #[arg(long, env = "BERTH_ALLOW_RISKY_REMOVALS")]
    allow_risky_removals: bool,
    /// Add up all removals within this time, over all causes, commits and passes
    #[arg(long, value_name = "TIME", default_value = "24h", env = "BERTH_REMOVAL_WINDOW")]
    removal_window: Span,
    /// Allow a state equal to one of this many earlier states, or to any within --rollback-window
    #[arg(long, value_name = "COUNT", default_value_t = 10, env = "BERTH_ROLLBACK_DEPTH")]
    rollback_depth: usize,
    /// Allow a state equal to one that was replaced within this time
    #[arg(long, value_name = "TIME", default_value = "24h", env = "BERTH_ROLLBACK_WINDOW")]
    rollback_window: Span,
    /// Let members report these labels where no file sets the key: KEY or PREFIX*, separated by commas
    #[arg(long, value_name = "KEYS", default_value = "none", env = "BERTH_MEMBER_LABELS")]
    member_labels: LabelKeys,
    /// Accept approvals only as files under approvals/, which access rules protect, and not in commit messages
    #[arg(long, env = "BERTH_NO_APPROVAL_TRAILERS")]
    no_approval_trailers: bool,
}

impl GateArgs {
    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            clusters: Limit { share: self.max_removed_clusters, ..usual.clusters },
            objects: Limit { share: self.max_removed_objects, ..usual.objects },
            evictions: Limit { share: self.max_evicted_clusters, ..usual.evictions },
            allow_risky: self.allow_risky_removals,
            rollback: self.rollback_depth,
            window: self.removal_window,
            rollback_window: self.rollback_window,
            trailers: !self.no_approval_trailers,
            labels: self.member_labels.clone(),
            failover: true,
        }
    }
}

/// Describes the held workloads and the line that approves them.
pub(crate) fn held_text(held: &[Held], ui: &Ui) -> String {
    let workloads = counted(held.len(), "workload");
    let title = ui.tint(&format!("{workloads} held for approval"), Tone::Bad);
    let mut text = format!("\n{title}: {}; the rest is published\n", stays(held));
    for one in held {
        let (key, source) = (ui.tint(&one.key.to_string(), Tone::Strong), &one.source);
        let gone = if one.is_gone { "was in" } else { "in" };
        let _ = writeln!(text, "\n{key} ({gone} {source})");
        for line in one.why.iter().map(Why::words).chain(one.notes()) {
            let _ = writeln!(text, "  {line}");
        }
        if !one.places.is_empty() {
            let _ = writeln!(text, "  removes {}", one.losses());
        }
        for deadline in one.deadlines() {
            let _ = writeln!(text, "  {deadline}");
        }
    }
    if let Some(one) = held.iter().find(|one| one.has_own_reason()) {
        let _ = write!(
            text,
            "\nTo reject {}, undo the change. To approve it, end a commit's message on the \
             source branch with\n\n{}\n\nUse an empty commit (`git commit --allow-empty`) or a file under \
             `approvals/`.\n",
            if held.iter().any(Held::is_held_by_policy) { "what is held" } else { "the removal" },
            one.approval_of_all()
        );
        text.push_str(&approvals_text(held, MOST_ALONE));
    }
    text
}

/// The most approvals of single workloads that a text lists, and that one lists which is to fit a screen.
pub(crate) const MOST_ALONE: usize = 30;
pub(crate) const FEW_ALONE: usize = 5;

/// The lines that approve only some of the held workloads; empty where one line approves all or nothing.
pub(crate) fn approvals_text(held: &[Held], most: usize) -> String {
    let mut alone: BTreeMap<String, Vec<&Key>> = BTreeMap::new();
    for one in held.iter().filter(|one| one.has_own_reason()) {
        alone.entry(one.approval()).or_default().push(&one.key);
    }
    if alone.len() < 2 {
        return String::new();
    }
    let mut alone: Vec<_> = alone.into_iter().collect();
    alone.sort_by(|a, b| a.1.cmp(&b.1));
    let mut text = "\nTo approve only some of them, take their lines instead:\n\n".to_owned();
    for (approval, keys) in alone.iter().take(most) {
        let _ = writeln!(text, "{}\n  {approval}", some_of(keys, most));
    }
    if alone.len() > most {
        let _ = writeln!(text, "and {} more: `-v` and `-o json` list them", alone.len() - most);
    }
    text
}

/// Returns the deadlines as JSON.
pub(crate) fn deadlines_json(deadlines: &[Deadline]) -> Json {
    let one = |deadline: &Deadline| {
        let key = &deadline.key;
        json!({
            "at": deadline.at.to_string(),
            "kind": &*key.kind,
            "namespace": &*key.namespace,
            "name": &*key.name,
            "clusters": deadline.clusters(),
        })
    };
    deadlines.iter().map(one).collect()
}

/// The held workloads, for programs.
pub(crate) fn held_json(held: &[Held]) -> Json {
    let one = |held: &Held| {
        let removes = held
            .places
            .iter()
            .map(|(cluster, object)| json!({"cluster": cluster, "object": object.to_string()}));
        json!({
            "kind": &*held.key.kind,
            "namespace": &*held.key.namespace,
            "name": &*held.key.name,
            "why": held.why.iter().map(Why::words).collect::<Vec<_>>(),
            "removes": removes.collect::<Vec<_>>(),
            "digest": held.has_own_reason().then(|| held.digest.to_string()),
            "approval": held.has_own_reason().then(|| held.approval()),
            "approvalOfAll": held.has_own_reason().then(|| held.approval_of_all()),
            "source": held.source,
            "later": held.due.iter().map(|((cluster, object), at)| {
                json!({"at": at.to_string(), "cluster": cluster, "object": object.to_string()})
            }).collect::<Vec<_>>(),
            "goesOn": held.goes_on,
            "failedApprovals": held.failed_approvals(),
        })
    };
    held.iter().map(one).collect()
}
