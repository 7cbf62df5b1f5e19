//! Traces and numbers arrive at a collector of OpenTelemetry, and one that is away holds nobody up.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::daemon::Daemon;
use crate::support::page::page;
use crate::support::ports::free_port;
use crate::support::programs::{made, skipped};
use crate::support::wait::until;
use crate::support::{Ran, Repo, berth, config_map, hermetic, small_fleet};

const SECRET: &str = "c29tZXRoaW5nIHNlY3JldA";

fn program() -> Option<&'static PathBuf> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(|| made(&["ready", "collector"], "collector")) {
        Ok(folder) => Some(folder),
        Err(why) => {
            skipped("a collector", why);
            None
        }
    }
}

/// A collector at work, until it is dropped.
struct Collector {
    child: Child,
    output: tempfile::NamedTempFile,
}

impl Collector {
    fn start(folder: &std::path::Path, port: u16) -> Collector {
        let output = tempfile::NamedTempFile::new().expect("a file");
        let config = format!(
            "yaml:{{receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}, \
             exporters: {{lines: {{}}}}, service: {{telemetry: {{metrics: {{level: none}}}}, pipelines: \
             {{traces: {{receivers: [otlp], exporters: [lines]}}, metrics: {{receivers: [otlp], exporters: [lines]}}}}}}}}"
        );
        let mut command = hermetic(folder.join("collector").to_str().expect("a text path"));
        command.args(["--config", &config]).stdin(Stdio::null()).stderr(Stdio::null());
        let child = command.stdout(output.reopen().expect("a file")).spawn().expect("it runs");
        until("the collector listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Collector { child, output }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.output.path()).expect("its output")
    }

    /// All that arrived in whole lines, below this key.
    fn arrived(&self, key: &str) -> Vec<Json> {
        let text = self.text();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
        lines.flat_map(|line| line[key].as_array().cloned().unwrap_or_default()).collect()
    }

    fn spans(&self) -> Vec<Json> {
        let arrived = self.arrived("resourceSpans");
        let spans = arrived.iter().map(|one| one["scopeSpans"][0]["spans"].as_array().expect("spans"));
        spans.flatten().cloned().collect()
    }

    /// Waits for a span of this name whose attributes hold this.
    #[track_caller]
    fn span(&self, name: &str, key: &str, value: &str) -> Json {
        let mut found = None;
        until(&format!("a span `{name}` with {key} {value}"), || {
            found = self.spans().into_iter().find(|span| span["name"] == name && said(span, key) == value);
            found.is_some()
        });
        found.expect("it was found")
    }

    /// The newest value of a number with this label.
    fn number(&self, name: &str, label: &str) -> Option<i64> {
        let arrived = self.arrived("resourceMetrics");
        let metrics = arrived.last()?["scopeMetrics"][0]["metrics"].as_array()?;
        let metric = metrics.iter().find(|metric| metric["name"] == name)?;
        let data = if metric.get("sum").is_some() { &metric["sum"] } else { &metric["gauge"] };
        let points = data["dataPoints"].as_array()?;
        let point = points.iter().find(|point| point.to_string().contains(&format!("\"{label}\"")))?;
        point["asInt"].as_str()?.parse().ok()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An attribute of a span or a resource, as text.
fn said(of: &Json, key: &str) -> String {
    let found = of["attributes"].as_array().into_iter().flatten().find(|one| one["key"] == key);
    let value = found.and_then(|one| one["value"].as_object()?.values().next().cloned());
    value.map_or(String::new(), |value| value.as_str().map_or(value.to_string(), str::to_owned))
}

fn edit(repo: &Repo, value: &str) -> String {
    repo.write("apps/web.yaml", config_map("web", value, "{clusterSelector: {}}"));
    repo.commit(value)
}

fn headers() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), format!("authorization=Bearer {SECRET}\n")).expect("a file");
    file
}

