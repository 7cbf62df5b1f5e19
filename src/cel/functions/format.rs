//! Kubernetes' named formats: `format.dns1123Label().validate("…")` gives none where the text has it.

use super::function::{Function, text_of};
use crate::types::Type::{self, Optional, Text};
use crate::value::Value;

/// A format that texts may have.
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

/// A function for each format by its name.
macro_rules! formats {
    ($($name:literal $format:ident)*) => {
        &[
            $(Function::global($name, &[], Type::Format, |_, _| Ok(Value::Format(Format::$format))),)*
            Function::global("format.named", &[Text], Optional, |_, values| {
                let name = text_of(&values[0]);
                let found = NAMES.into_iter().find(|(known, _)| *known == name);
                Ok(found.map_or(Value::Optional(None), |(_, format)| Value::some(Value::Format(format))))
            }),
            Function::method("validate", &[Type::Format, Text], Optional, |meter, values| {
                let (Value::Format(format), text) = (&values[0], text_of(&values[1])) else {
                    return Ok(Value::Optional(None));
                };
                meter.take_text(text.len())?;
                let fault = || Value::some(Value::list(vec![Value::text(&format!("`{text}` has not this format"))]));
                Ok(if format.fits(text) { Value::Optional(None) } else { fault() })
            }),
        ]
    };
}

pub(super) const FUNCTIONS: &[Function] = formats! {
    "format.dns1123Label" Dns1123Label
    "format.dns1123Subdomain" Dns1123Subdomain
    "format.dns1035Label" Dns1035Label
    "format.dns1123LabelPrefix" Dns1123LabelPrefix
    "format.dns1123SubdomainPrefix" Dns1123SubdomainPrefix
    "format.dns1035LabelPrefix" Dns1035LabelPrefix
    "format.qualifiedName" QualifiedName
    "format.labelValue" LabelValue
    "format.uri" Uri
    "format.uuid" Uuid
    "format.byte" Byte
    "format.date" Date
    "format.datetime" Datetime
};

impl Format {
    fn fits(self, text: &str) -> bool {
        // A prefix may end with a dash, as the name that is made of it goes on.
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
            Format::Uri => super::named("isURL").next().is_some_and(|function| {
                let mut meter = crate::meter::Meter::full();
                matches!((function.call)(&mut meter, &[Value::text(text)]), Ok(Value::Bool(true)))
            }),
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
