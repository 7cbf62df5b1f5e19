//! Kubernetes' named formats: `format.dns1123Label().validate("…")` returns none if the text has the format.

use super::function::{Function, text_of};
use crate::types::Type::{self, Optional, Text};
use crate::value::{Format, Value};

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
