//! Arguments in, exit code out; everything else is in the library.

use std::process::ExitCode;

/// Static programs would otherwise have musl's allocator, with which a pass takes twice as long.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    berth_cli::commands::main()
}
