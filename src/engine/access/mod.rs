//! Access rules of a fleet repository: the rights of each folder, taken from the earlier commit.
//!
//! Rules and facts come from the documents of one commit and judge the documents of the next: [`World`] holds
//! both. [`World::judge`] refuses single documents before they are lowered; [`fleet_rights`] checks selected
//! objects and clusters afterwards. Without any rule, everything is allowed.

mod cluster_set_rights;
mod document_rights;
mod facts;
pub(crate) mod fleet_rights;
mod patterns;
mod roles;
mod rule;
#[cfg(test)]
mod tests;

use crate::dialects::{Dialects, Document};
use berth_base::diag::{Diagnostic, Severity};
use berth_base::yaml::Scope;

pub use document_rights::{DocumentVerdicts, MissingRight};
pub use facts::Facts;
pub use roles::{Roles, is_role, misplaced};
pub use rule::{Grants, Rule, Rules, Subject, What, read_rule};

/// The folder at the root in which rules are valid.
pub const FOLDER: &str = "access/";
pub const KIND: &str = "AccessRule";
pub(crate) const OWN_GROUP: &str = "berth.dev";

/// The current rules and facts, by which the next commit is judged.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub rules: Rules,
    /// The facts of the earlier commit; empty for the first commit.
    pub before: Facts,
    /// The rules of the next commit, for hints.
    pub next: Rules,
}

impl World {
    /// Reports whether the rules forbid nothing.
    pub fn is_free(&self) -> bool {
        !self.rules.enforced
    }
}

/// Reads the rules among documents. `unreadable`: another file cannot be read. That file may be a rule, so
/// everything that is not granted is forbidden.
pub fn rules<'d>(
    documents: impl Iterator<Item = &'d Document>,
    unreadable: bool,
    dialects: Dialects,
) -> Rules {
    let mut rules = Rules { enforced: unreadable, rules: Vec::new(), dialects };
    let mut roles = Roles::default();
    for document in documents.filter(|document| document.at.file.starts_with(FOLDER)) {
        let scope = Scope::new(document.at.file.clone(), Severity::Error);
        if *document.key.kind == *KIND && *document.key.group == *OWN_GROUP {
            rules.enforced = true;
            rules.rules.extend(read_rule(&scope, &document.open()));
        } else if is_role(document) {
            roles.read(&scope, document);
        } else {
            // A misspelt rule was meant as a rule, so it enforces the rules.
            let is_ours = *document.key.group == *OWN_GROUP || *document.key.kind == *KIND;
            rules.enforced |= is_ours && !["Approval", "ClusterStatus"].contains(&&*document.key.kind);
        }
    }
    let made = roles.rules(&rules.rules, |_| {});
    rules.rules.extend(made);
    rules
}

/// Returns warnings about role bindings that grant nothing. The readers report the bindings' own faults.
pub(crate) fn idle_bindings<'d>(documents: impl Iterator<Item = &'d Document> + Clone) -> Vec<Diagnostic> {
    let (mut roles, mut found) = (Roles::default(), Vec::new());
    let in_folder = documents.filter(|document| document.at.file.starts_with(FOLDER));
    for document in in_folder.clone().filter(|document| is_role(document)) {
        roles.read(&Scope::new(document.at.file.clone(), Severity::Error), document);
    }
    let found_rules: Vec<Rule> = in_folder
        .filter(|document| *document.key.kind == *KIND && *document.key.group == *OWN_GROUP)
        .filter_map(|document| {
            read_rule(&Scope::new(document.at.file.clone(), Severity::Error), &document.open())
        })
        .collect();
    roles.rules(&found_rules, |one| found.push(one));
    found
}
