//! The trailers of people's commit messages, found as `git interpret-trailers --parse` finds them.
//!
//! Forges append paragraphs when they squash a branch. A last paragraph with only their lines does not hide the
//! trailers of the paragraph before it.

/// Lines that Git itself writes: a paragraph with one of them may contain other text as well.
const BY_GIT: [&str; 2] = ["Signed-off-by: ", "(cherry picked from commit "];

/// The trailers that forges append, in lower case.
const BY_FORGES: [&str; 2] = ["co-authored-by", "signed-off-by"];

/// Returns the values of one trailer, in any case of its name.
pub fn values(message: &str, name: &str) -> Vec<String> {
    let named = |(found, _): &(String, String)| found.eq_ignore_ascii_case(name);
    trailers(message).into_iter().filter(named).map(|(_, value)| value).collect()
}

/// Returns all trailers as names and values.
fn trailers(message: &str) -> Vec<(String, String)> {
    let lines = body(message);
    let (start, mut found) = block(&lines);
    let is_of_forge =
        |(name, _): &(String, String)| BY_FORGES.iter().any(|known| name.eq_ignore_ascii_case(known));
    if !found.is_empty() && found.iter().all(is_of_forge) {
        let above = &lines[..without_ruler(&lines[..start])];
        found.splice(0..0, block(above).1);
    }
    found
}

/// Returns the lines of the message up to a divider, without comments at its end.
fn body(message: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = message.split_inclusive('\n').collect();
    let is_divider = |line: &&str| {
        line.strip_prefix("---").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_whitespace()))
    };
    if let Some(end) = lines.iter().position(is_divider) {
        lines.truncate(end);
    }
    while lines.last().is_some_and(|line| line.starts_with('#') || *line == "\n") {
        lines.pop();
    }
    lines
}

/// Returns the trailers at the end of these lines, and the index of their first line.
fn block(lines: &[&str]) -> (usize, Vec<(String, String)>) {
    let nothing = (lines.len(), Vec::new());
    let title = lines.iter().position(|line| !line.starts_with('#') && is_blank(line));
    let Some(title) = title else { return nothing };
    let (mut trailers, mut others, mut continued) = (0, 0, 0);
    let (mut only_spaces, mut by_git) = (true, false);
    let mut start = None;
    for at in (title..lines.len()).rev() {
        let line = lines[at];
        if line.starts_with('#') {
            others += continued;
            continued = 0;
        } else if is_blank(line) {
            if only_spaces {
                continue;
            }
            others += continued;
            let counts = (by_git && trailers * 3 >= others) || (trailers > 0 && others == 0);
            start = counts.then_some(at + 1);
            break;
        } else {
            only_spaces = false;
            if BY_GIT.iter().any(|known| line.starts_with(known)) {
                (trailers, continued, by_git) = (trailers + 1, 0, true);
            } else if separator(line).is_some_and(|at| at > 0) && !begins_with_space(line) {
                (trailers, continued) = (trailers + 1, 0);
            } else if begins_with_space(line) {
                continued += 1;
            } else {
                others += 1 + continued;
                continued = 0;
            }
        }
    }
    match start {
        Some(start) => (start, read(&lines[start..])),
        None => nothing,
    }
}

fn read(lines: &[&str]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in lines {
        if begins_with_space(line)
            && let Some((_, value)) = found.last_mut()
        {
            // The continuation of a folded value.
            let more = line.trim();
            if !more.is_empty() {
                value.push(' ');
                value.push_str(more);
            }
        } else if let Some(at) = separator(line).filter(|at| *at > 0) {
            found.push((line[..at].trim().to_owned(), line[at + 1..].trim().to_owned()));
        }
    }
    found
}

/// Returns the index of a trailer's colon. Only letters, digits, dashes and then spaces may precede it.
fn separator(line: &str) -> Option<usize> {
    let mut spaced = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b':' => return Some(at),
            b' ' | b'\t' if at > 0 => spaced = true,
            b'-' if !spaced => {}
            _ if byte.is_ascii_alphanumeric() && !spaced => {}
            _ => return None,
        }
    }
    None
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte.is_ascii_whitespace())
}

fn begins_with_space(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_whitespace())
}

/// Returns the number of lines without the rule that a forge draws above its own paragraph.
fn without_ruler(lines: &[&str]) -> usize {
    let filled = lines.iter().rposition(|line| !is_blank(line));
    match filled {
        Some(at) if lines[at].trim().len() >= 3 && lines[at].trim().bytes().all(|byte| byte == b'-') => at,
        _ => lines.len(),
    }
}
