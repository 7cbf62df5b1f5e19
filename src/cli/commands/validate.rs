//! `berth validate`: reports every problem of a fleet.

use std::path::PathBuf;

use serde::Serialize;

use crate::flags::fleet::{self, FleetArgs, RepoArg};
use crate::output::plan_forms::sections::FindingForm;
use crate::output::results::{DiagnosticForm, Format, ResultKind};
use crate::output::ui::Ui;
use crate::planning::faults::misspelt_fields;
use crate::process::exit::{Exit, Outcome, exit_for};
use berth_base::diag::Severity;
use berth_base::text::counted;
use berth_hub::inputs::UnpublishedContents;

/// Check every file of a fleet repository
///
/// Where the clone lacks the published state, as shallow clones do, the files are checked by themselves, and a warning
/// says what to fetch for the rest: access rules and policy tests in force, and the last good forms of broken files.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth validate\n  berth validate path/to/fleet -o json\n  berth validate --base origin/main"
)]
pub(crate) struct ValidateArgs {
    /// The fleet repository or folder, in place of --repo
    #[arg(value_parser = fleet::repo_parser())]
    path: Option<PathBuf>,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Take the access rules from where the change from this revision began, in place of the commit processed
    /// last, or HEAD
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Also exit with 1 for warnings
    #[arg(long)]
    strict: bool,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

/// The faults of a fleet, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Validation<'a> {
    diagnostics: Vec<DiagnosticForm<'a>>,
    policy_tests: Vec<FindingForm<'a>>,
}

pub(crate) fn cmd_validate(args: &ValidateArgs, ui: &Ui) -> Outcome {
    let fleet = FleetArgs {
        repo: args.path.clone().map_or_else(|| args.fleet.repo.clone(), |path| RepoArg { path }),
        ..args.fleet.clone()
    };
    let (mut inputs, missing) = fleet.read_as_far_as_possible(args.base.as_deref(), ui)?;
    inputs.forget_files();
    // Rendering finds problems that reading cannot: overrides that do not apply, objects that collide.
    let mut built = inputs.build(&mut UnpublishedContents::naming(&inputs)?)?;
    built
        .diagnostics
        .extend(misspelt_fields(built.fleet.workloads.values().map(|workload| &**workload), inputs.tree()));
    let policy = inputs.policy_report(&built, true);
    built.diagnostics.extend(policy.diagnostics());
    built.diagnostics.extend(missing);
    built.diagnostics.sort();
    match args.output {
        Format::Text => {
            ui.diagnostics(&built.diagnostics);
            ui.out(&format!(
                "{}, {}, {}, {}{}",
                counted(inputs.tree().files.len(), "file"),
                counted(built.fleet.clusters.len(), "cluster"),
                counted(built.fleet.placements.len(), "placement"),
                counted(built.fleet.workloads.len(), "workload"),
                match policy.counting {
                    0 => String::new(),
                    some => format!(", {}", counted(some, "policy test")),
                },
            ));
        }
        format => {
            let validation = Validation {
                diagnostics: DiagnosticForm::all(&built.diagnostics),
                policy_tests: FindingForm::all(&policy),
            };
            format.write(ResultKind::Validation, &validation, ui);
        }
    }
    let has_warnings = built.diagnostics.iter().any(|one| one.severity == Severity::Warning);
    let exit = if args.strict && has_warnings { Exit::Faulty } else { Exit::Done };
    let exit = exit_for(&built.diagnostics).worst(exit);
    // Freeing the inputs is skipped, because the process ends soon.
    std::mem::forget((inputs, built));
    Ok(exit)
}
