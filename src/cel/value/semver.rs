//! Semantic versions and their order.

use std::cmp::Ordering;

/// A version. Build metadata makes no difference between versions and is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    pub(crate) parts: [u64; 3],
    before: Vec<Part>,
}

/// A part of the pre-release. Numbers come before texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

impl Semver {
    pub(crate) fn read(text: &str) -> Option<Semver> {
        parse(text)
    }

    /// Compares two versions. A version without a pre-release comes after those with one.
    pub(crate) fn compare(&self, other: &Semver) -> Ordering {
        let by_before = match (self.before.is_empty(), other.before.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.before.cmp(&other.before),
        };
        self.parts.cmp(&other.parts).then(by_before)
    }
}

fn parse(text: &str) -> Option<Semver> {
    let (text, built) = text.split_once('+').map_or((text, None), |(text, built)| (text, Some(built)));
    let (numbers, before) = text.split_once('-').map_or((text, None), |(text, before)| (text, Some(before)));
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if built.is_some_and(|built| !built.split('.').all(is_word)) {
        return None;
    }
    let mut parts = [0; 3];
    let mut given = numbers.split('.');
    for part in &mut parts {
        *part = number(given.next()?)?;
    }
    if given.next().is_some() {
        return None;
    }
    let one = |part: &str| match part.bytes().all(|byte| byte.is_ascii_digit()) {
        _ if !is_word(part) => None,
        true => number(part).map(Part::Number),
        false => Some(Part::Text(part.to_owned())),
    };
    let before = before.map_or(Some(Vec::new()), |before| before.split('.').map(one).collect())?;
    Some(Semver { parts, before })
}

/// Parses digits without leading zeros.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok()).flatten()
}
