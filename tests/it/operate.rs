//! Running a member for long: one writer at a time, people who stop it for a while, and what it says of itself.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::{Value as Json, json};

use crate::support::kube::ControlPlane;
use crate::support::member::{Member, annotated};
use crate::support::page::page;
use crate::support::signals::{self, Signal};
use crate::support::wait::{PATIENCE, eventually};
use crate::support::{Ran, berth, config_map, run, small_fleet};

/// A syncer that keeps running, ended when the test is.
pub struct Running {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Running {
    pub fn start(member: &Member, more: &[&str]) -> Running {
        let mut command = berth();
        command.args(["sync", "--target", "kube", "--repo", member.repo.arg(), "--interval", "1"]);
        command.args(["--cluster", &member.name, "--fleet", &member.name, "--log-format", "json"]);
        command.arg("--kubeconfig").arg(member.plane.kubeconfig()).args(more);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("berth runs");
        let (heard, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| heard.send(line)));
        Running { child, lines }
    }

    /// Waits for a line of the log that holds this text.
    #[track_caller]
    pub fn hear(&self, text: &str) -> String {
        let mut all = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if line.contains(text) {
                return line;
            }
            all.push(line);
        }
        panic!("nothing of `{text}` in\n{}", all.join("\n"));
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(mut self) -> i32 {
        assert!(signals::send(Signal::TERM, self.child.id()));
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }

