//! Reads a file of the member's own, such as its overrides or its facts; every problem of it in one text.

use std::path::Path;

use berth_base::diag::Diagnostics;

pub fn read<T>(path: &Path, read: impl FnOnce(&str, &[u8]) -> Result<T, Diagnostics>) -> Result<T, String> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    read(&name, &bytes).map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}
