//! The policy as written, normalized so that equal policies have equal forms.

use serde_json::{Map, Value as Json, json};

use crate::dialects::kubefleet::common_mistakes;
use berth_base::model::named::Named;
use berth_base::model::placement::NormalForm;

/// [`normal_form`] with the name that policies use.
pub const NORMAL_FORM: NormalForm = Named { name: "KubeFleet's policy", function: normal_form };

/// Adds KubeFleet's defaults and drops `numberOfClusters`, which may change freely: decisions with equal
/// forms were made under the same policy.
pub fn normal_form(policy: &Json) -> Json {
    let mut policy = match policy {
        Json::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    common_mistakes::mend(&mut policy);
    policy.retain(|key, value| says_something(key, value));
    policy.remove("numberOfClusters");
    policy.entry("placementType").or_insert_with(|| json!("PickAll"));
    fill(
        &mut policy,
        "topologySpreadConstraints",
        &[("maxSkew", json!(1)), ("whenUnsatisfiable", json!("DoNotSchedule"))],
    );
    fill(&mut policy, "tolerations", &[("operator", json!("Equal"))]);
    Json::Object(policy)
}

/// Removes the parts that a hub drops before it compares: nulls, empty text and empty lists, at any depth,
/// and empty `matchLabels`. An empty mapping such as `affinity: {}` stays: for a hub it is another policy.
/// Returns whether the value stays.
fn says_something(key: &str, value: &mut Json) -> bool {
    match value {
        Json::Null => false,
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => {
            for item in items.iter_mut() {
                says_something("", item);
            }
            !items.is_empty() || key == "clusterSelectorTerms"
        }
        Json::Object(fields) => {
            fields.retain(|key, value| says_something(key, value));
            !fields.is_empty() || key != "matchLabels"
        }
        _ => true,
    }
}

fn fill(policy: &mut Map<String, Json>, list: &str, defaults: &[(&str, Json)]) {
    let items = policy.get_mut(list).and_then(Json::as_array_mut);
    for item in items.into_iter().flatten().filter_map(Json::as_object_mut) {
        for (key, value) in defaults {
            item.entry(*key).or_insert_with(|| value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_policy_and_an_empty_one_are_the_same() {
        assert_eq!(normal_form(&Json::Null), normal_form(&json!({"placementType": "PickAll"})));
    }

    #[test]
    fn the_number_of_clusters_does_not_tell_policies_apart() {
        let with = |number| json!({"placementType": "PickN", "numberOfClusters": number});
        assert_eq!(normal_form(&with(1)), normal_form(&with(5)));
    }

    #[test]
    fn defaults_written_out_change_nothing() {
        let short = json!({"placementType": "PickN", "tolerations": [{"key": "a"}],
            "topologySpreadConstraints": [{"topologyKey": "region"}]});
        let long = json!({"placementType": "PickN", "tolerations": [{"key": "a", "operator": "Equal"}],
            "topologySpreadConstraints":
                [{"topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]});
        assert_eq!(normal_form(&short), normal_form(&long));
        assert_ne!(normal_form(&short), normal_form(&json!({"placementType": "PickN"})));
    }

    #[test]
    fn empty_fields_written_out_change_nothing() {
        let term = |selector: Json| {
            json!({"placementType": "PickAll", "affinity": {"clusterAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution":
                    {"clusterSelectorTerms": [{"labelSelector": selector}]}}}})
        };
        let plain = json!({"matchLabels": {"a": "b"}});
        let long = json!({"matchLabels": {"a": "b"}, "matchExpressions": []});
        assert_eq!(normal_form(&term(plain)), normal_form(&term(long)));
        let exists = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
        let long = json!({"matchLabels": {}, "matchExpressions":
            [{"key": "a", "operator": "Exists", "values": []}]});
        assert_eq!(normal_form(&term(exists)), normal_form(&term(long)));
        let with = |policy: Json| normal_form(&policy);
        assert_eq!(with(json!({"tolerations": [], "clusterNames": null})), with(json!({})));
        assert_ne!(with(json!({"affinity": {}})), with(json!({})));
    }
}
