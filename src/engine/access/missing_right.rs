//! A right that a folder lacks, and the error about it.

use std::collections::BTreeSet;

use super::rule::Rules;
use crate::dialects::Document;
use berth_base::diag::{Diagnostic, Pos};
use berth_base::yaml::Mark;

/// The forbidden action, and the grant that a rule would need.
#[derive(Debug)]
pub struct MissingRight {
    /// The forbidden action, as `may not …` after the folder's name.
    pub act: String,
    /// The missing grant, as a rule would write it.
    pub needs: String,
}

impl MissingRight {
    pub(super) fn new(act: impl Into<String>, needs: impl Into<String>) -> MissingRight {
        MissingRight { act: act.into(), needs: needs.into() }
    }

    /// Returns the error at a place. `allowed_next`: the rules of the same commit would allow the action.
    pub fn error(self, rules: &Rules, at: Pos, allowed_next: bool) -> Diagnostic {
        let folder = folder_of(&at.file);
        let hint = if allowed_next {
            "merge the access rules first: a rule applies only to later changes".to_owned()
        } else {
            let names: BTreeSet<&str> = rules.of(&at.file).map(|rule| rule.name.as_str()).collect();
            let named = match names.len() {
                0 => "no AccessRule names that folder".to_owned(),
                _ => format!("it has the rights of {}", names.into_iter().collect::<Vec<_>>().join(", ")),
            };
            format!("an AccessRule would have to grant it `{}`; {named}", self.needs)
        };
        Diagnostic::error(at, format!("{folder} may not {}", self.act)).hint(hint)
    }
}

/// Returns the folder of a file, as messages name it.
pub(super) fn folder_of(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, _)) => format!("the folder `{folder}`"),
        None => format!("the file `{path}` at the root"),
    }
}

/// A place, and the right that is missing there.
pub(super) type Lack = (Mark, MissingRight);

/// Returns the place where a document begins.
pub(super) fn top(document: &Document) -> Mark {
    Mark { line: document.at.line, column: document.at.column }
}
