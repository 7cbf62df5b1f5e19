//! Builds one document's tree from parser events: tags, keys, merge keys, anchors and the limits.

use std::collections::{BTreeMap, BTreeSet};

use saphyr_parser::{Event, ScalarStyle, Tag};

use super::fault::{self, Fault, error, too_many_repeats, too_many_values};
use super::node::{Entry, Mark, Node, Value};
use super::reader::{Limits, TEXT_PER_STEP};
use super::scalar::{Scalar, read_differently, resolve, tagged_scalar};
use crate::diag::Severity;

/// A tree that grows event by event.
pub(super) struct Builder<'a> {
    left: &'a mut Limits,
    open: Vec<OpenCollection>,
    anchors: BTreeMap<usize, (Node, Cost)>,
    root: Option<Node>,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
    /// A key begins or ends with a blank other than a space. One fault of this kind is enough.
    has_odd_blanks: bool,
}

/// The properties before a value: an anchor (0 for none) and a tag.
#[derive(Clone, Copy)]
struct Properties<'t> {
    anchor: usize,
    tag: Option<&'t Tag>,
}

/// An unclosed list or mapping.
struct OpenCollection {
    at: Mark,
    anchor: usize,
    cost: Cost,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, merged: Vec<(Mark, Node)>, key: Option<EntryKey> },
}

enum EntryKey {
    Text(String, Mark),
    Merge(Mark),
    /// The key has been reported; its value is read and dropped.
    Bad,
}

/// The size of a value, including its parts.
#[derive(Clone, Copy, Default)]
struct Cost {
    nodes: usize,
    bytes: usize,
}

