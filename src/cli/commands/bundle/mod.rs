//! `berth bundle`: collects in one archive what a bug report needs, without secrets.
//!
//! [`parts`] makes the files and their `.tar.gz`. No collected file should contain a credential. As a last check, the
//! archive is searched for all credentials that this machine knows.

mod parts;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::flags::fleet::RepoArg;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::text::counted;
use berth_git::Repo;

/// The shortest credential that is searched for. Shorter ones would match ordinary words.
const SHORTEST: usize = 6;

/// The longest file that is read as a file of credentials.
const LONGEST_FILE: u64 = 64 << 10;

const INSTEAD: &str = "(redacted)";

/// Gather what a report of a fault needs, without secrets, in one archive
///
/// Takes the environment variables of the process that it is about. The archive has versions, settings, refs, the
/// messages of publications, the report's numbers, and the state of the repository on this machine, which may be the
/// working copy of a daemon or member; with `--metrics` and `--log` also those of a process. It has no file of the
/// source, no object of a cluster and no credential: of settings, only numbers, switches and names are shown. It does
/// have the names of clusters, workloads and people. `--list` shows all of it and writes nothing.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth bundle --repo /var/cache/berth/fleet --metrics 127.0.0.1:9090 --log berth.log\n  berth bundle --list"
)]
pub(crate) struct BundleArgs {
    #[command(flatten)]
    repo: RepoArg,
    /// Address of a process's numbers, as it was given with `--metrics`
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
    /// File with the log of a process, of which the last mebibyte is taken
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Number of publications whose messages are taken
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    publications: usize,
    /// The archive; default: `berth-bundle-` and the time, in this folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print what would be in it, and write nothing
    #[arg(long)]
    list: bool,
}

pub(crate) fn cmd_bundle(args: &BundleArgs, ui: &Ui) -> Outcome {
    let repo = Repo::open(&args.repo.path)?;
    let now = ui.now();
    let mut files = Vec::from(parts::of_machine(&repo));
    files.extend(parts::of_repository(&repo, args.publications)?);
    if let Some(address) = &args.metrics {
        files.push(parts::numbers(address));
    }
    if let Some(log) = &args.log {
        files.push(parts::log(log)?);
    }
    files.insert(0, parts::readme(&files, now));
    let secrets = Secrets::of_this_machine();
    for file in &mut files {
        file.text = secrets.redacted(&file.text);
    }
    if args.list {
        for file in &files {
            ui.out(&format!("== {}\n{}\n", file.name, file.text));
        }
        return Ok(Exit::Done);
    }
    let name = format!("berth-bundle-{}", now.strftime("%Y%m%dT%H%M%SZ"));
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tar.gz")));
    let failed = |error| cannot_write(&path, &error);
    parts::write_archive(&path, &name, &files, now).map_err(failed)?;
    ui.status(&format!("wrote {} to {}", counted(files.len(), "file"), path.display()));
    ui.status("look at it before you send it: it has the names of clusters, workloads and people");
    Ok(Exit::Done)
}

/// Returns the variables that berth reads, in order.
fn settings() -> BTreeMap<String, String> {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let all = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    all.filter(|(name, _)| name.starts_with("BERTH_")).collect()
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::new(Exit::Unreachable, format!("`{}` cannot be written: {error}", path.display()))
        .hint("name another file with --out")
}

/// The credentials that this machine knows, longest first, so that no part of one remains.
#[derive(Debug, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Collects the values of all of berth's variables, the passwords in addresses, and the lines of files that
    /// variables name.
    pub fn of_this_machine() -> Secrets {
        let mut found = BTreeSet::new();
        for (name, value) in settings() {
            if name.ends_with("TOKEN") {
                found.insert(value.clone());
            }
            found.extend(password(&value).map(str::to_owned));
            found.extend(lines_of(Path::new(&value)));
        }
        let mut found: Vec<String> = found.into_iter().filter(|secret| secret.len() >= SHORTEST).collect();
        found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Secrets(found)
    }

    pub fn redacted(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), INSTEAD))
    }
}

/// Returns the password in an address such as `https://ann:secret@host/`.
fn password(address: &str) -> Option<&str> {
    let (login, _) = address.split_once("://")?.1.split('/').next()?.rsplit_once('@')?;
    Some(login.split_once(':')?.1)
}

/// Returns the lines of a short file, each of which may be a credential.
fn lines_of(path: &Path) -> Vec<String> {
    let is_short = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= LONGEST_FILE);
    let text = if is_short { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    text.lines().map(str::trim).filter(|line| !line.starts_with("-----")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{Secrets, password};

    #[test]
    fn passwords_of_addresses_are_found() {
        assert_eq!(password("https://ann:s3cret@host/x@y"), Some("s3cret"));
        assert_eq!(password("https://host/ann:s3cret@"), None);
        assert_eq!(password("git@host:path"), None);
    }

    #[test]
    fn of_two_secrets_the_longer_one_goes_as_a_whole() {
        let secrets = Secrets(vec!["secret-and-more".to_owned(), "secret".to_owned()]);
        assert_eq!(secrets.redacted("a secret-and-more, secret"), "a (redacted), (redacted)");
    }
}
