//! The command line: one file or folder per command, which parses arguments, calls the library and prints.
//!
//! Commands that are one idea are in one file: [`check`] has `validate` and `test`, [`evaluate`] has `decide` and `render`,
//! [`history`] has `log` and `why`, [`mark`] has `label`, `taint`, `cordon` and `uncordon`, [`reference`] has `schema`,
//! `completions` and `man`, [`start`] has `init` and `demo`, [`suspend`] has `suspend` and `resume`, [`verify`] has `verify` and
//! `public-key`.
//!
//! `federate`, `enable`, `disable` and `orphan` are KubeFed's own commands and use its dialect. All others use the
//! table of dialects.

mod bundle;
mod check;
mod describe;
mod diff;
mod disable;
mod doctor;
mod enable;
mod evaluate;
mod explain;
mod federate;
mod history;
mod import;
mod install;
mod join;
mod mark;
mod orphan;
mod plan;
mod reference;
mod review;
mod rollout;
mod run;
mod simulate;
mod site;
mod start;
mod status;
mod suspend;
mod sync;
mod ui;
mod unjoin;
mod vendor;
mod verify;
mod wait;

use berth_base::backoff::pace;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::output::ui::{ColourChoice, Ui, write_error};
use crate::process::exit::{self, Exit, Outcome};
use crate::process::exit_codes;
use crate::process::shell::Shell;

/// Place workloads on a fleet of Kubernetes clusters, with a Git repository as the only hub
#[derive(Debug, Parser)]
#[command(name = "berth", version, after_long_help = Exit::HELP, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print results and problems only
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Log more; twice for all
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Use of colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColourChoice,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(start::DemoArgs),
    Init(start::InitArgs),
    Validate(check::ValidateArgs),
    Test(check::TestArgs),
    Decide(evaluate::DecideArgs),
    Explain(explain::ExplainArgs),
    Describe(describe::DescribeArgs),
    Render(evaluate::RenderArgs),
    Plan(plan::PlanArgs),
    Review(Box<review::ReviewArgs>),
    Simulate(simulate::SimulateArgs),
    Diff(diff::DiffArgs),
    Why(history::WhyArgs),
    Log(history::LogArgs),
    Rollout(Box<rollout::RolloutArgs>),
    Run(Box<run::RunArgs>),
    Sync(Box<sync::SyncArgs>),
    Suspend(suspend::SuspendArgs),
    Resume(suspend::ResumeMemberArgs),
    Status(status::StatusArgs),
    Site(site::SiteArgs),
    Ui(ui::UiArgs),
    Map(site::MapArgs),
    Wait(wait::WaitArgs),
    Verify(verify::VerifyArgs),
    PublicKey(verify::PublicKeyArgs),
    Doctor(Box<doctor::DoctorArgs>),
    Bundle(bundle::BundleArgs),
    Import(import::ImportArgs),
    Federate(federate::FederateArgs),
    Vendor(vendor::VendorArgs),
    Join(Box<join::JoinArgs>),
    Install(Box<install::InstallArgs>),
    Unjoin(unjoin::UnjoinArgs),
    Enable(enable::EnableArgs),
    Disable(disable::DisableArgs),
    Orphan(orphan::OrphanArgs),
    Label(mark::LabelArgs),
    Taint(mark::TaintArgs),
    Cordon(mark::CordonArgs),
    Uncordon(mark::UncordonArgs),
    Schema(reference::SchemaArgs),
    Completions(reference::CompletionsArgs),
    Man(reference::ManArgs),
}

/// Runs the process's command line.
pub fn main() -> ExitCode {
    exit::report_panics();
    if let Some(share) = std::env::var_os(pace::VARIABLE).and_then(|share| share.into_string().ok()) {
        pace::set(&share);
    }
    // If a shell asks for completions, this answers and ends the process.
    clap_complete::CompleteEnv::with_factory(command_line).var(crate::flags::names::COMPLETE).complete();
    ExitCode::from(run(&Shell::of_process()))
}

/// Runs one command and returns its exit code. A panic gives the exit code for a bug.
pub fn run(shell: &Shell) -> u8 {
    exit::guarded(|| run_command_line(shell)).code()
}

fn run_command_line(shell: &Shell) -> Exit {
    let cli = match parse(shell) {
        Ok(cli) => cli,
        Err(error) => return show_usage(&error, shell),
    };
    let ui = Ui::new(shell, cli.quiet, cli.color);
    let exit = match dispatch(&cli, &ui) {
        Ok(exit) => exit,
        Err(error) => {
            ui.error(&error);
            error.exit
        }
    };
    match ui.write_failure() {
        Some(error) => {
            ui.error(&error);
            exit.worst(error.exit)
        }
        None => exit,
    }
}

