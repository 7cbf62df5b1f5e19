//! The live objects of a folder that another program applies, and the objects that it leaves for berth to remove.
//!
//! A failed read affects only its own objects, unless the server is unreachable.
//! [`Found`] is the result of such a survey.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::Session;
use super::standing::{Observed, Standing};
use crate::live::concurrency::each;
use crate::sync::backends::kube::connection::Connection;
use crate::sync::backends::kube::failure::Failure;
use crate::sync::backends::kube::removal::has_owner;
use crate::sync::backends::{BEING_REMOVED, BackendError};
use crate::sync::desired::{Annotations, Desired, own_annotations};
use crate::sync::field_differences;
use crate::sync::health::Health;
use crate::sync::plan::{ALL_OF_KIND, Form, Live, Version};
use crate::sync::strategy::{Strategy, WriteLimit};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{ORPHAN, SUSPEND, WORKLOAD};

impl Session {
    /// Reads the wanted objects, and the objects left for berth to remove.
    pub(super) async fn read_objects(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
        standing: &Standing,
        found: &mut Found,
    ) -> Result<(), BackendError> {
        let mut kinds: BTreeSet<(&str, &str)> = desired.keys().map(|id| (&*id.group, &*id.kind)).collect();
        kinds.extend(GUARDED);
        if kinds.iter().any(|(group, kind)| self.connection.kinds.preferred(group, kind).is_none()) {
            // The folder may define new kinds.
            let asked = self.connection.ask_kinds().await;
            asked.map_err(|failure| self.connection.api.whole(&failure))?;
        }
        let lists = each(self.connection.at_once, kinds.iter().map(|kind| self.list(kind))).await;
        for ((group, kind), list) in kinds.into_iter().zip(lists) {
            let objects = match list {
                Ok(objects) => objects,
                Err(failure) => {
                    let of_kind = |id: &&ObjectId| (&*id.group, &*id.kind) == (group, kind);
                    let wanted: Vec<&ObjectId> = desired.keys().filter(of_kind).collect();
                    let health = self.unseen("its kind cannot be listed", &failure, kind == "Secret")?;
                    if wanted.is_empty() && *standing == Standing::Applied {
                        found.left.insert(ObjectId::new(group, kind, "", ALL_OF_KIND), unknown(&health));
                    }
                    found.unseen.extend(wanted.into_iter().map(|id| (id.clone(), health.clone())));
                    continue;
                }
            };
            for object in objects {
                let Some(id) = ObjectId::of(&object) else { continue };
                if let Some(wanted) = desired.get(&id) {
                    found.wanted.insert(id, self.observe(wanted, &object));
                } else if *standing == Standing::Applied
                    && let Some(live) = self.left(&id, &object)
                {
                    found.left.insert(id, live);
                }
            }
        }
        self.read_unlabelled(desired, found).await
    }

    /// Lists the objects of one kind that the program applied.
    async fn list(&self, (group, kind): &(&str, &str)) -> Result<Vec<Json>, Failure> {
        let Connection { api, kinds, .. } = &self.connection;
        let mut objects = Vec::new();
        let Some(served) = kinds.preferred(group, kind) else { return Ok(objects) };
        let api_version = match *group {
            "" => served.version.clone(),
            group => format!("{group}/{}", served.version),
        };
        let each = |mut object: Json| {
            // A list omits these fields.
            object["apiVersion"] = api_version.clone().into();
            object["kind"] = (*kind).into();
            objects.push(object);
        };
        api.list(&served.path(group, ""), &self.neighbour.selector(), each).await?;
        Ok(objects)
    }

