//! Tests with a server that refuses single kinds and objects.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::json;

use super::super::Flux;
use super::*;
use crate::live::session::ApiSession;
use crate::sync::backends::kube::api_client::ApiClient;
use crate::sync::backends::kube::deadlines::Deadlines;
use crate::sync::backends::kube::identity::Identity;
use crate::sync::backends::kube::protected::Protected;
use crate::sync::backends::kube::scripted_server::request_line;
use crate::sync::health::custom::HealthRules;

/// Answers with the kinds served, an empty list of each, and a refusal for Secrets.
fn serve(stream: TcpStream) -> Option<()> {
    let first = request_line(&stream)?;
    let kind = |kind: &str, plural: &str| {
        json!({"resource": plural, "responseKind": {"group": "", "version": "v1", "kind": kind},
            "scope": "Namespaced", "singularResource": "x", "verbs": ["list", "patch", "delete"]})
    };
    let discovery = |groups: serde_json::Value| {
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": groups})
    };
    let kinds = json!([{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [
        kind("Secret", "secrets"), kind("ConfigMap", "configmaps"), kind("Namespace", "namespaces"),
        kind("PersistentVolumeClaim", "persistentvolumeclaims")]}]}]);
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "code": 403,
        "message": "hunter2 is forbidden"});
    let map = json!({"metadata": {"name": "web", "namespace": "shop"}, "data": {"key": "1"}});
    let path = first.split(' ').nth(1)?.split('?').next()?;
    let (code, body) = match path {
        "/api" => (200, discovery(kinds)),
        "/apis" => (200, discovery(json!([]))),
        "/api/v1/configmaps" => (200, json!({"metadata": {"resourceVersion": "5"}, "items": [map]})),
        "/api/v1/secrets" | "/api/v1/persistentvolumeclaims" => (403, refusal),
        _ => (200, json!({"metadata": {"resourceVersion": "5"}, "items": []})),
    };
    let (mut stream, body) = (stream, body.to_string());
    let head = "Content-Type: application/json\r\nConnection: close\r\n";
    write!(stream, "HTTP/1.1 {code} X\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()
}

#[test]
fn a_kind_that_cannot_be_listed_concerns_its_own_objects_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            serve(stream);
        }
    });
    let ApiSession { runtime, server } = ApiSession::with_test_server(&server);
    runtime.block_on(async {
        let api = ApiClient::new(server, Identity::new("test", "berth-system"));
        let mut session = Session {
            connection: Connection::new(api, 4, None),
            records: None,
            neighbour: Box::new(Flux { namespace: "flux-system".to_owned(), name: "berth-oslo".to_owned() }),
            revisions: Box::new(|_| Ok(Vec::new())),
            rules: Arc::new(HealthRules::default()),
            protected: Protected::new(&[], "berth-system"),
            deadlines: Deadlines::new(Duration::from_secs(60)),
            record: None,
            tree: Arc::default(),
            wanted_revisions: Vec::new(),
            found: Found::default(),
        };
        let object = |kind: &str, name: &str| {
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
        };
        let desired: BTreeMap<ObjectId, Desired> = [object("Secret", "key"), object("ConfigMap", "web")]
            .iter()
            .map(|object| Desired::new(object, false).unwrap())
            .map(|desired| (desired.id.clone(), desired))
            .collect();
        let mut found = Found::default();
        session.read_objects(&desired, &Standing::Applied, &mut found).await.unwrap();
        let names = |ids: &mut dyn Iterator<Item = &ObjectId>| ids.map(|id| format!("{id}")).collect::<Vec<_>>();
        assert_eq!(names(&mut found.wanted.keys()), ["ConfigMap shop/web"]);
        assert_eq!(names(&mut found.unseen.keys()), ["Secret shop/key"]);
        let why = "its kind cannot be listed: the API server refuses it: Forbidden (403)";
        assert_eq!(found.unseen.values().collect::<Vec<_>>(), [&Health::Failed(why.to_owned())]);
        // The placeholder reports claims that may be left for berth to remove; nothing else does.
        assert_eq!(names(&mut found.left.keys()), ["PersistentVolumeClaim *"]);
    });
}
