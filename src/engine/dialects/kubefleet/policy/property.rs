//! Requirements on properties of clusters, and sorting by them.
//!
//! `resources.kubernetes-fleet.io/<type>-<resource>` means the resource usage in the status; every other name
//! means a property with that name. Requirements of one term that no value can meet are refused.

use std::collections::BTreeMap;

use berth_base::meta::names::{is_dns_subdomain, is_label_key};
use berth_base::model::placement::Sorter;
use berth_base::model::{Comparison, Measure, PropertyRequirement, Quantity};
use berth_base::yaml::fields::Fields;

const RESOURCE_PREFIX: &str = "resources.kubernetes-fleet.io/";
const OPERATORS: [&str; 6] = ["Gt", "Ge", "Eq", "Ne", "Lt", "Le"];

/// Reads the field `propertySelector` of a term.
pub fn requirements(term: &mut Fields<'_>) -> Vec<PropertyRequirement> {
    let Some(mut fields) = term.fields("propertySelector") else { return Vec::new() };
    fields.require("matchExpressions");
    let mut requirements: Vec<PropertyRequirement> = Vec::new();
    let mut names = BTreeMap::new();
    for expression in fields.each("matchExpressions") {
        let (scope, at, path) = (fields.scope(), expression.at(), expression.path().to_owned());
        let Some((name, one)) = requirement(expression) else { continue };
        requirements.push(one.clone());
        let same: &mut Vec<PropertyRequirement> = names.entry(name).or_default();
        same.push(one);
        if same.len() > 1 && contradict(same) {
            let message =
                format!("{path}: no cluster can meet all that is required of property `{name}` here");
            scope.error(at, message);
            same.clear();
        }
    }
    fields.finish();
    requirements
}

fn requirement<'a>(mut fields: Fields<'a>) -> Option<(&'a str, PropertyRequirement)> {
    let name = fields.required_str("name");
    let measure = name.and_then(|name| measure(&fields, "name", name));
    fields.require("operator");
    let comparison = fields.choice("operator", &OPERATORS).map(comparison);
    let than = value(&mut fields);
    fields.finish();
    Some((name?, PropertyRequirement { measure: measure?, comparison: comparison?, than: than? }))
}

pub fn comparison(operator: &str) -> Comparison {
    match operator {
        "Gt" => Comparison::Greater,
        "Ge" => Comparison::GreaterOrEqual,
        "Eq" => Comparison::Equal,
        "Ne" => Comparison::NotEqual,
        "Lt" => Comparison::Less,
        _ => Comparison::LessOrEqual,
    }
}

fn value(fields: &mut Fields<'_>) -> Option<Quantity> {
    if !fields.require("values") {
        return None;
    }
    let count = fields.list("values")?.len();
    if count != 1 {
        let message = format!("{} must hold exactly one value, not {count}", fields.path_of("values"));
        fields.error_at("values", message);
        return None;
    }
    let text = fields.strings("values")?.first().copied()?;
    let quantity = text.parse();
    if let Err(fault) = &quantity {
        fields.error_at("values", format!("{}: `{text}` is {fault}", fields.path_of("values")));
    }
    quantity.ok()
}

/// Reads the field `propertySorter` of a preference.
pub fn sorter(preference: &mut Fields<'_>) -> Option<Sorter> {
    let mut fields = preference.fields("propertySorter")?;
    let name = fields.required_str("name");
    let measure = name.and_then(|name| measure(&fields, "name", name));
    fields.require("sortOrder");
    let order = fields.choice("sortOrder", &["Ascending", "Descending"]);
    fields.finish();
    Some(Sorter { measure: measure?, ascending: order? == "Ascending" })
}

/// Returns the measure for a property's name. KubeFleet's checks accept resources with a dash in their name,
/// such as `ephemeral-storage`, but its scheduler misreads them; berth reads them as written.
pub fn measure(fields: &Fields<'_>, field: &str, name: &str) -> Option<Measure> {
    let resource = name.strip_prefix(RESOURCE_PREFIX);
    let sound = if resource.is_some() { is_label_key(name) } else { is_property_name(name) };
    if !sound {
        let message = format!("{}: `{name}` is not a valid property name", fields.path_of(field));
        fields.error_at(field, message);
        return None;
    }
    let Some(resource) = resource else { return Some(Measure::Property(name.to_owned())) };
    let measure = match resource.split_once('-') {
        Some(("total", resource)) => Measure::Capacity(resource.to_owned()),
        Some(("allocatable", resource)) => Measure::Allocatable(resource.to_owned()),
        Some(("available", resource)) => Measure::Available(resource.to_owned()),
        _ => {
            let message = format!(
                "{}: `{name}` is not a resource property: these begin with total-, allocatable- or \
                 available-",
                fields.path_of(field)
            );
            fields.error_at(field, message);
            return None;
        }
    };
    Some(measure)
}

/// Reports whether a text is a list of names separated by slashes, the first of which may be a DNS name.
fn is_property_name(name: &str) -> bool {
    let (first, rest) = name.split_once('/').unwrap_or((name, ""));
    let mut rest = rest.split('/').filter(|_| first.len() < name.len());
    (is_label_key(first) || is_dns_subdomain(first) && first.len() < name.len()) && rest.all(is_label_key)
}

/// Reports whether no value can meet all of these requirements on one property.
fn contradict(requirements: &[PropertyRequirement]) -> bool {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let exact = requirements.iter().find(|one| one.comparison == Equal);
    if let Some(exact) = exact {
        return !requirements.iter().all(|one| one.comparison.holds(exact.than, one.than));
    }
    let bounds =
        |kinds: [Comparison; 2]| requirements.iter().filter(move |one| kinds.contains(&one.comparison));
    bounds([Greater, GreaterOrEqual]).any(|low| {
        bounds([Less, LessOrEqual]).any(|high| {
            let strict = low.comparison == Greater || high.comparison == Less;
            low.than > high.than || (strict && low.than == high.than)
        })
    })
}
