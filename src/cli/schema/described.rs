//! The description of each field in one line, which editors show.
//!
//! A line of descriptions.txt applies to every field whose path ends with the line's path; the longest match counts.
//! A heading names the kinds of the lines below it, where `*` matches any ending.

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The kinds to which it applies; `*` for all.
    kinds: &'static str,
    /// The end of the path.
    path: &'static str,
    text: &'static str,
}

/// Returns all lines.
pub(super) fn lines() -> Vec<Line> {
    let mut kinds = "*";
    let mut all = Vec::new();
    for line in include_str!("descriptions.txt").lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            kinds = heading;
        } else if let Some((path, text)) = line.split_once(": ") {
            all.push(Line { kinds, path, text });
        }
    }
    all
}

/// Returns the line for a field.
pub(super) fn line<'l>(lines: &'l [Line], kind: &str, path: &str) -> Option<&'l Line> {
    let fitting = lines.iter().filter(|line| line.is_for(kind) && line.fits(path));
    fitting.max_by_key(|line| (line.path.len(), line.kinds != "*"))
}

pub(super) fn description(kind: &str, path: &str) -> Option<&'static str> {
    line(&lines(), kind, path).map(|line| line.text)
}

impl Line {
    fn is_for(&self, kind: &str) -> bool {
        self.kinds.split(' ').any(|name| match name.strip_suffix('*') {
            Some(start) => kind.starts_with(start),
            None => kind == name,
        })
    }

    fn fits(&self, path: &str) -> bool {
        path.strip_suffix(self.path).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }
}
