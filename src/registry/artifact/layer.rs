//! The layer of an artifact. Packs a tree into a layer whose bytes depend only on the tree: sorted, without
//! times, owners or traces of this machine. Unpacks a layer into Git objects: whatever the layer contains,
//! only the object store is written, and memory stays limited. Paths in a layer have only the allowed forms.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use tar::{Archive, Builder, EntryType, Header, PaxExtensions};

use super::{Artifact, LONGEST_FILE, LONGEST_LAYER, MOST_ENTRIES};
use crate::error::RegistryError;
use berth_base::model::ContentId;
use berth_git::{EntryKind, GitError, Repo, TreeId, Writer};

/// The most parts of a path. A cluster's folder has two.
const DEEPEST: usize = 16;
/// The longest path. Berth writes none so long.
const LONGEST_PATH: usize = 4_096;
/// The longest extension of a file's header, which may have its path.
const LONGEST_EXTENSION: u64 = 64 << 10;

/// Reports whether a path stays in its folder when any program unpacks it.
pub(super) fn is_fit(path: &str) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    path.len() <= LONGEST_PATH
        && path.split('/').count() <= DEEPEST
        && path.split('/').all(is_part)
        && !path.contains(['\0', '\\'])
}

/// Returns the folders above a path, the outermost first.
fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

/// Changing the level would change every folder's digest.
const LEVEL: Compression = Compression::new(6);
/// The mark of a gzip stream from an unspecified system.
const NO_SYSTEM: u8 = 255;

/// Packs a cluster's folder.
pub fn pack(repo: &Repo, tree: TreeId, cluster: &str) -> Result<Artifact, RegistryError> {
    let unfit = |reason: String| RegistryError::Unfit { cluster: cluster.to_owned(), reason };
    let failed = |error: io::Error| unfit(format!("packing it failed: {error}"));
    let mut files = BTreeMap::new();
    let mut left = MOST_ENTRIES;
    list(repo, tree, "", (&mut files, &mut left)).map_err(|error| match error {
        ListError::Git(error) => RegistryError::Git(error),
        ListError::Unfit(reason) => unfit(reason),
    })?;
    let encoder = GzBuilder::new().mtime(0).operating_system(NO_SYSTEM).write(Vec::new(), LEVEL);
    let mut archive = Builder::new(encoder);
    let (mut last_folder, mut length) = (String::new(), 0);
    for (path, id) in files {
        for folder in folders_above(&path) {
            let is_known = last_folder == folder || last_folder.starts_with(&format!("{folder}/"));
            if !is_known {
                append(&mut archive, &format!("{folder}/"), EntryType::Directory, 0o755, &[])
                    .map_err(failed)?;
                folder.clone_into(&mut last_folder);
            }
        }
        let bytes = repo.blob(id)?;
        length += bytes.len() as u64;
        if bytes.len() as u64 > LONGEST_FILE || length > LONGEST_LAYER {
            return Err(unfit(format!("`{path}` makes it too long")));
        }
        append(&mut archive, &path, EntryType::Regular, 0o644, &bytes).map_err(failed)?;
    }
    let layer = archive.into_inner().and_then(flate2::write::GzEncoder::finish).map_err(failed)?;
    Ok(Artifact::of(layer))
}

enum ListError {
    Git(GitError),
    Unfit(String),
}

/// Lists the files of a tree by path. In byte order, all files of a folder are adjacent.
fn list(
    repo: &Repo,
    tree: TreeId,
    above: &str,
    (files, left): (&mut BTreeMap<String, ContentId>, &mut u64),
) -> Result<(), ListError> {
    for entry in repo.tree(tree).map_err(ListError::Git)? {
        let name = String::from_utf8_lossy(&entry.name);
        let path = format!("{above}{name}");
        if name.as_bytes() != entry.name || !is_fit(&path) {
            return Err(ListError::Unfit(format!("`{}` is no name for a file", path.escape_debug())));
        }
        *left = left
            .checked_sub(1)
            .ok_or_else(|| ListError::Unfit(format!("it has more than {MOST_ENTRIES} files and folders")))?;
        match entry.kind {
            EntryKind::File(id) => {
                files.insert(path, id);
            }
            EntryKind::Folder(id) => list(repo, id, &format!("{path}/"), (files, left))?,
            EntryKind::Other { .. } => {
                return Err(ListError::Unfit(format!("`{path}` is not a plain file")));
            }
        }
    }
    Ok(())
}

fn append(
    archive: &mut Builder<impl io::Write>,
    path: &str,
    kind: EntryType,
    mode: u32,
    bytes: &[u8],
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    archive.append_data(&mut header, path, bytes)
}

