//! URLs, as Kubernetes reads them: absolute ones, or absolute paths.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::function::{Function, text_of};
use crate::meter::Meter;
use crate::types::Type::{self, Bool, Map, Text};
use crate::value::{MapKey, Value};

/// The parts of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// With the port.
    host: String,
    path: String,
    query: String,
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("url", &[Text], Type::Url, |meter, values| {
        let text = text_of(&values[0]);
        meter.take_text(text.len())?;
        let url = parse(text).ok_or_else(|| format!("`{text}` is no URL"))?;
        Ok(Value::Url(Arc::new(url)))
    }),
    Function::global("isURL", &[Text], Bool, |meter, values| {
        let text = text_of(&values[0]);
        meter.take_text(text.len())?;
        Ok(Value::Bool(parse(text).is_some()))
    }),
    Function::method("getScheme", &[Type::Url], Text, |_, values| part(values, |url| &url.scheme)),
    Function::method("getHost", &[Type::Url], Text, |_, values| part(values, |url| &url.host)),
    Function::method("getHostname", &[Type::Url], Text, |_, values| part(values, |url| split(&url.host).0)),
    Function::method("getPort", &[Type::Url], Text, |_, values| part(values, |url| split(&url.host).1)),
    Function::method("getEscapedPath", &[Type::Url], Text, |_, values| part(values, |url| &url.path)),
    Function::method("getQuery", &[Type::Url], Map, query),
];

fn part(values: &[Value], of: fn(&Url) -> &str) -> Result<Value, String> {
    match &values[0] {
        Value::Url(url) => Ok(Value::text(of(url))),
        _ => Ok(Value::text("")),
    }
}

fn parse(text: &str) -> Option<Url> {
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
        // Without a host: the path must be absolute, or all of it is opaque.
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

/// Name and port; the name of an IPv6 address has no brackets.
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

fn query(meter: &mut Meter, values: &[Value]) -> Result<Value, String> {
    let Value::Url(url) = &values[0] else { return Ok(Value::Null) };
    meter.take_text(url.query.len())?;
    let mut found: BTreeMap<MapKey, Vec<Value>> = BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        meter.take(1)?;
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (unescape(key), unescape(value)) else { continue };
        found.entry(MapKey::Text(key.into())).or_default().push(Value::text(&value));
    }
    let entries = found.into_iter().map(|(key, values)| (key, Value::list(values)));
    Ok(Value::Map(Arc::new(entries.collect())))
}

fn unescape(text: &str) -> Option<String> {
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
