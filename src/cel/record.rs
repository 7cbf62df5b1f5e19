//! Records: values whose fields are known before a run, so that a misspelt field is found.

use super::fault::Fault;
use berth_base::diag::did_you_mean;

/// The fields of a variable or of another record's field.
#[derive(Debug)]
pub struct Record {
    /// The name in messages, which also identifies the record.
    pub name: &'static str,
    pub fields: &'static [(&'static str, Field)],
}

/// The type of a record's field.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    Text,
    Int,
    /// Texts by name, such as labels.
    Texts,
    ListOf(&'static Record),
}

impl Record {
    /// Returns the type of a field whose name is at the character `at`.
    pub(super) fn field(&self, at: usize, name: &str) -> Result<Field, Fault> {
        let found = self.fields.iter().find(|(field, _)| *field == name);
        found.map(|(_, field)| *field).ok_or_else(|| {
            let fault = Fault::new(at, format!("the {} has no field `{name}`", self.name));
            fault.maybe_hint(did_you_mean(name, self.fields.iter().map(|(name, _)| *name)))
        })
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Record) -> bool {
        self.name == other.name
    }
}

impl Eq for Record {}
