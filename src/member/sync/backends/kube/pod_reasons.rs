//! Finds the reason why an object is unhealthy in its pods: the first one that a person would look for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::api::ListParams;
use serde_json::Value as Json;

use super::api_client::ApiClient;
use super::connection::Connection;
use crate::live::concurrency::{Panicked, each};
use berth_base::model::ObjectId;

/// The number of pods read.
const MOST_PODS: u32 = 50;

/// The number of objects whose pods are read in one sync, or while their reasons are cached.
const MOST_OBJECTS: usize = 20;

/// The time for which a reason is cached between syncs.
const GOOD_FOR: Duration = Duration::from_secs(30);

/// Cache: the reason from each object's pods, and the moment it was read.
#[derive(Debug, Default)]
pub(crate) struct PodReasons(BTreeMap<ObjectId, (Instant, Option<String>)>);

impl PodReasons {
    /// Begins a sync. Reasons of the last sync stay valid for a while if objects are followed in between.
    pub fn begin(&mut self, is_followed: bool) {
        self.0.retain(|_, (asked, _)| is_followed && asked.elapsed() < GOOD_FOR);
    }

    /// Returns the reasons from the pods of these objects, each given with the label selector of its pods.
    pub async fn of(
        &mut self,
        cluster: &Connection,
        objects: &[(&ObjectId, &str)],
    ) -> BTreeMap<ObjectId, String> {
        let left = MOST_OBJECTS.saturating_sub(self.0.len());
        let unknown = objects.iter().filter(|(id, _)| !self.0.contains_key(*id)).take(left);
        let questions = unknown.map(async |(id, selector)| {
            let reason = ask(&cluster.api, id, selector).await;
            Ok::<_, Panicked>(((*id).clone(), (Instant::now(), reason)))
        });
        let answers = each(cluster.at_once, questions).await;
        self.0.extend(answers.into_iter().flatten());
        objects.iter().filter_map(|(id, _)| Some(((*id).clone(), self.0.get(*id)?.1.clone()?))).collect()
    }
}

/// Reads the selected pods. Returns the reason why one of them does not run.
async fn ask(api: &ApiClient, id: &ObjectId, selector: &str) -> Option<String> {
    let path = format!("/api/v1/namespaces/{}/pods", id.namespace);
    let label_selector = Some(selector.to_owned());
    let params = ListParams { label_selector, limit: Some(MOST_PODS), ..ListParams::default() };
    let list: Json = api.list_once(&path, &params).await.ok()?;
    list.get("items")?.as_array()?.iter().find_map(reason_of)
}

/// Returns the label selector for the pods of a workload.
pub fn selector_of(object: &Json) -> Option<String> {
    let labels = object.pointer("/spec/selector/matchLabels")?.as_object()?;
    let pairs = labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    let text = pairs.collect::<Vec<_>>().join(",");
    (!text.is_empty()).then_some(text)
}

/// Returns the reason why a pod does not run.
fn reason_of(pod: &Json) -> Option<String> {
    let name = pod.pointer("/metadata/name")?.as_str()?;
    let list = |at: &str| pod.pointer(at).and_then(Json::as_array).into_iter().flatten();
    let text = |value: &Json, key: &str| value.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    let containers = list("/status/initContainerStatuses").chain(list("/status/containerStatuses"));
    let stuck = containers.filter_map(|container| {
        let waiting = container.pointer("/state/waiting");
        let ended = container.pointer("/state/terminated");
        let state = waiting.or(ended)?;
        let reason = text(state, "reason");
        let harmless = ["", "ContainerCreating", "PodInitializing", "Completed"].contains(&reason.as_str());
        let last = container.pointer("/lastState/terminated");
        let code = last.and_then(|last| last.get("exitCode")?.as_i64());
        let code = code.map(|code| format!(" (it ended with {code})")).unwrap_or_default();
        (!harmless).then(|| (text(container, "name"), reason, text(state, "message"), code))
    });
    if let Some((container, reason, message, code)) = stuck.into_iter().next() {
        return Some(said(&format!("pod {name}, container {container}: {reason}{code}"), &message));
    }
    let condition = list("/status/conditions").find(|condition| {
        text(condition, "status") == "False"
            && !text(condition, "reason").is_empty()
            && text(condition, "type") == "PodScheduled"
    });
    if let Some(condition) = condition {
        return Some(said(
            &format!("pod {name}: {}", text(condition, "reason")),
            &text(condition, "message"),
        ));
    }
    let reason = pod.pointer("/status/reason")?.as_str()?;
    let message = pod.pointer("/status/message").and_then(Json::as_str).unwrap_or_default();
    Some(said(&format!("pod {name}: {reason}"), message))
}

fn said(what: &str, message: &str) -> String {
    let message: String =
        message.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
    if message.is_empty() { what.to_owned() } else { format!("{what}: {message}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_that_does_not_start_is_named_with_its_reason() {
        let pod = json!({"metadata": {"name": "web-1"}, "status": {"containerStatuses": [
            {"name": "web", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
             "lastState": {"terminated": {"exitCode": 3}}}]}});
        assert_eq!(
            reason_of(&pod).unwrap(),
            "pod web-1, container web: CrashLoopBackOff (it ended with 3): back-off 10s"
        );
        let pending = json!({"metadata": {"name": "web-2"}, "status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}});
        assert_eq!(reason_of(&pending).unwrap(), "pod web-2: Unschedulable: 0/3 nodes");
        assert_eq!(reason_of(&json!({"metadata": {"name": "fine"}, "status": {"phase": "Running"}})), None);
    }
}
