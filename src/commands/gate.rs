//! The gate's flags, and how what it holds is shown.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::ui::{Tone, Ui, counted};
use crate::gate::limits::Limit;
use crate::gate::{Held, Limits, Percent};

/// How much may be removed without an approval.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Removals")]
pub struct GateArgs {
    /// Hold a workload that would leave more of its clusters than this share, or all; two go free
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

/// What is held, and what to paste.
pub fn held_text(held: &[Held], ui: &Ui) -> String {
    let mut text = format!(
        "\n{}\n",
        ui.tint(&format!("{} held for approval", counted(held.len(), "workload")), Tone::Bad)
    );
    for one in held {
        let _ = writeln!(text, "\n{}", ui.tint(&one.key.to_string(), Tone::Strong));
        for why in &one.why {
            let _ = writeln!(text, "  {}", why.words());
        }
        for digest in &one.spent {
            let _ = writeln!(text, "  the approval {digest} was used already");
        }
        if !one.pairs.is_empty() {
            let _ = writeln!(text, "  removes {}", one.losses());
        }
    }
    let lines: std::collections::BTreeSet<String> =
        held.iter().filter(|one| one.is_approvable()).map(Held::approval).collect();
    if !lines.is_empty() {
        text.push_str("\nto approve, end a commit's message on the source branch with\n\n");
        lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
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
            "why": held.why.iter().map(crate::gate::Why::words).collect::<Vec<_>>(),
            "removes": removes.collect::<Vec<_>>(),
            "digest": held.is_approvable().then(|| held.digest.to_string()),
        })
    };
    held.iter().map(one).collect()
}
