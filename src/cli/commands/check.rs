//! `berth validate`: reports every problem of a fleet. `berth test`: runs the examples of policy tests.

use std::path::PathBuf;

use serde::Serialize;

use crate::flags::fleet::{self, FleetArgs, RepoArg};
use crate::output::plan_forms::sections::FindingForm;
use crate::output::results::{DiagnosticForm, Format, ResultKind};
use crate::output::ui::Ui;
use crate::planning::faults::misspelt_fields;
use crate::process::exit::{Exit, Outcome, exit_for};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, Severity};
use berth_base::model::{Map, Timestamp};
use berth_base::source::{self, RulesFrom, SourceFile, SourceFiles, SourceTree};
use berth_base::text::counted;
use berth_base::yaml::Limits;
use berth_engine::load::{self, History};
use berth_engine::pipeline::{self, Inputs};
use berth_engine::policy_tests::{self, GivenFleet, PolicyTest};
use berth_engine::state::State;
use berth_hub::inputs::{InputError, UnpublishedContents};

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
                counted(inputs.tree().files.len() - inputs.tree().rendered.files.len(), "file"),
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

/// Run the examples of the policy tests
///
/// Each example gives a fleet before and after a change, and the items that must fail. Reads the working tree; nothing
/// is published, and the fleet itself is not judged: `berth validate` and `berth plan` do that. Exits with 1 where a
/// test does not do what an example says, or cannot be read.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth test\n  berth test path/to/fleet -o json")]
pub(crate) struct TestArgs {
    /// The fleet repository or folder
    #[arg(default_value = ".", value_parser = fleet::repo_parser(), env = "BERTH_REPO")]
    path: PathBuf,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub(crate) fn cmd_test(args: &TestArgs, ui: &Ui) -> Outcome {
    let tree = source::read_dir(&args.path, &Limits::default()).map_err(InputError::from)?;
    let tree = SourceTree { rules_from: RulesFrom::Own, ..tree };
    let loaded = load::load(&tree, History::None);
    let mut found = Diagnostics::new();
    let is_of_test =
        |one: &&Diagnostic| one.at.as_ref().is_some_and(|at| at.file.starts_with(policy_tests::FOLDER));
    found.extend(loaded.diagnostics.iter().filter(is_of_test).cloned());
    let ran: Vec<Ran<'_>> = loaded.tests.own.iter().map(|test| Ran::of(test, &tree)).collect();
    found.extend(ran.iter().flat_map(Ran::mismatches));
    found.sort();
    match args.output {
        Format::Text => {
            ui.diagnostics(&found);
            for one in &ran {
                ui.out(&one.line());
            }
            if ran.is_empty() {
                ui.out(&format!("no policy test under {}", policy_tests::FOLDER));
            }
        }
        format => format.write(ResultKind::PolicyTestResult, &PolicyTestResult::of(&ran, &found), ui),
    }
    Ok(if found.has_errors() { Exit::Faulty } else { Exit::Done })
}

/// A test with the results of its examples.
struct Ran<'t> {
    test: &'t PolicyTest,
    verdicts: Vec<policy_tests::ExampleVerdict<'t>>,
}

impl<'t> Ran<'t> {
    fn of(test: &'t std::sync::Arc<PolicyTest>, tree: &SourceTree) -> Ran<'t> {
        Ran { test, verdicts: policy_tests::check(test, &|folder: &str| given(tree, folder)) }
    }

    fn mismatches(&self) -> impl Iterator<Item = Diagnostic> {
        let name = &self.test.name;
        self.verdicts.iter().flat_map(move |verdict| {
            let example = &verdict.example.name;
            verdict.mismatches.iter().map(move |one| {
                Diagnostic::error(
                    one.at.clone(),
                    format!("policy {name}, example `{example}`: {}", one.message),
                )
            })
        })
    }

    fn failed(&self) -> usize {
        self.verdicts.iter().filter(|verdict| !verdict.mismatches.is_empty()).count()
    }

    fn line(&self) -> String {
        let (name, all, failed) = (&self.test.name, self.verdicts.len(), self.failed());
        match (all, failed) {
            (0, _) => format!("{name}: no examples"),
            (1, 0) => format!("{name}: 1 example passes"),
            (all, 0) => format!("{name}: {all} examples pass"),
            (all, failed) => format!("{name}: {failed} of {} failed", counted(all, "example")),
        }
    }
}

/// Decides a folder of the repository as a separate fleet.
fn given(tree: &SourceTree, folder: &str) -> Result<GivenFleet, Diagnostics> {
    let prefix = format!("{}/", folder.trim_end_matches('/'));
    let inside = |file: &SourceFile| {
        let path = file.path.strip_prefix(&prefix)?;
        Some(SourceFile { path: path.into(), ..file.clone() })
    };
    let files: SourceFiles = tree.files.values().filter_map(inside).collect();
    if files.is_empty() {
        let mut missing = Diagnostics::new();
        missing.push(Diagnostic::error(Pos::file(folder), "there is no file of a fleet"));
        return Err(missing);
    }
    let tree = SourceTree { files, rules_from: RulesFrom::Nowhere, ..SourceTree::default() };
    let (current, statuses) = (State::default(), Map::new());
    let inputs = Inputs {
        tree: &tree,
        history: History::None,
        current: &current,
        statuses: &statuses,
        now: Timestamp::now(),
    };
    let (loaded, decided, diagnostics) = pipeline::decide(inputs);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Ok(GivenFleet { fleet: (*loaded.fleet).clone(), decisions: decided.decisions })
}

/// The results of the examples, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyTestResult<'a> {
    diagnostics: Vec<DiagnosticForm<'a>>,
    policy_tests: Vec<TestForm<'a>>,
}

#[derive(Serialize)]
struct TestForm<'a> {
    name: &'a str,
    examples: Vec<ExampleForm<'a>>,
}

#[derive(Serialize)]
struct ExampleForm<'a> {
    name: &'a str,
    file: &'a str,
    line: u32,
    passes: bool,
    mismatches: Vec<&'a str>,
}

impl<'a> PolicyTestResult<'a> {
    fn of(ran: &'a [Ran<'_>], found: &'a Diagnostics) -> PolicyTestResult<'a> {
        let example = |verdict: &'a policy_tests::ExampleVerdict<'_>| ExampleForm {
            name: &verdict.example.name,
            file: &verdict.example.at.file,
            line: verdict.example.at.line,
            passes: verdict.mismatches.is_empty(),
            mismatches: verdict.mismatches.iter().map(|one| one.message.as_str()).collect(),
        };
        let test = |one: &'a Ran<'_>| TestForm {
            name: &one.test.name,
            examples: one.verdicts.iter().map(example).collect(),
        };
        PolicyTestResult {
            diagnostics: DiagnosticForm::all(found),
            policy_tests: ran.iter().map(test).collect(),
        }
    }
}
