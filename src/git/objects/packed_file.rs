//! The file of packed refs, cached in memory with the lists made from it. A fleet has a ref for each cluster, and a
//! pass moves few of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::id::CommitId;
use super::locks::{Marks, PACKED};
use super::packed_refs;
use super::refs::RefMove;
use super::repo::Repo;
use berth_base::model::Map;

/// A file replaced within this time may have the same marks as its predecessor.
const TICK: Duration = Duration::from_millis(20);

/// The number of cached lists; berth itself uses few prefixes.
const MOST_LISTS: usize = 16;

/// The packed refs of a repository. Clones share the memory.
#[derive(Clone, Debug, Default)]
pub struct RecentRefs(Arc<Mutex<PackedFile>>);

/// The parsed file of packed refs, which can be read again at any time.
#[derive(Debug, Default)]
pub(super) struct PackedFile {
    text: Vec<u8>,
    /// The path and marks of the file with this text, if the marks identify it.
    read: Option<(PathBuf, Marks)>,
    /// That file, if berth wrote it. As long as it is open, no new file can get its inode number.
    written: Option<File>,
    /// By prefix of the names.
    lists: BTreeMap<String, List>,
}

#[derive(Debug, Default)]
struct List {
    refs: Map<String, CommitId>,
    is_of_this_text: bool,
}

impl Repo {
    /// Returns the packed refs as they are now. They stay valid for a caller that holds the lock of the file, or of
    /// the ref.
    pub(super) fn packed_file(&self) -> io::Result<MutexGuard<'_, PackedFile>> {
        let mut file = self.recent.refs.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.read_again(self.shared_path())?;
        Ok(file)
    }
}

impl PackedFile {
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the refs whose names have this prefix.
    pub(super) fn list(&mut self, prefix: &str) -> Map<String, CommitId> {
        if self.lists.len() >= MOST_LISTS && !self.lists.contains_key(prefix) {
            self.lists.clear();
        }
        let list = self.lists.entry(prefix.to_owned()).or_default();
        if !list.is_of_this_text {
            let one = |(id, name)| Some((str::from_utf8(name).ok()?, str::from_utf8(id).ok()?.parse().ok()?));
            let listed = packed_refs::beginning_with(&self.text, prefix).filter_map(one);
            *list = List { refs: brought_up_to(&list.refs, listed), is_of_this_text: true };
        }
        list.refs.clone()
    }

    /// Stores the new text, moves and file after berth replaced the packed refs. Git also replaces the file, and
    /// never writes into it.
    pub(super) fn take_moves(
        &mut self,
        text: Vec<u8>,
        moves: &[&RefMove],
        path: PathBuf,
        file: Option<File>,
    ) {
        for (prefix, list) in &mut self.lists {
            for one in moves.iter().filter(|one| one.name.starts_with(prefix.as_str())) {
                list.refs.insert(one.name.clone(), one.new);
            }
        }
        self.text = text;
        self.read = file.as_ref().and_then(Marks::of_open).map(|marks| (path, marks));
        self.written = file;
    }

    /// Reads the file again if it was replaced. Lists are rebuilt from their earlier versions on demand.
    fn read_again(&mut self, common: &Path) -> io::Result<()> {
        let path = common.join(PACKED);
        let marks = Marks::of(&path);
        let is_known = |(known, read): &(PathBuf, Marks)| *known == path && Some(*read) == marks;
        if self.read.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        self.read = marks.filter(|marks| marks.are_telling(TICK)).map(|marks| (path, marks));
        self.written = None;
        if text != self.text {
            self.text = text;
            self.lists.values_mut().for_each(|list| list.is_of_this_text = false);
        }
        Ok(())
    }
}

