//! The flags of a remote, and of further repositories, each with its own credentials: one for the source, one for
//! members' statuses. Credentials come only from files and the environment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::exit::CommandError;
use berth_git::transport::credentials::{Secret, Token};
use berth_git::transport::remote::shows_password;
use berth_git::transport::{
    Access, Cancel, GitTransport, Limits, RemoteUrl, Sandbox, Transport, WorkingCopy,
};

// Each flag has its own heading: a common one would apply to all following flags.
/// The flags for a remote repository: its address and its credentials.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoteArgs {
    /// Work on this remote repository: `https://…`, `ssh://user@host/…`, `user@host:…`, `file:///…` or a path
    #[arg(long, help_heading = "Remote", value_name = "URL", env = "BERTH_REMOTE", hide_env_values = true)]
    remote: Option<String>,
    /// File with the token or password for https; or set BERTH_TOKEN
    #[arg(long, help_heading = "Remote", value_name = "FILE", env = "BERTH_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// User name for the token; most servers accept any
    #[arg(long, help_heading = "Remote", value_name = "NAME", env = "BERTH_USERNAME")]
    username: Option<String>,
    /// Trust servers whose certificates these authorities signed, and no others
    #[arg(long, help_heading = "Remote", value_name = "FILE", env = "BERTH_CA_FILE")]
    ca_file: Option<PathBuf>,
    /// Reach the remote through this HTTP proxy; with a password only by BERTH_PROXY
    #[arg(long, help_heading = "Remote", value_name = "URL", env = "BERTH_PROXY", hide_env_values = true)]
    proxy: Option<String>,
    /// The private key for ssh
    #[arg(long, help_heading = "Remote", value_name = "FILE", env = "BERTH_SSH_KEY")]
    ssh_key: Option<PathBuf>,
    /// File of known hosts for ssh; other hosts are refused
    #[arg(long, help_heading = "Remote", value_name = "FILE", env = "BERTH_KNOWN_HOSTS")]
    known_hosts: Option<PathBuf>,
    /// Allow `http://` and `git://`, which others on the network can read and change
    #[arg(long, help_heading = "Remote", env = "BERTH_ALLOW_PLAIN")]
    allow_plain: bool,
    /// Abort an exchange that takes longer than this
    #[arg(long, help_heading = "Remote", value_name = "SECONDS", default_value_t = 300, env = "BERTH_GIT_TIMEOUT", value_parser = clap::value_parser!(u64).range(1..))]
    git_timeout: u64,
    /// Abort an exchange without any data for this long
    #[arg(long, help_heading = "Remote", value_name = "SECONDS", default_value_t = 30, env = "BERTH_GIT_STALL_TIMEOUT", value_parser = clap::value_parser!(u64).range(1..))]
    git_stall_timeout: u64,
    /// Confine `git` to its working copy and to the remote: as far as the system can, always (else it is not run), or never
    #[arg(
        long,
        help_heading = "Remote",
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        env = "BERTH_GIT_SANDBOX"
    )]
    git_sandbox: When,
    /// The memory that one process of `git` may take
    #[arg(long, help_heading = "Remote", value_name = "MIB", default_value_t = 2048, env = "BERTH_GIT_MEMORY", value_parser = clap::value_parser!(u64).range(64..=1 << 24))]
    git_memory: u64,
    /// The longest file that `git` may write
    #[arg(long, help_heading = "Remote", value_name = "MIB", default_value_t = 16384, env = "BERTH_GIT_LARGEST_FILE", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    git_largest_file: u64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

/// The flags as the environment sets them, for commands that have none of their own.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true)]
struct FromEnvironment {
    #[command(flatten)]
    remote: RemoteArgs,
}

impl RemoteArgs {
    pub(crate) fn of_environment() -> Result<RemoteArgs, CommandError> {
        let parsed = <FromEnvironment as clap::Parser>::try_parse_from(std::iter::empty::<&str>());
        parsed.map(|it| it.remote).map_err(|error| CommandError::usage(error.to_string()))
    }

