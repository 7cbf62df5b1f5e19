//! Reads one page of a list object by object, so that only one of them is in memory as a parsed value.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

/// The metadata of a page.
#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct PageMetadata {
    #[serde(rename = "resourceVersion", default)]
    pub version: String,
    #[serde(rename = "continue")]
    pub token: Option<String>,
}

/// Reads a page and passes each object to `each`.
pub(crate) fn read(bytes: &[u8], each: &mut dyn FnMut(Json)) -> Result<PageMetadata, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let metadata = Page(each).deserialize(&mut reader)?;
    reader.end()?;
    Ok(metadata)
}

struct Page<'f>(&'f mut dyn FnMut(Json));

impl<'de> DeserializeSeed<'de> for Page<'_> {
    type Value = PageMetadata;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<PageMetadata, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Page<'_> {
    type Value = PageMetadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PageMetadata, A::Error> {
        let mut metadata = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => metadata = map.next_value::<Option<PageMetadata>>()?,
                "items" => map.next_value_seed(Items(&mut *self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(metadata.unwrap_or_default())
    }
}

struct Items<'f>(&'f mut dyn FnMut(Json));

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(object) = items.next_element()? {
            (self.0)(object);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<(Vec<String>, PageMetadata), String> {
        let mut names = Vec::new();
        let page = read(text.as_bytes(), &mut |object| names.push(object["name"].to_string()));
        page.map(|page| (names, page)).map_err(|error| error.to_string())
    }

    #[test]
    fn objects_come_in_order_and_the_metadata_wherever_it_stands() {
        let text = r#"{"kind": "List", "items": [{"name": 1}, {"name": 2}], "metadata": {"resourceVersion": "7", "continue": "x"}}"#;
        let (found, page) = names(text).unwrap();
        assert_eq!(found, ["1", "2"]);
        assert_eq!((page.version.as_str(), page.token.as_deref()), ("7", Some("x")));
        let (found, page) = names(r#"{"metadata": null}"#).unwrap();
        assert!(found.is_empty() && page.version.is_empty());
    }

    #[test]
    fn an_answer_that_is_cut_off_is_an_error() {
        assert!(
            names(r#"{"items": [{"name": 1}"#).is_err() && names("[]").is_err() && names("{} x").is_err()
        );
    }
}
