//! `berth import`: converts a live hub to files, and its placement to the first commit of the rendered branch.

mod summary;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args as _, Command, FromArgMatches, Subcommand};

use super::run::identity;
use crate::flags::fleet::moment;
use crate::flags::kubeconfig::HostArgs;
use crate::import::first_state::{First, adopt, first_state, in_force};
use crate::import::{Gathered, IMPORTERS, Importer, Options, objects};
use crate::output::results::{Format, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome, exit_for};
use crate::process::files::{create_folder, refuse_links, write_new};
use berth_base::diag::{Diagnostic, Diagnostics, Severity};
use berth_base::model::Timestamp;
use berth_base::source::{self, SourceFile, SourceTree};
use berth_engine::load::{self, History, Loaded};
use berth_git::shared_refs::Refs;
use berth_git::{CommitId, GitContents, Identity, Repo};
use berth_hub::inputs::{PassInputs, Search, current_state};
use berth_hub::publish::commit::{Import, begin, refuse_begun};
use berth_member::live::Host as _;
use summary::ImportSummary;

/// Bring in what a live hub has
///
/// Reads the hub and writes one file an object, as its author would have written it. With --repo, the
/// rendered branch of that repository begins with the placement as it is now, so that the first plan
/// after committing the files moves nothing. Nothing is changed on the hub.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  git init fleet\n  berth import kubefed --context host --out fleet --repo fleet\n  cd fleet && git add -A && git commit -m 'Import from KubeFed' && berth plan"
)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    system: System,
}

/// The hub to import from: each importer is a subcommand.
#[derive(Debug)]
struct System {
    importer: &'static Importer,
    /// The namespace of the hub's own objects, if the importer needs it.
    namespace: String,
    into: IntoArgs,
    host: HostArgs,
}

impl Subcommand for System {
    fn augment_subcommands(command: Command) -> Command {
        let one = |importer: &&Importer| {
            let namespace = importer.namespace.map(|usual| {
                let namespace = Arg::new(NAMESPACE).long(NAMESPACE).alias("kubefed-namespace");
                namespace
                    .value_name("NAME")
                    .default_value(usual)
                    .help("Namespace of the control plane's own objects")
            });
            let command = Command::new(importer.name).args(namespace);
            HostArgs::augment_args(IntoArgs::augment_args(command))
                .about(importer.about)
                .long_about(format!("{}\n\n{}", importer.about, importer.details))
                .after_help(importer.examples)
        };
        command.subcommands(IMPORTERS.iter().map(one))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        System::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        IMPORTERS.iter().any(|importer| importer.name == name)
    }
}

impl FromArgMatches for System {
    fn from_arg_matches(matches: &ArgMatches) -> Result<System, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, args) = matches.subcommand().ok_or_else(missing)?;
        let importer = IMPORTERS.iter().find(|importer| importer.name == name).ok_or_else(missing)?;
        let namespace = importer.namespace.and_then(|_| args.get_one::<String>(NAMESPACE));
        Ok(System {
            importer,
            namespace: namespace.cloned().unwrap_or_default(),
            into: IntoArgs::from_arg_matches(args)?,
            host: HostArgs::from_arg_matches(args)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = System::from_arg_matches(matches)?;
        Ok(())
    }
}

const NAMESPACE: &str = "namespace";