    pub fn is_given(&self) -> bool {
        self.remote.is_some()
    }

    /// Reports whether the remote is a container registry.
    pub fn is_registry(&self) -> bool {
        self.url().is_some_and(berth_registry::RegistryUrl::is_one)
    }

    /// Returns the full address, including credentials.
    pub fn url(&self) -> Option<&str> {
        self.remote.as_deref()
    }

    /// Returns the files with credentials.
    pub fn secret_files(&self) -> impl Iterator<Item = &Path> {
        [&self.token_file, &self.ssh_key].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Returns the folder of the working copy for this use, which may not exist.
    pub fn folder(&self, repo: Option<&Path>, usage: &str) -> Option<PathBuf> {
        let url = RemoteUrl::parse(self.remote.as_deref()?, self.allow_plain).ok()?;
        repo.map(Path::to_owned).or_else(|| default_folder(&url, usage).ok())
    }

    /// Returns the limits of `git`.
    pub(crate) fn git_limits(&self) -> Limits {
        let sandbox = match self.git_sandbox {
            When::Auto => Sandbox::Auto,
            When::Always => Sandbox::Always,
            When::Never => Sandbox::Never,
        };
        Limits { sandbox, memory: self.git_memory << 20, file: self.git_largest_file << 20 }
    }

    /// Logs once which parts of a sandbox `git` gets.
    pub(crate) fn log_sandbox(&self) {
        let limits = self.git_limits();
        tracing::info!(confines = %limits.offered(), memory_mib = self.git_memory, "the sandbox of git");
    }

    /// Returns the remote at an address, with these credentials.
    pub fn reach(&self, url: &str) -> Result<GitTransport, CommandError> {
        if std::env::args().any(|argument| shows_password(&argument)) {
            return Err(password_in_arguments());
        }
        let url = RemoteUrl::parse(url, self.allow_plain)?;
        let access = self.access(url, self.token()?, self.ssh_key.as_deref());
        Ok(GitTransport::new(access, Cancel::default()))
    }

    /// Returns a remote that somebody else may have named. It never gets the token.
    pub fn reach_without_token(&self, url: &str) -> Result<GitTransport, CommandError> {
        if shows_password(url) {
            let error = CommandError::usage("the address has a password, which everybody could read");
            return Err(error.hint("use ssh, with the key of BERTH_SSH_KEY"));
        }
        let access = self.access_to_other(url, None, self.ssh_key.as_deref())?;
        Ok(GitTransport::new(access, Cancel::default()))
    }

    /// Returns the remote and its working copy for this use, if a remote is set.
    pub fn open(
        &self,
        repo: Option<&Path>,
        usage: &str,
        cancel: &Cancel,
    ) -> Result<Option<(GitTransport, WorkingCopy)>, CommandError> {
        let Some(remote) = &self.remote else { return Ok(None) };
        if std::env::args().any(|argument| shows_password(&argument)) {
            return Err(password_in_arguments());
        }
        let url = RemoteUrl::parse(remote, self.allow_plain)?;
        let folder = match repo {
            Some(folder) => folder.to_owned(),
            None => default_folder(&url, usage)?,
        };
        let copy = WorkingCopy::open(&folder, &url)?;
        let access = self.access(url, self.token()?, self.ssh_key.as_deref());
        let transport = Self::transport_in(&copy, access, cancel)?;
        Ok(Some((transport, copy)))
    }

    /// Opens the remote again, with a small working copy of its own inside of the open one, for exchanges within
    /// `patience`.
    pub fn open_beside(
        &self,
        copy: &Path,
        usage: &str,
        patience: Duration,
    ) -> Result<(GitTransport, WorkingCopy), CommandError> {
        let url = RemoteUrl::parse(self.remote.as_deref().unwrap_or_default(), self.allow_plain)?;
        Self::beside(copy, usage, self.access(url, self.token()?, self.ssh_key.as_deref()), patience)
    }

    /// Opens a remote with such a working copy.
    pub(crate) fn beside(
        copy: &Path,
        usage: &str,
        mut access: Access,
        patience: Duration,
    ) -> Result<(GitTransport, WorkingCopy), CommandError> {
        let copy = WorkingCopy::open(&copy.join("berth").join(usage), &access.url)?;
        access.timeout = access.timeout.min(patience);
        access.stall = access.stall.min(patience);
        Ok((Self::transport_in(&copy, access, &Cancel::default())?, copy))
    }

    /// Returns the file with the key for ssh.
    pub(crate) fn ssh_key(&self) -> Option<&Path> {
        self.ssh_key.as_deref()
    }

    /// Reports whether plain traffic is allowed.
    pub(crate) fn allows_plain(&self) -> bool {
        self.allow_plain
    }

    fn access(&self, url: RemoteUrl, token: Token, ssh_key: Option<&Path>) -> Access {
        Access {
            url,
            username: self.username.clone(),
            token,
            ca_file: self.ca_file.clone(),
            proxy: self.proxy.as_ref().map(Secret::new),
            ssh_key: ssh_key.map(Path::to_owned),
            known_hosts: self.known_hosts.clone(),
            timeout: Duration::from_secs(self.git_timeout),
            stall: Duration::from_secs(self.git_stall_timeout),
            limits: self.git_limits(),
        }
    }

    /// Returns the access to another remote, with the same settings but its own credentials.
    pub(crate) fn access_to_other(
        &self,
        url: &str,
        token_file: Option<&Path>,
        ssh_key: Option<&Path>,
    ) -> Result<Access, CommandError> {
        let url = RemoteUrl::parse(url, self.allow_plain)?;
        let token = token_file.map_or(Token::None, |path| Token::File(path.to_owned()));
        Ok(self.access(url, token, ssh_key))
    }

    /// Opens a remote in a working copy.
    pub(crate) fn transport_in(
        copy: &WorkingCopy,
        access: Access,
        cancel: &Cancel,
    ) -> Result<GitTransport, CommandError> {
        let transport = GitTransport::new(access, cancel.clone()).within(copy);
        transport.map_err(|error| CommandError::io("opening the working copy", &error))
    }

    fn token(&self) -> Result<Token, CommandError> {
        if let Some(path) = &self.token_file {
            return Ok(Token::File(path.clone()));
        }
        match std::env::var("BERTH_TOKEN") {
            Ok(text) if text.chars().any(char::is_control) => {
                Err(CommandError::usage("BERTH_TOKEN holds more than one line"))
            }
            Ok(text) if !text.is_empty() => Ok(Token::Text(Secret::new(text))),
            Ok(_) | Err(std::env::VarError::NotPresent) => Ok(Token::None),
            Err(std::env::VarError::NotUnicode(_)) => Err(CommandError::usage("BERTH_TOKEN is not text")),
        }
    }
}

/// Returns the default folder for one remote and one use, below the folder of caches.
pub(crate) fn default_folder(url: &dyn std::fmt::Display, usage: &str) -> Result<PathBuf, CommandError> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("CACHE_DIRECTORY")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("berth")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/berth")));
    let Some(base) = base else {
        return Err(CommandError::usage("no folder is known for the working copy of the remote")
            .hint("name a folder with `--repo`, or set XDG_CACHE_HOME"));
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = format!("{usage}-{url}").chars().map(plain).take(150).collect();
    Ok(base.join(name))
}

fn password_in_arguments() -> CommandError {
    let error = CommandError::usage("a password on the command line shows in the list of processes");
    error.hint(
        "give it with `--token-file`, or in the environment: BERTH_TOKEN, BERTH_REMOTE, BERTH_PROXY, BERTH_RENDERED",
    )
}

/// A remote for the source, with its own credentials.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceRemoteArgs {
    /// Read the source branch and previewed branches from this repository instead of the remote's, with separate
    /// credentials, which need not push: berth writes nothing there
    #[arg(
        long,
        value_name = "URL",
        env = "BERTH_SOURCE_REMOTE",
        hide_env_values = true,
        help_heading = "Remote",
        requires = "remote"
    )]
    source_remote: Option<String>,
    /// A file with the token or password for the source remote
    #[arg(long, value_name = "FILE", env = "BERTH_SOURCE_TOKEN_FILE", help_heading = "Remote")]
    source_token_file: Option<PathBuf>,
    /// The private key for the source remote
    #[arg(long, value_name = "FILE", env = "BERTH_SOURCE_SSH_KEY", help_heading = "Remote")]
    source_ssh_key: Option<PathBuf>,
}

