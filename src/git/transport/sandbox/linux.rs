//! The bounds as Linux enforces them.
//!
//! Landlock restricts files and TCP ports: files from Linux 5.19 on, ports from 6.7 on. Seccomp blocks system
//! calls that `git`, ssh and their libraries do not use: the parts of the kernel with most of its faults, and
//! the ways to other processes. A blocked call fails as on a kernel that lacks it, so libraries fall back to
//! another. A shell limits memory, processor time and file length of each process.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::{Bounds, Limits};

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
pub(super) fn restrict_files(bounds: &Bounds) -> io::Result<(bool, bool)> {
    let entered = try_enter(bounds).map_err(|error| io::Error::other(format!("its sandbox: {error}")))?;
    Ok(entered)
}

/// Restricts this thread, as far as the kernel can, to programs and libraries, and this program.
pub(super) fn close_files(program: &Path) -> io::Result<()> {
    let close = || -> Result<RulesetStatus, RulesetError> {
        let run = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(KNOWN))?
            .handle_access(AccessNet::from_all(KNOWN))?
            .scope(Scope::from_all(KNOWN))?
            .create()?
            .add_rules(below(PROGRAMS, run))?
            .add_rules(below([program], AccessFs::ReadFile | AccessFs::Execute))?
            .add_rules(below(["/dev/null"], AccessFs::ReadFile | AccessFs::WriteFile))?;
        Ok(rules.restrict_self()?.ruleset)
    };
    close().map(|_| ()).map_err(|error| io::Error::other(format!("its sandbox: {error}")))
}

/// Limits the memory of a child, and disables core dumps. A child that has ended needs no limit.
pub(super) fn limit(child: &Child, memory: u64) {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    for (resource, most) in [(Resource::Data, memory), (Resource::Core, 0)] {
        let most = Some(least(resource, most));
        let _ = prlimit(Some(pid), resource, Rlimit { current: most, maximum: most });
    }
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

/// `kexec_file_load`, which `libc` does not name on every architecture. On architectures with another number there is
/// no filter.
const KEXEC_FILE_LOAD: libc::c_long = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

const DENIED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    // A filter cannot see its flags; libraries fall back to `clone`.
    libc::SYS_clone3,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    KEXEC_FILE_LOAD,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// A variant of TCP that Landlock does not restrict.
const MULTIPATH_TCP: u64 = libc::IPPROTO_MPTCP as u64;

/// Restricts this thread. Returns false if the kernel or the architecture cannot.
pub(super) fn block_calls(has_network: bool) -> bool {
    filter(has_network).and_then(|filter| seccompiler::apply_filter(&filter)).is_ok()
}

fn filter(has_network: bool) -> Result<BpfProgram, Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let argument = |index, by, value| SeccompCondition::new(index, SeccompCmpArgLen::Dword, by, value);
    let families: &[libc::c_int] = if has_network {
        &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
    } else {
        &[libc::AF_UNIX]
    };
    let others = families.iter().map(|family| argument(0, SeccompCmpOp::Ne, family.unsigned_abs().into()));
    let others = SeccompRule::new(others.collect::<Result<_, _>>()?)?;
    let multipath = SeccompRule::new(vec![argument(2, SeccompCmpOp::Eq, MULTIPATH_TCP)?])?;
    rules.insert(libc::SYS_socket, vec![others, multipath]);
    let user = libc::CLONE_NEWUSER.unsigned_abs().into();
    let new_user = SeccompRule::new(vec![argument(0, SeccompCmpOp::MaskedEq(user), user)?])?;
    rules.insert(libc::SYS_clone, vec![new_user]);
    let denied = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, denied, architecture)?.try_into()?)
}

/// Sets the limits, then becomes the program. Disables core dumps, which would contain credentials.
const SCRIPT: &str =
    r#"ulimit -c 0 && ulimit -d "$1" && ulimit -f "$2" && ulimit -t "$3" && shift 3 && exec "$@""#;

/// The units in which shells count memory and files.
const KIB: u64 = 1024;
const BLOCK: u64 = 512;

/// Prepares a program that starts with its limits, as do its helpers. The memory limit counts allocated memory, not
/// mapped files, so packs of any size can be read.
pub(in crate::transport) fn limited(program: &str, limits: Limits, time: Duration) -> Command {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let seconds = time.as_secs().max(1).saturating_mul(cores);
    let amounts = [
        least(Resource::Data, limits.memory) / KIB,
        least(Resource::Fsize, limits.file) / BLOCK,
        least(Resource::Cpu, seconds),
    ];
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, program]).args(amounts.map(|amount| amount.to_string())).arg(program);
    command
}

/// Returns the limit, or this process's own if that is lower: a process cannot raise its limits.
fn least(resource: Resource, most: u64) -> u64 {
    let own = getrlimit(resource);
    [own.current, own.maximum].into_iter().flatten().fold(most, u64::min)
}
