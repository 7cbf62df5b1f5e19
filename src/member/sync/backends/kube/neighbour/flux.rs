//! Flux as the applier: reads the status of a Kustomization and of its source.

use serde_json::Value as Json;

use super::standing::{Neighbour, RecordPlace, Standing};
use berth_base::model::ObjectId;

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io";
const SOURCE: &str = "source.toolkit.fluxcd.io";

/// The Kustomization that applies the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flux {
    pub namespace: String,
    pub name: String,
}

impl Neighbour for Flux {
    fn name(&self) -> &'static str {
        "Flux"
    }

    fn record(&self) -> RecordPlace {
        let [namespace, name] = [&self.namespace, &self.name].map(String::clone);
        RecordPlace { group: KUSTOMIZE, kind: "Kustomization".to_owned(), namespace, name }
    }

    fn source(&self, record: &Json) -> Option<RecordPlace> {
        let source = record.pointer("/spec/sourceRef")?;
        let text = |key: &str| source.get(key).and_then(Json::as_str).filter(|text| !text.is_empty());
        Some(RecordPlace {
            group: SOURCE,
            kind: text("kind")?.to_owned(),
            namespace: text("namespace").unwrap_or(&self.namespace).to_owned(),
            name: text("name")?.to_owned(),
        })
    }

    fn standing(&self, record: &Json, source: Option<&Json>, revisions: &[String]) -> Standing {
        let at = format!("Kustomization {}/{}", self.namespace, self.name);
        if record.pointer("/spec/suspend") == Some(&Json::Bool(true)) {
            return Standing::Stuck(format!("{at} is suspended"));
        }
        let number = |at: &str| record.pointer(at).and_then(Json::as_i64);
        if number("/metadata/generation") != number("/status/observedGeneration") {
            return Standing::Pending(format!("{at}: Flux has not seen its latest generation"));
        }
        let revision = |at: &str| record.pointer(at).and_then(Json::as_str).unwrap_or_default();
        let is_wanted = |at: &str| has_revision(revision(at), revisions);
        let ready = condition(record, "Ready").unwrap_or_default();
        // Flux writes only the differences from the status that it read, which may be outdated. If a folder returns
        // soon after another one, `lastAppliedRevision` may keep naming the other one, while the message of `Ready`
        // names the folder.
        let attempted = revision("/status/lastAttemptedRevision");
        let is_named = is_wanted("/status/lastAttemptedRevision") && ready.message.ends_with(attempted);
        if ready.status == "True" && (is_named || is_wanted("/status/lastAppliedRevision")) {
            return Standing::Applied;
        }
        if ready.status == "False" && is_wanted("/status/lastAttemptedRevision") {
            let said = format!("{}: {}", ready.reason, one_line(ready.message));
            return match ready.reason {
                "HealthCheckFailed" => Standing::Unhealthy(said),
                "DependencyNotReady" | "ArtifactFailed" => Standing::Pending(format!("{at}: {said}")),
                _ => Standing::Failed(said),
            };
        }
        if let Some(stalled) = condition(record, "Stalled").filter(|stalled| stalled.status == "True") {
            return Standing::Stuck(format!("{at} is stalled: {}", one_line(stalled.message)));
        }
        if let Some(fault) = source.and_then(source_fault) {
            return Standing::Stuck(fault);
        }
        let there = match attempted {
            "" => "no revision".to_owned(),
            revision => format!("`{revision}`"),
        };
        Standing::Pending(format!("{at} is at {there}, which is not this folder yet"))
    }

    fn selector(&self) -> String {
        format!("{KUSTOMIZE}/name={},{KUSTOMIZE}/namespace={}", self.name, self.namespace)
    }

    fn leaves(&self, object: &Json) -> bool {
        let metadata = |map: &str, key: &str| {
            let value = object.get("metadata")?.get(map)?.get(format!("{KUSTOMIZE}/{key}"))?;
            value.as_str()
        };
        metadata("labels", "name") == Some(&self.name)
            && metadata("labels", "namespace") == Some(&self.namespace)
            && metadata("annotations", "prune").is_some_and(|value| value.eq_ignore_ascii_case("disabled"))
    }

    fn names(&self, message: &str, id: &ObjectId) -> bool {
        let (kind, namespace, name) = (&id.kind, &id.namespace, &id.name);
        let whole = match namespace.is_empty() {
            true => format!("{kind}/{name}"),
            false => format!("{kind}/{namespace}/{name}"),
        };
        message.match_indices(&whole).any(|(start, _)| {
            let is_part =
                |found: Option<char>| found.is_some_and(|it| it.is_alphanumeric() || "-./".contains(it));
            let after = message[start + whole.len()..].chars();
            // A full stop at the end of a sentence is not part of a name.
            let after = after
                .clone()
                .next()
                .filter(|it| *it != '.' || after.clone().nth(1).is_some_and(char::is_alphanumeric));
            !is_part(message[..start].chars().next_back()) && !is_part(after)
        })
    }
}

