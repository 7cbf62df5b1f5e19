//! A member's file of additional facts: labels, claims, properties, scores and room for workloads. Another program in
//! the cluster writes it.
//!
//! An unreadable file changes nothing: the facts reported before stay, and the report contains the reason.

use std::sync::Arc;

use super::status::with_fault;
use berth_base::diag::{Diagnostics, Severity};
use berth_base::model::API_VERSION;
use berth_base::model::ClusterStatus;
use berth_base::status;
use berth_base::yaml::{Limits, Node, Scope, read as read_yaml};
use berth_git::GitError;

/// Reads the file's single `ClusterStatus`, which must be of this cluster.
pub fn read(name: &str, bytes: &[u8], cluster: &str) -> Result<ClusterStatus, Diagnostics> {
    let scope = Scope::new(Arc::from(name), Severity::Error);
    let yaml = read_yaml(bytes, &Limits::default());
    for fault in yaml.faults {
        if fault.severity == Severity::Error {
            scope.error(fault.at, fault.message);
        }
    }
    let mut found = None;
    for document in &yaml.documents {
        let (root, at) = (&document.root, document.root.at);
        let text = |key: &str| root.get(key).and_then(Node::as_str).unwrap_or_default();
        if (text("apiVersion"), text("kind")) != (API_VERSION, status::KIND) || found.is_some() {
            scope.error(
                at,
                format!("the file must hold one {} of {API_VERSION}, and nothing else", status::KIND),
            );
            continue;
        }
        let status = status::from_node(&scope, root).unwrap_or_default();
        if !status.cluster.is_empty() && status.cluster != cluster {
            scope.error(at, format!("metadata.name is `{}`, but this member is `{cluster}`", status.cluster));
        }
        if status.applied.is_some() || !status.taints.is_empty() {
            scope.error(at, "only berth may report what is applied and the times of taints");
        }
        found = Some(status);
    }
    if scope.has_errors() { Err(scope.into_diagnostics()) } else { Ok(found.unwrap_or_default()) }
}

/// Adds facts to a status. If they are unreadable, adds the facts reported `earlier` and the reason.
pub(super) fn add(
    status: &mut ClusterStatus,
    facts: Result<ClusterStatus, String>,
    earlier: impl FnOnce() -> Result<Option<ClusterStatus>, GitError>,
) -> Result<(), GitError> {
    let facts = match facts {
        Ok(facts) => facts,
        Err(why) => {
            let message = format!("the facts cannot be read: {why}");
            status.applied = Some(with_fault(status.applied.take(), &status.cluster, &message));
            earlier()?.unwrap_or_default()
        }
    };
    let ClusterStatus { labels, claims, properties, scores, workloads, .. } = facts;
    (status.labels, status.claims, status.properties) = (labels, claims, properties);
    (status.scores, status.workloads) = (scores, workloads);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {name: oslo}\n";

    #[test]
    fn scores_claims_and_the_like_are_read() {
        let text =
            format!("{HEAD}claims: {{zone: a}}\nscores:\n- {{resource: network, name: rtt, value: 42}}\n");
        let facts = read("facts.yaml", text.as_bytes(), "oslo").expect("facts");
        assert_eq!(facts.claims["zone"], "a");
        assert_eq!(facts.scores.values().map(|score| score.value).collect::<Vec<_>>(), [42]);
        assert!(read("facts.yaml", b"", "oslo").expect("nothing is no fault").scores.is_empty());
    }

    #[test]
    fn what_a_member_may_not_say_is_refused_with_its_place() {
        for (text, cluster, why) in [
            (
                HEAD.to_owned(),
                "turin",
                "facts.yaml:1:1: error: metadata.name is `oslo`, but this member is `turin`",
            ),
            (format!("{HEAD}scores: [{{resource: a, name: b, value: 101}}]\n"), "oslo", "facts.yaml:4:"),
            (
                format!("{HEAD}taints: [{{key: a, effect: NoSelect, since: '2026-01-01T00:00:00Z'}}]\n"),
                "oslo",
                "only berth may report",
            ),
            (
                format!("{HEAD}---\n{HEAD}"),
                "oslo",
                "facts.yaml:5:1: error: the file must hold one ClusterStatus",
            ),
            ("kind: Pod\n".to_owned(), "oslo", "must hold one ClusterStatus"),
            (format!("{HEAD}scors: []\n"), "oslo", "unknown field"),
            ("a: [".to_owned(), "oslo", "not YAML"),
        ] {
            let found = read("facts.yaml", text.as_bytes(), cluster).expect_err(why);
            let said: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert!(said.iter().any(|one| one.contains(why)), "{why}: {said:?}");
        }
    }
}
