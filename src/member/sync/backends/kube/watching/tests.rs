//! Follows a kind through everything that servers do to watches, with a scripted server.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use serde_json::{Value as Json, json};

use super::super::identity::Identity;
use super::super::scripted_server::request_line;
use super::*;
use crate::live::session::ApiSession;
use berth_base::model::ObjectId;

/// A server's answers, in order.
#[derive(Default)]
struct Script {
    lists: Vec<(u16, Json)>,
    /// The events of a watch, and true if it stays open after them.
    watches: Vec<(Vec<Json>, bool)>,
    /// The requests: `list`, or the version from which a watch started.
    asked: Vec<String>,
    open: Vec<TcpStream>,
}

struct Server {
    script: Arc<Mutex<Script>>,
    feed: KindWatch,
    calls: Arc<AtomicUsize>,
    runtime: tokio::runtime::Runtime,
}

fn serve(stream: TcpStream, script: &Mutex<Script>) -> Option<()> {
    let first = request_line(&stream)?;
    let mut stream = stream;
    let mut script = lock(script);
    if !first.contains("watch=true") {
        script.asked.push("list".to_owned());
        let (code, body) =
            if script.lists.len() > 1 { script.lists.remove(0) } else { script.lists.first()?.clone() };
        let body = body.to_string();
        let head = format!("HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nConnection: close\r\n");
        return write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok();
    }
    assert!(first.contains("allowWatchBookmarks=true") && first.contains("labelSelector="), "{first}");
    let version = first.split("resourceVersion=").nth(1)?.split(['&', ' ']).next()?.to_owned();
    script.asked.push(version);
    let (events, stays) =
        if script.watches.is_empty() { (Vec::new(), true) } else { script.watches.remove(0) };
    if events.contains(&away()) {
        return None;
    }
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n").ok()?;
    for event in events {
        writeln!(stream, "{event}").ok()?;
    }
    stream.flush().ok()?;
    if stays {
        script.open.push(stream);
    }
    Some(())
}

impl Server {
    fn start(lists: Vec<(u16, Json)>, watches: Vec<(Vec<Json>, bool)>, silence: Duration) -> Server {
        let script = Arc::new(Mutex::new(Script { lists, watches, ..Script::default() }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let told = script.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = told.clone();
                std::thread::spawn(move || serve(stream, &told));
            }
        });
        let ApiSession { runtime, server } = ApiSession::with_test_server(&server);
        let shared = Arc::new(Shared::default());
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        *lock(&shared.call) = Some(Box::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        }));
        let feed = KindWatch {
            api: ApiClient::new(server, identity()),
            shared,
            scope: KindScope {
                group: "".into(),
                kind: "ConfigMap".into(),
                version: "v1".to_owned(),
                path: "/api/v1/configmaps".to_owned(),
            },
            silence,
        };
        let server = Server { script, feed, calls, runtime };
        let from = server.runtime.block_on(server.feed.list()).unwrap();
        server.feed.shared.called.store(false, Ordering::SeqCst);
        server.runtime.spawn(server.feed.clone().follow(from));
        server
    }

    fn asked(&self) -> Vec<String> {
        lock(&self.script).asked.clone()
    }

    fn names(&self) -> Vec<String> {
        self.feed.shared.cache().entries().map(|(id, _)| id.name.to_string()).collect()
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&Server) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !holds(self) {
            assert!(Instant::now() < deadline, "{what}: {:?} {:?}", self.asked(), self.names());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn identity() -> Identity {
    Identity::new("test", "berth-system")
}

fn object(name: &str, version: u64) -> Json {
    let identity = identity();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "namespace": "shop", "uid": format!("uid of {name}"),
        "resourceVersion": version.to_string(),
        "labels": {"applyset.kubernetes.io/part-of": identity.set},
        "managedFields": [{"manager": identity.manager, "operation": "Apply", "fieldsV1": {}}]}})
}

fn list(version: u64, objects: &[Json]) -> (u16, Json) {
    (200, json!({"metadata": {"resourceVersion": version.to_string()}, "items": objects}))
}

fn event(kind: &str, object: Json) -> Json {
    json!({"type": kind, "object": object})
}

fn bookmark(version: u64) -> Json {
    event(
        "BOOKMARK",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": version.to_string()}}),
    )
}

/// The server does not answer.
fn away() -> Json {
    json!({"type": "AWAY"})
}

