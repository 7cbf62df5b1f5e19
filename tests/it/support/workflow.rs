//! The ready-made workflow files of deploy/ci and their action, whose steps tests run as a runner does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Ran, berth, hermetic};

/// A workflow file of GitHub, Gitea or Forgejo, with one job of one step: the action.
#[derive(Debug, serde::Deserialize)]
pub struct Workflow {
    pub permissions: BTreeMap<String, String>,
    jobs: BTreeMap<String, Job>,
}

#[derive(Debug, serde::Deserialize)]
struct Job {
    steps: Vec<Use>,
}

#[derive(Debug, serde::Deserialize)]
struct Use {
    uses: String,
    #[serde(default)]
    with: BTreeMap<String, String>,
}

/// The action of deploy/ci.
#[derive(Debug, serde::Deserialize)]
pub struct Action {
    runs: Runs,
}

#[derive(Debug, serde::Deserialize)]
struct Runs {
    steps: Vec<Step>,
}

#[derive(Debug, serde::Deserialize)]
struct Step {
    name: String,
    id: Option<String>,
    uses: Option<String>,
    run: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// Returns the path of a file of deploy/ci.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/ci").join(name)
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read_to_string(path(name)).expect("the file");
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Writes a `rustup` and a `cargo`, whose builds give the berth of these tests, into a folder of programs.
pub fn toolchain(folder: &Path) {
    let program = berth().get_program().to_str().expect("text").to_owned();
    let cargo = format!(
        "test -f Cargo.toml\nmkdir -p \"$CARGO_TARGET_DIR/release\"\ncd \"$CARGO_TARGET_DIR/release\"\n\
         printf '#!/bin/sh\\nexec %s \"$@\"\\n' '{program}' > berth\nchmod +x berth\n"
    );
    for (name, script) in [("rustup", "test \"$1 $2\" = 'toolchain install'\n"), ("cargo", &cargo)] {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\nset -e\n{script}")).expect("a program");
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    }
}

impl Workflow {
    /// Reads a file of deploy/ci.
    pub fn read(name: &str) -> Workflow {
        read(name)
    }

    /// The inputs that the file gives to the action.
    pub fn inputs(&self) -> &BTreeMap<String, String> {
        let steps: Vec<&Use> = self.jobs.values().flat_map(|job| &job.steps).collect();
        assert!(steps.len() == 1 && steps[0].uses.ends_with("OWNER/berth/deploy/ci@COMMIT"), "{steps:?}");
        &steps[0].with
    }
}

impl Action {
    pub fn read() -> Action {
        read("action.yml")
    }

    /// The actions of others that it uses.
    pub fn uses(&self) -> impl Iterator<Item = &str> {
        self.runs.steps.iter().filter_map(|step| step.uses.as_deref())
    }

    /// Runs the steps in their order with these variables, and with these values of expressions, as where no
    /// program is in the cache. Returns the last step; the others have no output, and succeed.
    #[track_caller]
    pub fn run(&self, folder: &Path, variables: &[(&str, &str)], values: &[(&str, String)]) -> Ran {
        let (sources, temp, output) = (folder.join("sources"), folder.join("temp"), folder.join("output"));
        std::fs::create_dir_all(sources.join("deploy/ci")).expect("a folder");
        std::fs::create_dir_all(&temp).expect("a folder");
        std::fs::copy(path("../../Cargo.toml"), sources.join("Cargo.toml")).expect("a file");
        let renderer = sources.join("src/sources/renderer");
        std::fs::create_dir_all(&renderer).expect("a folder");
        super::programs::write_script(&renderer.join("build"), "touch \"$1/berth-renderer\"");
        std::fs::copy(path("action.yml"), sources.join("deploy/ci/action.yml")).expect("a file");
        let mut values: BTreeMap<String, String> =
            values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let mut last: Option<Ran> = None;
        for step in &self.runs.steps {
            let Some(script) = &step.run else { continue };
            if let Some(ran) = last.take() {
                let ran = ran.expect(0);
                assert_eq!(format!("{}{}", ran.out, ran.err), "", "before `{}`", step.name);
            }
            std::fs::write(&output, "").expect("a file");
            let mut command = hermetic("bash");
            command
                .current_dir(folder)
                .args(["-e", "-o", "pipefail", "-c", script])
                .envs(variables.iter().copied())
                .env("GITHUB_ACTION_PATH", sources.join("deploy/ci"))
                .env("GITHUB_OUTPUT", &output)
                .env("RUNNER_TEMP", &temp);
            for (name, value) in &step.env {
                let expression = value.trim_start_matches("${{").trim_end_matches("}}").trim();
                let value = values.get(expression).unwrap_or_else(|| panic!("no value of `{expression}`"));
                command.env(name, value);
            }
            last = Some(Ran::of(&mut command));
            let Some(id) = &step.id else { continue };
            let lines = std::fs::read_to_string(&output).expect("a file");
            values.extend(lines.lines().filter_map(|line| {
                let (name, value) = line.split_once('=')?;
                Some((format!("steps.{id}.outputs.{name}"), value.to_owned()))
            }));
        }
        last.expect("a step")
    }
}
