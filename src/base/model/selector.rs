//! Label selectors and the terms that combine them.

use std::collections::BTreeMap;
use std::fmt;

use super::cluster::Expression;
use super::quantity::Quantity;

/// Labels, claims and similar pairs.
pub type Labels = BTreeMap<String, String>;

/// Requirements that must all hold; without any, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    pub requirements: Vec<Requirement>,
}

/// A condition on a single key, with Kubernetes' meaning: `NotIn` and `DoesNotExist` accept a missing key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    Is(String, String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    DoesNotExist(String),
}

/// One alternative in a list; all its parts must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    pub labels: Selector,
    pub claims: Selector,
    pub properties: Vec<PropertyRequirement>,
    pub expressions: Vec<Expression>,
}

/// A bound on a measurement. A cluster without the measurement never meets it, whatever the comparison.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PropertyRequirement {
    pub measure: Measure,
    pub comparison: Comparison,
    pub than: Quantity,
}

/// A quantity that a cluster reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// A named property.
    Property(String),
    /// A resource's amounts: the total, the part for workloads, and the unused part.
    Capacity(String),
    Allocatable(String),
    Available(String),
}

/// The comparison of a measurement with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
}

impl Comparison {
    pub fn holds(self, measured: Quantity, than: Quantity) -> bool {
        match self {
            Comparison::Greater => measured > than,
            Comparison::GreaterOrEqual => measured >= than,
            Comparison::Equal => measured == than,
            Comparison::NotEqual => measured != than,
            Comparison::Less => measured < than,
            Comparison::LessOrEqual => measured <= than,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
        }
    }
}

impl PropertyRequirement {
    /// Reports whether a measurement meets the comparison. A missing measurement, or one that is not a
    /// quantity, does not.
    pub(crate) fn met_by(&self, measured: Option<&str>) -> bool {
        let measured = measured.and_then(|text| text.parse().ok());
        measured.is_some_and(|measured| self.comparison.holds(measured, self.than))
    }
}

impl fmt::Display for PropertyRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.measure, self.comparison.sign(), self.than)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Property(name) => f.write_str(name),
            Measure::Capacity(resource) => write!(f, "total {resource}"),
            Measure::Allocatable(resource) => write!(f, "allocatable {resource}"),
            Measure::Available(resource) => write!(f, "available {resource}"),
        }
    }
}

impl Selector {
    pub fn matches(&self, labels: &Labels) -> bool {
        self.first_unmet(labels).is_none()
    }

    /// Returns the first requirement that these labels do not meet.
    pub fn first_unmet(&self, labels: &Labels) -> Option<&Requirement> {
        self.requirements.iter().find(|requirement| !requirement.met_by(labels))
    }

    /// Returns the requirements that these labels do not meet.
    pub fn unmet<'s>(&'s self, labels: &'s Labels) -> impl Iterator<Item = &'s Requirement> {
        self.requirements.iter().filter(|requirement| !requirement.met_by(labels))
    }

    /// Returns the keys whose values the outcome depends on.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requirements.iter().map(Requirement::key)
    }
}

impl Requirement {
    pub fn key(&self) -> &str {
        match self {
            Requirement::Is(key, _)
            | Requirement::In(key, _)
            | Requirement::NotIn(key, _)
            | Requirement::Exists(key)
            | Requirement::DoesNotExist(key) => key,
        }
    }

    pub(crate) fn met_by(&self, labels: &Labels) -> bool {
        let value = labels.get(self.key());
        match self {
            Requirement::Is(_, wanted) => value == Some(wanted),
            Requirement::In(_, wanted) => value.is_some_and(|value| wanted.contains(value)),
            Requirement::NotIn(_, unwanted) => value.is_none_or(|value| !unwanted.contains(value)),
            Requirement::Exists(_) => value.is_some(),
            Requirement::DoesNotExist(_) => value.is_none(),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Is(key, value) => write!(f, "{key}={value}"),
            Requirement::In(key, values) => write!(f, "{key} in ({})", values.join(", ")),
            Requirement::NotIn(key, values) => write!(f, "{key} notin ({})", values.join(", ")),
            Requirement::Exists(key) => write!(f, "{key} exists"),
            Requirement::DoesNotExist(key) => write!(f, "{key} does not exist"),
        }
    }
}
