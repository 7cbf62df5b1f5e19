//! Path patterns: `*` and `?` within a part of a path, `**` for any number of parts.
//!
//! A pattern that matches a folder matches every file in it.

/// A checked pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<String>,
}

impl Pattern {
    /// Reads a pattern. The error completes a sentence that begins with the pattern's text.
    pub fn new(text: &str) -> Result<Pattern, &'static str> {
        let inner = text.trim_start_matches("./").trim_matches('/');
        if inner.is_empty() {
            return Err("names no file");
        }
        let parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
        if parts.iter().any(|part| part == ".." || part == "." || part.is_empty()) {
            return Err("is not a plain path below the root");
        }
        Ok(Pattern { parts })
    }

    /// Reports whether the pattern matches a path or one of its parent folders.
    pub fn matches(&self, path: &str) -> bool {
        // fits[n]: the first n parts of the pattern fit the parts of the path so far.
        let mut fits = vec![false; self.parts.len() + 1];
        fits[0] = true;
        self.skip_empty(&mut fits);
        for part in path.split('/') {
            let mut next = vec![false; fits.len()];
            for (index, pattern) in self.parts.iter().enumerate() {
                if pattern == "**" {
                    next[index] |= fits[index];
                } else if fits[index] && part_fits(pattern, part) {
                    next[index + 1] = true;
                }
            }
            self.skip_empty(&mut next);
            fits = next;
            if fits.last() == Some(&true) {
                return true;
            }
        }
        false
    }

    /// Lets `**` match no part. At the end it needs one, because it means everything in a folder.
    fn skip_empty(&self, fits: &mut [bool]) {
        for (index, pattern) in self.parts.iter().enumerate() {
            if pattern == "**" && index + 1 < self.parts.len() && fits[index] {
                fits[index + 1] = true;
            }
        }
        if let Some((last, before)) = fits.split_last_mut() {
            let ends_open = self.parts.last().is_some_and(|pattern| pattern == "**");
            *last |= ends_open && before.last() == Some(&true);
        }
    }
}

/// Matches one part of a path with one part of a pattern, backtracking only to the last `*`.
fn part_fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(path)
    }

    #[test]
    fn folders_and_wildcards_fit_as_expected() {
        for (pattern, path) in [
            ("charts", "charts/web/a.yaml"),
            ("charts/", "charts/a.yaml"),
            ("./a.yaml", "a.yaml"),
            ("*.yaml", "a.yaml"),
            ("**/values.yaml", "values.yaml"),
            ("**/values.yaml", "a/b/values.yaml"),
            ("a/**/z.yaml", "a/z.yaml"),
            ("a/**/z.yaml", "a/b/c/z.yaml"),
            ("a/**", "a/b"),
            ("?.yaml", "a.yaml"),
            ("a*b*c", "aXbbYc"),
            ("**", "x/y.yaml"),
            ("**/test", "a/test/b.yaml"),
        ] {
            assert!(fits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("charts", "charts2/a.yaml"),
            ("*.yaml", "a/b.yml"),
            ("a/*.yaml", "b/a.yaml"),
            ("a/b", "a"),
            ("**/values.yaml", "a/values.yml"),
            ("?.yaml", "ab.yaml"),
            ("a*b", "a"),
            ("a/**/z", "b/z"),
        ] {
            assert!(!fits(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let pattern = vec!["**"; 500].join("/*a/") + "/x";
        assert!(!fits(&pattern, &"a/".repeat(500)));
        assert!(!fits(&("*a".repeat(500) + "b"), &"a".repeat(2000)));
    }
}