/// The reasons why a layer is refused.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("{0}")]
    Unfit(String),
    /// The bytes did not arrive completely, or are not an archive.
    #[error("its layer cannot be unpacked: {0}")]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Writes the files of a layer into a repository, and returns their tree. No ref points to it yet.
pub fn unpack(repo: &Repo, layer: impl Read) -> Result<TreeId, UnpackError> {
    let mut writer = Writer::new(repo)?;
    let unfit = |reason: String| Err(UnpackError::Unfit(reason));
    let bytes = Limited { from: MultiGzDecoder::new(layer), left: LONGEST_LAYER };
    let mut archive = Archive::new(bytes);
    let mut files: BTreeMap<String, ContentId> = BTreeMap::new();
    let (mut count, mut long_path) = (0, None);
    // Raw mode, because for long names the reader would allocate as much memory as they claim.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        count += 1;
        if count > 2 * MOST_ENTRIES || files.len() as u64 >= MOST_ENTRIES {
            return unfit(format!("its layer has more than {MOST_ENTRIES} files"));
        }
        let (kind, size) = (entry.header().entry_type(), entry.header().entry_size()?);
        if kind == EntryType::GNULongName && long_path.is_none() {
            if size > LONGEST_PATH as u64 {
                return unfit("a path in its layer is too long".to_owned());
            }
            let mut path = Vec::new();
            entry.read_to_end(&mut path)?;
            while path.last() == Some(&0) {
                path.pop();
            }
            long_path = Some(path);
            continue;
        }
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        if kind == EntryType::XHeader && long_path.is_none() {
            if size > LONGEST_EXTENSION {
                return unfit("a header in its layer is too long".to_owned());
            }
            let mut extensions = Vec::new();
            entry.read_to_end(&mut extensions)?;
            long_path = path_in(&extensions)?;
            continue;
        }
        let path = long_path.take().unwrap_or_else(|| entry.header().path_bytes().into_owned());
        let shown = String::from_utf8_lossy(&path).escape_debug().to_string();
        let path = match String::from_utf8(path) {
            Ok(path) if is_fit(path.strip_suffix('/').unwrap_or(&path)) => path,
            _ => return unfit(format!("the path `{shown}` in its layer leads elsewhere")),
        };
        match kind {
            // Git has no empty folders; other folders exist through their files.
            EntryType::Directory if size == 0 => {}
            EntryType::Regular if path.ends_with('/') || files.contains_key(&path) => {
                return unfit(format!("the path `{shown}` in its layer is not one file's"));
            }
            EntryType::Regular if size > LONGEST_FILE => {
                return unfit(format!("`{shown}` in its layer has more than {LONGEST_FILE} bytes"));
            }
            EntryType::Regular => {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                if bytes.len() as u64 != size {
                    return unfit(format!("`{shown}` in its layer is cut off"));
                }
                files.insert(path, writer.blob(&bytes)?);
            }
            _ => return unfit(format!("`{shown}` in its layer is neither a file nor a folder")),
        }
    }
    let folders: BTreeSet<&str> = files.keys().flat_map(|path| folders_above(path)).collect();
    if let Some(both) = files.keys().find(|path| folders.contains(path.as_str())) {
        return unfit(format!("`{}` in its layer is both a file and a folder", both.escape_debug()));
    }
    Ok(writer.folder(files.iter().map(|(path, id)| (path.as_str(), *id)))?)
}

/// Returns the path in the extensions of a header. Fails if they change the size, which the header has.
fn path_in(extensions: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut path = None;
    for extension in PaxExtensions::new(extensions) {
        let extension = extension?;
        match extension.key_bytes() {
            b"path" => path = Some(extension.value_bytes().to_owned()),
            b"size" => return Err(io::Error::other("a file in it is too large")),
            _ => {}
        }
    }
    Ok(path)
}

/// Fails when more bytes come than the limit.
struct Limited<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(into)?;
        self.left = self
            .left
            .checked_sub(length as u64)
            .ok_or_else(|| io::Error::other(format!("it has more than {LONGEST_LAYER} bytes")))?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_its_folder() {
        for fine in ["a", "a/b.yaml", "a/..b", "_cluster/Namespace_x.yaml", "a/%2E%2E"] {
            assert!(is_fit(fine), "{fine}");
        }
        let deep = ["a"; 17].join("/");
        let long = "a".repeat(5_000);
        for wrong in ["", "/a", "a/", "../a", "a/../b", "./a", "a//b", "a\\..\\b", "a\0b", &deep, &long] {
            assert!(!is_fit(wrong), "{wrong}");
        }
        assert_eq!(folders_above("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