fn expired() -> Json {
    event(
        "ERROR",
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too old resource version", "reason": "Expired", "code": 410}),
    )
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_watch_goes_on_from_its_last_bookmark_and_a_forgotten_version_is_listed_anew() {
    let server = Server::start(
        vec![list(10, &[object("a", 5), object("b", 6)]), list(30, &[object("a", 5)])],
        vec![(vec![bookmark(12)], false), (vec![expired()], false)],
        LONG,
    );
    server.until("it watches from the second list", |it| it.asked().len() == 5);
    assert_eq!(server.asked(), ["list", "10", "12", "list", "30"]);
    // The new list shows that the object is gone.
    assert_eq!(server.names(), ["a"]);
    assert_eq!(server.calls.load(Ordering::SeqCst), 2, "once for the first list, once for the removal");
}

#[test]
fn what_a_restored_server_no_longer_knows_is_forgotten() {
    let restored = || list(40, &[object("a", 30), object("b", 6)]);
    let server = Server::start(
        vec![list(100, &[object("a", 90), object("c", 80)]), restored()],
        vec![(vec![bookmark(35)], true)],
        LONG,
    );
    server.until("it is listed anew", |it| it.names() == ["a", "b"]);
    server.until("it is watched from there", |it| it.asked().contains(&"40".to_owned()));
    assert_eq!(server.asked(), ["list", "100", "list", "list", "40"]);
    let version = server.feed.shared.cache().entries().next().and_then(|(_, entry)| entry.version);
    assert_eq!(version, Some(30));
}

#[test]
fn a_server_that_was_away_is_listed_again_for_it_may_have_been_restored() {
    // Meanwhile the restored server has counted beyond its former version.
    let server = Server::start(
        vec![list(100, &[object("a", 90), object("c", 80)]), list(200, &[object("a", 30), object("b", 6)])],
        vec![(vec![away()], false)],
        LONG,
    );
    server.until("it is listed anew", |it| it.names() == ["a", "b"]);
    server.until("it is watched from there", |it| it.asked().contains(&"200".to_owned()));
    assert_eq!(server.asked(), ["list", "100", "list", "200"]);
    let version = server.feed.shared.cache().entries().next().and_then(|(_, entry)| entry.version);
    assert_eq!(version, Some(30));
}

#[test]
fn silence_counts_as_being_cut_off() {
    let server = Server::start(
        vec![list(10, &[object("a", 5), object("b", 6)]), list(30, &[object("b", 6), object("c", 28)])],
        vec![(Vec::new(), true)],
        Duration::from_millis(200),
    );
    server.until("it is listed anew", |it| it.names() == ["b", "c"]);
    server.until("it is watched from there", |it| it.asked().contains(&"30".to_owned()));
}

#[test]
fn removals_that_come_late_or_twice_take_nothing_that_came_in_their_place() {
    let mut other = object("a", 15);
    other["metadata"]["uid"] = json!("another");
    let server = Server::start(
        vec![list(10, &[object("a", 5), object("b", 6)])],
        vec![(
            vec![
                event("ADDED", other),
                event("DELETED", object("a", 14)),
                event("MODIFIED", object("a", 13)),
                event("DELETED", object("b", 16)),
                event("DELETED", object("b", 16)),
            ],
            true,
        )],
        LONG,
    );
    server.until("the removal is heard of", |it| it.names() == ["a"]);
    let cache = server.feed.shared.cache();
    assert_eq!(cache.entries().map(|(_, entry)| &*entry.uid).collect::<Vec<_>>(), ["another"]);
}

#[test]
fn a_kind_that_is_refused_for_a_while_is_said_and_found_again() {
    let refused = json!({"kind": "Status", "message": "no", "reason": "Forbidden", "code": 403});
    let server = Server::start(
        vec![list(10, &[object("a", 5)]), (403, refused), list(30, &[object("a", 5), object("d", 29)])],
        vec![(vec![expired()], false)],
        LONG,
    );
    server.until("it is said", |it| it.asked().len() >= 3);
    server.until("it is found again", |it| it.names() == ["a", "d"]);
    server.until("nothing is said any more", |it| lock(&it.feed.shared.faults).is_empty());
    assert_eq!(&server.asked()[..4], ["list", "10", "list", "list"]);
}

#[test]
fn an_object_without_berths_mark_is_none_of_its_own() {
    let mut foreign = object("a", 5);
    foreign["metadata"]["managedFields"] = json!([]);
    let server = Server::start(vec![list(10, &[foreign])], Vec::new(), LONG);
    assert!(server.names().is_empty());
    assert!(!server.feed.scope.holds(&ObjectId::new("apps", "ConfigMap", "shop", "a")));
}