impl Cost {
    fn add(&mut self, other: Cost) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl<'a> Builder<'a> {
    pub(super) fn new(left: &'a mut Limits) -> Builder<'a> {
        Builder {
            left,
            open: Vec::new(),
            anchors: BTreeMap::new(),
            root: None,
            faults: Vec::new(),
            warnings: Vec::new(),
            has_odd_blanks: false,
        }
    }

    /// Handles the next event. An error means that further reading is useless.
    pub(super) fn take(&mut self, event: Event<'_>, at: Mark) -> Result<(), Fault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(text.into_owned(), style, at, Properties { anchor, tag: tag.as_deref() })
            }
            Event::SequenceStart(anchor, tag) => {
                let properties = Properties { anchor, tag: tag.as_deref() };
                self.open(at, properties, "seq", Inside::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let inside = Inside::Map { entries: Vec::new(), merged: Vec::new(), key: None };
                self.open(at, Properties { anchor, tag: tag.as_deref() }, "map", inside)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => self.alias(anchor, at),
            _ => Ok(()),
        }
    }

    /// Returns the number of values that may still follow.
    pub(super) fn values_left(&self) -> usize {
        self.left.nodes
    }

    /// Returns the document's root, after the last event.
    pub(super) fn finish(&mut self) -> Option<Node> {
        self.root.take()
    }

    /// Returns the errors, and the warnings.
    pub(super) fn into_faults(self) -> (Vec<Fault>, Vec<Fault>) {
        (self.faults, self.warnings)
    }

    fn open(
        &mut self,
        at: Mark,
        properties: Properties<'_>,
        plain_tag: &str,
        inside: Inside,
    ) -> Result<(), Fault> {
        if self.open.len() >= self.left.depth {
            let message = format!("lists and mappings nest deeper than {}", self.left.depth);
            return Err(error(at, &message, None));
        }
        if let Some(tag) = properties.tag.map(full_name) {
            let known = tag == "!" || tag.strip_prefix(CORE) == Some(plain_tag);
            if !known {
                self.faults.push(unknown_tag(&tag, at));
            }
        }
        self.open.push(OpenCollection { at, anchor: properties.anchor, cost: Cost::default(), inside });
        Ok(())
    }

    /// Returns a scalar's type by its tag, or if it is plain by its text.
    fn typed(&mut self, text: String, plain: bool, tag: Option<String>, at: Mark) -> (Scalar, String) {
        match tag {
            None if plain => {
                let scalar = resolve(&text);
                if let Some(there) = read_differently(&text, &scalar) {
                    self.warnings.push(read_twice(&text, &scalar, there, at));
                }
                (scalar, text)
            }
            None => (Scalar::Text, text),
            Some(tag) if tag == "!" => (Scalar::Text, text),
            Some(tag) => match tag.strip_prefix(CORE).map(|name| tagged_scalar(name, text)) {
                Some(Some(Ok(read))) => read,
                Some(Some(Err(message))) => {
                    self.faults.push(error(at, &message, None));
                    (Scalar::Null, String::new())
                }
                Some(None) | None => {
                    self.faults.push(unknown_tag(&tag, at));
                    (Scalar::Null, String::new())
                }
            },
        }
    }

    fn scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        at: Mark,
        properties: Properties<'_>,
    ) -> Result<(), Fault> {
        let cost = Cost { nodes: 1, bytes: text.len() };
        let plain = style == ScalarStyle::Plain;
        let Properties { anchor, tag } = properties;
        let tag = tag.map(full_name);
        if plain
            && tag.as_deref().is_none_or(|tag| tag == "tag:yaml.org,2002:merge")
            && text == "<<"
            && let Some(key @ None) = self.pending_key()
        {
            *key = Some(EntryKey::Merge(at));
            return self.charge(cost, at);
        }
        let (scalar, text) = self.typed(text, plain, tag, at);
        if plain && !self.has_odd_blanks && matches!(self.pending_key(), Some(None)) {
            let fault = fault::blank_in_key(&text, at);
            self.has_odd_blanks = fault.is_some();
            self.faults.extend(fault);
        }
        if let Some(key @ None) = self.pending_key() {
            // An anchor on a key stores the key's text.
            let (new, node) = match scalar.into_key(text) {
                Some(text) => {
                    (EntryKey::Text(text.clone(), at), Some(Node { at, value: Value::String(text) }))
                }
                None => (EntryKey::Bad, None),
            };
            *key = Some(new);
            if let Some(node) = node {
                self.remember(anchor, &node, cost, at)?;
            } else {
                self.faults.push(error(at, "a key must not be null", Some("put the key in quotes")));
            }
            return self.charge(cost, at);
        }
        match scalar.into_value(text) {
            Some(value) => self.complete(Node { at, value }, anchor, cost),
            None => {
                let message = "infinity and not-a-number cannot be sent to Kubernetes";
                self.faults.push(error(at, message, Some("put it in quotes if it is text")));
                self.complete(Node { at, value: Value::Null }, anchor, cost)
            }
        }
    }

    fn alias(&mut self, anchor: usize, at: Mark) -> Result<(), Fault> {
        let Some((node, cost)) = self.anchors.get(&anchor) else {
            return Err(error(at, "an alias is inside the value that it repeats", None));
        };
        let (cost, is_key) = (*cost, node.as_str().map(str::to_owned));
        self.charge_copy(cost, at)?;
        if let Some(key @ None) = self.pending_key() {
            *key = Some(match is_key {
                Some(text) => EntryKey::Text(text, at),
                None => EntryKey::Bad,
            });
            if matches!(key, Some(EntryKey::Bad)) {
                self.faults.push(error(at, "a key must be text", None));
            }
            return Ok(());
        }
        let node = match self.anchors.get(&anchor) {
            Some((node, _)) => node.clone(),
            None => return Ok(()),
        };
        self.place(node, cost);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        let Some(OpenCollection { at, anchor, mut cost, inside }) = self.open.pop() else { return Ok(()) };
        cost.nodes = cost.nodes.saturating_add(1);
        let value = match inside {
            // Trees are kept between passes, so spare capacity would waste memory.
            Inside::List(mut items) => {
                items.shrink_to_fit();
                Value::List(items)
            }
            Inside::Map { entries, merged, .. } => {
                self.faults.extend(fault::duplicates(&entries));
                let mut entries = apply(entries, merged, &mut self.faults, &mut self.warnings);
                entries.shrink_to_fit();
                Value::Map(entries)
            }
        };
        if let Some(key @ None) = self.pending_key() {
            *key = Some(EntryKey::Bad);
            self.faults.push(error(at, "a key must be text, not a list or mapping", None));
            return Ok(());
        }
        let own = Cost { nodes: 1, bytes: 0 };
        self.charge(own, at)?;
        let node = Node { at, value };
        self.remember(anchor, &node, cost, at)?;
        self.place(node, cost);
        Ok(())
    }

    fn complete(&mut self, node: Node, anchor: usize, cost: Cost) -> Result<(), Fault> {
        let at = node.at;
        self.charge(cost, at)?;
        self.remember(anchor, &node, cost, at)?;
        self.place(node, cost);
        Ok(())
    }

    /// Keeps a copy of an anchored value for aliases.
    fn remember(&mut self, anchor: usize, node: &Node, cost: Cost, at: Mark) -> Result<(), Fault> {
        if anchor > 0 {
            self.charge_copy(cost, at)?;
            self.anchors.insert(anchor, (node.clone(), cost));
        }
        Ok(())
    }

    /// Adds a finished value to its parent.
    fn place(&mut self, node: Node, cost: Cost) {
        let Some(top) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        top.cost.add(cost);
        match &mut top.inside {
            Inside::List(items) => items.push(node),
            Inside::Map { entries, merged, key } => match key.take() {
                Some(EntryKey::Text(key, at)) => entries.push(Entry { key, at, value: node }),
                Some(EntryKey::Merge(at)) => merged.push((at, node)),
                Some(EntryKey::Bad) | None => {}
            },
        }
    }

    /// Returns the pending key of the innermost mapping, if a key or its value comes next.
    fn pending_key(&mut self) -> Option<&mut Option<EntryKey>> {
        match self.open.last_mut() {
            Some(OpenCollection { inside: Inside::Map { key, .. }, .. }) => Some(key),
            _ => None,
        }
    }

    fn charge(&mut self, cost: Cost, at: Mark) -> Result<(), Fault> {
        match self.left.nodes.checked_sub(cost.nodes) {
            Some(left) => {
                self.left.nodes = left;
                Ok(())
            }
            None => Err(too_many_values(at)),
        }
    }

    fn charge_copy(&mut self, cost: Cost, at: Mark) -> Result<(), Fault> {
        let steps = cost.nodes.saturating_add(cost.bytes / TEXT_PER_STEP);
        match self.left.repeats.checked_sub(steps) {
            Some(left) => self.left.repeats = left,
            // The rest of the budget is used up, so that later documents do not try.
            None => {
                self.left.repeats = 0;
                return Err(too_many_repeats(at));
            }
        }
        self.charge(cost, at)?;
        match self.left.bytes.checked_sub(cost.bytes) {
            Some(left) => {
                self.left.bytes = left;
                Ok(())
            }
            None => Err(error(at, "aliases repeat more text than berth reads", None)),
        }
    }
}

const CORE: &str = "tag:yaml.org,2002:";

fn full_name(tag: &Tag) -> String {
    format!("{}{}", tag.handle, tag.suffix)
}

fn unknown_tag(tag: &str, at: Mark) -> Fault {
    let short = tag.strip_prefix(CORE).map_or_else(|| tag.to_owned(), |name| format!("!!{name}"));
    let hint = "Kubernetes objects need no tags; put text that begins with `!` in quotes";
    error(at, &format!("unknown tag `{short}`"), Some(hint))
}

/// Shows the value only if it is a word such as `yes`: any other value may be a Secret's.
fn read_twice(text: &str, here: &Scalar, (who, there): (&str, &str), at: Mark) -> Fault {
    let here = match here {
        Scalar::Null => "null",
        Scalar::Bool(true) => "true",
        Scalar::Bool(false) => "false",
        Scalar::Int(_) | Scalar::Large(_) | Scalar::Float(_) => "a number",
        Scalar::Text => "text",
    };
    let is_word = text.len() <= 5 && text.chars().all(|c| c.is_ascii_alphabetic());
    let what = if is_word { format!("`{text}`") } else { "this value without quotes".to_owned() };
    Fault {
        severity: Severity::Warning,
        ..error(
            at,
            &format!("{what} is {here} here, but {there} for {who}"),
            Some("put it in quotes if it is text, or write the value plainly"),
        )
    }
}

/// Adds the entries of merged mappings to a mapping. Its own keys win, then earlier mappings of a list.
pub(super) fn apply(
    mut entries: Vec<Entry>,
    merged: Vec<(Mark, Node)>,
    faults: &mut Vec<Fault>,
    warnings: &mut Vec<Fault>,
) -> Vec<Entry> {
    if merged.is_empty() {
        return entries;
    }
    if let Some((at, _)) = merged.get(1) {
        faults.push(error(*at, "the key `<<` is given twice", Some("merge a list: `<<: [*a, *b]`")));
    }
    let mut own: BTreeSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    let first_own_after = |at: Mark| entries.iter().any(|entry| entry.at < at);
    let in_doubt = merged.first().is_some_and(|(at, _)| first_own_after(*at));
    let n_own = entries.len();
    for (at, node) in merged {
        let sources = match node.value {
            Value::List(items) => items,
            _ => vec![node],
        };
        for source in sources {
            let Value::Map(others) = source.value else {
                let message = format!("`<<` merges mappings, not {}", source.what());
                faults.push(error(at, &message, Some("write `<<: *name` or a list of such aliases")));
                continue;
            };
            for entry in others {
                if own.insert(entry.key.clone()) {
                    entries.push(entry);
                } else if in_doubt && entries[..n_own].iter().any(|e| e.key == entry.key && e.at < at) {
                    // In go-yaml v2 the last value wins.
                    let message = format!("`<<` comes after `{}`, which it also sets", entry.key);
                    let hint = "put `<<` first: YAML readers differ in the value they take";
                    warnings.push(Fault { severity: Severity::Warning, ..error(at, &message, Some(hint)) });
                }
            }
        }
    }
    entries
}