/// Updates an earlier list to the refs listed now. Fast if both ascend; correct in any order.
fn brought_up_to<'n>(
    earlier: &Map<String, CommitId>,
    listed: impl Iterator<Item = (&'n str, CommitId)>,
) -> Map<String, CommitId> {
    let mut found = earlier.clone();
    let mut rest = earlier.iter().peekable();
    let mut new = Vec::new();
    for (name, id) in listed {
        while let Some((gone, _)) = rest.next_if(|(known, _)| known.as_str() < name) {
            found.remove(gone);
        }
        if rest.next_if(|(known, known_id)| *known == name && **known_id == id).is_none() {
            new.push((name.to_owned(), id));
        }
    }
    for (gone, _) in rest {
        found.remove(gone);
    }
    found.extend(new);
    found
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn list(refs: &[(&str, u8)]) -> Map<String, CommitId> {
        refs.iter().map(|(name, id)| ((*name).to_owned(), CommitId([*id; 20]))).collect()
    }

    #[test]
    fn a_list_is_the_same_whatever_was_known_before_it() {
        let known: &[&[(&str, u8)]] = &[
            &[],
            &[("a", 1), ("b", 2), ("c", 3)],
            &[("b", 2)],
            &[("a", 9), ("c", 3), ("d", 4), ("e", 5)],
            &[("x", 1), ("y", 2)],
        ];
        let files: &[&[(&str, u8)]] = &[
            &[],
            &[("a", 1), ("b", 2), ("c", 3)],
            &[("c", 3), ("a", 1), ("b", 2)],
            &[("b", 2), ("b", 7)],
            &[("d", 4), ("a", 9), ("e", 6)],
        ];
        for known in known {
            for file in files {
                let listed = file.iter().map(|(name, id)| (*name, CommitId([*id; 20])));
                assert_eq!(brought_up_to(&list(known), listed), list(file), "{known:?} {file:?}");
            }
        }
    }

    #[test]
    fn a_list_that_is_as_before_is_the_one_from_before() {
        let known = list(&[("a", 1), ("b", 2)]);
        let listed = [("a", CommitId([1; 20])), ("b", CommitId([2; 20]))];
        assert!(brought_up_to(&known, listed.into_iter()).is_same(&known));
    }

    #[test]
    fn a_file_is_read_again_unless_its_marks_tell_it_from_all_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PACKED);
        let line = |digit: &str| format!("{} refs/berth/a\n", digit.repeat(40));
        let mut file = PackedFile::default();
        let mut read = |text: &str, at: SystemTime| {
            fs::write(&path, text).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
            file.read_again(folder.path()).unwrap();
            file.list("refs/berth/").values().next().map(ToString::to_string)
        };
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
        let (one, other) = ("1".repeat(40), "2".repeat(40));
        assert_eq!(read(&line("1"), long_ago), Some(one.clone()));
        assert_eq!(read(&line("2"), long_ago), Some(one.clone()), "the marks are the same");
        for at in [SystemTime::now() + Duration::from_secs(60), SystemTime::UNIX_EPOCH] {
            assert_eq!(read(&line("1"), at), Some(one.clone()));
            assert_eq!(read(&line("2"), at), Some(other.clone()), "others may have such marks");
        }
        assert_eq!(read("", long_ago), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_just_written_is_told_from_one_that_took_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PACKED);
        let line = |digit: &str| format!("{} refs/berth/a\n", digit.repeat(40));
        let now = SystemTime::now();
        let write = |name: &Path, digit: &str| {
            fs::write(name, line(digit)).unwrap();
            let file = File::options().write(true).open(name).unwrap();
            file.set_modified(now).unwrap();
            file
        };
        let mut file = PackedFile::default();
        let written = write(&path, "1");
        file.take_moves(line("1").into(), &[], path.clone(), Some(written));
        let mut is = |digit: &str| {
            file.read_again(folder.path()).unwrap();
            file.text() == line(digit).as_bytes()
        };
        assert!(is("1"));
        write(&path, "2");
        assert!(is("1"), "the file is known by its marks, and is not read");
        let next = path.with_extension("lock");
        write(&next, "3");
        fs::rename(next, &path).unwrap();
        assert!(is("3"), "another file has another number");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_tells_nothing_of_the_file_that_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let [there, link] = ["there", PACKED].map(|name| folder.path().join(name));
        fs::write(&there, "").unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
        File::options().write(true).open(&there).unwrap().set_modified(long_ago).unwrap();
        std::os::unix::fs::symlink(&there, &link).unwrap();
        let tells = |path: &Path| Marks::of(path).unwrap().are_telling(Duration::ZERO);
        assert!(tells(&there) && !tells(&link));
    }
}
