//! Packs a tree into a layer whose bytes depend only on the tree: sorted, without times, owners or traces of this
//! machine.

use std::collections::BTreeMap;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::layer::{folders_above, is_fit};
use super::{Artifact, LONGEST_FILE, LONGEST_LAYER, MOST_ENTRIES};
use crate::error::RegistryError;
use berth_base::model::ContentId;
use berth_git::{EntryKind, Repo, TreeId};

/// Changing the level would change every folder's digest.
const LEVEL: Compression = Compression::new(6);
/// The mark of a gzip stream from an unspecified system.
const NO_SYSTEM: u8 = 255;

/// Packs a cluster's folder.
pub fn pack(repo: &Repo, tree: TreeId, cluster: &str) -> Result<Artifact, RegistryError> {
    let unfit = |reason: String| RegistryError::Unfit { cluster: cluster.to_owned(), reason };
    let failed = |error: std::io::Error| unfit(format!("packing it failed: {error}"));
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
    Git(berth_git::GitError),
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
    archive: &mut Builder<impl std::io::Write>,
    path: &str,
    kind: EntryType,
    mode: u32,
    bytes: &[u8],
) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    archive.append_data(&mut header, path, bytes)
}
