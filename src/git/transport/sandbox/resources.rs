//! Limits memory, processor time and file length of each process.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use super::Limits;

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