impl SourceRemoteArgs {
    pub fn named(&self) -> OtherRemote<'_> {
        OtherRemote {
            url: self.source_remote.as_deref(),
            token_file: self.source_token_file.as_deref(),
            ssh_key: self.source_ssh_key.as_deref(),
        }
    }
}

/// A remote for reports, with its own credentials.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusRemoteArgs {
    /// Keep members' reports in this repository instead of the remote's, with separate credentials: members write
    /// them there, and the daemon reads them
    #[arg(
        long,
        value_name = "URL",
        env = "BERTH_STATUS_REMOTE",
        hide_env_values = true,
        help_heading = "Remote",
        requires = "remote"
    )]
    status_remote: Option<String>,
    /// A file with the token or password for the status remote
    #[arg(long, value_name = "FILE", env = "BERTH_STATUS_TOKEN_FILE", help_heading = "Remote")]
    status_token_file: Option<PathBuf>,
    /// The private key for the status remote
    #[arg(long, value_name = "FILE", env = "BERTH_STATUS_SSH_KEY", help_heading = "Remote")]
    status_ssh_key: Option<PathBuf>,
}

impl StatusRemoteArgs {
    pub fn named(&self) -> OtherRemote<'_> {
        OtherRemote {
            url: self.status_remote.as_deref(),
            token_file: self.status_token_file.as_deref(),
            ssh_key: self.status_ssh_key.as_deref(),
        }
    }
}

