//! The place of every value in a document's text, to the byte. An editor needs it to change a single value and leave
//! every other byte unchanged.
//! Only for documents that [`super::read`] has accepted, so that depth and size are limited.

use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

use super::reader::ReadDocument;

/// A value's place. Offsets count from the beginning of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The range of the value's bytes. Empty if nothing is written; a literal or folded block's range begins
    /// after its header.
    pub bytes: Range<usize>,
    pub shape: Shape,
}

/// The written form of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Text, plain or in quotes, or an empty value.
    Scalar,
    /// A literal or folded block.
    Block,
    Alias,
    List {
        items: Vec<Outline>,
        flow: Option<Flow>,
    },
    Map {
        entries: Vec<OutlineEntry>,
        flow: Option<Flow>,
    },
}

/// The position after the opening bracket of a value in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    pub inside: usize,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineEntry {
    pub key: String,
    pub key_bytes: Range<usize>,
    /// The position after the colon, or after the key if there is none.
    pub colon: usize,
    pub value: Outline,
}

impl OutlineEntry {
    pub fn end(&self) -> usize {
        self.value.bytes.end.max(self.colon)
    }
}

/// Returns the outline of a document of this text. `None` if the parser's positions do not fit the text.
pub fn outline(text: &str, document: &ReadDocument) -> Option<Outline> {
    let part = text.get(document.bytes.clone())?;
    let mut offsets: Vec<usize> = part.char_indices().map(|(at, _)| at).collect();
    offsets.push(part.len());
    let mut outliner =
        Outliner { parser: Parser::new_from_str(part), part, offsets, base: document.bytes.start };
    loop {
        match outliner.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (event, span) => return outliner.value(event, span),
        }
    }
}

struct Outliner<'a> {
    parser: Parser<'a, StrInput<'a>>,
    part: &'a str,
    /// The byte offset of each character, because the parser counts characters.
    offsets: Vec<usize>,
    base: usize,
}

impl<'a> Outliner<'a> {
    fn next(&mut self) -> Option<(Event<'a>, Range<usize>)> {
        let (event, span) = self.parser.next_event()?.ok()?;
        let bytes = self.bytes(span)?;
        Some((event, bytes))
    }

    /// Returns a span as bytes of the part.
    fn bytes(&self, span: Span) -> Option<Range<usize>> {
        let end = span.end.index().min(self.offsets.len() - 1);
        let start = span.start.index().min(end);
        Some(*self.offsets.get(start)?..*self.offsets.get(end)?)
    }

    fn value(&mut self, event: Event<'a>, span: Range<usize>) -> Option<Outline> {
        let (bytes, shape) = match event {
            Event::Alias(_) => (span, Shape::Alias),
            Event::Scalar(_, style, ..) => self.scalar(style, span)?,
            Event::SequenceStart(..) => self.list(&span)?,
            Event::MappingStart(..) => self.map(&span)?,
            _ => return None,
        };
        Some(Outline { bytes: self.base + bytes.start..self.base + bytes.end, shape })
    }

    fn scalar(&self, style: ScalarStyle, span: Range<usize>) -> Option<(Range<usize>, Shape)> {
        let written = self.part.get(span.clone())?;
        let kept = || span.start..span.start + written.trim_end().len();
        Some(match style {
            ScalarStyle::Plain => (kept(), Shape::Scalar),
            ScalarStyle::SingleQuoted => (span.start..span.start + single_quoted(written)?, Shape::Scalar),
            ScalarStyle::DoubleQuoted => (span.start..span.start + double_quoted(written)?, Shape::Scalar),
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let keeps_breaks = self.header(span.start).contains('+');
                (if keeps_breaks { span } else { kept() }, Shape::Block)
            }
        })
    }

    /// Returns the line above a block's text, which contains its header.
    fn header(&self, start: usize) -> &str {
        let above = self.part.get(..start).unwrap_or_default().trim_end();
        above.rsplit(['\n', '\r']).next().unwrap_or_default().rsplit(['|', '>']).next().unwrap_or_default()
    }

    fn flow(&self, opening: &Range<usize>, bracket: char) -> Option<Flow> {
        let written = self.part.get(opening.clone())?.trim_end();
        written.ends_with(bracket).then_some(Flow { inside: self.base + opening.start + written.len() })
    }

    /// Returns the position after the closing bracket, if there is one: it may follow a comma after the last
    /// part.
    fn end(&self, flow: Option<Flow>, last: usize) -> Option<usize> {
        let mut at = match flow {
            Some(flow) => last.max(flow.inside - self.base),
            None => return Some(last),
        };
        loop {
            match self.part.as_bytes().get(at)? {
                b']' | b'}' => return Some(at + 1),
                b'#' => at += self.part.get(at..)?.find(['\n', '\r'])?,
                _ => at += 1,
            }
        }
    }

    fn list(&mut self, opening: &Range<usize>) -> Option<(Range<usize>, Shape)> {
        let flow = self.flow(opening, '[');
        let mut items: Vec<Outline> = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => {
                    let last = items.last().map(|item| item.bytes.end - self.base);
                    let end = self.end(flow, last.unwrap_or(opening.end))?;
                    return Some((opening.start..end.max(opening.start), Shape::List { items, flow }));
                }
                (event, span) => items.push(self.value(event, span)?),
            }
        }
    }

    fn map(&mut self, opening: &Range<usize>) -> Option<(Range<usize>, Shape)> {
        let flow = self.flow(opening, '{');
        let mut entries: Vec<OutlineEntry> = Vec::new();
        loop {
            let (key, span) = match self.next()? {
                (Event::MappingEnd, _) => {
                    let last = entries.last().map(|entry| entry.end() - self.base);
                    let end = self.end(flow, last.unwrap_or(opening.end))?;
                    return Some((opening.start..end.max(opening.start), Shape::Map { entries, flow }));
                }
                (Event::Scalar(key, style, ..), span) => (key.into_owned(), self.scalar(style, span)?.0),
                (Event::Alias(_), span) => (String::new(), span),
                _ => return None,
            };
            let (event, value_span) = self.next()?;
            let value = self.value(event, value_span)?;
            let colon = self.base + self.past_colon(span.end);
            entries.push(OutlineEntry {
                key,
                key_bytes: self.base + span.start..self.base + span.end,
                colon,
                value,
            });
        }
    }

    fn past_colon(&self, key_end: usize) -> usize {
        let rest = self.part.get(key_end..).unwrap_or_default();
        let behind = rest.trim_start_matches([' ', '\t']);
        if behind.starts_with(':') { key_end + rest.len() - behind.len() + 1 } else { key_end }
    }
}

/// Returns the length of a text in single quotes, including any text before its first quote.
fn single_quoted(written: &str) -> Option<usize> {
    let mut at = written.find('\'')? + 1;
    loop {
        at += written.get(at..)?.find('\'')? + 1;
        match written.as_bytes().get(at) {
            Some(b'\'') => at += 1,
            _ => return Some(at),
        }
    }
}

fn double_quoted(written: &str) -> Option<usize> {
    let mut at = written.find('"')? + 1;
    loop {
        match written.as_bytes().get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}
