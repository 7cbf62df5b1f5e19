//! `berth test`: runs the examples of policy tests.

use berth_base::model::Map;
use std::path::PathBuf;

use serde::Serialize;

use crate::flags::fleet;
use crate::output::results::{DiagnosticForm, Format, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{Exit, Outcome};
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::Timestamp;
use berth_base::source::{self, RulesFrom, SourceFile, SourceFiles, SourceTree};
use berth_base::text::counted;
use berth_base::yaml::Limits;
use berth_engine::load::{self, History};
use berth_engine::pipeline::{self, Inputs};
use berth_engine::policy_tests::{self, GivenFleet, PolicyTest};
use berth_engine::state::State;
use berth_hub::inputs::InputError;

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
    verdicts: Vec<policy_tests::Verdict<'t>>,
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
        let example = |verdict: &'a policy_tests::Verdict<'_>| ExampleForm {
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
