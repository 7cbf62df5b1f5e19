//! Files → a new `.tar.gz`, which only its owner may read.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::parts::File;
use berth_base::model::Timestamp;

/// Writes the files into one folder of the archive. An existing file stays.
pub fn write(path: &Path, folder: &str, files: &[File], now: Timestamp) -> std::io::Result<()> {
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
