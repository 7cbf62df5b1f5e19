//! The difference of two values, field by field, each with its place. Any of these changes can be taken back.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::yaml::node::Entry;
use berth_base::yaml::{Mark, Node, Value};

/// Fields by which people identify the items of a list.
const NAMES: &[&str] = &["name", "clusterName", "cluster", "key", "topologyKey", "path"];
/// The most comparisons of items between two lists. Longer ones differ as a whole.
const MOST_COMPARISONS: usize = 1_000_000;

/// A step from a value to one within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Field(String),
    /// An item of a list, by its name or else its index.
    Item(String),
}

/// One field that differs.
#[derive(Debug)]
pub(super) struct NodeChange<'n> {
    pub path: Vec<PathStep>,
    /// The place in the new value, or in the old one if the field was removed.
    pub at: Mark,
    /// `None` on both sides if only the order of fields changed.
    pub before: Option<&'n Node>,
    pub after: Option<&'n Node>,
}

/// Two values with their differences, each under a number.
#[derive(Clone, Debug)]
pub(super) enum Difference {
    Same(Node),
    Changed { before: Option<Node>, after: Option<Node>, number: usize },
    Map(Fields),
    List(Vec<Difference>),
}

/// The fields of two mappings. Their order counts, because decisions read some fields in the order of the
/// file.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    fields: Vec<(String, Difference)>,
    /// The indexes of all fields in the old order and in the new one.
    orders: [Vec<usize>; 2],
    /// The number of a change of their order.
    order: Option<usize>,
}

impl Difference {
    /// Returns the new value without the changes that have these numbers.
    pub(super) fn without(&self, taken_back: &BTreeSet<usize>) -> Option<Node> {
        let value = match self {
            Difference::Same(value) => return Some(value.clone()),
            Difference::Changed { before, after, number } => {
                return if taken_back.contains(number) { before.clone() } else { after.clone() };
            }
            Difference::Map(map) => Value::Map(map.without(taken_back)),
            Difference::List(items) => {
                Value::List(items.iter().filter_map(|item| item.without(taken_back)).collect())
            }
        };
        Some(Node { at: Mark::default(), value })
    }

    /// Reports whether one of the differences has one of these numbers.
    pub(super) fn has_any(&self, numbers: &BTreeSet<usize>) -> bool {
        match self {
            Difference::Same(_) => false,
            Difference::Changed { number, .. } => numbers.contains(number),
            Difference::Map(Fields { fields, order, .. }) => {
                order.is_some_and(|number| numbers.contains(&number))
                    || fields.iter().any(|(_, value)| value.has_any(numbers))
            }
            Difference::List(items) => items.iter().any(|item| item.has_any(numbers)),
        }
    }
}

impl Fields {
    fn without(&self, taken_back: &BTreeSet<usize>) -> Vec<Entry> {
        let is_back = self.order.is_none_or(|number| taken_back.contains(&number));
        let order = &self.orders[usize::from(!is_back)];
        let entry = |place: &usize| {
            let (key, value) = &self.fields[*place];
            Some(Entry { key: key.clone(), at: Mark::default(), value: value.without(taken_back)? })
        };
        order.iter().filter_map(entry).collect()
    }
}

/// Compares two values. Differences are numbered from `first` on.
pub(super) fn compare<'n>(
    before: &'n Node,
    after: &'n Node,
    first: usize,
) -> (Difference, Vec<NodeChange<'n>>) {
    let mut comparison = ValueComparison { first, path: Vec::new(), changes: Vec::new() };
    let difference = comparison.values(before, after, after.at);
    (difference, comparison.changes)
}

struct ValueComparison<'n> {
    first: usize,
    path: Vec<PathStep>,
    changes: Vec<NodeChange<'n>>,
}

impl<'n> ValueComparison<'n> {
    fn values(&mut self, before: &'n Node, after: &'n Node, at: Mark) -> Difference {
        match (&before.value, &after.value) {
            _ if is_same(before, after) => Difference::Same(after.clone()),
            (Value::Map(old), Value::Map(new)) => self.maps(old, new, at),
            (Value::List(old), Value::List(new)) => match aligned(old, new) {
                Some(pairs) => self.lists(&pairs),
                None => self.changed(Some(before), Some(after), at),
            },
            _ => self.changed(Some(before), Some(after), at),
        }
    }

