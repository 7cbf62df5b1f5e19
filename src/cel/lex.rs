//! Text → tokens, each with the position of its first character: quoted texts and bytes with their
//! escapes, and whole numbers among them.

use crate::fault::Fault;
use crate::value::Value;

/// The maximal length of an expression; people write shorter ones.
const LONGEST: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A name; a `quoted` one is in backticks and can only be a field.
    Name {
        text: String,
        quoted: bool,
    },
    /// Digits as written, without a sign.
    Whole {
        digits: String,
        hexadecimal: bool,
        unsigned: bool,
    },
    Symbol(&'static str),
    Literal,
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) at: usize,
    pub(crate) word: Word,
    /// The value of a `Literal`.
    pub(crate) value: Option<Value>,
}

/// Longer symbols come first, so that `<=` is not read as `<`.
const SYMBOLS: [&str; 27] = [
    "&&", "||", "==", "!=", "<=", ">=", "[?", ".?", "{?", "+", "-", "*", "/", "%", "!", "<", ">", "?", ":",
    "(", ")", "[", "]", "{", "}", ".", ",",
];

pub(crate) fn lex(text: &str) -> Result<Vec<Token>, Fault> {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() > LONGEST {
        return Err(Fault::new(LONGEST, format!("an expression may have {LONGEST} characters at most")));
    }
    let mut lexer = Lexer { text: &characters, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.pass_space();
        let token = lexer.next()?;
        let is_end = token.word == Word::End;
        tokens.push(token);
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    text: &'t [char],
    at: usize,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn starts_with(&self, prefix: &str) -> bool {
        prefix.chars().enumerate().all(|(index, character)| self.peek(index) == Some(character))
    }

    fn pass_space(&mut self) {
        loop {
            if self.starts_with("//") {
                while self.peek(0).is_some_and(|character| character != '\n') {
                    self.at += 1;
                }
            } else if self.peek(0).is_some_and(|c| matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{c}')) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn next(&mut self) -> Result<Token, Fault> {
        let at = self.at;
        let token = |word| Ok(Token { at, word, value: None });
        let Some(first) = self.peek(0) else { return token(Word::End) };
        if let Some((raw, bytes, quote)) = self.quote_ahead() {
            let value = quoted(self.text, &mut self.at, raw, bytes, quote)?;
            return Ok(Token { at, word: Word::Literal, value: Some(value) });
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return token(Word::Name { text: self.run_of(is_name_part), quoted: false });
        }
        if first == '`' {
            self.at += 1;
            let text = self.run_of(|c| is_name_part(c) || matches!(c, '.' | '-' | '/' | ' '));
            if self.peek(0) != Some('`') || text.is_empty() {
                return Err(Fault::new(
                    at,
                    "a field in backticks needs a closing one, and only letters, digits, `_`, `.`, `-` and `/` within",
                ));
            }
            self.at += 1;
            return token(Word::Name { text, quoted: true });
        }
        if first.is_ascii_digit() || (first == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit())) {
            return self.number();
        }
        match SYMBOLS.into_iter().find(|symbol| self.starts_with(symbol)) {
            Some(symbol) => {
                self.at += symbol.len();
                token(Word::Symbol(symbol))
            }
            None => Err(Fault::new(at, format!("`{first}` has no meaning here"))),
        }
    }

    /// Returns the kind of quoted text that begins here, if any.
    fn quote_ahead(&self) -> Option<(bool, bool, char)> {
        let (mut raw, mut bytes) = (false, false);
        for ahead in 0..3 {
            match self.peek(ahead)? {
                quote @ ('"' | '\'') => return Some((raw, bytes, quote)),
                'r' | 'R' if !raw => raw = true,
                'b' | 'B' if !bytes => bytes = true,
                _ => return None,
            }
        }
        None
    }

    fn run_of(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(&belongs) {
            self.at += 1;
        }
        self.text[start..self.at].iter().collect()
    }

    fn number(&mut self) -> Result<Token, Fault> {
        let at = self.at;
        if self.peek(0) == Some('0') && matches!(self.peek(1), Some('x' | 'X')) {
            self.at += 2;
            let digits = self.run_of(|c| c.is_ascii_hexdigit());
            if digits.is_empty() {
                return Err(Fault::new(at, "a hexadecimal number needs digits"));
            }
            return Ok(self.whole(at, digits, true));
        }
        let mut text = self.run_of(|c| c.is_ascii_digit());
        let mut is_whole = true;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            is_whole = false;
            self.at += 1;
            text = format!("{text}.{}", self.run_of(|c| c.is_ascii_digit()));
        }
        let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
        if matches!(self.peek(0), Some('e' | 'E')) && self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit())
        {
            is_whole = false;
            let start = self.at;
            self.at += 1 + sign;
            self.run_of(|c| c.is_ascii_digit());
            text.extend(&self.text[start..self.at]);
        }
        if is_whole {
            return Ok(self.whole(at, text, false));
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                Ok(Token { at, word: Word::Literal, value: Some(Value::Double(value)) })
            }
            _ => Err(Fault::new(at, format!("`{text}` is no number that can be kept"))),
        }
    }

    fn whole(&mut self, at: usize, digits: String, hexadecimal: bool) -> Token {
        let unsigned = matches!(self.peek(0), Some('u' | 'U'));
        self.at += usize::from(unsigned);
        Token { at, word: Word::Whole { digits, hexadecimal, unsigned }, value: None }
    }
}

fn is_name_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Reads from a text's prefix (`r`, `b`) or opening quote to the end of its closing quote.
pub(crate) fn quoted(
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
pub(crate) fn whole(
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
