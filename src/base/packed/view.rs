//! Reads packed values in place. Invalid bytes read as null, and end the list or mapping that contains them.

use serde_json::{Map, Number, Value as Json};

use super::{Mark, tag};

/// A value inside packed bytes.
#[derive(Clone, Copy)]
pub struct View<'p> {
    /// The bytes from the value's first one on.
    bytes: &'p [u8],
    places: bool,
}

/// A value's content.
#[derive(Clone, Debug)]
pub enum Content<'p> {
    Null,
    Bool(bool),
    Number(Number),
    Text(&'p str),
    List(Items<'p>),
    Map(Entries<'p>),
}

/// The items of a list.
#[derive(Clone, Copy)]
pub struct Items<'p> {
    rest: &'p [u8],
    places: bool,
}

/// The entries of a mapping: each with its key, the key's place and the value.
#[derive(Clone, Copy)]
pub struct Entries<'p> {
    rest: &'p [u8],
    places: bool,
}

impl<'p> View<'p> {
    pub(super) fn of(bytes: &'p [u8]) -> View<'p> {
        match bytes.split_first() {
            Some((header, bytes)) => View { bytes, places: *header == 1 },
            None => View { bytes, places: false },
        }
    }

    /// Returns the value's place; the beginning of the file if it has none.
    pub fn at(self) -> Mark {
        let mut bytes = self.bytes;
        place(&mut bytes, self.places).unwrap_or_default()
    }

    pub fn content(self) -> Content<'p> {
        self.parts().map_or(Content::Null, |(content, _)| content)
    }

    /// Returns the value under a key, if this is a mapping that has it.
    pub fn get(self, key: &str) -> Option<View<'p>> {
        match self.content() {
            Content::Map(mut entries) => entries.find(|(name, ..)| *name == key).map(|(_, _, value)| value),
            _ => None,
        }
    }

    /// Returns the value under a key of a mapping, or under an index of a list.
    pub(super) fn child(self, part: &str) -> Option<View<'p>> {
        match self.content() {
            Content::List(mut items) => {
                let is_index = part == "0" || !part.starts_with(['0', '+']);
                items.nth(part.parse().ok().filter(|_| is_index)?)
            }
            _ => self.get(part),
        }
    }

    /// Returns the place of the value at a path or, where there is none, of the nearest value around it.
    pub fn nearest(self, path: &[String]) -> Mark {
        let Some((first, rest)) = path.split_first() else { return self.at() };
        self.child(first).map_or(self.at(), |child| child.nearest(rest))
    }

    pub fn as_str(self) -> Option<&'p str> {
        match self.content() {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_i64(self) -> Option<i64> {
        match self.content() {
            Content::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    pub fn is_null(self) -> bool {
        matches!(self.content(), Content::Null)
    }

    /// Returns the items of a list; empty for any other value.
    pub fn items(self) -> impl Iterator<Item = View<'p>> {
        match self.content() {
            Content::List(items) => Some(items),
            _ => None,
        }
        .into_iter()
        .flatten()
    }

    /// Returns the keys and values of a mapping; empty for any other value.
    pub fn entries(self) -> impl Iterator<Item = (&'p str, View<'p>)> {
        let entries = match self.content() {
            Content::Map(entries) => Some(entries),
            _ => None,
        };
        entries.into_iter().flatten().map(|(key, _, value)| (key, value))
    }

    /// Returns the same value without places.
    pub fn to_json(self) -> Json {
        match self.content() {
            Content::Null => Json::Null,
            Content::Bool(value) => Json::Bool(value),
            Content::Number(number) => Json::Number(number),
            Content::Text(text) => Json::String(text.to_owned()),
            Content::List(items) => Json::Array(items.map(View::to_json).collect()),
            Content::Map(entries) => Json::Object(
                entries.map(|(key, _, value)| (key.to_owned(), value.to_json())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// Returns the content, and the bytes after the value.
    fn parts(self) -> Option<(Content<'p>, &'p [u8])> {
        let View { mut bytes, places } = self;
        place(&mut bytes, places)?;
        let tag = *bytes.split_off_first()?;
        let content = match tag {
            tag::NULL => Content::Null,
            tag::FALSE => Content::Bool(false),
            tag::TRUE => Content::Bool(true),
            tag::NATURAL => Content::Number(varint(&mut bytes)?.into()),
            tag::NEGATIVE => Content::Number((!varint(&mut bytes)?.cast_signed()).into()),
            tag::FLOAT => {
                let number = bytes.split_off(..8)?.try_into().ok()?;
                Content::Number(Number::from_f64(f64::from_le_bytes(number))?)
            }
            tag::TEXT => Content::Text(text(&mut bytes)?),
            tag::LIST => Content::List(Items { rest: inside(&mut bytes)?, places }),
            tag::MAP => Content::Map(Entries { rest: inside(&mut bytes)?, places }),
            _ => return None,
        };
        Some((content, bytes))
    }
}

impl<'p> Iterator for Items<'p> {
    type Item = View<'p>;

    fn next(&mut self) -> Option<View<'p>> {
        let item = View { bytes: self.rest, places: self.places };
        (_, self.rest) = item.parts()?;
        Some(item)
    }
}

impl<'p> Iterator for Entries<'p> {
    type Item = (&'p str, Mark, View<'p>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = place(&mut self.rest, self.places)?;
        let key = text(&mut self.rest)?;
        let value = View { bytes: self.rest, places: self.places };
        (_, self.rest) = value.parts()?;
        Some((key, at, value))
    }
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_json().fmt(f)
    }
}

impl std::fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

impl std::fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.map(|(key, _, value)| (key, value))).finish()
    }
}

fn place(bytes: &mut &[u8], places: bool) -> Option<Mark> {
    if !places {
        return Some(Mark::default());
    }
    let mut number = || u32::try_from(varint(bytes)?).ok();
    Some(Mark { line: number()?, column: number()? })
}

fn text<'p>(bytes: &mut &'p [u8]) -> Option<&'p str> {
    let length = usize::try_from(varint(bytes)?).ok()?;
    std::str::from_utf8(bytes.split_off(..length)?).ok()
}

fn inside<'p>(bytes: &mut &'p [u8]) -> Option<&'p [u8]> {
    let length = u32::from_le_bytes(bytes.split_off(..4)?.try_into().ok()?);
    bytes.split_off(..usize::try_from(length).ok()?)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
