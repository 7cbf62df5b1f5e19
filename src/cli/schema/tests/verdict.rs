//! Checks a value against a schema: supports the part of JSON Schema that these schemas use.

use serde_json::Value as Json;

/// The keywords for people, and those that [`refusal`] handles together with others.
const SILENT: [&str; 4] = ["$schema", "title", "description", "additionalProperties"];

/// Returns the reason why a schema refuses a value.
pub(super) fn refusal(schema: &Json, value: &Json, path: &str) -> Option<String> {
    if *schema == Json::Bool(false) {
        return Some(format!("{path} is not known"));
    }
    let keywords = schema.as_object().expect("a schema is a mapping or false");
    keywords.iter().find_map(|(keyword, wanted)| check(keyword, wanted, schema, value, path))
}

fn check(keyword: &str, wanted: &Json, schema: &Json, value: &Json, path: &str) -> Option<String> {
    let refuse =
        |is_refused: bool| is_refused.then(|| format!("{path} is {value}, but {keyword} is {wanted}"));
    match keyword {
        "type" => {
            let types = wanted.as_array().map_or(std::slice::from_ref(wanted), Vec::as_slice);
            refuse(!types.iter().any(|one| is_of_type(value, one.as_str().expect("a type"))))
        }
        "enum" => refuse(!wanted.as_array().expect("words").contains(value)),
        "minLength" => refuse(value.as_str().is_some_and(|text| text.is_empty())),
        "pattern" => refuse(value.as_str().is_some_and(|text| !is_count_or_share(text))),
        "minimum" => refuse(value.as_f64().is_some_and(|number| number < wanted.as_f64().expect("a number"))),
        "maximum" => refuse(value.as_f64().is_some_and(|number| number > wanted.as_f64().expect("a number"))),
        "required" => {
            let names = wanted.as_array().expect("names").iter().filter_map(Json::as_str);
            let lacks = |name: &str| value.is_object() && value.get(name).is_none();
            names.into_iter().find(|name| lacks(name)).map(|name| format!("{path}.{name} is required"))
        }
        "items" => {
            let mut items = value.as_array().into_iter().flatten();
            let path = format!("{path}[]");
            match wanted.as_array() {
                // One schema for each place.
                Some(places) => items.zip(places).find_map(|(item, place)| refusal(place, item, &path)),
                None => items.find_map(|item| refusal(wanted, item, &path)),
            }
        }
        "minItems" | "maxItems" => {
            let most = wanted.as_u64().expect("a number") as usize;
            refuse(value.as_array().is_some_and(|items| match keyword {
                "minItems" => items.len() < most,
                _ => items.len() > most,
            }))
        }
        "properties" => value.as_object().into_iter().flatten().find_map(|(name, value)| {
            let other = schema.get("additionalProperties");
            refusal(wanted.get(name).or(other)?, value, &format!("{path}.{name}"))
        }),
        _ if SILENT.contains(&keyword) => None,
        _ => panic!("no check for the keyword {keyword}"),
    }
    .or_else(|| {
        let alone = keyword == "additionalProperties" && schema.get("properties").is_none();
        let mut fields = value.as_object().filter(|_| alone).into_iter().flatten();
        fields.find_map(|(name, value)| refusal(wanted, value, &format!("{path}.{name}")))
    })
}

fn is_of_type(value: &Json, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => panic!("no type {name}"),
    }
}

/// Matches the only pattern in use.
fn is_count_or_share(text: &str) -> bool {
    let digits = text.strip_suffix('%').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
