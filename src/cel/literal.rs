//! Quoted texts and bytes with their escapes, and whole numbers.

use super::fault::Fault;
use super::value::Value;

/// Reads from a text's prefix (`r`, `b`) or opening quote to the end of its closing quote.
pub(super) fn quoted(
    text: &[char],
    at: &mut usize,
    raw: bool,
    bytes: bool,
    quote: char,
) -> Result<Value, Fault> {
    let start = *at;
    let mut index = start + usize::from(raw) + usize::from(bytes);
    let is_quote = |index: usize| text.get(index) == Some(&quote);
    let width = if is_quote(index + 1) && is_quote(index + 2) { 3 } else { 1 };
    index += width;
    let mut made = Made { text: String::new(), bytes: bytes.then(Vec::new) };
    loop {
        let Some(character) = text.get(index).copied() else {
            return Err(Fault::new(start, "this text has no closing quote"));
        };
        if (0..width).all(|ahead| is_quote(index + ahead)) {
            *at = index + width;
            return Ok(made.finish());
        }
        match character {
            '\n' | '\r' if width == 1 => {
                return Err(Fault::new(start, "this text has no closing quote on its line"));
            }
            '\\' if !raw => index = escape(text, index, &mut made)?,
            '\r' => {
                // Every line break becomes a line feed, whatever its form in the file.
                index += 1 + usize::from(text.get(index + 1) == Some(&'\n'));
                made.push('\n');
            }
            other => {
                index += 1;
                made.push(other);
            }
        }
    }
}

/// The characters of a text, or the bytes of a bytes literal.
struct Made {
    text: String,
    bytes: Option<Vec<u8>>,
}

impl Made {
    fn push(&mut self, character: char) {
        match &mut self.bytes {
            Some(bytes) => bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => self.text.push(character),
        }
    }

    fn finish(self) -> Value {
        match self.bytes {
            Some(bytes) => Value::Bytes(bytes.into()),
            None => Value::text(&self.text),
        }
    }
}

/// Reads an escape from its backslash on, and returns the index after it.
fn escape(text: &[char], index: usize, made: &mut Made) -> Result<usize, Fault> {
    let wrong = || Fault::new(index, "`\\` begins no escape that there is");
    let kind = text.get(index + 1).copied().ok_or_else(wrong)?;
    let plain = match kind {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '?' | '"' | '\'' | '`' => kind,
        _ => {
            let (first, length, base) = match kind {
                'x' | 'X' => (index + 2, 2, 16),
                'u' => (index + 2, 4, 16),
                'U' => (index + 2, 8, 16),
                '0'..='3' => (index + 1, 3, 8),
                _ => return Err(wrong()),
            };
            let digits: String = text.get(first..first + length).ok_or_else(wrong)?.iter().collect();
            let is_digit = |c: char| c.is_digit(base);
            let number = digits.chars().all(is_digit).then(|| u32::from_str_radix(&digits, base).ok());
            let number = number.flatten().ok_or_else(wrong)?;
            match &mut made.bytes {
                Some(_) if matches!(kind, 'u' | 'U') => return Err(wrong()),
                Some(bytes) => bytes.push(u8::try_from(number).map_err(|_| wrong())?),
                None => made.text.push(char::from_u32(number).ok_or_else(wrong)?),
            }
            return Ok(first + length);
        }
    };
    made.push(plain);
    Ok(index + 2)
}

/// Parses the digits of a whole number; a negative number may be one greater in magnitude than a positive
/// one.
pub(super) fn whole(
    at: usize,
    digits: &str,
    hexadecimal: bool,
    unsigned: bool,
    negative: bool,
) -> Result<Value, Fault> {
    let number = i128::from_str_radix(digits, if hexadecimal { 16 } else { 10 }).ok();
    let value = number.and_then(|number| match (unsigned, negative) {
        (true, false) => u64::try_from(number).ok().map(Value::Uint),
        (true, true) => None,
        (false, _) => i64::try_from(if negative { -number } else { number }).ok().map(Value::Int),
    });
    value.ok_or_else(|| Fault::new(at, format!("`{digits}` is no whole number that can be kept")))
}
