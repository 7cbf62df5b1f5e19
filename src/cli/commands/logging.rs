//! Logs of the long-running commands: to stderr, plain for people, JSON for machines.

use tracing_subscriber::EnvFilter;

use super::ui::Ui;

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
pub fn start(args: &LogArgs, verbose: u8, ui: &Ui) {
    use std::io::IsTerminal as _;
    let level = match verbose {
        // What goes wrong with a request, berth says in its own words and once.
        0 => "berth=info,warn,kube_client=off",
        1 => "berth=debug,info",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("BERTH_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let terminal = std::io::stderr().is_terminal();
    let json = args.log_format == LogFormat::Json || (args.log_format == LogFormat::Auto && !terminal);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(ui.colours() && terminal);
    // A second start in one process (tests, demo) keeps the first.
    let _ = if json { builder.json().flatten_event(true).try_init() } else { builder.try_init() };
}
