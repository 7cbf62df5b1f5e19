//! Kubernetes' named formats of texts.

use super::url::Url;

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
