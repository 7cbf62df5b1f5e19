//! Blocks system calls that `git`, ssh and their libraries do not use, by seccomp.
//!
//! The blocked calls are the parts of the kernel with most of its faults, and the ways to other processes. A blocked
//! call fails as on a kernel that lacks it, so libraries fall back to another.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

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
pub(super) fn enter(has_network: bool) -> bool {
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