    fn changed(&mut self, before: Option<&'n Node>, after: Option<&'n Node>, at: Mark) -> Difference {
        let number = self.first + self.changes.len();
        self.changes.push(NodeChange { path: self.path.clone(), at, before, after });
        Difference::Changed { before: before.cloned(), after: after.cloned(), number }
    }

    fn within(&mut self, step: PathStep, compare: impl FnOnce(&mut Self) -> Difference) -> Difference {
        self.path.push(step);
        let difference = compare(self);
        self.path.pop();
        difference
    }

    fn maps(&mut self, old: &'n [Entry], new: &'n [Entry], at: Mark) -> Difference {
        let keys =
            |entries: &'n [Entry]| entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<&str>>();
        let [before, after] = [keys(old), keys(new)];
        let orders = [merged(&before, &after), merged(&after, &before)];
        let find = |entries: &'n [Entry], key: &str| entries.iter().find(|entry| entry.key == key);
        let mut fields = Vec::new();
        for key in &orders[1] {
            let difference = self.within(PathStep::Field((*key).to_owned()), |inner| {
                match (find(old, key), find(new, key)) {
                    (Some(before), Some(after)) => inner.values(&before.value, &after.value, after.at),
                    (None, Some(after)) => inner.changed(None, Some(&after.value), after.at),
                    (before, None) => {
                        let at = before.map_or(at, |before| before.at);
                        inner.changed(before.map(|before| &before.value), None, at)
                    }
                }
            });
            fields.push(((*key).to_owned(), difference));
        }
        let common = |keys: &[&'n str], others: &[&str]| -> Vec<&'n str> {
            keys.iter().filter(|key| others.contains(key)).copied().collect()
        };
        let is_reordered = common(&before, &after) != common(&after, &before);
        let order = is_reordered.then(|| self.first + self.changes.len());
        if is_reordered {
            self.changes.push(NodeChange { path: self.path.clone(), at, before: None, after: None });
        }
        // One order fits both if the common fields keep their relative order.
        let places = |order: &[&str]| {
            order.iter().filter_map(|key| orders[1].iter().position(|other| other == key)).collect()
        };
        let orders = [places(&orders[usize::from(!is_reordered)]), places(&orders[1])];
        Difference::Map(Fields { fields, orders, order })
    }

    fn lists(&mut self, pairs: &[(Option<&'n Node>, Option<&'n Node>)]) -> Difference {
        let mut place = 0;
        let items = pairs.iter().map(|(before, after)| {
            let Some(item) = after.or(*before) else { return Difference::List(Vec::new()) };
            let step = PathStep::Item(name_of(item).map_or_else(|| place.to_string(), str::to_owned));
            place += usize::from(after.is_some());
            self.within(step, |inner| match (*before, *after) {
                (Some(before), Some(after)) => inner.values(before, after, after.at),
                _ => inner.changed(*before, *after, item.at),
            })
        });
        Difference::List(items.collect())
    }
}

/// Returns all keys, in the order of the first list. A key of the second list alone follows the same key as
/// there.
fn merged<'k>(keys: &[&'k str], others: &[&'k str]) -> Vec<&'k str> {
    let mut order = keys.to_vec();
    let mut place = 0;
    for other in others {
        place = match order.iter().position(|key| key == other) {
            Some(there) => there + 1,
            None => {
                order.insert(place, other);
                place + 1
            }
        };
    }
    order
}

fn is_same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Map(old), Value::Map(new)) => {
            let is_equal =
                |(old, new): (&Entry, &Entry)| old.key == new.key && is_same(&old.value, &new.value);
            old.len() == new.len() && old.iter().zip(new).all(is_equal)
        }
        (Value::List(old), Value::List(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| is_same(old, new))
        }
        (a, b) => a == b,
    }
}

type Pairs<'n> = Vec<(Option<&'n Node>, Option<&'n Node>)>;

