//! `berth bundle`: collects in one archive what a bug report needs, without secrets.
//!
//! No collected file should contain a credential. As a last check, the archive is searched for all credentials that this
//! machine knows. A file that cannot be collected contains the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::flags::fleet::RepoArg;
use crate::flags::remote::RemoteArgs;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::model::Timestamp;
use berth_base::text::counted;
use berth_git::shared_refs::Refs;
use berth_git::{CommitId, EntryKind, GitError, Repo};

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
    let mut files = Vec::from(of_machine(&repo));
    files.extend(of_repository(&repo, args.publications)?);
    if let Some(address) = &args.metrics {
        files.push(numbers(address));
    }
    if let Some(log) = &args.log {
        files.push(log_file(log)?);
    }
    files.insert(0, readme(&files, now));
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
    write_archive(&path, &name, &files, now).map_err(failed)?;
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

/// The limit of bytes for a log or a page of metrics.
const MOST: u64 = 1 << 20;

const PATIENCE: Duration = Duration::from_secs(5);

/// Settings whose values are names and addresses of this machine.
const SHOWN: [&str; 11] = [
    "BERTH_CLUSTER",
    "BERTH_EVENTS",
    "BERTH_FLEET",
    "BERTH_LOG_FORMAT",
    "BERTH_METRICS",
    "BERTH_NAMESPACE",
    "BERTH_SOURCE",
    "BERTH_STANDBY",
    "BERTH_STATUS_LISTEN",
    "BERTH_TARGET",
    "BERTH_WEBHOOK",
];

#[derive(Debug)]
struct BundleFile {
    pub name: &'static str,
    about: &'static str,
    pub text: String,
}

fn readme(files: &[BundleFile], now: Timestamp) -> BundleFile {
    let mut text = format!("Gathered by `berth bundle` at {now}. Nothing in it was sent anywhere.\n\n");
    for BundleFile { name, about, .. } in files {
        let _ = writeln!(text, "{name}: {about}");
    }
    text.push_str(
        "\nIt has no file of the source, no object of a cluster and no credential. It has the names of\n",
    );
    text.push_str("clusters, workloads and people.\n");
    BundleFile { name: "README.txt", about: "", text }
}

/// Returns the versions, and the settings in the environment.
fn of_machine(repo: &Repo) -> [BundleFile; 2] {
    let line = |path: &str, key: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("not known");
        found.trim_matches([' ', '"', ':', '\t']).to_owned()
    };
    let git = RemoteArgs::of_environment()
        .and_then(|remote| remote.reach(&repo.shared_path().display().to_string()))
        .and_then(|transport| transport.version().map_err(CommandError::from));
    let versions = format!(
        "berth {}\ngit {}\nsystem: {}, kernel {}, {}\nprocessors: {}\nmemory: {}\n",
        env!("CARGO_PKG_VERSION"),
        git.unwrap_or_else(|error| error.message),
        line("/etc/os-release", "PRETTY_NAME="),
        line("/proc/sys/kernel/osrelease", ""),
        std::env::consts::ARCH,
        std::thread::available_parallelism().map_or(0, usize::from),
        line("/proc/meminfo", "MemTotal:"),
    );
    let settings: String = settings()
        .into_iter()
        .map(|(name, value)| {
            let shown = if is_harmless(&name, &value) { value } else { "(set)".to_owned() };
            format!("{name}={shown}\n")
        })
        .collect();
    [
        BundleFile { name: "versions.txt", about: "berth, git and the machine", text: versions },
        BundleFile {
            name: "settings.txt",
            about: "variables that berth reads, and values that are no secret",
            text: settings,
        },
    ]
}

/// Reports whether a value can be shared: a number, a share, a switch, or a name.
fn is_harmless(name: &str, value: &str) -> bool {
    SHOWN.contains(&name)
        || ["true", "false"].contains(&value)
        || value.strip_suffix('%').unwrap_or(value).parse::<u64>().is_ok()
}

