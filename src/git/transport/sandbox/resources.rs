//! Memory, processor time and the length of files, by limits of each process.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use super::Limits;

/// Takes the limits, then becomes the program. An image of its memory would hold credentials, so there is none.
const SCRIPT: &str =
    r#"ulimit -c 0 && ulimit -d "$1" && ulimit -f "$2" && ulimit -t "$3" && shift 3 && exec "$@""#;

/// The bytes that shells count memory and files in.
const KIB: u64 = 1024;
const BLOCK: u64 = 512;

/// A program that has its limits before it starts, and so have all of its helpers. Memory is counted as it is taken,
/// so that packs of any size are read.
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

/// The limit, or that of this process where it is lower: nobody may raise it.
fn least(resource: Resource, most: u64) -> u64 {
    let own = getrlimit(resource);
    [own.current, own.maximum].into_iter().flatten().fold(most, u64::min)
}
