//! Argo CD as the applier: reads the status of an Application.
//!
//! A folder counts as applied once an operation on exactly its revision succeeded, or Argo CD found the cluster equal
//! to that revision. Argo CD's own health is ignored: it may belong to an earlier revision, and berth judges the live
//! objects by its own rules.

use serde_json::Value as Json;

use super::standing::{Neighbour, RecordPlace, Standing};
use berth_base::model::ObjectId;

/// The number of objects that a message names.
const MOST_NAMED: usize = 20;

/// The Application that applies the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgoCd {
    pub namespace: String,
    pub name: String,
}

impl Neighbour for ArgoCd {
    fn name(&self) -> &'static str {
        "Argo CD"
    }

    fn record(&self) -> RecordPlace {
        let [namespace, name] = [&self.namespace, &self.name].map(String::clone);
        RecordPlace { group: "argoproj.io", kind: "Application".to_owned(), namespace, name }
    }

    fn source(&self, _record: &Json) -> Option<RecordPlace> {
        None
    }

    fn standing(&self, record: &Json, _source: Option<&Json>, revisions: &[String]) -> Standing {
        let at = format!("Application {}/{}", self.namespace, self.name);
        let status = record.get("status").unwrap_or(&Json::Null);
        let (operation, compared) = (Operation::of(status), text(status, "/sync/revision"));
        let is_ordered = is_wanted(operation.revision, revisions);
        let is_compared = is_wanted(compared, revisions);
        if !text(record, "/metadata/deletionTimestamp").is_empty() {
            return Standing::Stuck(format!("{at} is being removed"));
        }
        let is_synced =
            is_compared && operation.phase != "Running" && text(status, "/sync/status") == "Synced";
        if is_synced || is_ordered && operation.phase == "Succeeded" {
            return Standing::Applied;
        }
        let failed = operation.failed_objects();
        match operation.phase {
            "Failed" | "Error" if is_ordered => return Standing::Failed(operation.words(&failed)),
            // Between two attempts, Argo CD reports the operation as running.
            "Running" if is_ordered && !failed.is_empty() => {
                return Standing::Failed(operation.words(&failed));
            }
            "Running" if is_ordered => {
                return Standing::Pending(format!("{at}: {}", operation.words(&failed)));
            }
            _ => {}
        }
        match reason_to_stay(record, status) {
            Some(reason) => Standing::Stuck(format!("{at}: {reason}")),
            None if is_compared => {
                Standing::Pending(format!("{at}: Argo CD has not applied this folder yet"))
            }
            None if compared.is_empty() => Standing::Pending(format!("{at}: Argo CD has read no folder yet")),
            None => Standing::Pending(format!("{at} is at `{compared}`, which is not this folder yet")),
        }
    }

    fn selector(&self) -> String {
        // By default Argo CD marks its objects only with an annotation.
        String::new()
    }

    fn leaves(&self, object: &Json) -> bool {
        let annotation =
            |name: &str| text(object, &format!("/metadata/annotations/argocd.argoproj.io~1{name}"));
        // For an Application outside of Argo CD's namespace, the annotation contains its namespace and name.
        let owner = annotation("tracking-id").split(':').next().unwrap_or_default();
        let is_tracked = owner == self.name || owner == format!("{}_{}", self.namespace, self.name);
        is_tracked && annotation("sync-options").split(',').any(|option| option.trim() == "Prune=false")
    }

    fn names(&self, message: &str, id: &ObjectId) -> bool {
        // Berth itself builds these messages, with each object in brackets.
        message.contains(&format!("[{}]", place(&id.kind, &id.namespace, &id.name)))
    }
}

/// The last operation of an Application.
struct Operation<'a> {
    phase: &'a str,
    message: &'a str,
    revision: &'a str,
    resources: &'a [Json],
}