/// Aligns the items of two lists, in an order that fits both. `None` if there is none, or the search takes
/// too long.
fn aligned<'n>(old: &'n [Node], new: &'n [Node]) -> Option<Pairs<'n>> {
    if let Some(names) = NAMES.iter().find_map(|name| Some([by_name(old, name)?, by_name(new, name)?])) {
        return by_names(old, new, &names);
    }
    let start = old.iter().zip(new).take_while(|(old, new)| is_same(old, new)).count();
    let ends = old[start..].iter().rev().zip(new[start..].iter().rev());
    let end = ends.take_while(|(old, new)| is_same(old, new)).count();
    let (old_middle, new_middle) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let mut pairs: Pairs<'n> = old[..start].iter().map(Some).zip(new[..start].iter().map(Some)).collect();
    pairs.extend(common(old_middle, new_middle)?);
    let (old_end, new_end) = (&old[old.len() - end..], &new[new.len() - end..]);
    pairs.extend(old_end.iter().map(Some).zip(new_end.iter().map(Some)));
    Some(pairs)
}

/// Returns the name of each item, if every item has a different one.
fn by_name<'n>(items: &'n [Node], name: &str) -> Option<BTreeMap<&'n str, usize>> {
    let named = |(place, item): (usize, &'n Node)| Some((item.get(name)?.as_str()?, place));
    let names: BTreeMap<&str, usize> = items.iter().enumerate().map(named).collect::<Option<_>>()?;
    (names.len() == items.len()).then_some(names)
}

fn by_names<'n>(
    old: &'n [Node],
    new: &'n [Node],
    [before, after]: &[BTreeMap<&str, usize>; 2],
) -> Option<Pairs<'n>> {
    let mut partner = vec![None; new.len()];
    for (name, place) in before {
        if let Some(there) = after.get(name) {
            partner[*there] = Some(*place);
        }
    }
    let (mut pairs, mut next) = (Pairs::new(), 0);
    let kept: BTreeSet<usize> = partner.iter().flatten().copied().collect();
    for (item, partner) in new.iter().zip(partner) {
        let Some(partner) = partner else {
            pairs.push((None, Some(item)));
            continue;
        };
        // An item that moved before others has changed the order.
        let skipped = old.get(next..partner)?;
        if (next..partner).any(|place| kept.contains(&place)) {
            return None;
        }
        pairs.extend(skipped.iter().map(|gone| (Some(gone), None)));
        pairs.push((old.get(partner), Some(item)));
        next = partner + 1;
    }
    pairs.extend(old[next..].iter().map(|gone| (Some(gone), None)));
    Some(pairs)
}

/// Aligns lists by their longest common part. Items between two common items count as changed, pair by pair.
fn common<'n>(old: &'n [Node], new: &'n [Node]) -> Option<Pairs<'n>> {
    if old.len().saturating_mul(new.len()) > MOST_COMPARISONS {
        return None;
    }
    let width = new.len() + 1;
    let mut longest = vec![0_usize; (old.len() + 1) * width];
    for row in (0..old.len()).rev() {
        for column in (0..new.len()).rev() {
            longest[row * width + column] = if is_same(&old[row], &new[column]) {
                longest[(row + 1) * width + column + 1] + 1
            } else {
                longest[(row + 1) * width + column].max(longest[row * width + column + 1])
            };
        }
    }
    let (mut pairs, mut row, mut column) = (Pairs::new(), 0, 0);
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    while row < old.len() || column < new.len() {
        let here = longest[row * width + column];
        if row < old.len() && column < new.len() && is_same(&old[row], &new[column]) {
            replace(&mut pairs, &mut gone, &mut come);
            pairs.push((Some(&old[row]), Some(&new[column])));
            (row, column) = (row + 1, column + 1);
        } else if row < old.len() && longest[(row + 1) * width + column] == here {
            gone.push(&old[row]);
            row += 1;
        } else {
            come.push(&new[column]);
            column += 1;
        }
    }
    replace(&mut pairs, &mut gone, &mut come);
    Some(pairs)
}

fn replace<'n>(pairs: &mut Pairs<'n>, gone: &mut Vec<&'n Node>, come: &mut Vec<&'n Node>) {
    for place in 0..gone.len().max(come.len()) {
        pairs.push((gone.get(place).copied(), come.get(place).copied()));
    }
    gone.clear();
    come.clear();
}

/// Returns the name of an item, for people.
fn name_of(item: &Node) -> Option<&str> {
    NAMES.iter().find_map(|name| item.get(name)?.as_str())
}
