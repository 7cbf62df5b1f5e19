//! The tree of fields that a reader knows, from its questions.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::yaml::{Form, Question};

/// Stands for fields whose names are data.
pub const ANY: &str = "*";

/// A field, or a whole document, with everything that its reader requires.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Field {
    /// The allowed forms; empty for any.
    pub forms: BTreeSet<Form>,
    pub required: bool,
    pub nullable: bool,
    /// True if only the listed fields are allowed.
    pub closed: bool,
    /// True if its fields must not be null.
    pub refuses_nulls: bool,
    /// The fields of a mapping by name, see [`ANY`].
    pub fields: BTreeMap<String, Field>,
    /// The items of a list.
    pub item: Option<Box<Field>>,
}

impl Field {
    pub(super) fn add(&mut self, path: &str, question: Question) {
        let field = path.split('.').filter(|part| !part.is_empty()).fold(self, |field, part| {
            let name = part.trim_end_matches("[]");
            let depth = (part.len() - name.len()) / 2;
            let field = field.fields.entry(name.to_owned()).or_default();
            (0..depth).fold(field, |list, _| list.item.get_or_insert_default())
        });
        match question {
            Question::Known => {}
            Question::Nullable => field.nullable = true,
            Question::Required => field.required = true,
            Question::Closed { refuses_nulls } => (field.closed, field.refuses_nulls) = (true, refuses_nulls),
            Question::Is(form) => {
                field.forms.insert(form);
            }
        }
    }

    /// Keeps only the narrowest form: a reader may ask for text, and then for one of a few words.
    pub(super) fn narrow(&mut self) {
        let words: BTreeSet<&'static str> = self.forms.iter().flat_map(words_of).collect();
        if !words.is_empty() {
            // In the order of the reader's longest list.
            let longest = self.forms.iter().map(words_of).max_by_key(Vec::len).unwrap_or_default();
            let others = words.into_iter().filter(|word| !longest.contains(word));
            let all = longest.iter().copied().chain(others).collect();
            self.forms = [Form::Word(all)].into();
        }
        if self.forms.contains(&Form::SomeText) {
            self.forms.remove(&Form::Text);
        }
        let bounds = self.forms.iter().filter_map(|form| match form {
            Form::Whole(low, high) => Some((*low, *high)),
            _ => None,
        });
        let bounds = bounds.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)));
        if let Some((low, high)) = bounds {
            self.forms.retain(|form| !matches!(form, Form::Whole(..)));
            self.forms.insert(Form::Whole(low, high));
        }
        self.fields.values_mut().for_each(Field::narrow);
        if let Some(item) = &mut self.item {
            item.narrow();
        } else if self.forms.contains(&Form::List) {
            self.item = Some(Box::default());
        }
    }

    /// Calls `tell` with the path of every field below.
    pub fn walk<'f>(&'f self, path: &str, tell: &mut dyn FnMut(&str, &'f Field)) {
        for (name, field) in &self.fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            tell(&path, field);
            field.walk(&path, tell);
        }
        if let Some(item) = &self.item {
            let path = format!("{path}[]");
            tell(&path, item);
            item.walk(&path, tell);
        }
    }
}

fn words_of(form: &Form) -> Vec<&'static str> {
    match form {
        Form::Word(words) => words.clone(),
        _ => Vec::new(),
    }
}
