//! The ready-made workflow files of deploy/ci, whose steps tests run as a runner does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Ran, hermetic};

/// A workflow file of GitHub, Gitea or Forgejo.
#[derive(Debug, serde::Deserialize)]
pub struct Workflow {
    pub permissions: BTreeMap<String, String>,
    jobs: BTreeMap<String, Job>,
}

#[derive(Debug, serde::Deserialize)]
struct Job {
    steps: Vec<Step>,
}

#[derive(Debug, serde::Deserialize)]
struct Step {
    name: String,
    #[serde(default)]
    env: BTreeMap<String, String>,
    run: String,
}

/// Returns the path of a file of deploy/ci.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/ci").join(name)
}

impl Workflow {
    /// Reads a file of deploy/ci.
    pub fn read(name: &str) -> Workflow {
        let text = std::fs::read_to_string(path(name)).expect("the file");
        serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs a step with these variables, and with these values of expressions.
    #[track_caller]
    pub fn run(
        &self,
        step: &str,
        folder: &Path,
        variables: &[(&str, &str)],
        values: &[(&str, String)],
    ) -> Ran {
        let steps = || self.jobs.values().flat_map(|job| &job.steps);
        let step = steps().find(|one| one.name == step).unwrap_or_else(|| panic!("no step `{step}`"));
        let mut command = hermetic("bash");
        command.current_dir(folder).args(["-e", "-c", &step.run]).envs(variables.iter().copied());
        for (name, value) in &step.env {
            let expression = value.trim_start_matches("${{").trim_end_matches("}}").trim();
            let value = values.iter().find(|(name, _)| *name == expression);
            command.env(name, &value.unwrap_or_else(|| panic!("no value of `{expression}`")).1);
        }
        Ran::of(&mut command)
    }
}
