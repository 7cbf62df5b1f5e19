//! Kubernetes' extensions for values of its own: quantities, such as `quantity("1.5Gi")`, and their
//! methods; semantic versions, read strictly as in Open Cluster Management; URLs and their parts; and
//! named formats: `format.dns1123Label().validate("…")` returns none if the text has the format.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CallResult, Function, text_of, whole_of};
use crate::run::Meter;
use crate::types::Type::{self, Bool, Double, Int, Map, Optional, Text};
use crate::value::{Format, MapKey, Semver, Url, Value, unescape};
use berth_base::model;

const NANOS: i128 = 1_000_000_000;

pub(super) const QUANTITY_FUNCTIONS: &[Function] = &[
    Function::global("quantity", &[Text], Type::Quantity, |_, values| {
        let text = text_of(&values[0]);
        text.parse()
            .map(Value::Quantity)
            .map_err(|fault: model::quantity::NotAQuantity| format!("`{text}`: {fault}"))
    }),
    Function::global("isQuantity", &[Text], Bool, |_, values| {
        Ok(Value::Bool(text_of(&values[0]).parse::<model::Quantity>().is_ok()))
    }),
    // A function and not a method, as Kubernetes declares it.
    Function::global("sign", &[Type::Quantity], Int, |_, values| {
        Ok(Value::Int(i64::try_from(nanos(&values[0]).signum()).unwrap_or_default()))
    }),
    Function::method("isInteger", &[Type::Quantity], Bool, |_, values| {
        Ok(Value::Bool(integer(&values[0]).is_some()))
    }),
    Function::method("asInteger", &[Type::Quantity], Int, |_, values| {
        integer(&values[0]).map(Value::Int).ok_or_else(|| "this quantity is no whole number".to_owned())
    }),
    Function::method("asApproximateFloat", &[Type::Quantity], Double, |_, values| match &values[0] {
        Value::Quantity(quantity) => Ok(Value::Double(quantity.to_f64())),
        _ => Ok(Value::Double(0.0)),
    }),
    Function::method("add", &[Type::Quantity, Type::Quantity], Type::Quantity, |_, values| {
        sum(nanos(&values[0]), nanos(&values[1]), values)
    }),
    Function::method("add", &[Type::Quantity, Int], Type::Quantity, |_, values| {
        sum(nanos(&values[0]), i128::from(whole_of(&values[1])) * NANOS, values)
    }),
    Function::method("sub", &[Type::Quantity, Type::Quantity], Type::Quantity, |_, values| {
        sum(nanos(&values[0]), nanos(&values[1]).saturating_neg(), values)
    }),
    Function::method("sub", &[Type::Quantity, Int], Type::Quantity, |_, values| {
        sum(nanos(&values[0]), -i128::from(whole_of(&values[1])) * NANOS, values)
    }),
    Function::method("isLessThan", &[Type::Quantity, Type::Quantity], Bool, |_, values| {
        Ok(Value::Bool(nanos(&values[0]) < nanos(&values[1])))
    }),
    Function::method("isGreaterThan", &[Type::Quantity, Type::Quantity], Bool, |_, values| {
        Ok(Value::Bool(nanos(&values[0]) > nanos(&values[1])))
    }),
    Function::method("compareTo", &[Type::Quantity, Type::Quantity], Int, |_, values| {
        Ok(Value::Int(nanos(&values[0]).cmp(&nanos(&values[1])) as i64))
    }),
];

fn nanos(value: &Value) -> i128 {
    match value {
        Value::Quantity(quantity) => quantity.nanos(),
        _ => 0,
    }
}

fn is_decimal(value: &Value) -> bool {
    matches!(value, Value::Quantity(quantity) if quantity.is_decimal())
}

fn integer(value: &Value) -> Option<i64> {
    let nanos = nanos(value);
    (nanos % NANOS == 0 && !is_decimal(value)).then(|| i64::try_from(nanos / NANOS).ok()).flatten()
}

/// Adds two amounts. The sum is a decimal if one of them is.
fn sum(a: i128, b: i128, of: &[Value]) -> CallResult {
    let sum = a.checked_add(b).ok_or_else(|| "the result is too large for a quantity".to_owned())?;
    let sum = model::Quantity::from_nanos(sum);
    Ok(Value::Quantity(if of.iter().any(is_decimal) { sum.decimal() } else { sum }))
}

pub(super) const SEMVER_FUNCTIONS: &[Function] = &[
    Function::global("semver", &[Text], Type::Semver, |_, values| read(values)),
    Function::global("isSemver", &[Text], Bool, |_, values| Ok(Value::Bool(read(values).is_ok()))),
    Function::method("major", &[Type::Semver], Int, |_, values| version_part(values, 0)),
    Function::method("minor", &[Type::Semver], Int, |_, values| version_part(values, 1)),
    Function::method("patch", &[Type::Semver], Int, |_, values| version_part(values, 2)),
    Function::method("isLessThan", &[Type::Semver, Type::Semver], Bool, |_, values| {
        Ok(Value::Bool(values[0].compare(&values[1]) == Some(Ordering::Less)))
    }),
    Function::method("isGreaterThan", &[Type::Semver, Type::Semver], Bool, |_, values| {
        Ok(Value::Bool(values[0].compare(&values[1]) == Some(Ordering::Greater)))
    }),
    Function::method("compareTo", &[Type::Semver, Type::Semver], Int, |_, values| {
        Ok(Value::Int(values[0].compare(&values[1]).map_or(0, |order| order as i64)))
    }),
];

fn read(values: &[Value]) -> Result<Value, String> {
    let text = text_of(&values[0]);
    Semver::read(text)
        .map(|version| Value::Semver(Arc::new(version)))
        .ok_or_else(|| format!("`{text}` is no semantic version"))
}

fn version_part(values: &[Value], index: usize) -> Result<Value, String> {
    let Value::Semver(version) = &values[0] else { return Ok(Value::Int(0)) };
    i64::try_from(version.parts[index]).map(Value::Int).map_err(|_| "this number is too large".to_owned())
}

pub(super) const URL_FUNCTIONS: &[Function] = &[
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
    Function::method("getScheme", &[Type::Url], Text, |_, values| url_part(values, |url| &url.scheme)),
    Function::method("getHost", &[Type::Url], Text, |_, values| url_part(values, |url| &url.host)),
    Function::method("getHostname", &[Type::Url], Text, |_, values| {
        url_part(values, |url| url.name_and_port().0)
    }),
    Function::method("getPort", &[Type::Url], Text, |_, values| {
        url_part(values, |url| url.name_and_port().1)
    }),
    Function::method("getEscapedPath", &[Type::Url], Text, |_, values| url_part(values, |url| &url.path)),
    Function::method("getQuery", &[Type::Url], Map, query),
];

fn url_part(values: &[Value], of: fn(&Url) -> &str) -> Result<Value, String> {
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

/// A function for each format by its name.
macro_rules! formats {
    ($($name:literal $format:ident)*) => {
        &[
            $(Function::global($name, &[], Type::Format, |_, _| Ok(Value::Format(Format::$format))),)*
            Function::global("format.named", &[Text], Optional, |_, values| {
                let found = Format::named(text_of(&values[0]));
                Ok(found.map_or(Value::Optional(None), |format| Value::some(Value::Format(format))))
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

pub(super) const FORMAT_FUNCTIONS: &[Function] = formats! {
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
