//! Restricts files and TCP ports by Landlock: files from Linux 5.19 on, ports from 6.7 on.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::Bounds;

/// Programs and libraries.
const PROGRAMS: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// The files by which programs find names, users and certificate authorities. Not all of `/etc`: it holds
/// credentials.
const SETTINGS: &[&str] = &[
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/gnutls",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld-musl-aarch64.path",
    "/etc/ld-musl-x86_64.path",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/run/nscd",
    "/var/lib/ca-certificates",
    "/var/lib/sss/mc",
    "/var/lib/sss/pubconf",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/crypto",
    "/proc/sys/kernel",
    "/proc/sys/vm",
    "/sys/devices/system/cpu",
];

/// The newest version of Landlock that this code was tested with.
const KNOWN: ABI = ABI::V6;

/// Restricts this thread, as far as the kernel can. Reports whether files are restricted, and whether ports are.
pub(super) fn enter(bounds: &Bounds) -> io::Result<(bool, bool)> {
    let entered = try_enter(bounds).map_err(|error| io::Error::other(format!("its sandbox: {error}")))?;
    Ok(entered)
}

fn try_enter(bounds: &Bounds) -> Result<(bool, bool), RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = read | AccessFs::Execute;
    let write = AccessFs::from_all(KNOWN)
        & !(AccessFs::Execute
            | AccessFs::IoctlDev
            | AccessFs::MakeBlock
            | AccessFs::MakeChar
            | AccessFs::MakeFifo
            | AccessFs::MakeSock);
    // A kernel without this right would refuse moves between folders, which `git` needs. There, run without a
    // sandbox.
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::SoftRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let has_network = !bounds.ports.is_empty();
    let everything: &[&str] = if has_network { &[] } else { &["/"] };
    let rules = rules
        .add_rules(below(PROGRAMS, run))?
        .add_rules(below(found_programs(), run))?
        .add_rules(below(SETTINGS, read))?
        .add_rules(below(everything, read))?
        .add_rules(below(["/dev/null"], read | AccessFs::WriteFile))?
        .add_rules(below(&bounds.reads, read))?
        .add_rules(below(&bounds.writes, write))?
        .add_rules(below(&bounds.runs, write | run))?
        .add_rules(
            bounds.ports.iter().map(|port| Ok::<_, RulesetError>(NetPort::new(*port, AccessNet::ConnectTcp))),
        )?;
    let status = rules.restrict_self()?;
    let has_ports = matches!(
        status.landlock,
        landlock::LandlockStatus::Available { effective_abi, .. } if effective_abi >= ABI::V4
    );
    let is_bound = status.ruleset != RulesetStatus::NotEnforced;
    Ok((is_bound, is_bound && has_ports))
}

/// Makes the rules for existing paths; skips missing ones.
fn below<P: AsRef<Path>>(
    paths: impl IntoIterator<Item = P>,
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<landlock::PathBeneath<landlock::PathFd>, RulesetError>> {
    path_beneath_rules(paths, access)
}

/// Lists the folders of `PATH`, and the folder where `git` is installed with its helpers.
fn found_programs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| folder.parent().is_some()).collect();
    let installed = found.iter().find_map(|folder| std::fs::canonicalize(folder.join("git")).ok());
    let installed = installed.and_then(|git| Some(git.parent()?.parent()?.to_owned()));
    // The file system's root is not the folder of one program.
    found.extend(installed.filter(|folder| folder.parent().is_some()));
    found
}
