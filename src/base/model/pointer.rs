//! JSON pointers (RFC 6901), parsed once.

use std::fmt;
use std::sync::Arc;

/// A place in an object: keys and list indexes, from the outside in. No parts means the whole object. Clones
/// share the parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer(Arc<[String]>);

/// The fault of a text that is not a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointerFault {
    pub message: String,
    pub hint: String,
}

impl Pointer {
    /// Parses a pointer: empty, or parts that each begin with a slash.
    pub fn parse(text: &str) -> Result<Pointer, PointerFault> {
        if !text.is_empty() && !text.starts_with('/') {
            let message = format!("the path `{text}` does not begin with a slash");
            let written =
                Pointer::of_dots(text).map_or_else(|| format!("/{text}"), |pointer| pointer.to_string());
            return Err(PointerFault { message, hint: format!("write `{written}`") });
        }
        if !text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1'])) {
            let message = format!("in the path `{text}` a `~` is not followed by 0 or 1");
            return Err(PointerFault { message, hint: "`~0` stands for `~` and `~1` for `/`".to_owned() });
        }
        Ok(Pointer::of(text.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"))))
    }

    /// Reads a path in the form of kubectl and jq: `spec.list[0]['a/b']`.
    fn of_dots(text: &str) -> Option<Pointer> {
        let mut parts = Vec::new();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        while !rest.is_empty() {
            let (part, after) = match rest.strip_prefix('[') {
                Some(inner) => inner.split_once(']')?,
                None => {
                    let name = rest.strip_prefix('.').unwrap_or(rest);
                    name.split_at(name.find(['.', '[']).unwrap_or(name.len()))
                }
            };
            let key = part.trim_matches(['\'', '"']);
            if key.is_empty() || key == part && key.contains('/') {
                return None;
            }
            parts.push(key);
            rest = after;
        }
        Some(Pointer::of(parts))
    }

    /// Returns a pointer of plain keys and indexes.
    pub fn of(parts: impl IntoIterator<Item: Into<String>>) -> Pointer {
        Pointer(parts.into_iter().map(Into::into).collect())
    }

    /// Returns the keys and indexes, unescaped.
    pub fn parts(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| write!(f, "/{}", part.replace('~', "~0").replace('/', "~1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_written_as_it_was_read() {
        for (text, parts) in [
            ("", vec![]),
            ("/", vec![""]),
            ("/data/a~1b~0c", vec!["data", "a/b~c"]),
            ("/~01/-", vec!["~1", "-"]),
        ] {
            let pointer = Pointer::parse(text).unwrap();
            assert_eq!(pointer.parts(), parts);
            assert_eq!(pointer.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, hint) in [
            ("a/b", "write `/a/b`"),
            ("spec.template.spec.containers[0].image", "write `/spec/template/spec/containers/0/image`"),
            ("$.metadata.annotations['berth.dev/x']", "write `/metadata/annotations/berth.dev~1x`"),
            ("spec..x", "write `/spec..x`"),
            ("spec[0", "write `/spec[0`"),
        ] {
            assert_eq!(Pointer::parse(text).unwrap_err().hint, hint);
        }
        assert!(Pointer::parse("/a~2").unwrap_err().message.contains("not followed by 0 or 1"));
    }
}
