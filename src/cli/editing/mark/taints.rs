//! Parses `key=value:Effect`, `key:Effect-` and `key-` as kubectl does, and finds the changes of a document's taints.
//!
//! An existing taint keeps the moment at which it was added; a new one, or one with another value, gets `now`.

use serde_json::{Map, Value as Json};

use super::{DocumentChanges, ValueChange, ValueEdit};
use berth_base::edit::{Found, Step};
use berth_base::meta::names::is_label_key;
use berth_base::yaml::Node;

/// The requested taints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TaintRequest {
    Add(Taint),
    /// Removes the taints with this key, and with this value and effect if given.
    Remove {
        key: String,
        value: Option<String>,
        effect: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

/// Reports whether a command-line word is a taint instead of a cluster's name.
pub(crate) fn is_wish(word: &str) -> bool {
    word.contains(['=', ':']) || word.ends_with('-')
}

pub fn parse(word: &str) -> Result<TaintRequest, String> {
    let (rest, effect) = word.rsplit_once(':').map_or((word, None), |(rest, effect)| (rest, Some(effect)));
    let end = effect.unwrap_or(rest);
    let removed = end.strip_suffix('-');
    let (rest, effect) = match (removed, effect) {
        (Some(end), Some(_)) => (rest, Some(end)),
        (Some(end), None) => (end, None),
        (None, _) => (rest, effect),
    };
    let (key, value) = rest.split_once('=').map_or((rest, None), |(key, value)| (key, Some(value)));
    if !is_label_key(key) {
        return Err(format!(
            "`{word}`: `{key}` is not a valid taint key: use letters, digits, `-`, `_` and `.`, at most 63"
        ));
    }
    let [key, value_text, effect_text] =
        [key, value.unwrap_or_default(), effect.unwrap_or_default()].map(str::to_owned);
    if removed.is_some() {
        let (value, effect) = (value.map(|_| value_text), effect.map(|_| effect_text));
        return Ok(TaintRequest::Remove { key, value, effect });
    }
    if effect_text.is_empty() {
        return Err(format!("`{word}` names no effect; write `{rest}:EFFECT`, or `{key}-` to remove it"));
    }
    Ok(TaintRequest::Add(Taint { key, value: value_text, effect: effect_text }))
}

impl TaintRequest {
    /// Returns the effect that a document's kind must support for the request to apply.
    pub fn effect(&self) -> Option<&str> {
        match self {
            TaintRequest::Add(taint) => Some(&taint.effect),
            TaintRequest::Remove { effect, .. } => effect.as_deref(),
        }
    }
}

impl Taint {
    /// Writes the request as `key=value:Effect`.
    pub fn show(&self) -> String {
        let Taint { key, value, effect } = self;
        if value.is_empty() { format!("{key}:{effect}") } else { format!("{key}={value}:{effect}") }
    }

    fn to_json(&self, since: Option<&str>) -> Json {
        let fields = [
            ("key", Some(self.key.as_str())),
            ("value", Some(self.value.as_str()).filter(|text| !text.is_empty())),
        ];
        let rest = [("effect", Some(self.effect.as_str())), ("timeAdded", since)];
        let fields = fields.into_iter().chain(rest);
        Json::Object(
            fields.filter_map(|(key, text)| Some((key.to_owned(), text?.into()))).collect::<Map<_, _>>(),
        )
    }
}

/// Returns a document's taints in their order, even malformed ones.
pub(crate) fn taints_of(found: &Found) -> Vec<Taint> {
    let taints = found.node.get("spec").and_then(|spec| spec.get("taints")).map(Node::to_json);
    let text = |one: &Json, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let taint =
        |one: &Json| Taint { key: text(one, "key"), value: text(one, "value"), effect: text(one, "effect") };
    taints.as_ref().and_then(Json::as_array).into_iter().flatten().map(taint).collect()
}

/// The taints of a document.
#[derive(Clone, Debug)]
pub(crate) struct TaintList {
    pub taints: Vec<Taint>,
    /// True if the document has a list for items. `taints:` without a value is not a list.
    pub has_list: bool,
}

impl TaintList {
    pub fn of(found: &Found) -> TaintList {
        let list = found.node.get("spec").and_then(|spec| spec.get("taints"));
        let has_list = list.is_some_and(|taints| taints.what() == "a list");
        TaintList { taints: taints_of(found), has_list }
    }
}

/// Returns the changes, or the reason to refuse them. `since` dates new taints of kinds with a date.
pub(crate) fn outcome(
    list: &TaintList,
    requests: &[TaintRequest],
    overwrite: bool,
    since: Option<&str>,
) -> Result<DocumentChanges, String> {
    let mut changes = TaintChanges::of(list, since);
    for request in requests {
        match request {
            TaintRequest::Add(taint) => changes.add(taint, overwrite)?,
            TaintRequest::Remove { key, value, effect } => {
                changes.remove(key, value.as_deref(), effect.as_deref());
            }
        }
    }
    Ok(changes.outcome())
}

/// The changes of a list of taints.
struct TaintChanges<'a> {
    list: &'a TaintList,
    since: Option<&'a str>,
    sets: Vec<ValueChange>,
    new: Vec<Json>,
    /// The indexes of the removed taints.
    gone: Vec<usize>,
    descriptions: Vec<String>,
    notes: Vec<String>,
}

