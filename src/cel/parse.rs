//! Tokens → a syntax tree, with the language's precedence. Macros and names are resolved later.

use super::fault::Fault;
use super::lex::{Token, Word, lex};
use super::value::Value;
use crate::lex;

/// The deepest nesting of expressions, counted in the finished tree.
const DEEPEST: usize = 50;

/// An expression as written.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) form: Form,
}

#[derive(Debug)]
pub(super) enum Form {
    Literal(Value),
    Name(String),
    Select {
        of: Box<Node>,
        field: String,
        optional: bool,
    },
    Index {
        of: Box<Node>,
        index: Box<Node>,
        optional: bool,
    },
    Call {
        target: Option<Box<Node>>,
        name: String,
        arguments: Vec<Node>,
    },
    /// Items, each marked true if it is left out when it is none.
    List(Vec<(bool, Node)>),
    Map(Vec<(bool, Node, Node)>),
    And(Vec<Node>),
    Or(Vec<Node>),
    If(Box<[Node; 3]>),
}

const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "while",
];

/// Binary operators, in ascending order of precedence.
const LEVELS: [&[(&str, &str)]; 3] = [
    &[
        ("==", "_==_"),
        ("!=", "_!=_"),
        ("<", "_<_"),
        ("<=", "_<=_"),
        (">", "_>_"),
        (">=", "_>=_"),
        ("in", "@in"),
    ],
    &[("+", "_+_"), ("-", "_-_")],
    &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")],
];

pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let mut parser = Parser { tokens: lex(text)?, next: 0, open: 0 };
    let node = parser.expression()?;
    match &parser.peek().word {
        Word::End => Ok(node),
        _ => Err(parser.unexpected("the end, or an operator")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    /// The current nesting of expressions.
    open: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        // The last token is the end, which is never consumed.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(&self.peek().word, Word::Symbol(found) if *found == symbol)
    }

    fn pass(&mut self, symbol: &str) -> bool {
        let is = self.is(symbol);
        self.next += usize::from(is);
        is
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), Fault> {
        if self.pass(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let token = self.peek();
        let found = match &token.word {
            Word::Name { text, .. } => format!("`{text}`"),
            Word::Whole { digits, .. } => format!("`{digits}`"),
            Word::Symbol(symbol) => format!("`{symbol}`"),
            Word::Literal => "a value".to_owned(),
            Word::End => "the end".to_owned(),
        };
        Fault::new(token.at, format!("{wanted} is expected, not {found}"))
    }

    fn expression(&mut self) -> Result<Node, Fault> {
        self.open += 1;
        if self.open > DEEPEST {
            return Err(too_deep(self.peek().at));
        }
        let condition = self.alternatives()?;
        let node = if self.pass("?") {
            let yes = self.alternatives()?;
            self.expect(":")?;
            let no = self.expression()?;
            let at = condition.at;
            made(at, Form::If(Box::new([condition, yes, no])))
        } else {
            Ok(condition)
        };
        self.open -= 1;
        node
    }

    fn alternatives(&mut self) -> Result<Node, Fault> {
        self.chain("||", Parser::conjunction, Form::Or)
    }

    fn conjunction(&mut self) -> Result<Node, Fault> {
        self.chain("&&", |parser| parser.binary(0), Form::And)
    }

    /// Parses a chain of operands with the same operator into a single node, however long the chain.
    fn chain(
        &mut self,
        symbol: &str,
        part: impl Fn(&mut Parser) -> Result<Node, Fault>,
        form: fn(Vec<Node>) -> Form,
    ) -> Result<Node, Fault> {
        let first = part(self)?;
        if !self.is(symbol) {
            return Ok(first);
        }
        let at = first.at;
        let mut parts = vec![first];
        while self.pass(symbol) {
            parts.push(part(self)?);
        }
        made(at, form(parts))
    }

    /// Parses an expression whose operators bind at least as tightly as this level.
    fn binary(&mut self, least: usize) -> Result<Node, Fault> {
        let mut left = self.unary()?;
        while let Some((level, name)) = self.operator_ahead().filter(|(level, _)| *level >= least) {
            let at = self.peek().at;
            self.next += 1;
            let right = self.binary(level + 1)?;
            left = call(at, name, vec![left, right])?;
        }
        Ok(left)
    }

    /// Returns the next binary operator, with its level.
    fn operator_ahead(&self) -> Option<(usize, &'static str)> {
        let word = match &self.peek().word {
            Word::Symbol(symbol) => symbol,
            Word::Name { text, quoted: false } => text.as_str(),
            _ => return None,
        };
        let of_level = |(level, operators): (usize, &&'static [(&str, &'static str)])| {
            let found = operators.iter().find(|(symbol, _)| *symbol == word);
            found.map(|(_, name)| (level, *name))
        };
        LEVELS.iter().enumerate().find_map(of_level)
    }

    fn unary(&mut self) -> Result<Node, Fault> {
        let at = self.peek().at;
        for (symbol, name) in [("!", "!_"), ("-", "-_")] {
            if !self.is(symbol) {
                continue;
            }
            let mut count = 0;
            while self.is(symbol) {
                self.next += 1;
                count += 1;
            }
            // A sign belongs to the number that follows it.
            let is_number = symbol == "-" && matches!(self.peek().word, Word::Whole { .. });
            let operand = if is_number && count % 2 == 1 {
                self.postfix(true)?
            } else {
                let operand = self.postfix(false)?;
                return match count % 2 {
                    1 => call(at, name, vec![operand]),
                    _ => call(at, name, vec![call(at, name, vec![operand])?]),
                };
            };
            return Ok(operand);
        }
        self.postfix(false)
    }

    fn postfix(&mut self, negative: bool) -> Result<Node, Fault> {
        let mut node = self.primary(negative)?;
        loop {
            let at = self.peek().at;
            if self.is(".") || self.is(".?") {
                let optional = self.pass(".?");
                self.next += usize::from(!optional);
                let Word::Name { text: field, quoted } = self.peek().word.clone() else {
                    return Err(self.unexpected("the name of a field or method"));
                };
                self.next += 1;
                node = if !optional && !quoted && self.pass("(") {
                    let arguments = self.arguments(")")?;
                    made(at, Form::Call { target: Some(Box::new(node)), name: field, arguments })?
                } else {
                    made(at, Form::Select { of: Box::new(node), field, optional })?
                };
            } else if self.is("[") || self.is("[?") {
                let optional = self.pass("[?");
                self.next += usize::from(!optional);
                let index = Box::new(self.expression()?);
                self.expect("]")?;
                node = made(at, Form::Index { of: Box::new(node), index, optional })?;
            } else if self.is("{") || self.is("{?") {
                return Err(Fault::new(at, "messages cannot be made here: there are no types for them"));
            } else {
                return Ok(node);
            }
        }
    }

    fn primary(&mut self, negative: bool) -> Result<Node, Fault> {
        let token = self.peek().clone();
        let at = token.at;
        match token.word {
            Word::Literal => {
                self.next += 1;
                made(at, Form::Literal(token.value.unwrap_or(Value::Null)))
            }
            Word::Whole { digits, hexadecimal, unsigned } => {
                self.next += 1;
                made(at, Form::Literal(lex::whole(at, &digits, hexadecimal, unsigned, negative)?))
            }
            Word::Name { text, quoted: false } => {
                self.next += 1;
                self.name(at, text)
            }
            Word::Symbol("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Word::Symbol("[" | "[?") => {
                let first_is_optional = self.pass("[?");
                self.next += usize::from(!first_is_optional);
                self.items(at, first_is_optional)
            }
            Word::Symbol("{" | "{?") => {
                let first_is_optional = self.pass("{?");
                self.next += usize::from(!first_is_optional);
                self.entries(at, first_is_optional)
            }
            // A name from the outermost scope, which is the only one.
            Word::Symbol(".") => {
                self.next += 1;
                match self.peek().word.clone() {
                    Word::Name { text, quoted: false } => {
                        self.next += 1;
                        self.name(at, text)
                    }
                    _ => Err(self.unexpected("a name")),
                }
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    fn name(&mut self, at: usize, text: String) -> Result<Node, Fault> {
        let value = match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            reserved if RESERVED.contains(&reserved) => {
                return Err(Fault::new(at, format!("`{reserved}` is reserved and cannot be a name")));
            }
            _ if self.pass("(") => {
                let arguments = self.arguments(")")?;
                return made(at, Form::Call { target: None, name: text, arguments });
            }
            _ => return made(at, Form::Name(text)),
        };
        made(at, Form::Literal(value))
    }

    fn arguments(&mut self, end: &'static str) -> Result<Vec<Node>, Fault> {
        let mut arguments = Vec::new();
        while !self.pass(end) {
            arguments.push(self.expression()?);
            if !self.pass(",") {
                self.expect(end)?;
                break;
            }
            if self.is(end) {
                return Err(self.unexpected("one more argument"));
            }
        }
        Ok(arguments)
    }

    fn items(&mut self, at: usize, mut optional: bool) -> Result<Node, Fault> {
        let mut items = Vec::new();
        while optional || !self.pass("]") {
            optional |= self.pass("?");
            items.push((optional, self.expression()?));
            optional = false;
            if !self.pass(",") {
                self.expect("]")?;
                break;
            }
        }
        made(at, Form::List(items))
    }

    fn entries(&mut self, at: usize, mut optional: bool) -> Result<Node, Fault> {
        let mut entries = Vec::new();
        while optional || !self.pass("}") {
            optional |= self.pass("?");
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((optional, key, self.expression()?));
            optional = false;
            if !self.pass(",") {
                self.expect("}")?;
                break;
            }
        }
        made(at, Form::Map(entries))
    }
}

fn call(at: usize, name: &str, arguments: Vec<Node>) -> Result<Node, Fault> {
    made(at, Form::Call { target: None, name: name.to_owned(), arguments })
}

/// Returns a node, or a fault if it is nested too deep.
fn made(at: usize, form: Form) -> Result<Node, Fault> {
    let deepest = |nodes: &[Node]| nodes.iter().map(|node| node.depth).max().unwrap_or(0);
    let below = match &form {
        Form::Literal(_) | Form::Name(_) => 0,
        Form::Select { of, .. } => of.depth,
        Form::Index { of, index, .. } => of.depth.max(index.depth),
        Form::Call { target, arguments, .. } => {
            deepest(arguments).max(target.as_ref().map_or(0, |target| target.depth))
        }
        Form::List(items) => items.iter().map(|(_, item)| item.depth).max().unwrap_or(0),
        Form::Map(entries) => {
            entries.iter().map(|(_, key, value)| key.depth.max(value.depth)).max().unwrap_or(0)
        }
        Form::And(parts) | Form::Or(parts) => deepest(parts),
        Form::If(parts) => deepest(parts.as_slice()),
    };
    let depth = below + 1;
    if depth > DEEPEST { Err(too_deep(at)) } else { Ok(Node { at, depth, form }) }
}

fn too_deep(at: usize) -> Fault {
    Fault::new(at, format!("expressions may nest {DEEPEST} deep at most"))
}
