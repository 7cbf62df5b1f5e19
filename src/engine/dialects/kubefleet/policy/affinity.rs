//! `affinity.clusterAffinity`: required terms and weighted preferences.

use super::property;
use crate::dialects::kubefleet::common_mistakes::{self, label_selector};
use berth_base::diag::Diagnostic;
use berth_base::model::placement::Preference;
use berth_base::model::{Selector, Term};
use berth_base::yaml::fields::Fields;

const MOST_TERMS: usize = 10;
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Required and preferred properties of clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Affinity {
    /// Terms, one of which must match. Without terms every cluster passes.
    pub required: Vec<Term>,
    pub preferred: Vec<Preference>,
}

pub fn read(policy: &mut Fields<'_>) -> Option<Affinity> {
    let mut affinity = policy.fields("affinity")?;
    let found = affinity.fields("clusterAffinity").map(|mut fields| {
        let required = fields.fields(REQUIRED).map(required).unwrap_or_default();
        let preferred =
            common_mistakes::each(&mut fields, PREFERRED).into_iter().filter_map(preference).collect();
        fields.finish();
        Affinity { required, preferred }
    });
    affinity.finish();
    Some(found.unwrap_or_default())
}

/// Refuses preferences: `PickAll` picks every cluster that passes, so they would have no effect.
pub(crate) fn refuse_preferences(policy: &mut Fields<'_>) {
    let preferred = policy
        .node("affinity")
        .and_then(|affinity| affinity.get("clusterAffinity"))
        .and_then(|affinity| affinity.get(PREFERRED));
    let is_empty = |node: &berth_base::yaml::Node| matches!(&node.value, berth_base::yaml::Value::List(items) if items.is_empty());
    if let Some(node) = preferred.filter(|node| !is_empty(node)) {
        let path = format!("{}.clusterAffinity.{PREFERRED}", policy.path_of("affinity"));
        policy.scope().error(node.at, format!("{path} belongs to PickN, not to PickAll"));
    }
}

fn required(mut fields: Fields<'_>) -> Vec<Term> {
    fields.require("clusterSelectorTerms");
    check_terms(&mut fields);
    let terms = fields.each("clusterSelectorTerms").into_iter().map(required_term).collect();
    fields.finish();
    terms
}

/// Checks the number of terms in a cluster selector.
pub fn check_terms(selector: &mut Fields<'_>) {
    if selector.list("clusterSelectorTerms").is_some_and(|terms| terms.len() > MOST_TERMS) {
        let message = format!(
            "{} must not have more than {MOST_TERMS} entries",
            selector.path_of("clusterSelectorTerms")
        );
        selector.error_at("clusterSelectorTerms", message);
    }
}

fn required_term(mut fields: Fields<'_>) -> Term {
    let labels = labels(&mut fields);
    let properties = property::requirements(&mut fields);
    misplaced(&mut fields, "propertySorter", "sorts preferences and does not belong in a required term");
    fields.finish();
    Term { labels, properties, ..Term::default() }
}

fn preference(mut fields: Fields<'_>) -> Option<Preference> {
    fields.require("weight");
    let weight = fields.int_in("weight", -100..=100);
    let preference = common_mistakes::required_fields(&mut fields, "preference").map(|mut inner| {
        let labels = labels(&mut inner);
        let sorter = property::sorter(&mut inner);
        misplaced(&mut inner, "propertySelector", "belongs in a required term, not in a preference");
        if let Some(node) = inner.misplaced("metricSorter") {
            let message = format!("unknown field `{}`", inner.path_of("metricSorter"));
            let at = inner.scope().pos(node.at);
            inner.scope().report(Diagnostic::error(at, message).hint("did you mean `propertySorter`?"));
        }
        inner.finish();
        (Term { labels, ..Term::default() }, sorter)
    });
    fields.finish();
    let (term, sorter) = preference?;
    Some(Preference { weight: weight?, term, sorter })
}

fn misplaced(fields: &mut Fields<'_>, key: &'static str, why: &str) {
    if fields.misplaced(key).is_some() {
        fields.error_at(key, format!("{} {why}", fields.path_of(key)));
    }
}

fn labels(fields: &mut Fields<'_>) -> Selector {
    let path = fields.path_of("labelSelector");
    let node = fields.node("labelSelector");
    node.and_then(|node| label_selector(fields.scope(), node, &path)).unwrap_or_default()
}
