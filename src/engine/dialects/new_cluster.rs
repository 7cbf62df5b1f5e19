//! A cluster that is about to join, as given to `berth join`. Each dialect has a function that makes its
//! inventory document.

use berth_base::model::selector::Labels;

/// A new member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewCluster {
    pub name: String,
    pub labels: Labels,
    /// The address of its API server. berth never calls it: members pull.
    pub endpoint: Option<String>,
    /// The name of the Secret, or of the account, that a hub would use.
    pub account: Option<String>,
}
