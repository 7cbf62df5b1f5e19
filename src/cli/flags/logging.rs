//! Logs of the long-running commands: to stderr, plain for people, JSON for machines.

use std::io::Write;
use std::sync::PoisonError;

use tracing_subscriber::EnvFilter;

use crate::output::ui::Ui;
use crate::process::shell::{Environment, Stream};

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
pub fn start(args: &LogArgs, verbose: u8, ui: &Ui) -> Logging {
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
        .with_writer(move || Lines(err.clone()))
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
struct Lines(Stream);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}
