//! The gate's flags, and how what it holds is shown.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::ui::{Tone, Ui, counted};
use crate::gate::limits::Limit;
use crate::gate::{Held, Limits, Percent, Why};

/// How much may be removed without an approval.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Removals")]
pub struct GateArgs {
    /// Hold a workload that would be removed from more of its clusters than this share, or all; two go free
    #[arg(long, value_name = "SHARE", default_value = "50%", env = "BERTH_MAX_REMOVED_CLUSTERS")]
    max_removed_clusters: Percent,
    /// Hold what would take more of one cluster's objects than this share; ten go free
    #[arg(long, value_name = "SHARE", default_value = "50%", env = "BERTH_MAX_REMOVED_OBJECTS")]
    max_removed_objects: Percent,
    /// Hold all removals that statuses or time cause where more of the fleet's clusters would lose something at once; two go free
    #[arg(long, value_name = "SHARE", default_value = "30%", env = "BERTH_MAX_EVICTED_CLUSTERS")]
    max_evicted_clusters: Percent,
    /// Treat namespaces, CRDs and volume claims like any other object
    #[arg(long, env = "BERTH_ALLOW_RISKY_REMOVALS")]
    allow_risky_removals: bool,
    /// Let pass what equals one of so many earlier states
    #[arg(long, value_name = "COUNT", default_value_t = 10, env = "BERTH_ROLLBACK_DEPTH")]
    rollback_depth: usize,
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
        }
    }
}

/// Whether something is held by now, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Now,
    Foreseen,
}

/// What is held, and what to paste.
pub fn held_text(held: &[Held], when: When, ui: &Ui) -> String {
    let workloads = counted(held.len(), "workload");
    let (title, stays) = match when {
        When::Now => (format!("{workloads} held for approval"), "stays"),
        When::Foreseen => (format!("berth run would hold {workloads} for approval"), "would stay"),
    };
    let title = ui.tint(&title, Tone::Bad);
    let mut text =
        format!("\n{title}: what is held {stays} as it was, in every cluster; the rest is published\n");
    for one in held {
        let (key, source) = (ui.tint(&one.key.to_string(), Tone::Strong), &one.source);
        let gone = if one.is_gone { "was in" } else { "in" };
        let _ = writeln!(text, "\n{key} ({gone} {source})");
        for line in one.why.iter().map(Why::words).chain(one.failed_approvals()) {
            let _ = writeln!(text, "  {line}");
        }
        if !one.pairs.is_empty() {
            let _ = writeln!(text, "  removes {}", one.losses());
        }
    }
    let lines: BTreeSet<String> = held.iter().filter(|one| one.is_approvable()).map(Held::approval).collect();
    if !lines.is_empty() {
        text.push_str(
            "\nif this was not meant, undo the change; if it was, end a commit's message on the source branch with\n\n",
        );
        lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        text.push_str(
            "\nan empty commit will do (git commit --allow-empty), and so will a file under approvals/\n",
        );
    }
    text
}

/// The same for programs.
pub fn held_json(held: &[Held]) -> Json {
    let one = |held: &Held| {
        let removes = held
            .pairs
            .iter()
            .map(|(cluster, object)| json!({"cluster": cluster, "object": object.to_string()}));
        json!({
            "kind": &*held.key.kind,
            "namespace": &*held.key.namespace,
            "name": &*held.key.name,
            "why": held.why.iter().map(Why::words).collect::<Vec<_>>(),
            "removes": removes.collect::<Vec<_>>(),
            "digest": held.is_approvable().then(|| held.digest.to_string()),
            "approval": held.is_approvable().then(|| held.approval()),
            "source": held.source,
            "failedApprovals": held.failed_approvals(),
        })
    };
    held.iter().map(one).collect()
}