/// Returns the refs, publications and state of the repository.
fn of_repository(repo: &Repo, publications: usize) -> Result<Vec<BundleFile>, CommandError> {
    let refs = Refs::default();
    let mut listed = repo.list_refs("refs/heads/")?;
    for (name, id) in repo.list_refs("refs/berth/")?.iter() {
        listed.insert(name.clone(), *id);
    }
    let moment =
        |id: CommitId| repo.commit(id).map_or_else(|error| error.to_string(), |commit| time(commit.seconds));
    let all: String = listed.iter().map(|(name, id)| format!("{id} {} {name}\n", moment(*id))).collect();
    let rendered = listed.get(&refs.rendered).copied();
    let processed = listed.get(&refs.processed).map(|id| repo.commit(*id)).transpose()?;
    let report = listed.get(&refs.report).copied();
    Ok(vec![
        BundleFile {
            name: "refs.txt",
            about: "branches and berth's refs, with the times of their commits",
            text: all,
        },
        BundleFile {
            name: "publications.txt",
            about: "messages of the newest commits of the rendered branch",
            text: rendered.map_or_else(|| "none\n".to_owned(), |tip| messages(repo, tip, publications)),
        },
        BundleFile {
            name: "processed.txt",
            about: "the source commit that the daemon processed last",
            text: processed.map_or_else(|| "none\n".to_owned(), |commit| commit.message),
        },
        BundleFile {
            name: "report.json",
            about: "the numbers of the fleet report",
            text: report.map_or_else(|| Ok("none\n".to_owned()), |commit| numbers_of(repo, commit))?,
        },
        BundleFile { name: "repository.txt", about: "the repository on this machine", text: disk(repo) },
    ])
}

fn time(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|error| error.to_string(), |time| time.to_string())
}

fn messages(repo: &Repo, tip: CommitId, most: usize) -> String {
    let mut text = String::new();
    for commit in repo.first_parents(tip).take(most) {
        let _ = writeln!(text, "{} {}\n{}", commit.id, time(commit.seconds), commit.message);
    }
    text
}

/// Returns the only file of the report that contains just numbers.
fn numbers_of(repo: &Repo, commit: CommitId) -> Result<String, GitError> {
    for entry in repo.tree(repo.commit(commit)?.tree)? {
        if let (EntryKind::File(id), b"report.json") = (entry.kind, entry.name.as_slice()) {
            return Ok(String::from_utf8_lossy(&repo.blob(id)?).into_owned());
        }
    }
    Ok("none\n".to_owned())
}

/// Describes the packs and loose objects of a repository.
fn disk(repo: &Repo) -> String {
    let objects = repo.shared_path().join("objects");
    let folder = |path: &Path| {
        let files = std::fs::read_dir(path).into_iter().flatten().flatten();
        files.map(|file| (file.file_name(), file.metadata().map_or(0, |file| file.len()))).collect::<Vec<_>>()
    };
    let packs = folder(&objects.join("pack"));
    let count = packs.iter().filter(|(name, _)| name.to_string_lossy().ends_with(".pack")).count();
    let bytes: u64 = packs.iter().map(|(_, bytes)| bytes).sum();
    let loose: usize = (0..=255_u8).map(|part| folder(&objects.join(format!("{part:02x}"))).len()).sum();
    format!(
        "path: {}\npacks: {count}, {bytes} bytes with their indexes\nloose objects: {loose}\nshallow: {}\n",
        repo.path().display(),
        repo.is_shallow(),
    )
}

/// Returns the page of metrics at an address.
fn numbers(address: &str) -> BundleFile {
    let text = page(address).unwrap_or_else(|error| format!("`{address}` does not answer: {error}\n"));
    BundleFile { name: "metrics.txt", about: "the numbers of a process", text }
}

fn page(address: &str) -> std::io::Result<String> {
    let address = if address.contains(':') { address.to_owned() } else { format!("127.0.0.1:{address}") };
    let to = address.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Returns the end of a log, starting at the beginning of a line.
fn log_file(path: &Path) -> Result<BundleFile, CommandError> {
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let from = file.metadata()?.len().saturating_sub(MOST);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(if from == 0 { text } else { text.split_once('\n').unwrap_or_default().1.to_owned() })
    };
    let text = read().map_err(|error: std::io::Error| {
        CommandError::new(Exit::Unreachable, format!("`{}` cannot be read: {error}", path.display()))
    })?;
    Ok(BundleFile { name: "log.txt", about: "the end of the log of a process", text })
}

/// Writes the files into one folder of the archive. Never overwrites an existing file.
fn write_archive(path: &Path, folder: &str, files: &[BundleFile], now: Timestamp) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut archive = tar::Builder::new(GzEncoder::new(options.open(path)?, Compression::default()));
    for file in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(u64::try_from(now.as_second()).unwrap_or_default());
        archive.append_data(&mut header, format!("{folder}/{}", file.name), file.text.as_bytes())?;
    }
    archive.into_inner()?.finish()?.flush()
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