/// A further repository, if its flag is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherRemote<'a> {
    url: Option<&'a str>,
    token_file: Option<&'a Path>,
    ssh_key: Option<&'a Path>,
}

impl<'a> OtherRemote<'a> {
    pub fn is_given(self) -> bool {
        self.url.is_some()
    }

    /// Returns the files with credentials.
    pub fn secret_files(self) -> impl Iterator<Item = &'a Path> {
        [self.token_file, self.ssh_key].into_iter().flatten()
    }

    /// Opens the repository in its own working copy, if it is given.
    pub fn open_apart(
        self,
        remote: &RemoteArgs,
        folder: &Path,
        cancel: &Cancel,
    ) -> Result<Option<(GitTransport, WorkingCopy)>, CommandError> {
        let Some(access) = self.access(remote)? else { return Ok(None) };
        let copy = WorkingCopy::open(folder, &access.url)?;
        Ok(Some((RemoteArgs::transport_in(&copy, access, cancel)?, copy)))
    }

    /// Opens the repository in the working copy of the remote, if it is given.
    pub fn open(
        self,
        remote: &RemoteArgs,
        copy: &WorkingCopy,
        cancel: &Cancel,
    ) -> Result<Option<Box<dyn Transport>>, CommandError> {
        let Some(access) = self.access(remote)? else { return Ok(None) };
        Ok(Some(Box::new(RemoteArgs::transport_in(copy, access, cancel)?)))
    }

    /// Opens the repository, or the remote if none is given, with a small working copy of its own inside of `copy`.
    pub fn open_beside(
        self,
        remote: &RemoteArgs,
        copy: &Path,
        usage: &str,
        patience: Duration,
    ) -> Result<(GitTransport, WorkingCopy), CommandError> {
        match self.access(remote)? {
            Some(access) => RemoteArgs::beside(copy, usage, access, patience),
            None => remote.open_beside(copy, usage, patience),
        }
    }

    fn access(self, remote: &RemoteArgs) -> Result<Option<Access>, CommandError> {
        let Some(url) = self.url else { return Ok(None) };
        remote.access_to_other(url, self.token_file, self.ssh_key).map(Some)
    }
}
