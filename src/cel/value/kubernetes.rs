//! Values of Kubernetes' extensions: semantic versions and their order; URLs, as Kubernetes reads them:
//! absolute ones, or absolute paths; and named formats of texts.

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

/// The parts of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    pub(crate) scheme: String,
    /// The host with the port.
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) query: String,
}

impl Url {
    /// Reads a URL.
    pub(crate) fn read(text: &str) -> Option<Url> {
        if text.chars().any(|character| character.is_ascii_control() || character == ' ') {
            return None;
        }
        let (text, _fragment) = text.split_once('#').unwrap_or((text, ""));
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let query = query.to_owned();
        if place.starts_with('/') && !place.starts_with("//") {
            return is_escaped(place).then(|| Url { path: place.to_owned(), query, ..Url::default() });
        }
        let (scheme, rest) = place.split_once(':')?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if !is_scheme {
            return None;
        }
        let scheme = scheme.to_ascii_lowercase();
        let Some(rest) = rest.strip_prefix("//") else {
            // Without a host, the path must be absolute; otherwise the whole rest is opaque.
            let path = if rest.starts_with('/') { rest.to_owned() } else { String::new() };
            return is_escaped(rest).then_some(Url { scheme, path, query, host: String::new() });
        };
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let (name, port) = split(host);
        let is_name = if host.starts_with('[') {
            name.parse::<core::net::Ipv6Addr>().is_ok()
        } else {
            !name.contains(['[', ']', '<', '>', '"', ':'])
        };
        (is_name && is_port(port) && is_escaped(path)).then(|| Url {
            scheme,
            host: host.to_owned(),
            path: path.to_owned(),
            query,
        })
    }

    /// Returns the host without brackets around an IPv6 address, and the port.
    pub(crate) fn name_and_port(&self) -> (&str, &str) {
        split(&self.host)
    }
}

/// Splits name and port; the name of an IPv6 address has no brackets.
fn split(host: &str) -> (&str, &str) {
    if let Some((name, rest)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (name, rest.strip_prefix(':').unwrap_or(rest));
    }
    host.rsplit_once(':').unwrap_or((host, ""))
}

/// Reports whether each `%` begins an escape.
fn is_escaped(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| {
        let digits = part.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

/// Returns a text with its escapes replaced; `None` if the result is not valid text.
pub(crate) fn unescape(text: &str) -> Option<String> {
    if !is_escaped(text) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// A named format of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    QualifiedName,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    Datetime,
}

const NAMES: [(&str, Format); 13] = [
    ("dns1123Label", Format::Dns1123Label),
    ("dns1123Subdomain", Format::Dns1123Subdomain),
    ("dns1035Label", Format::Dns1035Label),
    ("dns1123LabelPrefix", Format::Dns1123LabelPrefix),
    ("dns1123SubdomainPrefix", Format::Dns1123SubdomainPrefix),
    ("dns1035LabelPrefix", Format::Dns1035LabelPrefix),
    ("qualifiedName", Format::QualifiedName),
    ("labelValue", Format::LabelValue),
    ("uri", Format::Uri),
    ("uuid", Format::Uuid),
    ("byte", Format::Byte),
    ("date", Format::Date),
    ("datetime", Format::Datetime),
];

impl Format {
    /// Returns the format with a name, such as `dns1123Label`.
    pub(crate) fn named(name: &str) -> Option<Format> {
        NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, format)| format)
    }

    /// Reports whether a text has the format.
    pub(crate) fn fits(self, text: &str) -> bool {
        // A prefix may end with a dash, because the name continues after it.
        let prefix = || text.strip_suffix('-').unwrap_or(text);
        match self {
            Format::Dns1123Label => is_label(text),
            Format::Dns1123Subdomain => is_subdomain(text),
            Format::Dns1035Label => is_label(text) && begins_with_letter(text),
            Format::Dns1123LabelPrefix => is_label(prefix()),
            Format::Dns1123SubdomainPrefix => is_subdomain(prefix()),
            Format::Dns1035LabelPrefix => is_label(prefix()) && begins_with_letter(text),
            Format::QualifiedName => match text.split_once('/') {
                Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
                None => is_name(text),
            },
            Format::LabelValue => text.is_empty() || is_name(text),
            Format::Uri => Url::read(text).is_some(),
            Format::Uuid => {
                let hex =
                    |part: &str, length| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit());
                let parts: Vec<&str> = text.split('-').collect();
                parts.len() == 5 && parts.iter().zip([8, 4, 4, 4, 12]).all(|(part, length)| hex(part, length))
            }
            Format::Byte => {
                let body = text.trim_end_matches('=');
                text.len().is_multiple_of(4)
                    && text.len() - body.len() <= 2
                    && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
            }
            Format::Date => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Format::Datetime => text.parse::<berth_base::model::Timestamp>().is_ok(),
        }
    }
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

fn begins_with_letter(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
}

fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric();
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| inner(byte) || b"-_.".contains(&byte))
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner)
}
