//! JSON pointers (RFC 6901), parsed once.

use std::fmt;
use std::sync::Arc;

/// A place in an object: keys and list indexes, from the outside in. None stand for the whole object. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer(Arc<[String]>);

/// The fault of a text that is no pointer.
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
            return Err(PointerFault { message, hint: format!("write `/{text}`") });
        }
        if !text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1'])) {
            let message = format!("in the path `{text}` a `~` is not followed by 0 or 1");
            return Err(PointerFault { message, hint: "`~0` stands for `~` and `~1` for `/`".to_owned() });
        }
        Ok(Pointer::of(text.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"))))
    }

    /// Makes a pointer of plain keys and indexes.
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
        assert_eq!(Pointer::parse("a/b").unwrap_err().hint, "write `/a/b`");
        assert!(Pointer::parse("/a~2").unwrap_err().message.contains("not followed by 0 or 1"));
    }
}
