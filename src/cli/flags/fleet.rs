//! The flags of the reading commands: the place of the fleet, the revision and the moment. The fleet repository is the
//! given one, or the one around the current folder.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

use super::state::StateArgs;
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::diag::{Diagnostic, Pos, harmless_line};
use berth_base::model::Timestamp;
use berth_engine::load::config::CONFIG_PATH;
use berth_engine::state;
use berth_git::Repo;
use berth_hub::inputs::{InputError, PassInputs, Search};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    pub repo: RepoArg,
    /// Read this revision from Git, in place of the working tree
    #[arg(long, value_name = "REV")]
    pub rev: Option<String>,
    /// Take the current decisions from a file in the form of `decide -o json`, in place of the rendered branch
    #[arg(long, value_name = "FILE")]
    pub previous: Option<PathBuf>,
    #[command(flatten)]
    pub state: StateArgs,
    /// Decide for this moment (RFC 3339), in place of now or the revision's date
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub now: Option<Timestamp>,
}

impl FleetArgs {
    /// Reads all inputs, and prints their origin on stderr.
    pub fn read(&self, ui: &Ui) -> Result<PassInputs, CommandError> {
        self.read_against(None, ui)
    }

    /// Like [`FleetArgs::read`], with the access rules of the revision from which the change began.
    pub fn read_against(&self, base: Option<&str>, ui: &Ui) -> Result<PassInputs, CommandError> {
        let search = self.search()?;
        self.completed(self.pass_inputs(&search, base, ui)?, ui)
    }

    /// Like [`FleetArgs::read_against`]. If this clone lacks the current state, reads only the files, with a warning.
    pub fn read_as_far_as_possible(
        &self,
        base: Option<&str>,
        ui: &Ui,
    ) -> Result<(PassInputs, Option<Diagnostic>), CommandError> {
        let needs_state = base.is_some() || self.previous.is_some() || self.state.rendered.is_some();
        let error = match self.pass_inputs(&self.search()?, base, ui) {
            Err(error) if !needs_state && error.is_missing_state() => error,
            inputs => return Ok((self.completed(inputs?, ui)?, None)),
        };
        let now = self.now.unwrap_or_else(Timestamp::now);
        let inputs = PassInputs::files_alone(&self.repo.path, self.rev.as_deref(), now)?;
        let message = format!(
            "{error}; only the files were checked, and not the access rules and policy tests in force"
        );
        let warning = Diagnostic { at: None, ..Diagnostic::warning(Pos::file(""), message) };
        Ok((self.completed(inputs, ui)?, Some(warning.maybe_hint(error.hint()))))
    }

    /// Returns the place of the current state.
    fn search(&self) -> Result<Search, CommandError> {
        let mut search = self.state.search(&self.repo.path)?;
        search.first |= self.previous.is_some();
        if self.rev.is_none() {
            self.refuse_git_folder()?;
        }
        Ok(search)
    }

    /// Reads the files, and the state to compare them with.
    fn pass_inputs(&self, search: &Search, base: Option<&str>, ui: &Ui) -> Result<PassInputs, InputError> {
        ui.watching("reading the fleet", || match &self.rev {
            Some(revision) => PassInputs::revision(&self.repo.path, revision, self.now, base, search),
            None => {
                PassInputs::folder(&self.repo.path, self.now.unwrap_or_else(Timestamp::now), base, search)
            }
        })
    }

    /// Reads the current decisions from `--previous`, and prints the origin of the inputs.
    fn completed(&self, mut inputs: PassInputs, ui: &Ui) -> Result<PassInputs, CommandError> {
        if let Some(path) = &self.previous {
            let text = std::fs::read_to_string(path)
                .map_err(|error| CommandError::io(format!("reading {}", path.display()), &error))?;
            let decisions = serde_json::from_str(&text)
                .map_err(|error| error.to_string())
                .and_then(|value| state::decisions_from_json(&value))
                .map_err(|error| CommandError::usage(format!("{}: {error}", path.display())))?;
            inputs.take_current(decisions, path);
        }
        let upon = inputs.compared_with().map_or_else(String::new, |words| format!(", upon {words}"));
        ui.status(&format!("reading {}", harmless_line(&format!("{}{upon}", inputs.label()))));
        if let Some(root) = self.rev.is_none().then(|| Repo::root_above(&self.repo.path)).flatten() {
            ui.status(&format!(
                "note: this folder is inside the repository {}; berth reads only the folder, not that \
                 repository's current state",
                root.display()
            ));
        }
        Ok(inputs)
    }

    /// Refuses Git's own folder, which contains no files of a fleet and must not count as an empty fleet.
    fn refuse_git_folder(&self) -> Result<(), CommandError> {
        if !Repo::is_git_folder(&self.repo.path) {
            return Ok(());
        }
        let message = format!(
            "`{}` is a bare repository or a .git folder, which has no files to read",
            self.repo.path.display()
        );
        Err(CommandError::usage(message).hint("read a commit: `--rev HEAD`"))
    }
}

/// Parses a moment on the command line.
pub fn moment(text: &str) -> Result<Timestamp, String> {
    let in_range = text.parse::<Timestamp>();
    in_range.map_err(|_| {
        "write a moment in RFC 3339, such as `2026-01-31T12:00:00Z`, at most `9999-12-30T22:00:00Z`"
            .to_owned()
    })
}

/// The flag of the fleet repository.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RepoArg {
    /// The fleet repository or folder; `.` finds the one around the current folder
    #[arg(id = "repo", long, value_name = "PATH", default_value = ".", value_parser = repo_parser(), env = "BERTH_REPO")]
    pub path: PathBuf,
}

/// Reads a path on the command line. The default, `.`, is the fleet around the current folder, as for git and cargo.
pub fn repo_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| if path == Path::new(".") { here_or_above() } else { path })
}

/// Returns the fleet around the current folder, or that folder itself.
pub fn here_or_above() -> PathBuf {
    around_here().unwrap_or_else(|| PathBuf::from("."))
}

/// Returns the nearest fleet from the current folder upwards: a folder with a `.git` or a berth.yaml.
pub fn around_here() -> Option<PathBuf> {
    let is_fleet = |folder: &Path| folder.join(".git").exists() || folder.join(CONFIG_PATH).is_file();
    let here = PathBuf::from(".");
    if is_fleet(&here) {
        return Some(here);
    }
    let here = here.canonicalize().ok()?;
    here.ancestors().skip(1).find(|folder| is_fleet(folder)).map(Path::to_owned)
}