    fn signal(&self, signal: Signal) {
        assert!(signals::send(signal, self.child.id()));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lease(member: &Member) -> Json {
    let name = format!("berth-{}", member.name);
    let text = member.kubectl(&["get", "lease", &name, "-n", "berth-system", "-o", "json"]);
    serde_json::from_str(&text).expect("JSON")
}

fn value(member: &Member) -> Option<String> {
    member.get("configmap", "web").map(|web| web["data"]["key"].as_str().unwrap_or_default().to_owned())
}

#[test]
#[ignore = "needs Kubernetes"]
fn of_two_syncers_one_writes_and_the_other_takes_over_when_it_stops() {
    let Some(member) = Member::new("turns") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let first = Running::start(&member, &["--lease-duration", "60"]);
    first.hear("holding the lease");
    first.hear("applied");
    let holder = lease(&member)["spec"]["holderIdentity"].as_str().expect("a holder").to_owned();
    let second = Running::start(&member, &["--lease-duration", "12"]);
    let line = second.hear("another syncer holds the lease");
    assert!(line.contains(&holder), "{line}");
    assert_eq!(first.stop(), 0);
    // It was let go: nobody waits a minute for it.
    second.hear("holding the lease");
    member.publish(&[member.config_map("web", "two")]);
    eventually("the second applies", || (value(&member)? == "two").then_some(()));
    assert_eq!(lease(&member)["spec"]["leaseTransitions"], 2);
    assert_eq!(second.stop(), 0);
    assert_eq!(lease(&member)["spec"]["holderIdentity"].as_str().unwrap_or_default(), "");
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_single_round_beside_a_running_syncer_ends_politely_and_changes_nothing() {
    let Some(member) = Member::new("polite") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let first = Running::start(&member, &["--lease-duration", "6"]);
    first.hear("applied");
    let ran = member.sync(&[]).expect(4);
    assert!(ran.err.contains("another syncer uses this cluster"), "{}", ran.err);
    assert!(ran.err.contains("--no-lease"), "{}", ran.err);
    // Looking is nobody's turn.
    member.sync(&["--dry-run"]).expect(0);
    member.sync(&["--no-lease"]).expect(0);
    assert_eq!(first.stop(), 0);
    member.sync(&[]).expect(0);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_holder_that_is_frozen_loses_its_turn_and_does_not_write_when_it_wakes() {
    let Some(member) = Member::new("frozen") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let first = Running::start(&member, &["--lease-duration", "4"]);
    first.hear("applied");
    first.signal(Signal::STOP);
    member.publish(&[member.config_map("web", "two")]);
    let second = Running::start(&member, &["--lease-duration", "4"]);
    second.hear("holding the lease");
    eventually("the second applies", || (value(&member)? == "two").then_some(()));
    let holder = lease(&member)["spec"]["holderIdentity"].clone();
    first.signal(Signal::CONT);
    // The first finds out before it writes anything.
    first.hear("another syncer holds the lease");
    assert_eq!(lease(&member)["spec"]["holderIdentity"], holder);
    let edit = json!({"data": {"key": "by hand"}}).to_string();
    member.kubectl(&["patch", "configmap", "web", "-n", "frozen", "--type=merge", "-p", &edit]);
    eventually("the second corrects", || (value(&member)? == "two").then_some(()));
    assert_eq!(second.stop(), 0);
    first.hear("holding the lease");
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_holder_that_was_killed_here_is_followed_at_once() {
    let Some(member) = Member::new("killed") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let mut first = Running::start(&member, &["--lease-duration", "3600"]);
    first.hear("applied");
    first.child.kill().expect("it is killed");
    first.child.wait().expect("it ends");
    member.publish(&[member.config_map("web", "two")]);
    member.sync(&[]).expect(0);
    assert_eq!(value(&member).as_deref(), Some("two"));
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_clock_of_another_machine_counts_for_nothing() {
    let Some(member) = Member::new("clocks") else { return };
    member.publish(&[member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    // Held by somebody whose clock stands in 1970, and who renews: never expired, whatever it says.
    let plane = member.plane.clone();
    let patch = move |time: &str| {
        let spec = json!({"spec": {"holderIdentity": "elsewhere", "leaseDurationSeconds": 3600,
            "renewTime": time, "acquireTime": time}});
        let (kind, patch) = ("--type=merge", spec.to_string());
        let args = ["patch", "lease", "berth-clocks", "-n", "berth-system", kind, "-p", &patch];
        Ran::of(plane.kubectl().args(args)).expect(0);
    };
    patch("1970-01-01T00:00:00.000000Z");
    let waiting = Running::start(&member, &["--lease-duration", "4"]);
    waiting.hear("another syncer holds the lease");
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let renewing = std::thread::spawn(move || {
        let mut tick = 0;
        while is_done.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            tick += 1;
            patch(&format!("1970-01-01T00:{:02}:{:02}.000000Z", tick / 60 % 60, tick % 60));
        }
    });
    let once = member.sync(&[]);
    drop(done);
    renewing.join().expect("it ends");
    once.expect(4);
    // And one that says it renews a hundred years from now is gone once it is let go.
    let free =
        json!({"spec": {"holderIdentity": "", "renewTime": "2126-01-01T00:00:00.000000Z"}}).to_string();
    member.kubectl(&["patch", "lease", "berth-clocks", "-n", "berth-system", "--type=merge", "-p", &free]);
    waiting.hear("holding the lease");
}

#[track_caller]
fn status(member: &Member) -> String {
    member.repo.git(&["cat-file", "-p", &format!("refs/berth/status/{}:status.yaml", member.name)])
}

/// `berth suspend` or `resume` of a member.
pub fn pause(member: &Member, args: &[&str]) -> Ran {
    let mut command = berth();
    command.args(args).args([
        "--target",
        "kube",
        "--context",
        ControlPlane::CONTEXT,
        "--fleet",
        &member.name,
    ]);
    Ran::of(command.arg("--kubeconfig").arg(member.plane.kubeconfig()))
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_suspended_member_changes_nothing_and_says_why_and_until_when() {
    let Some(member) = Member::new("paused") else { return };
    assert!(pause(&member, &["suspend", "--reason", "early"]).expect(6).err.contains("applied there yet"));
    member.publish(&[member.config_map("web", "one"), member.config_map("old", "one")]);
    member.sync(&[]).expect(0);
    pause(&member, &["suspend", "--reason", "disk full", "--until", "2126-01-01T00:00:00Z"]).expect(0);
    member.publish(&[member.config_map("web", "two"), member.config_map("new", "one")]);
    let ran = member.sync(&[]).expect(5);
    assert!(ran.out.starts_with("0 writes, 0 removals, 0 unchanged"), "{}", ran.out);
    assert!(ran.err.contains("suspended until 2126-01-01T00:00:00Z: disk full"), "{}", ran.err);
    assert_eq!(value(&member).as_deref(), Some("one"));
    assert!(member.get("configmap", "new").is_none() && member.get("configmap", "old").is_some());
    let said = status(&member);
    for part in [
        "sequence: 1",
        "reason: disk full",
        "2126-01-01T00:00:00Z",
        "name: new",
        "it differs from the folder",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }

    assert!(pause(&member, &["resume"]).expect(0).out.contains("is resumed"));
    member.sync(&[]).expect(0);
    assert_eq!(value(&member).as_deref(), Some("two"));
    assert!(member.get("configmap", "new").is_some() && member.get("configmap", "old").is_none());
    assert!(!status(&member).contains("suspended"), "{}", status(&member));
    assert!(pause(&member, &["resume"]).expect(0).out.contains("was not suspended"));
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_suspension_by_kubectl_holds_a_running_syncer_and_ends_by_itself() {
    let Some(member) = Member::new("ends") else { return };
    member.publish(&[member.config_map("web", "one")]);
    let running = Running::start(&member, &[]);
    running.hear("applied");
    let until = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(8);
    let annotate = |name: &str, value: &str| {
        let note = format!("berth.dev/{name}={value}");
        member.kubectl(&["annotate", "configmap", "berth-ends", "-n", "berth-system", &note]);
    };
    annotate("suspend", "under repair");
    running.hear("suspended: under repair");
    let edit = json!({"data": {"key": "by hand"}}).to_string();
    member.kubectl(&["patch", "configmap", "web", "-n", "ends", "--type=merge", "-p", &edit]);
    // Drift is said, and stays.
    eventually("the drift is reported", || status(&member).contains("left unchanged").then_some(()));
    assert_eq!(value(&member).as_deref(), Some("by hand"));
    annotate("suspend-until", &until.to_string());
    running.hear("going on");
    assert!(jiff::Timestamp::now() >= until, "not before its end");
    eventually("the drift is corrected", || (value(&member)? == "one").then_some(()));
    assert_eq!(running.stop(), 0);
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_workload_that_git_suspends_stays_as_it_is_and_others_go_on() {
    let Some(member) = Member::new("part") else { return };
    let of = |workload: &str, object: Json| annotated(object, "berth.dev/workload", workload);
    let halted = |object: Json| {
        let object = annotated(object, "berth.dev/suspend", "waiting for the vendor");
        annotated(object, "berth.dev/suspend-until", "2126-01-01T00:00:00Z")
    };
    member.publish(&[
        of("F/x/still", member.config_map("web", "one")),
        of("F/x/still", member.config_map("gone", "one")),
        of("F/x/moving", member.config_map("other", "one")),
    ]);
    member.sync(&[]).expect(0);
    member.publish(&[
        halted(of("F/x/still", member.config_map("web", "two"))),
        of("F/x/moving", member.config_map("other", "two")),
    ]);
    let ran = member.sync(&[]).expect(7);
    assert!(ran.out.starts_with("1 write, 0 removals"), "{}", ran.out);
    assert!(ran.err.contains("suspended until 2126-01-01T00:00:00Z: waiting for the vendor"), "{}", ran.err);
    assert_eq!(value(&member).as_deref(), Some("one"));
    assert!(member.get("configmap", "gone").is_some(), "nothing of a suspended workload is removed");
    assert_eq!(member.get("configmap", "other").expect("it is there")["data"]["key"], "two");
    let over = annotated(of("F/x/still", member.config_map("web", "two")), "berth.dev/suspend", "done");
    let over = annotated(over, "berth.dev/suspend-until", "2026-01-01T00:00:00Z");
    member.publish(&[over, of("F/x/moving", member.config_map("other", "two"))]);
    member.sync(&[]).expect(0);
    assert_eq!(value(&member).as_deref(), Some("two"));
    assert!(member.get("configmap", "gone").is_none());
}

#[test]
fn a_folder_is_suspended_by_a_file_beside_its_inventory() {
    let fleet = small_fleet();
    fleet.publish().expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("a");
    let place = format!("dir:{}", target.display());
    fleet.sync("a", &target, &[]).expect(0);
    let web = target.join("shop/ConfigMap_web.yaml");
    std::fs::write(&web, "by hand").expect("a file");
    let suspend = ["suspend", "--target", &place, "--reason", "on purpose"];
    run(&[&suspend[..], &["--until", "2020-01-01T00:00:00Z"]].concat()).expect(2);
    run(&suspend).expect(0);
    let ran = fleet.sync("a", &target, &[]).expect(5);
    assert!(ran.err.contains("suspended: on purpose"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&web).expect("a file"), "by hand");
    run(&["resume", "--target", &place]).expect(0);
    fleet.sync("a", &target, &[]).expect(0);
    assert_ne!(std::fs::read_to_string(&web).expect("a file"), "by hand");
}

/// Events about an object, as reason, type, count and message.
fn events(member: &Member, kind: &str, name: &str, namespace: &str) -> Vec<(String, String, u64, String)> {
    let about = format!("involvedObject.kind={kind},involvedObject.name={name}");
    let text = member.kubectl(&["get", "events", "-n", namespace, "--field-selector", &about, "-o", "json"]);
    let list: Json = serde_json::from_str(&text).expect("JSON");
    let text = |event: &Json, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let one = |event: &Json| {
        let count = event["count"].as_u64().unwrap_or_default();
        (text(event, "reason"), text(event, "type"), count, text(event, "message"))
    };
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter(|event| event["source"]["component"] == "berth").map(one).collect()
}

#[test]
#[ignore = "needs Kubernetes"]
fn events_tell_what_was_done_and_what_is_wrong_once_for_each_object_and_reason() {
    let Some(member) = Member::new("told") else { return };
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "bad", "namespace": "told"}, "data": {"key": "not base64: hunter2"}});
    member.kubectl(&["create", "configmap", "there", "-n", "told"]);
    let there = annotated(member.config_map("there", "one"), "berth.dev/take-over", "true");
    member.publish(&[member.config_map("web", "one"), there, secret]);
    let running = Running::start(&member, &[]);
    running.hear("applied");
    let of_set = eventually("the folder's event", || {
        events(&member, "ConfigMap", "berth-told", "berth-system").into_iter().find(|it| it.0 == "Applied")
    });
    assert_eq!((of_set.1.as_str(), of_set.3.as_str()), ("Normal", "sequence 1: 2 written, 0 removed"));
    let of_secret =
        eventually("the object's event", || events(&member, "Secret", "bad", "told").into_iter().next());
    assert_eq!((of_secret.0.as_str(), of_secret.1.as_str()), ("NotAsWanted", "Warning"));
    assert!(!of_secret.3.contains("hunter2"), "{}", of_secret.3);
    let taken =
        eventually("the take-over", || events(&member, "ConfigMap", "there", "told").into_iter().next());
    assert_eq!(taken.0, "TakenOver");
    // Rounds that say the same say it once.
    member.publish(&[member.config_map("web", "two"), member.config_map("there", "one")]);
    eventually("the next folder", || {
        let all = events(&member, "ConfigMap", "berth-told", "berth-system");
        all.into_iter().find(|it| it.0 == "Applied" && it.2 == 2 && it.3.starts_with("sequence 2: "))
    });
    assert_eq!(events(&member, "Secret", "bad", "told").len(), 1);
    assert_eq!(events(&member, "Secret", "bad", "told")[0].2, 1);
    assert_eq!(running.stop(), 0);
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_with_two_problems_has_one_event_which_further_rounds_leave() {
    let Some(member) = Member::new("twofold") else { return };
    let web = annotated(member.deployment("web", "example.com/web:1"), "berth.dev/drift", "report");
    member.publish(&[web, member.config_map("other", "one")]);
    let running = member.keep_in_sync(&["--health-timeout", "0"]);
    running.until("the first round", || member.status().contains("not healthy in time").then_some(()));
    member.patch_as("kubectl-edit", "deployment", "web", &json!({"spec": {"replicas": 2}}));
    let told = || events(&member, "Deployment", "web", "twofold");
    let drifted =
        |told: &Vec<(String, String, u64, String)>| told.iter().any(|it| it.3.contains("kubectl-edit"));
    let before = running.until("the event of the drift", || Some(told()).filter(drifted));
    assert!(member.status().contains("not healthy in time"), "{}", member.status());
    // Each correction is a round that says both problems again.
    for value in ["hand", "another hand"] {
        member.patch_as("kubectl-edit", "configmap", "other", &json!({"data": {"key": value}}));
        let is_corrected = || (member.get("configmap", "other")?["data"]["key"] == "one").then_some(());
        running.until("the correction", is_corrected);
    }
    assert_eq!(told(), before);
}

#[test]
#[ignore = "needs Kubernetes"]
fn events_can_be_switched_off_and_are_bounded_in_number() {
    let Some(member) = Member::new("mute") else { return };
    let bad = |index: usize| {
        let mut object = member.config_map(&format!("bad-{index:02}"), "one");
        object["data"] = json!({"key": ["no text"]});
        object
    };
    member.publish(&(0..40).map(bad).collect::<Vec<_>>());
    let all = || member.kubectl(&["get", "events", "-n", "mute", "-o", "name"]).lines().count();
    member.sync(&["--no-events"]).expect(7);
    assert_eq!(all(), 0);
    member.sync(&[]).expect(7);
    assert_eq!(all(), 25);
    let more = events(&member, "ConfigMap", "berth-mute", "berth-system");
    assert!(more.iter().any(|it| it.0 == "AndMore" && it.3 == "15 more are in the report"), "{more:?}");
}

#[test]
#[ignore = "needs Kubernetes"]
fn numbers_say_how_a_syncer_does() {
    let Some(member) = Member::new("numbers") else { return };
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "key", "namespace": "numbers"}, "stringData": {"password": "hunter2"}});
    member.publish(&[member.config_map("web", "one"), member.config_map("old", "one"), secret]);
    let running = Running::start(&member, &["--metrics", "0"]);
    let line: Json = serde_json::from_str(&running.hear("serving /metrics")).expect("JSON");
    let address = line["address"].as_str().expect("an address").to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    running.hear("applied");
    let says = |what: &str| page(&address, "/metrics").lines().any(|line| line == what);
    let see = |what: &str| eventually(what, || says(what).then_some(()));
    for what in [
        "berth_sync_objects{state=\"applied\"} 3",
        "berth_sync_sequence 1",
        "berth_sync_writes_total 3",
        "berth_sync_lease_held 1",
        "berth_sync_suspended 0",
        "berth_sync_corrections_total 0",
    ] {
        see(what);
    }
    assert!(page(&address, "/healthz").starts_with("HTTP/1.1 200 "));
    assert!(page(&address, "/readyz").starts_with("HTTP/1.1 200 "));
    let edit = json!({"data": {"key": "by hand"}}).to_string();
    member.kubectl(&["patch", "configmap", "web", "-n", "numbers", "--type=merge", "-p", &edit]);
    see("berth_sync_corrections_total 1");
    member.publish(&[member.config_map("web", "one")]);
    see("berth_sync_removals_total 2");
    see("berth_sync_sequence 2");
    member.repo.git(&["update-ref", "-d", "refs/berth/clusters/numbers"]);
    eventually("it fails", || page(&address, "/readyz").contains("the last round failed").then_some(()));
    let whole = page(&address, "/metrics");
    assert!(!whole.contains("berth_sync_failures_total{reason=\"folder\"} 0"), "{whole}");
    assert!(!whole.contains("hunter2") && whole.contains("berth_sync_round_seconds_count"), "{whole}");
    assert_eq!(running.stop(), 0);
}

#[test]
#[ignore = "needs Kubernetes"]
fn the_status_is_in_the_cluster_too_and_in_no_repository_where_that_is_not_wanted() {
    let Some(member) = Member::new("shown") else { return };
    member.kubectl(&["create", "configmap", "there", "-n", "shown"]);
    let there = annotated(member.config_map("there", "one"), "berth.dev/take-over", "true");
    member.publish(&[member.config_map("web", "one"), there.clone()]);
    member.sync(&["--no-report"]).expect(0);
    let refs = member.repo.git(&["for-each-ref", "--format=%(refname)", "refs/berth/status/"]);
    assert_eq!(refs, "");
    let shown = || -> Json {
        let args = ["get", "configmap", "berth-shown-status", "-n", "berth-system", "-o", "json"];
        serde_json::from_str(&member.kubectl(&args)).expect("JSON")
    };
    let first = shown();
    assert_eq!((&first["data"]["sequence"], &first["data"]["problems"]), (&json!("1"), &json!("0")));
    let text = first["data"]["status.yaml"].as_str().expect("a text");
    assert!(text.contains("and berth owns it now") && text.contains("name: there"), "{text}");
    // A round that changes nothing writes nothing.
    member.sync(&[]).expect(0);
    let second = shown();
    member.sync(&[]).expect(0);
    assert_eq!(shown()["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
    assert!(status(&member).contains("objects: 2"));
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_status_names_so_many_problems_and_counts_the_others() {
    let Some(member) = Member::new("many") else { return };
    let bad = |index: usize| {
        let mut object = member.config_map(&format!("bad-{index:03}"), "one");
        object["data"] = json!({"key": ["no text"]});
        object
    };
    member.publish(&(0..130).map(bad).collect::<Vec<_>>());
    member.sync(&["--no-events"]).expect(7);
    let said = status(&member);
    assert_eq!(said.matches("name: bad-").count(), 100, "{said}");
    assert!(said.contains("leftOut: 30"), "{said}");
}

#[test]
fn a_status_can_go_to_another_repository_than_the_folder_is_from() {
    let (fleet, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    fleet.publish().expect(0);
    let statuses = crate::support::Repo::new();
    let mut command = berth();
    command.args([
        "sync",
        "--once",
        "--cluster",
        "a",
        "--remote",
        fleet.arg(),
        "--status-remote",
        statuses.arg(),
    ]);
    command.arg("--repo").arg(folder.path().join("copy"));
    command.arg("--target").arg(format!("dir:{}", folder.path().join("a").display()));
    Ran::of(&mut command).expect(0);
    assert!(statuses.git(&["cat-file", "-p", "refs/berth/status/a:status.yaml"]).contains("objects: 2"));
    assert_eq!(fleet.git(&["for-each-ref", "refs/berth/status/"]), "");
    Ran::of(&mut command).expect(0);
}

#[test]
fn a_daemon_reads_reports_from_another_repository_and_goes_on_without_it() {
    let (fleet, folder) = (small_fleet(), tempfile::tempdir().expect("a folder"));
    let statuses = crate::support::Repo::new();
    let remotes = ["--remote", fleet.arg(), "--status-remote", statuses.arg()];
    let pass = || {
        let mut command = berth();
        command.args(["run", "--once", "--repo"]).arg(folder.path().join("hub")).args(remotes);
        Ran::of(&mut command)
    };
    pass().expect(0);
    for member in ["a", "b", "c"] {
        let mut command = berth();
        command.args(["sync", "--once", "--cluster", member]).args(remotes);
        command.arg("--repo").arg(folder.path().join(member).join("copy"));
        command.arg("--target").arg(format!("dir:{}", folder.path().join(member).join("target").display()));
        Ran::of(&mut command).expect(0);
    }
    pass().expect(0);
    let totals = || {
        let report = fleet.git(&["show", "refs/berth/report:report.json"]);
        let report: Json = serde_json::from_str(&report).expect("JSON");
        report["totals"]["in sync"].clone()
    };
    assert_eq!(totals(), 3);
    assert_eq!(fleet.git(&["for-each-ref", "refs/berth/status/"]), "", "nobody wrote there");
    // Without the reports, edits go on, and the last reports count.
    let away = folder.path().join("away");
    std::fs::rename(statuses.path(), &away).expect("a new name");
    fleet.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    fleet.commit("two");
    let ran = pass().expect(0);
    assert!(ran.out.contains("published"), "{}", ran.out);
    assert!(
        ran.err.contains("the members' reports could not be fetched, so the last ones count"),
        "{}",
        ran.err
    );
    let ran = pass().expect(0);
    assert!(ran.err.contains("could not be fetched"), "said until it is over: {}", ran.err);
    std::fs::rename(&away, statuses.path()).expect("the name");
    let ran = pass().expect(0);
    assert!(!ran.err.contains("could not be fetched"), "{}", ran.err);
}
