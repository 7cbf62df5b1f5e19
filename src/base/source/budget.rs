//! The size limits of one tree: of a fleet's source, of a cluster's folder, and of the state.
//!
//! A Git tree names its folders and files by their ids, so a kilobyte can name more entries than any machine
//! can store. Each entry therefore counts once for every path to it. A tree beyond its limits loses one
//! folder, the smallest without which the rest is within them. Everything else is read as usual.

use std::cmp::Ordering;

/// The entries of a tree: files, folders and links, whether read or not.
pub const MOST_ENTRIES: u64 = 1_000_000;

/// The bytes of all files to read, and of all paths.
pub const MOST_BYTES: u64 = 256 << 20;

/// The documents of all files, and the values in them.
pub const MOST_DOCUMENTS: usize = 500_000;
pub const MOST_VALUES: usize = 10_000_000;

/// The files and folders of one cluster's folder, which a member holds in memory.
pub const MOST_OF_A_CLUSTER: u64 = 500_000;

/// The files and folders of the state on the rendered branch, for all clusters together.
pub const MOST_OF_A_STATE: u64 = 10_000_000;

/// The deepest folder to read, deeper than in any fleet: it stops a tree that was made to exhaust the stack.
pub const DEEPEST: usize = 64;

/// The hint for a tree that is too large.
pub const TOO_LARGE_HINT: &str = "remove it, or split the fleet: a tree may hold at most 1,000,000 entries, and \
                                  256 MiB of YAML";

/// The size of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    pub entries: u64,
    pub bytes: u64,
}

impl TreeSize {
    /// Returns the size of an entry, from the length of its path and the number of bytes to read.
    pub fn of_entry(path: usize, bytes: u64) -> TreeSize {
        TreeSize { entries: 1, bytes: bytes.saturating_add(path as u64) }
    }

    #[must_use]
    pub fn plus(self, other: TreeSize) -> TreeSize {
        TreeSize {
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Returns the size of a folder with this size, under a name of this many bytes.
    #[must_use]
    pub fn below(self, name: usize) -> TreeSize {
        let length = name as u64 + 1;
        TreeSize { bytes: self.bytes.saturating_add(self.entries.saturating_mul(length)), ..self }
    }

    /// Reports whether a tree of this size exceeds the limits.
    pub fn is_too_large(self) -> bool {
        self.entries > MOST_ENTRIES || self.bytes > MOST_BYTES
    }

    /// Compares by the largest share of a limit that each size uses.
    fn cmp(self, other: TreeSize) -> Ordering {
        let share = |size: TreeSize| {
            let [entries, bytes] = [size.entries, size.bytes].map(u128::from);
            (entries * u128::from(MOST_BYTES)).max(bytes * u128::from(MOST_ENTRIES))
        };
        share(self).cmp(&share(other))
    }
}

/// An entry of a folder. The size of its path counts from that folder on.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: String,
    pub is_folder: bool,
    pub size: TreeSize,
}

/// Returns the path of the smallest folder without which a tree is within the limits; empty for the whole
/// tree. `parts` lists a folder by its path.
pub fn too_large_folder<E>(mut parts: impl FnMut(&str) -> Result<Vec<Part>, E>) -> Result<String, E> {
    let (mut path, mut rest) = (String::new(), TreeSize::default());
    loop {
        let mut parts = parts(&path)?;
        parts.sort_by(|one, other| one.size.cmp(other.size).then_with(|| one.name.cmp(&other.name)));
        let Some(largest) = parts.pop().filter(|largest| largest.is_folder) else { return Ok(path) };
        rest = parts.iter().fold(rest, |sum, part| sum.plus(part.size));
        if rest.is_too_large() {
            return Ok(path);
        }
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(&largest.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, is_folder: bool, entries: u64) -> Part {
        Part { name: name.to_owned(), is_folder, size: TreeSize { entries, bytes: 0 } }
    }

    #[test]
    fn the_smallest_folder_without_which_the_rest_fits_is_named() {
        let found = |parts: &dyn Fn(&str) -> Vec<Part>| {
            too_large_folder(|path| Ok::<_, std::convert::Infallible>(parts(path))).unwrap()
        };
        let huge = MOST_ENTRIES * 10;
        let bomb = |path: &str| match path {
            "" => vec![part("apps", true, huge * 10), part("a.yaml", false, 1)],
            "apps" => vec![part("good", true, 100), part("x", true, huge * 10)],
            _ => (0..10).map(|number| part(&number.to_string(), true, huge)).collect(),
        };
        assert_eq!(found(&bomb), "apps/x");
        let files = |_: &str| vec![part("a", false, huge), part("b", true, 3)];
        assert_eq!(found(&files), "");
        let two = |path: &str| match path {
            "" => vec![part("a", true, 700_000), part("b", true, 600_000)],
            _ => vec![part("1", false, 1), part("2", false, 1)],
        };
        assert_eq!(found(&two), "a", "the rest of the larger one fits no more");
    }
}