impl<'a> TaintChanges<'a> {
    fn of(list: &'a TaintList, since: Option<&'a str>) -> TaintChanges<'a> {
        let (sets, new, gone) = (Vec::new(), Vec::new(), Vec::new());
        TaintChanges { list, since, sets, new, gone, descriptions: Vec::new(), notes: Vec::new() }
    }

    fn add(&mut self, taint: &Taint, overwrite: bool) -> Result<(), String> {
        let taints = &self.list.taints;
        let same = self.indexes(|one| one.key == taint.key && one.effect == taint.effect);
        match same.as_slice() {
            [] => {
                self.descriptions.push(format!("taint {} added", taint.show()));
                self.new.push(taint.to_json(self.since));
            }
            all if all.iter().any(|index| taints[*index].value == taint.value) => {
                self.notes.push(format!("the taint `{}` already exists", taint.show()));
            }
            [first, ..] if !overwrite => {
                let (there, wanted) = (taints[*first].show(), taint.show());
                return Err(format!("the taint `{there}` exists; use --overwrite to set `{wanted}`"));
            }
            [first, rest @ ..] => {
                self.descriptions.push(format!("taint {} (was {})", taint.show(), taints[*first].show()));
                let within = |key: &str| [item(*first), vec![Step::from(key)]].concat();
                let what = match taint.value.as_str() {
                    "" => ValueEdit::Remove,
                    value => ValueEdit::Set(value.into()),
                };
                self.sets.push(ValueChange { path: within("value"), what });
                let since = self.since.map(|since| ValueEdit::Set(since.into()));
                self.sets.extend(since.map(|what| ValueChange { path: within("timeAdded"), what }));
                self.gone.extend(rest);
            }
        }
        Ok(())
    }

    fn remove(&mut self, key: &str, value: Option<&str>, effect: Option<&str>) {
        let found = self.indexes(|one| {
            one.key == key
                && value.is_none_or(|value| one.value == value)
                && effect.is_none_or(|effect| one.effect == effect)
        });
        if found.is_empty() {
            let of = |sign, text: Option<&str>| text.map_or_else(String::new, |text| format!("{sign}{text}"));
            self.notes.push(format!("there is no taint `{key}{}{}`", of('=', value), of(':', effect)));
        }
        let taints = &self.list.taints;
        self.descriptions
            .extend(found.iter().map(|index| format!("taint {} removed", taints[*index].show())));
        self.gone.extend(found);
    }

    fn indexes(&self, fits: impl Fn(&Taint) -> bool) -> Vec<usize> {
        let all = self.list.taints.iter().enumerate();
        all.filter(|(_, one)| fits(one)).map(|(index, _)| index).collect()
    }

    /// Returns the changes in an order that keeps indexes valid: removals come last, from the end.
    fn outcome(mut self) -> DocumentChanges {
        self.gone.sort_unstable_by(|a, b| b.cmp(a));
        self.gone.dedup();
        let mut changes = self.sets;
        if self.list.has_list {
            let from = self.list.taints.len();
            let append =
                |(index, taint)| ValueChange { path: item(from + index), what: ValueEdit::Append(taint) };
            changes.extend(self.new.into_iter().enumerate().map(append));
        } else if !self.new.is_empty() {
            changes.push(ValueChange { path: list_path(), what: ValueEdit::Set(Json::Array(self.new)) });
        }
        changes.extend(
            self.gone.into_iter().map(|index| ValueChange { path: item(index), what: ValueEdit::Remove }),
        );
        DocumentChanges { changes, descriptions: self.descriptions, notes: self.notes }
    }
}

fn list_path() -> Vec<Step> {
    vec![Step::from("spec"), Step::from("taints")]
}

/// Returns the path of a taint in the document.
fn item(index: usize) -> Vec<Step> {
    [list_path(), vec![Step::from(index)]].concat()
}
