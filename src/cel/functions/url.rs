//! URLs: whether a text is a URL, and its parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::function::{Function, text_of};
use crate::meter::Meter;
use crate::types::Type::{self, Bool, Map, Text};
use crate::value::{MapKey, Url, Value, unescape};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("url", &[Text], Type::Url, |meter, values| {
        let text = text_of(&values[0]);
        meter.take_text(text.len())?;
        let url = Url::read(text).ok_or_else(|| format!("`{text}` is no URL"))?;
        Ok(Value::Url(Arc::new(url)))
    }),
    Function::global("isURL", &[Text], Bool, |meter, values| {
        let text = text_of(&values[0]);
        meter.take_text(text.len())?;
        Ok(Value::Bool(Url::read(text).is_some()))
    }),
    Function::method("getScheme", &[Type::Url], Text, |_, values| part(values, |url| &url.scheme)),
    Function::method("getHost", &[Type::Url], Text, |_, values| part(values, |url| &url.host)),
    Function::method("getHostname", &[Type::Url], Text, |_, values| {
        part(values, |url| url.name_and_port().0)
    }),
    Function::method("getPort", &[Type::Url], Text, |_, values| part(values, |url| url.name_and_port().1)),
    Function::method("getEscapedPath", &[Type::Url], Text, |_, values| part(values, |url| &url.path)),
    Function::method("getQuery", &[Type::Url], Map, query),
];

fn part(values: &[Value], of: fn(&Url) -> &str) -> Result<Value, String> {
    match &values[0] {
        Value::Url(url) => Ok(Value::text(of(url))),
        _ => Ok(Value::text("")),
    }
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