#[test]
#[ignore = "needs a collector"]
fn a_daemons_passes_and_numbers_arrive_at_a_real_collector() {
    let Some(folder) = program() else { return };
    let port = free_port();
    let collector = Collector::start(folder, port);
    let (repo, headers) = (small_fleet(), headers());
    let numbers = free_port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let daemon = Daemon::start_with_env(
        &["--repo", repo.arg(), "--metrics", &numbers.to_string(), "--otlp-endpoint", &endpoint],
        &[
            ("OTEL_METRIC_EXPORT_INTERVAL", "200"),
            ("OTEL_SERVICE_NAME", "fleet-daemon"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=it,berth.fleet=harbour"),
            ("BERTH_OTLP_HEADERS_FILE", headers.path().to_str().expect("a text path")),
        ],
    );
    let pass = collector.span("pass", "berth.sequence", "1");
    assert_eq!(said(&pass, "berth.result"), "published");
    assert_eq!(said(&pass, "berth.source"), repo.id("HEAD"));
    assert_eq!(said(&pass, "berth.commit"), repo.id("berth/rendered"));
    let steps: Vec<Json> =
        collector.spans().into_iter().filter(|span| span["parentSpanId"] == pass["spanId"]).collect();
    let names: Vec<_> = steps.iter().filter_map(|step| step["name"].as_str()).collect();
    for name in ["reading the current state", "reading the fleet", "rendering objects"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(steps.iter().all(|step| step["traceId"] == pass["traceId"]));
    let resource = collector.arrived("resourceSpans")[0]["resource"].clone();
    let wanted =
        [("service.name", "fleet-daemon"), ("berth.fleet", "harbour"), ("deployment.environment", "it")];
    for (key, value) in wanted {
        assert_eq!(said(&resource, key), value);
    }
    // A source that cannot be read: an error of the fleet, and a pass all the same.
    repo.write("apps/broken.yaml", "apiVersion: [");
    repo.commit("broken");
    let said_errors = |span: &Json| said(span, "berth.errors") != "0";
    until("a pass with errors", || {
        collector.spans().iter().any(|span| span["name"] == "pass" && said_errors(span))
    });
    // The numbers are those of the page.
    let shown = |line: &str| page(&format!("127.0.0.1:{numbers}"), "/metrics").contains(line);
    until("the numbers of the page", || {
        let published = collector.number("berth_run_passes", "published");
        published.is_some_and(|count| {
            count > 0 && shown(&format!("berth_run_passes_total{{result=\"published\"}} {count}\n"))
        }) && collector.number("berth_run_problems", "error") == Some(1)
    });
    // Nothing is said at a look that finds nothing to do.
    let (code, log) = daemon.stop_with_log();
    assert_eq!(code, 0);
    assert!(!log.contains(SECRET) && !collector.text().contains(SECRET), "{log}");
}

#[test]
#[ignore = "needs a collector"]
fn a_collector_that_is_away_holds_nobody_up_and_gets_what_it_missed() {
    let Some(folder) = program() else { return };
    let port = free_port();
    let repo = small_fleet();
    let endpoint = format!("http://127.0.0.1:{port}");
    let daemon = Daemon::start_with_env(
        &["--repo", repo.arg(), "--otlp-endpoint", &endpoint],
        &[("OTEL_METRIC_EXPORT_INTERVAL", "200")],
    );
    daemon.wait_for(&["telemetry is not delivered"]);
    for value in ["two", "three"] {
        edit(&repo, value);
        let source = repo.id("HEAD");
        until("it is published", || {
            let processed = Ran::of(hermetic("git").current_dir(repo.path()).args([
                "log",
                "-1",
                "--format=%B",
                "berth/rendered",
            ]));
            processed.out.contains(&source)
        });
    }
    let collector = Collector::start(folder, port);
    collector.span("pass", "berth.sequence", "3");
    collector.span("pass", "berth.sequence", "1");
    let lines = daemon.lines_until(&["the collector takes telemetry again"]);
    let warnings = lines.iter().filter(|line| line.contains("telemetry is not delivered")).count();
    assert_eq!(warnings, 0, "one warning for one outage: {lines:?}");
    assert!(lines.last().is_some_and(|line| line.contains("\"lost_spans\":0")), "{lines:?}");
    // One that takes connections and never answers does not keep the process from its end.
    drop(collector);
    let _deaf = std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port again");
    edit(&repo, "four");
    let begun = Instant::now();
    assert_eq!(daemon.stop(), 0);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
#[ignore = "needs a collector"]
fn a_members_rounds_arrive_and_failed_ones_say_why() {
    let Some(folder) = program() else { return };
    let port = free_port();
    let collector = Collector::start(folder, port);
    let repo = small_fleet();
    repo.publish().expect(0);
    let target = tempfile::tempdir().expect("a folder");
    let target = format!("dir:{}", target.path().display());
    let endpoint = format!("http://127.0.0.1:{port}");
    let mut sync = berth();
    sync.args(["sync", "--cluster", "a", "--target", &target, "--interval", "1", "--repo", repo.arg()]);
    sync.args(["--otlp-endpoint", &endpoint]).env("OTEL_METRIC_EXPORT_INTERVAL", "200");
    let mut member = sync.stderr(Stdio::null()).stdout(Stdio::null()).spawn().expect("berth starts");
    let round = collector.span("round", "berth.result", "done");
    assert_ne!(said(&round, "berth.written"), "0");
    let names = || -> Vec<Json> {
        let steps = collector.spans().into_iter().filter(|span| span["parentSpanId"] == round["spanId"]);
        steps.map(|step| step["name"].clone()).collect()
    };
    for name in ["reading the folder", "reading the live objects", "applying objects"] {
        assert!(names().contains(&name.into()), "{name} in {:?}", names());
    }
    let resource = collector.arrived("resourceSpans")[0]["resource"].clone();
    assert_eq!(said(&resource, "berth.cluster"), "a");
    repo.git(&["update-ref", "-d", "refs/berth/clusters/a"]);
    let failed = collector.span("round", "berth.result", "failed");
    assert_eq!(failed["status"]["code"], 2);
    assert!(failed["status"]["message"].as_str().is_some_and(|why| !why.is_empty()), "{failed}");
    until("the member's numbers", || {
        collector.number("berth_sync_rounds", "failed").is_some_and(|count| count > 0)
    });
    let _ = member.kill();
    let _ = member.wait();
}

#[test]
fn what_is_not_fit_is_refused_at_the_start_without_its_secret() {
    let (repo, headers) = (small_fleet(), headers());
    let file = headers.path().to_str().expect("a text path");
    let started = |endpoint: &str| {
        let args = ["run", "--repo", repo.arg(), "--otlp-endpoint", endpoint, "--otlp-headers-file", file];
        Ran::of(berth().args(args))
    };
    for (endpoint, why) in [("otel:4317", "is not fit"), ("http://otel.example.com:4318", "over `https`")] {
        let ran = started(endpoint).expect(2);
        assert!(ran.err.contains(why) && !ran.err.contains(SECRET), "{}", ran.err);
    }
}