impl<'a> Operation<'a> {
    fn of(status: &'a Json) -> Operation<'a> {
        let result = text(status, "/operationState/syncResult/revision");
        let ordered = text(status, "/operationState/operation/sync/revision");
        let resources = status.pointer("/operationState/syncResult/resources").and_then(Json::as_array);
        Operation {
            phase: text(status, "/operationState/phase"),
            message: text(status, "/operationState/message"),
            revision: if result.is_empty() { ordered } else { result },
            resources: resources.map(Vec::as_slice).unwrap_or_default(),
        }
    }

    /// Returns the objects that the operation failed to apply or remove, or that failed afterwards, with reasons.
    fn failed_objects(&self) -> Vec<String> {
        let failed = self.resources.iter().filter(|resource| {
            text(resource, "/status") == "SyncFailed"
                || matches!(text(resource, "/hookPhase"), "Failed" | "Error")
        });
        let words = |resource: &Json| {
            let place = place(text(resource, "/kind"), text(resource, "/namespace"), text(resource, "/name"));
            format!("[{place}] {}", one_line(text(resource, "/message")))
        };
        failed.take(MOST_NAMED).map(words).collect()
    }

    fn words(&self, failed: &[String]) -> String {
        let message = match one_line(self.message) {
            message if message.is_empty() => format!("the sync is {}", self.phase),
            message => message,
        };
        match failed {
            [] => message,
            failed => format!("{}: {message}", failed.join("; ")),
        }
    }
}

/// Returns the reason why Argo CD does not continue by itself.
fn reason_to_stay(record: &Json, status: &Json) -> Option<String> {
    if text(record, "/metadata/annotations/argocd.argoproj.io~1skip-reconcile") == "true" {
        return Some("it has the annotation argocd.argoproj.io/skip-reconcile".to_owned());
    }
    let conditions = status.get("conditions").and_then(Json::as_array).into_iter().flatten();
    let errors = conditions.filter(|condition| text(condition, "/type").ends_with("Error"));
    let words = |error: &Json| format!("{}: {}", text(error, "/type"), one_line(text(error, "/message")));
    let errors: Vec<String> = errors.map(words).collect();
    if !errors.is_empty() {
        return Some(errors.join("; "));
    }
    let automated = record.pointer("/spec/syncPolicy/automated").filter(|automated| !automated.is_null());
    let is_automated =
        automated.is_some_and(|automated| automated.get("enabled") != Some(&Json::Bool(false)));
    (!is_automated).then(|| "it has no automated sync".to_owned())
}

/// Reports whether a revision, the id of a commit or the digest of an artifact, is one of these.
fn is_wanted(revision: &str, wanted: &[String]) -> bool {
    wanted.iter().any(|wanted| wanted == revision || wanted.strip_prefix("sha1:") == Some(revision))
}

fn place(kind: &str, namespace: &str, name: &str) -> String {
    if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{namespace}/{name}") }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text<'a>(value: &'a Json, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn argocd() -> ArgoCd {
        ArgoCd { namespace: "argocd".to_owned(), name: "berth-oslo".to_owned() }
    }

    fn record(status: &Json) -> Json {
        json!({"metadata": {"name": "berth-oslo"}, "status": status,
            "spec": {"syncPolicy": {"automated": {"prune": true}}}})
    }

    /// Judges an Application with this status, where `aa` is the wanted commit.
    fn standing(status: &Json) -> Standing {
        argocd().standing(&record(status), None, &["sha1:aa".to_owned(), "sha256:bb".to_owned()])
    }

    fn operation(phase: &str, revision: &str, message: &str) -> Json {
        json!({"phase": phase, "message": message, "syncResult": {"revision": revision},
            "operation": {"sync": {"revision": revision}}})
    }

    #[test]
    fn a_folder_counts_as_applied_at_its_own_revision_alone() {
        let status = |sync: &str, compared: &str, applied: &str| {
            json!({"sync": {"status": sync, "revision": compared}, "health": {"status": "Healthy"},
                "operationState": operation("Succeeded", applied, "successfully synced")})
        };
        for revision in ["aa", "sha256:bb"] {
            assert_eq!(standing(&status("Synced", revision, revision)), Standing::Applied);
            // The operation had nothing to do for the revision, or the cluster changed since.
            assert_eq!(standing(&status("Synced", revision, "00")), Standing::Applied);
            assert_eq!(standing(&status("OutOfSync", revision, revision)), Standing::Applied);
        }
        for revision in ["a", "aab", "sha256:aa", "bb", "sha1:ab", ""] {
            let found = standing(&status("Synced", revision, revision));
            assert!(matches!(found, Standing::Pending(_)), "{revision} {found:?}");
        }
        let seen = "Application argocd/berth-oslo: Argo CD has not applied this folder yet";
        assert_eq!(standing(&status("OutOfSync", "aa", "00")), Standing::Pending(seen.to_owned()));
        assert!(matches!(standing(&json!({})), Standing::Pending(_)));
    }