fn parse(shell: &Shell) -> Result<Cli, clap::Error> {
    let arguments = shell.environment.with_flags(shell.arguments.clone(), command_line);
    Cli::try_parse_from(std::iter::once(OsString::from("berth")).chain(arguments))
}

/// Prints requested help, or the error in the arguments.
fn show_usage(error: &clap::Error, shell: &Shell) -> Exit {
    let streams = &shell.streams;
    let text = |terminal: bool| {
        let plain = shell.environment.get("NO_COLOR").is_some_and(|value| !value.is_empty()) || !terminal;
        let text = error.render();
        if plain { text.to_string() } else { text.ansi().to_string() }
    };
    if error.use_stderr() {
        let ui = Ui::new(shell, false, ColourChoice::Auto);
        ui.error(&exit_codes::of_usage(error));
        return Exit::Usage;
    }
    match streams.print(&text(streams.out_is_terminal)) {
        Err(problem) if problem.kind() != ErrorKind::BrokenPipe => {
            let error = write_error(&problem);
            Ui::new(shell, false, ColourChoice::Auto).error(&error);
            error.exit
        }
        _ => Exit::Done,
    }
}

fn dispatch(cli: &Cli, ui: &Ui) -> Outcome {
    match &cli.command {
        Command::Demo(args) => start::cmd_demo(args, ui),
        Command::Init(args) => start::cmd_init(args, ui),
        Command::Validate(args) => check::cmd_validate(args, ui),
        Command::Test(args) => check::cmd_test(args, ui),
        Command::Decide(args) => evaluate::cmd_decide(args, ui),
        Command::Explain(args) => explain::cmd_explain(args, ui),
        Command::Describe(args) => describe::cmd_describe(args, ui),
        Command::Render(args) => evaluate::cmd_render(args, ui),
        Command::Plan(args) => plan::cmd_plan(args, ui, cli.verbose),
        Command::Review(args) => review::cmd_review(args, ui, cli.verbose),
        Command::Simulate(args) => simulate::cmd_simulate(args, ui),
        Command::Diff(args) => diff::cmd_diff(args, ui, cli.verbose),
        Command::Why(args) => history::cmd_why(args, ui),
        Command::Log(args) => history::cmd_log(args, ui),
        Command::Rollout(args) => rollout::cmd_rollout(args, ui),
        Command::Run(args) => run::cmd_run(args, ui, cli.verbose),
        Command::Sync(args) => sync::cmd_sync(args, ui, cli.verbose),
        Command::Suspend(args) => suspend::cmd_suspend(args, ui),
        Command::Resume(args) => suspend::cmd_resume(args, ui),
        Command::Status(args) => status::cmd_status(args, ui),
        Command::Site(args) => site::cmd_site(args, ui),
        Command::Ui(args) => ui::cmd_ui(args, ui),
        Command::Map(args) => site::cmd_map(args, ui),
        Command::Wait(args) => wait::cmd_wait(args, ui),
        Command::Verify(args) => verify::cmd_verify(args, ui),
        Command::PublicKey(args) => verify::cmd_public_key(args, ui),
        Command::Doctor(args) => doctor::cmd_doctor(args, ui),
        Command::Bundle(args) => bundle::cmd_bundle(args, ui),
        Command::Import(args) => import::cmd_import(args, ui),
        Command::Federate(args) => federate::cmd_federate(args, ui),
        Command::Vendor(args) => vendor::cmd_vendor(args, ui),
        Command::Join(args) => join::cmd_join(args, ui),
        Command::Install(args) => install::cmd_install(args, ui),
        Command::Unjoin(args) => unjoin::cmd_unjoin(args, ui),
        Command::Enable(args) => enable::cmd_enable(args, ui),
        Command::Disable(args) => disable::cmd_disable(args, ui),
        Command::Orphan(args) => orphan::cmd_orphan(args, ui),
        Command::Label(args) => mark::cmd_label(args, ui),
        Command::Taint(args) => mark::cmd_taint(args, ui),
        Command::Cordon(args) => mark::cmd_cordon(args, ui),
        Command::Uncordon(args) => mark::cmd_uncordon(args, ui),
        Command::Schema(args) => reference::cmd_schema(args, ui),
        Command::Completions(args) => reference::cmd_completions(args, ui),
        Command::Man(args) => reference::cmd_man(args, ui),
    }
}

/// Returns the whole command line, for help, manual pages and completions.
pub(crate) fn command_line() -> clap::Command {
    Cli::command()
}
