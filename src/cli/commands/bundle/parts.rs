//! The files of a bundle and their archive. A file that cannot be collected contains the reason.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::settings;
use crate::flags::remote::RemoteArgs;
use crate::process::exit::{CommandError, Exit};
use berth_base::model::Timestamp;
use berth_git::protocol::Refs;
use berth_git::{CommitId, EntryKind, GitError, Repo};

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
pub struct File {
    pub name: &'static str,
    about: &'static str,
    pub text: String,
}

pub fn readme(files: &[File], now: Timestamp) -> File {
    let mut text = format!("Gathered by `berth bundle` at {now}. Nothing in it was sent anywhere.\n\n");
    for File { name, about, .. } in files {
        let _ = writeln!(text, "{name}: {about}");
    }
    text.push_str(
        "\nIt has no file of the source, no object of a cluster and no credential. It has the names of\n",
    );
    text.push_str("clusters, workloads and people.\n");
    File { name: "README.txt", about: "", text }
}

/// Returns the versions, and the settings in the environment.
pub fn of_machine(repo: &Repo) -> [File; 2] {
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
        File { name: "versions.txt", about: "berth, git and the machine", text: versions },
        File {
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
pub fn of_repository(repo: &Repo, publications: usize) -> Result<Vec<File>, CommandError> {
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
        File {
            name: "refs.txt",
            about: "branches and berth's refs, with the times of their commits",
            text: all,
        },
        File {
            name: "publications.txt",
            about: "messages of the newest commits of the rendered branch",
            text: rendered.map_or_else(|| "none\n".to_owned(), |tip| messages(repo, tip, publications)),
        },
        File {
            name: "processed.txt",
            about: "the source commit that the daemon processed last",
            text: processed.map_or_else(|| "none\n".to_owned(), |commit| commit.message),
        },
        File {
            name: "report.json",
            about: "the numbers of the fleet report",
            text: report.map_or_else(|| Ok("none\n".to_owned()), |commit| numbers_of(repo, commit))?,
        },
        File { name: "repository.txt", about: "the repository on this machine", text: disk(repo) },
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
pub fn numbers(address: &str) -> File {
    let text = page(address).unwrap_or_else(|error| format!("`{address}` does not answer: {error}\n"));
    File { name: "metrics.txt", about: "the numbers of a process", text }
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
pub fn log(path: &Path) -> Result<File, CommandError> {
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
    Ok(File { name: "log.txt", about: "the end of the log of a process", text })
}

/// Writes the files into one folder of the archive. Never overwrites an existing file.
pub fn write_archive(path: &Path, folder: &str, files: &[File], now: Timestamp) -> std::io::Result<()> {
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