    #[test]
    fn a_failed_sync_names_its_objects() {
        let mut failed = operation("Failed", "aa", "one or more objects failed to apply,\n reason: no");
        failed["syncResult"]["resources"] = json!([
            {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web", "status": "SyncFailed",
                "message": "field is immutable"},
            {"group": "", "kind": "Namespace", "namespace": "", "name": "shop", "status": "Synced"},
        ]);
        let Standing::Failed(message) = standing(&json!({"operationState": failed})) else {
            panic!("it failed")
        };
        assert_eq!(
            message,
            "[Deployment/shop/web] field is immutable: one or more objects failed to apply, reason: no"
        );
        let names = |kind: &str, namespace: &str, name: &str| {
            argocd().names(&message, &ObjectId::new("", kind, namespace, name))
        };
        assert!(names("Deployment", "shop", "web"));
        assert!(!names("Deployment", "shop", "we") && !names("Namespace", "", "shop"));
        // During a retry, no object counts as healthy before the retry succeeds.
        failed["phase"] = "Running".into();
        assert!(matches!(standing(&json!({"operationState": failed})), Standing::Failed(_)));
        failed["syncResult"]["revision"] = "00".into();
        assert!(matches!(standing(&json!({"operationState": failed})), Standing::Pending(_)));
    }

    #[test]
    fn a_wave_that_waits_is_not_done() {
        let status = json!({"sync": {"status": "OutOfSync", "revision": "aa"},
            "operationState": operation("Running", "aa", "waiting for healthy state of apps/Deployment/web")});
        let words = "Application argocd/berth-oslo: waiting for healthy state of apps/Deployment/web";
        assert_eq!(standing(&status), Standing::Pending(words.to_owned()));
    }

    #[test]
    fn what_keeps_argo_cd_from_going_on_is_named() {
        let status = json!({"sync": {"status": "Unknown", "revision": ""}, "conditions": [
            {"type": "ComparisonError", "message": "failed to fetch: connection refused"},
            {"type": "OrphanedResourceWarning", "message": "2 orphans"}]});
        let words = "Application argocd/berth-oslo: ComparisonError: failed to fetch: connection refused";
        assert_eq!(standing(&status), Standing::Stuck(words.to_owned()));
        let mut changed = record(&json!({"sync": {"status": "OutOfSync", "revision": "aa"}}));
        let stuck = |record: &Json| {
            let found = argocd().standing(record, None, &["sha1:aa".to_owned()]);
            let Standing::Stuck(why) = found else { panic!("{found:?}") };
            why.split_once(": ").map(|(_, why)| why.to_owned()).unwrap_or(why)
        };
        changed["spec"]["syncPolicy"]["automated"]["enabled"] = false.into();
        assert_eq!(stuck(&changed), "it has no automated sync");
        changed["metadata"]["annotations"] = json!({"argocd.argoproj.io/skip-reconcile": "true"});
        assert_eq!(stuck(&changed), "it has the annotation argocd.argoproj.io/skip-reconcile");
        changed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(stuck(&changed), "Application argocd/berth-oslo is being removed");
    }

    #[test]
    fn only_what_argo_cd_applied_and_leaves_is_berth_s_to_remove() {
        let object = |tracking: &str, options: &str| {
            json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": tracking,
                "argocd.argoproj.io/sync-options": options}}})
        };
        assert!(argocd().leaves(&object("berth-oslo:/Namespace:/shop", "Prune=false,Delete=false")));
        assert!(argocd().leaves(&object("argocd_berth-oslo:/Namespace:/shop", "Replace=true, Prune=false")));
        assert!(!argocd().leaves(&object("berth-oslo:/Namespace:/shop", "Prune=true")));
        assert!(!argocd().leaves(&object("berth-oslo2:/Namespace:/shop", "Prune=false")));
        assert!(!argocd().leaves(&json!({"metadata": {}})));
    }
}
