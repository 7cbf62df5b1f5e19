//! The metrics, work and logs of a running command. Exports the metrics and work on a page for Prometheus, and to an
//! OpenTelemetry collector, if requested. Logs go to stderr, plain for people, JSON for machines.
//!
//! [`export`]: converts passes and rounds to spans, with their steps, and the thread that sends, so that no work waits.

mod export;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::{Duration, SystemTime};

use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use crate::process::shell::{Environment, Stream};
use berth_base::progress::Progress;
use berth_hub::daemon::PassEnd;
use berth_member::sync::sync_loop;
use berth_telemetry::Page;
use berth_telemetry::otlp::{Collector, CollectorSettingError, Span};
use export::Sender;

/// The number of traces that may wait for the thread. Further ones are dropped and counted.
const MOST_WAITING: usize = 64;
/// The time that an ending process leaves for unsent data.
const LAST_CHANCE: Duration = Duration::from_secs(2);
/// The interval of sending metrics.
const INTERVAL: Duration = Duration::from_secs(60);

/// The collector of OpenTelemetry
#[derive(Debug, clap::Args)]
pub(crate) struct TelemetryArgs {
    /// Send traces and numbers to this collector of OpenTelemetry, by OTLP over HTTP, such as `https://otel.example.com:4318`
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp_endpoint: Option<String>,
    /// File with the headers of requests to the collector, `name=value` on each line
    #[arg(long, value_name = "FILE", env = "BERTH_OTLP_HEADERS_FILE")]
    otlp_headers_file: Option<PathBuf>,
}

impl TelemetryArgs {
    pub fn is_wanted(&self) -> bool {
        let is_off = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        !is_off && self.otlp_endpoint.as_ref().is_some_and(|endpoint| !endpoint.is_empty())
    }

