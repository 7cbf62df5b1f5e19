//! The policy as its author wrote it, in the one form that tells policies apart.

use serde_json::{Map, Value as Json, json};

use crate::dialects::kubefleet::slips;

/// Fills in what KubeFleet's defaults fill in and leaves out `numberOfClusters`, which may change
/// freely: a decision made under an equal form was made under the same policy.
pub fn normal_form(policy: &Json) -> Json {
    let mut policy = match policy {
        Json::Object(fields) => without_nulls(fields),
        _ => Map::new(),
    };
    slips::mend(&mut policy);
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

fn without_nulls(fields: &Map<String, Json>) -> Map<String, Json> {
    fields
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
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
}