/// The destination of an import.
#[derive(Debug, clap::Args)]
struct IntoArgs {
    /// Folder for the files; existing files are never overwritten
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Fleet repository with DIR in its work tree: its rendered branch begins with the live placement
    #[arg(long, value_name = "PATH")]
    repo: Option<PathBuf>,
    /// Leave out objects with the data of Secrets
    #[arg(long)]
    no_secrets: bool,
    /// Author of the first rendered commit
    #[arg(long, value_name = "NAME <EMAIL>", default_value = "berth <berth@berth.dev>", env = "BERTH_IDENTITY", value_parser = identity)]
    identity: Identity,
    /// Date the first rendered commit at this moment, in place of now
    #[arg(long, value_name = "TIME", value_parser = moment)]
    now: Option<Timestamp>,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

pub(crate) fn cmd_import(args: &ImportArgs, ui: &Ui) -> Outcome {
    let System { importer, namespace, into, host } = &args.system;
    let options = Options { namespace: namespace.clone(), secrets: !into.no_secrets };
    let refs = Refs::default();
    let fleet = into.repo.as_ref().map(|path| Fleet::open(path, &into.out, &refs)).transpose()?;
    let cluster = host.connect()?.watched(ui.progress());
    let server = cluster.server().to_owned();
    ui.status(&format!("reading {server}"));
    let mut gathered = ui.watching("reading objects", || (importer.gather)(&cluster, &options))?;
    let prefix = fleet.as_ref().map_or("", |fleet| fleet.prefix.as_str());
    let loaded = load_files(&objects::files(&gathered.objects), prefix);
    (importer.settle)(&mut gathered, &loaded.fleet);
    let files = objects::files(&gathered.objects);
    write_files(&into.out, &files)?;
    let mut told = std::mem::take(&mut gathered.diagnostics);
    told.extend(gathered.missing.iter().map(|error| Diagnostic {
        at: None,
        severity: Severity::Error,
        message: error.to_string(),
        hint: error.hint(),
    }));
    let mut begun = None;
    match &fleet {
        None => told.extend(load_files(&files, prefix).diagnostics),
        Some(_) if !gathered.missing.is_empty() => told.push(Diagnostic {
            at: None,
            severity: Severity::Error,
            message: "no first commit was written: some objects could not be read".to_owned(),
            hint: Some("import again once everything can be read; existing equal files stay".to_owned()),
        }),
        Some(fleet) => {
            let from = format!("{} {server}", importer.name);
            let now = into.now.unwrap_or_else(Timestamp::now);
            let import = Import { from, now, identity: into.identity.clone() };
            begun = fleet.begin(&gathered, &import, &refs, &mut told)?;
        }
    }
    told.extend(warning_of_secrets(gathered.secrets, begun.is_some()));
    told.sort();
    ui.diagnostics(&told);
    let (server, out, wanted) = (server.as_str(), into.out.as_path(), fleet.is_some());
    let shown = ImportSummary { server, out, gathered: &gathered, files: &files, wanted, begun: &begun };
    match into.output {
        Format::Text => ui.out(&shown.text(&refs)),
        format => format.write(ResultKind::ImportResult, &shown.form(), ui),
    }
    let missing = if gathered.missing.is_empty() { Exit::Done } else { Exit::Unreachable };
    Ok(exit_for(&told).worst(missing))
}

/// The fleet repository whose rendered branch will begin.
struct Fleet {
    path: PathBuf,
    repo: Repo,
    /// The prefix of the files in the repository: empty, or with a final slash.
    prefix: String,
}

impl Fleet {
    /// Opens the repository. Refuses early, before anything is read from the hub.
    fn open(path: &Path, out: &Path, refs: &Refs) -> Result<Fleet, CommandError> {
        if Repo::is_git_folder(path) {
            let message = format!(
                "`{}` is a bare repository or a .git folder, which cannot hold files",
                path.display()
            );
            return Err(CommandError::usage(message).hint("name the root of a work tree"));
        }
        let repo = Repo::open(path)?;
        refuse_begun(&repo, refs)?;
        current_state::refuse_second(&repo, refs)?;
        let whole = |path: &Path| {
            path.canonicalize()
                .map_err(|error| CommandError::io(format!("looking for {}", path.display()), &error))
        };
        let root = whole(path)?;
        let below = |folder: PathBuf| {
            folder.strip_prefix(&root).map(Path::to_owned).map_err(|_| {
                let message = format!("`{}` is not in the repository `{}`", out.display(), path.display());
                CommandError::usage(message).hint("name a folder of the repository with `--out`")
            })
        };
        // The existing part of the path decides whether the rest can be created.
        let ways = out.ancestors().map(|way| if way == Path::new("") { Path::new(".") } else { way });
        below(whole(ways.into_iter().find(|way| way.exists()).unwrap_or(out))?)?;
        create_folder(out)?;
        let below = below(whole(out)?)?;
        let prefix: String = below.iter().map(|part| format!("{}/", part.to_string_lossy())).collect();
        if !source::wanted_folder(prefix.trim_end_matches('/')) {
            let message =
                format!("berth does not read `{}`: a folder on its way begins with a dot", out.display());
            return Err(CommandError::usage(message));
        }
        Ok(Fleet { path: path.to_owned(), repo, prefix })
    }