/// Returns the reason why a source does not provide the newest revision.
fn source_fault(source: &Json) -> Option<String> {
    let text = |at: &str| source.pointer(at).and_then(Json::as_str).unwrap_or_default();
    let at = format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
    if source.pointer("/spec/suspend") == Some(&Json::Bool(true)) {
        return Some(format!("{at} is suspended"));
    }
    let failed = ["SourceVerified", "FetchFailed", "Ready"].into_iter().find_map(|name| {
        let bad = if name == "FetchFailed" { "True" } else { "False" };
        condition(source, name).filter(|condition| condition.status == bad)
    })?;
    Some(format!("{at}: {}: {}", failed.reason, one_line(failed.message)))
}

/// Reports whether a revision, as `main@sha1:…`, is one of these.
fn has_revision(revision: &str, wanted: &[String]) -> bool {
    let id = revision.rsplit('@').next().unwrap_or_default();
    wanted.iter().any(|wanted| wanted == id)
}

#[derive(Clone, Copy, Debug, Default)]
struct Condition<'a> {
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

fn condition<'a>(object: &'a Json, name: &str) -> Option<Condition<'a>> {
    let all = object.pointer("/status/conditions")?.as_array()?;
    let found = all.iter().find(|one| one.get("type").and_then(Json::as_str) == Some(name))?;
    let text = |key: &str| found.get(key).and_then(Json::as_str).unwrap_or_default();
    Some(Condition { status: text("status"), reason: text("reason"), message: text("message") })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flux() -> Flux {
        Flux { namespace: "flux-system".to_owned(), name: "berth-oslo".to_owned() }
    }

    fn record(ready: &str, reason: &str, attempted: &str, applied: &str) -> Json {
        json!({
            "metadata": {"generation": 2}, "spec": {"sourceRef": {"kind": "GitRepository", "name": "berth-oslo"}},
            "status": {
                "observedGeneration": 2, "lastAttemptedRevision": attempted, "lastAppliedRevision": applied,
                "conditions": [{"type": "Ready", "status": ready, "reason": reason, "message": "said\n so"}],
            },
        })
    }

    fn standing(record: &Json) -> Standing {
        flux().standing(record, None, &["sha1:aa".to_owned(), "sha256:bb".to_owned()])
    }

    #[test]
    fn a_folder_counts_as_applied_at_its_own_revision_alone() {
        for revision in ["berth/clusters/oslo@sha1:aa", "current@sha256:bb", "sha256:bb"] {
            assert_eq!(
                standing(&record("True", "ReconciliationSucceeded", revision, revision)),
                Standing::Applied
            );
        }
        for revision in ["main@sha1:aab", "main@sha1:a", "current@sha256:aa", "", "sha1:aa@x"] {
            let found = standing(&record("True", "ReconciliationSucceeded", revision, revision));
            assert!(matches!(found, Standing::Pending(_)), "{revision} {found:?}");
        }
        let old = standing(&record("True", "ReconciliationSucceeded", "main@sha1:aa", "main@sha1:00"));
        assert!(matches!(old, Standing::Pending(_)), "{old:?}");
    }

    #[test]
    fn a_folder_that_comes_back_counts_as_applied_though_flux_names_the_one_between() {
        let mut record = record("True", "ReconciliationSucceeded", "current@sha256:bb", "current@sha256:00");
        assert!(matches!(standing(&record), Standing::Pending(_)));
        record["status"]["conditions"][0]["message"] = "Applied revision: current@sha256:bb".into();
        assert_eq!(standing(&record), Standing::Applied);
        record["status"]["conditions"][0]["status"] = "Unknown".into();
        assert!(matches!(standing(&record), Standing::Pending(_)));
    }

    #[test]
    fn a_failure_counts_for_the_revision_that_failed() {
        let failed = |reason: &str| standing(&record("False", reason, "main@sha1:aa", "main@sha1:00"));
        assert_eq!(failed("HealthCheckFailed"), Standing::Unhealthy("HealthCheckFailed: said so".to_owned()));
        assert_eq!(failed("BuildFailed"), Standing::Failed("BuildFailed: said so".to_owned()));
        assert_eq!(
            failed("ReconciliationFailed"),
            Standing::Failed("ReconciliationFailed: said so".to_owned())
        );
        assert!(matches!(failed("DependencyNotReady"), Standing::Pending(_)));
        let other = standing(&record("False", "BuildFailed", "main@sha1:00", "main@sha1:00"));
        assert!(matches!(other, Standing::Pending(_)), "{other:?}");
    }

    #[test]
    fn what_is_suspended_or_not_seen_yet_waits() {
        let good = record("True", "ReconciliationSucceeded", "main@sha1:aa", "main@sha1:aa");
        let mut suspended = good.clone();
        suspended["spec"]["suspend"] = true.into();
        assert!(matches!(standing(&suspended), Standing::Stuck(_)));
        let mut changed = good.clone();
        changed["metadata"]["generation"] = 3.into();
        assert!(matches!(standing(&changed), Standing::Pending(_)));
        assert!(matches!(standing(&json!({"metadata": {"generation": 1}})), Standing::Pending(_)));
    }

    #[test]
    fn a_source_that_is_not_verified_is_named() {
        let old = record("True", "ReconciliationSucceeded", "current@sha256:00", "current@sha256:00");
        let source = json!({
            "kind": "OCIRepository", "metadata": {"name": "berth-oslo", "namespace": "flux-system"},
            "status": {"conditions": [
                {"type": "Ready", "status": "False", "reason": "Other", "message": "x"},
                {"type": "SourceVerified", "status": "False", "reason": "VerificationError", "message": "no match"},
            ]},
        });
        let found = flux().standing(&old, Some(&source), &["sha256:bb".to_owned()]);
        let words = "OCIRepository flux-system/berth-oslo: VerificationError: no match";
        assert_eq!(found, Standing::Stuck(words.to_owned()));
    }

    #[test]
    fn objects_are_named_in_full_and_not_by_a_part() {
        let web = ObjectId::new("apps", "Deployment", "shop", "web");
        let shop = ObjectId::new("", "Namespace", "", "shop");
        let names = |message: &str, id: &ObjectId| flux().names(message, id);
        assert!(names("Deployment/shop/web dry-run failed (Invalid): x", &web));
        assert!(names("failed: [Deployment/shop/web status: 'Failed']", &web));
        assert!(names("it was Namespace/shop.", &shop));
        for message in
            ["Deployment/shop/web2 failed", "Deployment/shop/web.b failed", "MyDeployment/shop/web failed"]
        {
            assert!(!names(message, &web), "{message}");
        }
    }

    #[test]
    fn only_what_flux_applied_and_leaves_is_berth_s_to_remove() {
        let object = |name: &str, prune: &str| {
            json!({"metadata": {
                "labels": {"kustomize.toolkit.fluxcd.io/name": name, "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
                "annotations": {"kustomize.toolkit.fluxcd.io/prune": prune},
            }})
        };
        assert!(flux().leaves(&object("berth-oslo", "disabled")));
        assert!(flux().leaves(&object("berth-oslo", "Disabled")));
        assert!(!flux().leaves(&object("berth-oslo", "enabled")));
        assert!(!flux().leaves(&object("other", "disabled")));
        assert!(!flux().leaves(&json!({"metadata": {}})));
    }
}
