//! The forms of a walk's files, see `fixtures/walk.txtar`.

use std::collections::BTreeMap;

use berth_base::model::Timestamp;

use crate::archive::Archive;
use crate::support::fixtures;
use crate::support::random::Random;

/// A file of the walk: its path at the beginning, and the forms that it may have; none for a file that is absent.
#[derive(Clone, Debug)]
pub struct Slot {
    pub path: String,
    pub forms: Vec<Option<String>>,
}

impl Slot {
    /// One form of the file, written at some moment.
    pub fn text(&self, form: usize, now: Timestamp, random: &mut Random) -> Option<String> {
        let name = self.path.rsplit('/').next().and_then(|file| file.strip_suffix(".yaml")).expect("a name");
        self.forms[form].as_ref().map(|text| expand(text, name, now, random))
    }
}

/// All files of the walk.
pub fn slots() -> Vec<Slot> {
    let mut forms: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
    for (path, text) in Archive::read(&fixtures("walk.txtar")).files {
        let (file, form) = path.rsplit_once('/').expect("a folder of forms");
        forms.entry(file.to_owned()).or_default().push(form.ends_with(".yaml").then_some(text));
    }
    let mut slots = Vec::new();
    for (file, forms) in forms {
        let names = match file.split_once('*') {
            Some((stem, count)) => {
                (0..count.parse().expect("a number")).map(|n: u8| format!("{stem}{n}")).collect()
            }
            None => vec![file],
        };
        slots.extend(
            names.into_iter().map(|name| Slot { path: format!("{name}.yaml"), forms: forms.clone() }),
        );
    }
    slots
}

fn expand(text: &str, name: &str, now: Timestamp, random: &mut Random) -> String {
    let Some((before, rest)) = text.split_once('<') else {
        return text.to_owned();
    };
    let (choices, after) = choices(rest);
    let chosen = match choices.as_slice() {
        ["name"] => name.to_owned(),
        ["past"] => moment(now, -1, random),
        ["soon"] => moment(now, 1, random),
        _ => expand(random.pick(&choices), name, now, random),
    };
    format!("{before}{chosen}{}", expand(after, name, now, random))
}

/// The choices up to the closing bracket, and the text after it.
fn choices(text: &str) -> (Vec<&str>, &str) {
    let (mut depth, mut begin, mut choices) = (0, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'|' if depth == 0 => {
                choices.push(&text[begin..at]);
                begin = at + 1;
            }
            b'>' if depth == 0 => {
                choices.push(&text[begin..at]);
                return (choices, &text[at + 1..]);
            }
            b'>' => depth -= 1,
            _ => {}
        }
    }
    panic!("a `<` without a `>` before: {text}");
}

fn moment(now: Timestamp, direction: i64, random: &mut Random) -> String {
    let away = i64::try_from(random.below(1_800)).expect("seconds");
    Timestamp::from_second(now.as_second() + direction * away).expect("a moment").to_string()
}