    /// Reads wanted objects one by one: the program labels only objects that it writes.
    async fn read_unlabelled(
        &mut self,
        desired: &BTreeMap<ObjectId, Desired>,
        found: &mut Found,
    ) -> Result<(), BackendError> {
        let is_unlabelled = |wanted: &&Desired| {
            Strategy::of(wanted).way != WriteLimit::Write || wanted.annotation(SUSPEND).is_some()
        };
        let is_unknown = |id: &ObjectId| !found.wanted.contains_key(id) && !found.unseen.contains_key(id);
        let others: Vec<&Desired> =
            desired.values().filter(|wanted| is_unknown(&wanted.id)).filter(is_unlabelled).collect();
        let get = async |wanted: &&Desired| {
            let path = self.connection.path_of(wanted)?;
            self.connection.api.get(&path, &wanted.id.name).await
        };
        let read = each(self.connection.at_once, others.iter().map(get)).await;
        for (wanted, read) in others.into_iter().zip(read) {
            match read {
                Ok(Some(object)) => {
                    found.wanted.insert(wanted.id.clone(), self.observe(wanted, &object));
                }
                Ok(None) => {}
                Err(failure) => {
                    let health = self.unseen("it cannot be read", &failure, wanted.is_secret())?;
                    found.unseen.insert(wanted.id.clone(), health);
                }
            }
        }
        Ok(())
    }

    /// Returns the health of an unreadable object. Fails if the server answers no request at all.
    fn unseen(&self, what: &str, failure: &Failure, is_secret: bool) -> Result<Health, BackendError> {
        if matches!(failure, Failure::Unreachable(_)) || failure.code() == 401 {
            return Err(self.connection.api.whole(failure));
        }
        let why = format!("{what}: {}", failure.words(is_secret));
        Ok(if failure.may_pass() { Health::Progressing(why) } else { Health::Failed(why) })
    }

    fn observe(&self, wanted: &Desired, object: &Json) -> Observed {
        let is_as_wanted = field_differences::asked(object, &wanted.object()).is_empty();
        Observed { health: self.rules.judge(object), is_as_wanted }
    }

    /// Returns an object that is no longer wanted and that the program leaves for berth; `None` for any other object.
    fn left(&self, id: &ObjectId, object: &Json) -> Option<Live> {
        let annotations = own_annotations(object);
        let is_berths = annotations.contains_key(WORKLOAD) && self.neighbour.leaves(object);
        if !is_berths || annotations.get(ORPHAN).is_some_and(|value| value == "true") {
            return None;
        }
        let uid = object.pointer("/metadata/uid")?.as_str()?.to_owned();
        let stays = self.protected.reason_to_stay(id, has_owner(object));
        let form = match object.pointer("/metadata/deletionTimestamp") {
            Some(since) if !since.is_null() => Form::Faulty(BEING_REMOVED.to_owned()),
            _ => Form::There { version: Version(uid), same: true },
        };
        Some(Live { owned: true, form, annotations: Arc::new(annotations), stays })
    }
}

/// Returns a placeholder for a kind that cannot be listed: some of its objects may be left for berth to remove.
fn unknown(health: &Health) -> Live {
    let why = match health {
        Health::Progressing(why) | Health::Failed(why) => why.as_str(),
        Health::Healthy => "",
    };
    let form = Form::Faulty(format!("the objects that are left for berth to remove are unknown: {why}"));
    Live { owned: true, form, annotations: Annotations::default(), stays: None }
}

/// The interval at which objects are read again while the program's record is unchanged.
pub(super) const LOOKS_INTERVAL: Duration = Duration::from_secs(60);

/// The kinds that no program removes without berth.
pub(super) const GUARDED: [(&str, &str); 3] =
    [("", "Namespace"), ("", "PersistentVolumeClaim"), ("apiextensions.k8s.io", "CustomResourceDefinition")];

/// The state of the cluster at the last survey.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The versions of the program's record and source that the objects were read for, and the moment.
    pub seen: Option<(Json, Json, Instant)>,
    pub standing: Option<Standing>,
    pub wanted: BTreeMap<ObjectId, Observed>,
    /// The health of wanted objects that were unreadable.
    pub unseen: BTreeMap<ObjectId, Health>,
    /// True if the program's message names a wanted object.
    pub names_any: bool,
    /// Objects that the program leaves for berth to remove.
    pub left: BTreeMap<ObjectId, Live>,
    pub is_healthy: bool,
}

#[cfg(test)]
mod tests {
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
    use crate::sync::backends::kube::removal::Protected;
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
}