    /// Decides as the first pass will, and begins the branch with the hub's present placement.
    fn begin(
        &self,
        gathered: &Gathered,
        import: &Import,
        refs: &Refs,
        told: &mut Diagnostics,
    ) -> Result<Option<(CommitId, First)>, CommandError> {
        let mut inputs = PassInputs::folder(&self.path, import.now, None, &Search::leniently())?;
        let fleet = inputs.fleet();
        let live = in_force(&fleet, &gathered.placed);
        inputs.current.decisions = live.clone();
        let (_, decided, _) = inputs.decide();
        let live = adopt(&fleet, &decided.decisions, live, import.now);
        inputs.current.decisions = live.clone();
        let (loaded, decided, found) = inputs.decide();
        let mut contents = GitContents::writing(&self.repo)?;
        let mut first = first_state(&loaded.fleet, decided, live, &gathered.placed, &mut contents)?;
        told.extend(found);
        told.extend(std::mem::take(&mut first.diagnostics));
        if first.state.decisions.is_empty() {
            let message = "no first commit was written: the host places no object that berth knows";
            let warning = Diagnostic { severity: Severity::Warning, ..Diagnostic::note(message) };
            told.push(warning.hint("`berth run` begins the branch once the files are committed"));
            return Ok(None);
        }
        let commit = begin(&self.repo, refs, &first.state, import)?;
        Ok(Some((commit, first)))
    }
}

/// Loads a fleet from files that are not written yet.
fn load_files(files: &BTreeMap<String, String>, prefix: &str) -> Loaded {
    let file = |(path, text): (&String, &String)| SourceFile::new(format!("{prefix}{path}"), text.as_bytes());
    let tree = SourceTree { files: files.iter().map(file).collect(), ..SourceTree::default() };
    load::load(&tree, History::None)
}

/// Writes all files. Writes none if one exists with another content, is unreadable, or is behind a link.
fn write_files(out: &Path, files: &BTreeMap<String, String>) -> Result<(), CommandError> {
    let mut fresh = Vec::new();
    let mut others = Vec::new();
    for (path, text) in files {
        refuse_links(out, path)?;
        match there(&out.join(path))? {
            None => fresh.push((path, text)),
            Some(there) if there == text.as_bytes() => {}
            Some(_) => others.push(path.as_str()),
        }
    }
    if !others.is_empty() {
        let message = format!("{} has a different {}", out.display(), crate::import::some_of(others));
        return Err(
            CommandError::usage(message).hint("name another folder with `--out`; nothing was written")
        );
    }
    create_folder(out)?;
    fresh.into_iter().try_for_each(|(path, text)| write_new(&out.join(path), text))
}

/// Reads a file; `None` only if nothing exists at the path.
fn there(path: &Path) -> Result<Option<Vec<u8>>, CommandError> {
    let read = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(metadata) if !metadata.is_file() => {
            let error = CommandError::usage(format!(
                "{} is not a file, and a file must be written there",
                path.display()
            ));
            return Err(error.hint("move it, or name another folder with `--out`; nothing was written"));
        }
        Ok(_) => std::fs::read(path),
        Err(error) => Err(error),
    };
    let failed = |error| CommandError::io(format!("reading {}", path.display()), &error);
    read.map(Some).map_err(|error| failed(error).hint("nothing was written"))
}

fn warning_of_secrets(count: usize, rendered: bool) -> Option<Diagnostic> {
    let (too, hint) = if rendered {
        let hint = "restrict the repository like the Secrets, or delete the files, the branch and \
                    `refs/berth/root`, and import again with `--no-secrets`";
        (", and into the rendered branch", hint)
    } else {
        (
            "",
            "do not commit them: delete them, import again with `--no-secrets`, and place External or Sealed Secrets",
        )
    };
    let count = match count {
        0 => return None,
        1 => "1 SECRET".to_owned(),
        count => format!("{count} SECRETS"),
    };
    let message = format!(
        "THE DATA OF {count} WAS WRITTEN INTO FILES{too}: everybody who can read the repository \
                 can read it"
    );
    let warning = Diagnostic { severity: Severity::Warning, ..Diagnostic::note(message) };
    Some(warning.hint(hint))
}
