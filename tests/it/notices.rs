//! Messages to people: a webhook, a chat, and the commit status of the source.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use crate::recorder::{Answer, Recorder};
use crate::support::remote::{Fleet, Folder, Running};
use crate::support::wait::until;
use crate::support::{Ran, config_map};

const ALL: &str = "published,held,rollouts,failures";

/// A fleet whose daemon tells a recorder.
struct Told {
    fleet: Fleet,
    server: Folder,
    other_side: Recorder,
    file: PathBuf,
}

impl Told {
    fn new() -> Told {
        let fleet = Fleet::new();
        let other_side = Recorder::start(|_| Answer::new(200, &json!({})));
        let file = fleet.root().join("hook");
        std::fs::write(&file, format!("{}/s3cret-path\n", other_side.url())).expect("a file");
        Told { server: Folder::of(&fleet), fleet, other_side, file }
    }

    fn pass(&self, more: &[&str]) -> Ran {
        let hook = ["--notify-file", self.file.to_str().expect("text"), "--notify-on", ALL];
        self.fleet.run_once(&self.server, &[&hook[..], more].concat())
    }

    fn bodies(&self) -> Vec<Json> {
        self.other_side.requests().into_iter().map(|request| request.body).collect()
    }

    fn empty(&self) {
        self.fleet.people.write("apps/web.yaml", config_map("web", "one", "{clusters: []}"));
        self.fleet.people.commit("nowhere");
        self.fleet.push();
    }
}

#[test]
fn a_webhook_is_told_of_publications_and_of_what_waits_for_approval() {
    let told = Told::new();
    told.pass(&[]).expect(0);
    let first = told.bodies();
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!((&first[0]["topic"], &first[0]["sequence"]), (&json!("published"), &json!(1)));
    let text = first[0]["text"].as_str().expect("text");
    assert!(text.contains("6 added in 3 clusters"), "{text}");
    told.pass(&[]).expect(0);
    assert_eq!(told.bodies().len(), 1, "nothing happened");
    told.empty();
    let ran = told.pass(&["--notify-form", "slack"]);
    assert_eq!(ran.code, 5, "{}", ran.err);
    let last = told.bodies().pop().expect("a message");
    let text = last["text"].as_str().expect("text");
    assert!(text.starts_with("berth: held for approval: 1 workload (FederatedConfigMap shop/web)"), "{text}");
    assert!(text.contains("approve: Berth-Allow-Delete: "), "{text}");
    assert_eq!(last.as_object().expect("an object").len(), 1, "chats take no further fields: {last}");
}

#[test]
fn a_webhook_that_refuses_costs_no_pass_and_its_address_is_nowhere() {
    let told = Told::new();
    let refusing = Recorder::start(|_| Answer::new(404, &json!({})));
    std::fs::write(&told.file, format!("{}/s3cret-path", refusing.url())).expect("a file");
    let ran = told.pass(&[]).expect(0);
    assert!(ran.err.contains("the webhook refuses the message: 404"), "{}", ran.err);
    std::fs::write(&told.file, "http://127.0.0.1:1/s3cret-path").expect("a file");
    told.fleet.edit("two");
    let shown = told.pass(&[]).expect(0);
    for ran in [&ran, &shown] {
        assert!(!ran.err.contains("s3cret") && !ran.out.contains("s3cret"), "{}", ran.err);
    }
    std::fs::write(&told.file, "http://chat.example.com/x").expect("a file");
    let ran = told.pass(&[]).expect(2);
    assert!(ran.err.contains("holds no address of a webhook"), "{}", ran.err);
}

#[test]
fn passes_that_fail_are_told_once_and_so_is_their_end() {
    let told = Told::new();
    let hook = told.file.display().to_string();
    let daemon = Running::daemon(&told.fleet, &told.server, &["--notify-file", &hook]);
    until("the daemon published", || told.fleet.has(crate::support::RENDERED));
    let away = told.fleet.root().join("away");
    std::fs::rename(told.fleet.bare_path(), &away).expect("a new name");
    until("somebody is told", || !told.bodies().is_empty());
    std::fs::rename(&away, told.fleet.bare_path()).expect("the name");
    until("the end is told", || told.bodies().len() > 1);
    let (code, log) = daemon.stop();
    assert_eq!(code, 0, "{log}");
    let bodies = told.bodies();
    let failing: Vec<&Json> = bodies.iter().map(|body| &body["failing"]).collect();
    assert_eq!(failing, [&json!(true), &json!(false)], "{bodies:?}");
    assert!(bodies[0]["text"].as_str().expect("text").starts_with("nothing is published: "), "{bodies:?}");
}

#[test]
fn the_source_commit_has_a_status_that_says_what_became_of_it() {
    let told = Told::new();
    let token = told.fleet.root().join("token");
    std::fs::write(&token, "t0ken\n").expect("a file");
    let api = told.other_side.url().to_owned();
    let flags = ["--status-repository", "acme/fleet", "--forge", "gitea", "--api", &api];
    let token = ["--forge-token-file", token.to_str().expect("text")];
    let flags = [&flags[..], &token[..]].concat();
    let pass = || told.fleet.run_once(&told.server, &flags);
    pass().expect(0);
    let source = told.fleet.people.id("HEAD");
    let request = told.other_side.requests().pop().expect("a request");
    assert_eq!(request.line, format!("POST /repos/acme/fleet/statuses/{source}"));
    assert_eq!(request.header("authorization"), "token t0ken");
    assert_eq!((&request.body["context"], &request.body["state"]), (&json!("berth/run"), &json!("success")));
    assert_eq!(request.body["description"], "number 1: 0 of 3 clusters in sync");
    told.empty();
    assert_eq!(pass().code, 5);
    let last = told.bodies().pop().expect("a status");
    assert_eq!(
        (&last["state"], &last["description"]),
        (&json!("pending"), &json!("number 2: 1 workload held for approval"))
    );
    let ran = told.fleet.run_once(&told.server, &flags[..2]);
    assert_eq!(ran.code, 2, "a repository alone is not enough: {}", ran.err);
}
