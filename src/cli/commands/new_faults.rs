//! The errors of a fleet before and after an edit → those that the edit brought in.
//!
//! Lines move when a file is edited, so an error is known by its file, the object it stands in, and its words.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::edit::{Found, Objects};

/// An error without its line.
type Fault = (Option<Arc<str>>, Option<Object>, String);

/// Kind with group, namespace, name.
type Object = (String, String, String, String);

/// The number of occurrences of each error.
#[derive(Debug)]
pub struct Faults(BTreeMap<Fault, usize>);

impl Faults {
    pub fn of<'f>(found: &Diagnostics, files: impl Iterator<Item = &'f (Arc<str>, Objects)>) -> Faults {
        let files = by_path(files);
        let mut faults = BTreeMap::new();
        for one in found.errors() {
            *faults.entry(fault(one, &files)).or_default() += 1;
        }
        Faults(faults)
    }

    /// The errors that were not there, or not as often.
    pub(crate) fn not_among<'f>(
        mut self,
        found: &Diagnostics,
        files: impl Iterator<Item = &'f (Arc<str>, Objects)>,
    ) -> Diagnostics {
        let files = by_path(files);
        let mut new = Diagnostics::new();
        for one in found.errors() {
            match self.0.get_mut(&fault(one, &files)) {
                Some(left) if *left > 0 => *left -= 1,
                _ => new.push(one.clone()),
            }
        }
        new
    }
}

fn by_path<'f>(files: impl Iterator<Item = &'f (Arc<str>, Objects)>) -> BTreeMap<&'f str, &'f Objects> {
    files.map(|(path, objects)| (&**path, objects)).collect()
}

fn fault(one: &Diagnostic, files: &BTreeMap<&str, &Objects>) -> Fault {
    let file = one.at.as_ref().map(|at| at.file.clone());
    let object = one.at.as_ref().and_then(|at| {
        // The last that begins before it, of those in the document it stands in.
        let around = |found: &&Found| {
            found.lines.contains(&at.line) && (found.at.line, found.at.column) <= (at.line, at.column)
        };
        let found = files.get(&*at.file)?.found.iter().filter(around).max_by_key(|found| found.at)?;
        let Found { kind, namespace, name, .. } = found;
        Some((found.group().to_owned(), kind.clone(), namespace.clone(), name.clone()))
    });
    (file, object, without_lines(&one.message))
}

/// A message without the lines and columns of places that it names: `file:3:1` is `file` wherever it moves to.
pub(crate) fn without_lines(message: &str) -> String {
    let mut parts = message.split(':');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == part.len() {
            text.push(':');
        }
        text.push_str(rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::diag::Pos;
    use berth_base::edit::objects;

    fn file(path: &str, text: &str) -> (Arc<str>, Objects) {
        (path.into(), objects(text.as_bytes()))
    }

    fn errors(all: &[(&str, u32, &str)]) -> Diagnostics {
        let mut found = Diagnostics::new();
        found
            .extend(all.iter().map(|(path, line, text)| Diagnostic::error(Pos::new(*path, *line, 3), *text)));
        found
    }

    const TWO: &str =
        "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n";

    #[test]
    fn an_error_that_moves_with_its_object_is_not_new_and_the_same_words_elsewhere_are() {
        let longer = TWO.replace("name: a}", "name: a}\ndata: {}");
        let (before, after) = ([file("x.yaml", TWO)], [file("x.yaml", &longer)]);
        let new = |was: &[(&str, u32, &str)], is: &[(&str, u32, &str)]| {
            Faults::of(&errors(was), before.iter()).not_among(&errors(is), after.iter()).len()
        };
        let (was, moved) =
            (("x.yaml", 6, "bad, as x.yaml:3:1 says"), ("x.yaml", 7, "bad, as x.yaml:4:1 says"));
        assert_eq!(new(&[was], &[moved]), 0);
        assert_eq!(new(&[was], &[moved, moved]), 1, "once more than before");
        assert_eq!(new(&[was], &[("x.yaml", 2, was.2)]), 1, "in another object");
        assert_eq!(new(&[was], &[("y.yaml", 6, was.2)]), 1, "in another file");
        assert_eq!(new(&[was], &[("x.yaml", 7, "worse")]), 1);
    }
}
