//! Checks that a loose object's file can be read to its end. libgit2 loops forever on a file that a full disk or a
//! crash cut short.

use std::path::Path;

use flate2::{Decompress, FlushDecompress, Status};

use super::GitError;

/// Refuses an object whose own file is damaged. Packed and missing objects are not checked.
pub(super) fn check(shared: &Path, id: git2::Oid) -> Result<(), GitError> {
    let name = id.to_string();
    let Some((folder, file)) = name.split_at_checked(2) else { return Ok(()) };
    let path = shared.join("objects").join(folder).join(file);
    match std::fs::read(&path) {
        Ok(bytes) if !is_whole(&bytes) => Err(GitError::Failed {
            doing: format!("reading object {name}"),
            message: format!("`{}` is damaged", path.display()),
        }),
        _ => Ok(()),
    }
}

fn is_whole(bytes: &[u8]) -> bool {
    let mut inflate = Decompress::new(true);
    let mut out = vec![0; 64 << 10];
    loop {
        let (read, written) = (inflate.total_in(), inflate.total_out());
        let rest = usize::try_from(read).ok().and_then(|read| bytes.get(read..)).unwrap_or_default();
        match inflate.decompress(rest, &mut out, FlushDecompress::None) {
            Ok(Status::StreamEnd) => return true,
            Ok(_) if (inflate.total_in(), inflate.total_out()) != (read, written) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_what_reaches_its_end_is_whole() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        encoder.write_all(&content).expect("it is written");
        let bytes = encoder.finish().expect("it is written");
        assert!(is_whole(&bytes));
        for much in [0, 1, 2, 10, bytes.len() / 2, bytes.len() - 1] {
            assert!(!is_whole(&bytes[..much]), "{much}");
        }
        assert!(!is_whole(b"nonsense"));
    }
}
