//! The control plane that tests stand on does what they rely on: server-side apply, controllers,
//! custom resources, kept data, instances side by side, a log of requests, kubectl.

use std::io::Write as _;
use std::process::Stdio;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::wait::eventually_async;

fn typed<T: DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("a well-formed object")
}

async fn create_namespace(client: &Client, name: &str) {
    let namespace: Namespace = typed(json!({ "metadata": { "name": name } }));
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("a namespace");
}

/// Applies a config map server-side.
async fn apply_config_map(client: &Client, namespace: &str, name: &str, text: &str) -> ConfigMap {
    let applied = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name },
        "data": { "text": text },
    });
    Api::<ConfigMap>::namespaced(client.clone(), namespace)
        .patch(name, &PatchParams::apply("berth/smoke"), &Patch::Apply(applied))
        .await
        .expect("an applied config map")
}

async fn text_of(client: &Client, namespace: &str, name: &str) -> Option<String> {
    let found = Api::<ConfigMap>::namespaced(client.clone(), namespace).get_opt(name).await;
    found.expect("an answer")?.data?.remove("text")
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn controllers_turn_a_deployment_into_pods_and_empty_a_deleted_namespace() {
    let Some(plane) = ControlPlane::start(Wanted::USUAL) else { return };
    let client = plane.client().await;
    create_namespace(&client, "shop").await;

    let applied = apply_config_map(&client, "shop", "greeting", "hello").await;
    let managers: Vec<_> = applied.metadata.managed_fields.unwrap_or_default();
    assert_eq!(managers.len(), 1);
    assert_eq!(managers[0].manager.as_deref(), Some("berth/smoke"));
    assert_eq!(managers[0].operation.as_deref(), Some("Apply"));

    let deployment: Deployment = typed(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "example.com/web:1" }] },
            },
        },
    }));
    let deployments = Api::<Deployment>::namespaced(client.clone(), "shop");
    deployments.create(&PostParams::default(), &deployment).await.expect("a deployment");
    let everything = ListParams::default();
    let sets = Api::<ReplicaSet>::namespaced(client.clone(), "shop");
    let pods = Api::<Pod>::namespaced(client.clone(), "shop");
    eventually_async("a replica set and two pods", async || {
        let sets = sets.list(&everything).await.expect("replica sets").items;
        let pods = pods.list(&everything).await.expect("pods").items;
        (sets.len() == 1 && pods.len() == 2).then_some(())
    })
    .await;
    eventually_async("the deployment's status", async || {
        let status = deployments.get("web").await.expect("the deployment").status?;
        (status.observed_generation == Some(1) && status.replicas == Some(2)).then_some(())
    })
    .await;

    deployments.delete("web", &DeleteParams::background()).await.expect("a deletion");
    eventually_async("the garbage collector takes what the deployment owned", async || {
        let sets = sets.list(&everything).await.expect("replica sets").items;
        let pods = pods.list(&everything).await.expect("pods").items;
        (sets.is_empty() && pods.is_empty()).then_some(())
    })
    .await;

    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.delete("shop", &DeleteParams::default()).await.expect("a deletion");
    eventually_async("the namespace goes", async || {
        match namespaces.get_opt("shop").await.expect("an answer") {
            None => Some(()),
            Some(_) => None,
        }
    })
    .await;
    assert_eq!(text_of(&client, "shop", "greeting").await, None);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_definition_is_established_and_its_resources_are_served() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let client = plane.client().await;
    let definition: CustomResourceDefinition = typed(json!({
        "metadata": { "name": "boats.harbour.example.com" },
        "spec": {
            "group": "harbour.example.com",
            "names": { "kind": "Boat", "plural": "boats", "singular": "boat" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": {
                        "type": "object",
                        "properties": { "length": { "type": "integer", "minimum": 1 } },
                    } },
                } },
            }],
        },
    }));
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    definitions.create(&PostParams::default(), &definition).await.expect("a definition");
    eventually_async("the definition is established", async || {
        let status = definitions.get("boats.harbour.example.com").await.expect("it").status?;
        status.conditions?.into_iter().find(|c| c.type_ == "Established" && c.status == "True")
    })
    .await;

    let resource = ApiResource {
        group: "harbour.example.com".to_owned(),
        version: "v1".to_owned(),
        api_version: "harbour.example.com/v1".to_owned(),
        kind: "Boat".to_owned(),
        plural: "boats".to_owned(),
    };
    let boats = Api::<DynamicObject>::namespaced_with(client, "default", &resource);
    let boat = |length: i64| -> DynamicObject {
        typed(json!({
            "apiVersion": "harbour.example.com/v1",
            "kind": "Boat",
            "metadata": { "name": "ferry" },
            "spec": { "length": length },
        }))
    };
    // An established definition may take a moment more until its resources are served.
    eventually_async("a boat is accepted", async || {
        boats.create(&PostParams::default(), &boat(30)).await.ok()
    })
    .await;
    assert_eq!(boats.get("ferry").await.expect("the boat").data["spec"]["length"], 30);
    let refused =
        boats.patch("ferry", &PatchParams::apply("berth/smoke").force(), &Patch::Apply(boat(0))).await;
    assert!(refused.expect_err("too short").to_string().contains("should be greater than or equal to 1"));
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn a_stopped_or_killed_control_plane_comes_back_with_its_data() {
    let Some(mut plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    apply_config_map(&plane.client().await, "default", "kept", "one").await;
    plane.stop();
    plane.start_again();
    let client = plane.client().await;
    assert_eq!(text_of(&client, "default", "kept").await.as_deref(), Some("one"));
    apply_config_map(&client, "default", "kept", "two").await;
    plane.kill();
    plane.start_again();
    assert_eq!(text_of(&plane.client().await, "default", "kept").await.as_deref(), Some("two"));
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn two_control_planes_stand_side_by_side_and_each_logs_its_own_requests() {
    let Some(one) = ControlPlane::start(Wanted::AUDITED) else { return };
    let Some(other) = ControlPlane::start(Wanted::AUDITED) else { return };
    apply_config_map(&one.client().await, "default", "mine", "one").await;
    apply_config_map(&other.client().await, "default", "theirs", "other").await;
    assert_eq!(text_of(&one.client().await, "default", "theirs").await, None);
    assert_eq!(text_of(&other.client().await, "default", "mine").await, None);

    let logged = |plane: &ControlPlane, verb: &str, name: &str| {
        plane
            .requests()
            .into_iter()
            .filter(|event| {
                event["verb"] == verb
                    && event["objectRef"]["resource"] == "configmaps"
                    && event["objectRef"]["name"] == name
                    && event["user"]["username"] == "admin"
            })
            .count()
    };
    eventually_async("each logs what it was asked", async || {
        let own = logged(&one, "patch", "mine") == 1 && logged(&other, "patch", "theirs") == 1;
        (own && logged(&one, "get", "theirs") == 1).then_some(())
    })
    .await;
    assert_eq!(logged(&one, "patch", "theirs"), 0);
    assert_eq!(logged(&other, "patch", "mine"), 0);
}

#[tokio::test]
#[ignore = "needs Kubernetes"]
async fn kubectl_applies_and_reads() {
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let mut apply = plane
        .kubectl()
        .args(["apply", "--server-side", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    apply
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"{apiVersion: v1, kind: ConfigMap, metadata: {name: by-kubectl}, data: {text: hello}}")
        .expect("it reads");
    let applied = apply.wait_with_output().expect("it ends");
    assert!(applied.status.success());
    assert_eq!(String::from_utf8_lossy(&applied.stdout), "configmap/by-kubectl serverside-applied\n");
    let text = text_of(&plane.client().await, "default", "by-kubectl").await;
    assert_eq!(text.as_deref(), Some("hello"));

    let versions = plane.kubectl().args(["version", "-o", "json"]).output().expect("kubectl runs");
    let versions: serde_json::Value = serde_json::from_slice(&versions.stdout).expect("JSON");
    assert_eq!(versions["serverVersion"]["major"], "1");
}