    /// Starts to send the metrics of `page` and the work of this process. `progress` receives the stages of the work;
    /// `about` describes the process.
    pub fn start(
        &self,
        page: Page,
        progress: Progress,
        about: &[(&str, &str)],
    ) -> Result<Option<Telemetry>, CommandError> {
        let Some(endpoint) = self.otlp_endpoint.as_ref().filter(|_| self.is_wanted()) else {
            return Ok(None);
        };
        if let Some(protocol) = variable("OTEL_EXPORTER_OTLP_PROTOCOL").filter(|asked| asked != "http/json") {
            warn!(protocol, "berth only sends `http/json`, which collectors accept at port 4318");
        }
        let unfit = |error: CollectorSettingError| CommandError::usage(error.to_string());
        let collector = Collector::new(endpoint, &self.headers()?).map_err(unfit)?;
        info!(address = collector.address(), "sending traces and numbers to a collector");
        let (queue, waiting) = sync_channel(MOST_WAITING);
        let (ends, ended) = channel::<()>();
        let sender = Sender::new(collector, resource(about), page);
        let lost = sender.lost();
        let thread = std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            let _ends = ends;
            sender.run(&waiting, interval());
        });
        thread.map_err(|error| CommandError::io("starting to send telemetry", &error))?;
        Ok(Some(Telemetry { progress, queue: Some(queue), ended, lost }))
    }

    /// Returns the headers from the file and from OpenTelemetry's variable.
    fn headers(&self) -> Result<Vec<(String, String)>, CommandError> {
        let mut headers = Vec::new();
        if let Some(file) = &self.otlp_headers_file {
            let text = std::fs::read_to_string(file)
                .map_err(|error| CommandError::io(format!("reading {}", file.display()), &error))?;
            headers.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(pair));
        }
        let variable = variable("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
        headers.extend(listed(&variable));
        Ok(headers)
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn interval() -> Duration {
    let told = variable("OTEL_METRIC_EXPORT_INTERVAL").and_then(|milliseconds| milliseconds.parse().ok());
    told.map_or(INTERVAL, |milliseconds: u64| Duration::from_millis(milliseconds.max(100)))
}

fn pair(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    (name.trim().to_owned(), value.trim().to_owned())
}

/// Parses the pairs of a variable: separated by commas, with `%2C` for a comma.
fn listed(text: &str) -> impl Iterator<Item = (String, String)> {
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    parts.map(pair).map(|(name, value)| (name, decoded(&value)))
}

/// Decodes `%XX`.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits =
            after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the process's attributes in OpenTelemetry's names. OpenTelemetry's variables override berth's defaults.
fn resource(about: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = [("service.name", "berth"), ("service.version", env!("CARGO_PKG_VERSION"))];
    let own = own.iter().chain(about).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut resource: std::collections::BTreeMap<String, String> = own.collect();
    resource.extend(listed(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default()));
    resource.extend(variable("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name)));
    resource.into_iter().collect()
}

/// Sends until it is dropped.
#[derive(Debug)]
pub(crate) struct Telemetry {
    progress: Progress,
    queue: Option<SyncSender<Vec<Span>>>,
    ended: Receiver<()>,
    lost: export::Lost,
}

impl Telemetry {
    /// Records that a stage of the work begins.
    pub fn begin(&self, name: &'static str) {
        self.progress.begin(name);
    }

    /// Sends a pass, except a look that found nothing to do.
    pub fn passed(&self, end: PassEnd<'_>, took: Duration) {
        let beginnings = self.progress.take_beginnings();
        if let Some(end) = export::of_pass(end) {
            self.send(export::trace(end, &beginnings, took, SystemTime::now()));
        }
    }

    /// Sends a member's round, if it changed or reported something.
    pub fn synced(&self, round: &sync_loop::Sync, took: Duration) {
        let beginnings = self.progress.take_beginnings();
        if let Some(end) = export::of_round(round) {
            self.send(export::trace(end, &beginnings, took, SystemTime::now()));
        }
    }

    fn send(&self, trace: Vec<Span>) {
        let count = trace.len();
        let Some(queue) = &self.queue else { return };
        if queue.try_send(trace).is_err() {
            self.lost.add(count);
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        drop(self.queue.take());
        let _ = self.ended.recv_timeout(LAST_CHANCE);
    }
}

/// The page of numbers
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// Serve /metrics, /healthz and /readyz at this address; a port alone listens on this machine only
    #[arg(long, value_name = "ADDR", env = "BERTH_METRICS", value_parser = berth_http::listener::address)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    telemetry: TelemetryArgs,
}

impl MetricsArgs {
    pub fn address(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Returns a progress handle, which remembers stages if a collector is set.
    pub fn progress(&self) -> Progress {
        if self.telemetry.is_wanted() { Progress::remembering() } else { Progress::default() }
    }

    /// Makes a meter whose metrics are served or sent while the process runs, if requested.
    pub fn meter<M>(
        &self,
        progress: Progress,
        about: &[(&str, &str)],
        make: impl FnOnce() -> (M, Page),
    ) -> Result<(Option<M>, Option<Telemetry>), CommandError> {
        if self.metrics.is_none() && !self.telemetry.is_wanted() {
            return Ok((None, None));
        }
        let (meter, page) = make();
        let telemetry = self.telemetry.start(page.clone(), progress, about)?;
        if let Some(address) = self.metrics {
            let listening = |error| CommandError::io(format!("listening at {address}"), &error);
            let address = page.serve(address).map_err(listening)?;
            info!(%address, "serving /metrics, /healthz and /readyz");
        }
        Ok((Some(meter), telemetry))
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Format of log lines
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "auto", env = "BERTH_LOG_FORMAT")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// Text on a terminal, JSON elsewhere
    Auto,
    Text,
    Json,
}

/// Starts logging. `BERTH_LOG` overrides what is logged, in tracing's filter language.
pub fn start_logs(args: &LogArgs, verbose: u8, ui: &Ui) -> Logging {
    let level = match verbose {
        // kube's client logs nothing, because berth reports each failed request itself, once.
        0 => "berth=info,warn,kube_client=off",
        1 => "berth=debug,info",
        _ => "trace",
    };
    let named =
        ui.environment().get("BERTH_LOG").and_then(|filter| EnvFilter::try_new(filter.to_str()?).ok());
    let filter = named.unwrap_or_else(|| EnvFilter::new(level));
    let terminal = ui.streams().err_is_terminal;
    let json = args.log_format == LogFormat::Json || (args.log_format == LogFormat::Auto && !terminal);
    let err = ui.streams().err.clone();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || LogLines(err.clone()))
        .with_ansi(ui.colours() && terminal);
    let lines: Box<dyn tracing::Subscriber + Send + Sync> =
        if json { Box::new(builder.json().flatten_event(true).finish()) } else { Box::new(builder.finish()) };
    match ui.environment() {
        // A second start in one process has no effect.
        Environment::Process => {
            let _ = tracing::subscriber::set_global_default(lines);
            Logging(None)
        }
        Environment::Given(_) => Logging(Some(tracing::subscriber::set_default(lines))),
    }
}

/// Logs until it is dropped, unless the process logs already.
#[must_use]
#[derive(Debug)]
pub struct Logging(#[expect(dead_code, reason = "it is dropped")] Option<tracing::subscriber::DefaultGuard>);

/// The standard error of the command.
struct LogLines(Stream);

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_opentelemetry_writes_them() {
        let found: Vec<_> = listed("authorization=Basic%20eA%3D%3D, a = b=c ,,broken,d=%zz%2").collect();
        let wanted = [("authorization", "Basic eA=="), ("a", "b=c"), ("broken", ""), ("d", "%zz%2")];
        assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
