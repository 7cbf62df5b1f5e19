//! Equality in a `test`: numbers by value, mappings in any order.

use serde_json::{Number, Value as Json};

pub(super) fn equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => numbers_equal(a, b),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

fn numbers_equal(a: &Number, b: &Number) -> bool {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_f64() == b.as_f64(),
        _ => false,
    }
}

/// Returns the number as an integer, if it is one. As floats, large neighbours would be equal.
fn whole(number: &Number) -> Option<i128> {
    if let Some(value) = number.as_i64() {
        return Some(value.into());
    }
    if let Some(value) = number.as_u64() {
        return Some(value.into());
    }
    number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 1e30).map(|value| value as i128)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value_at_any_depth() {
        assert!(equal(&json!({"a": [1, {"b": 2.0}]}), &json!({"a": [1.0, {"b": 2}]})));
        assert!(equal(&json!(0), &json!(-0.0)));
        assert!(!equal(&json!(1), &json!(1.5)) && !equal(&json!(1), &json!("1")));
    }

    #[test]
    fn large_neighbours_stay_apart() {
        assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
        assert!(equal(&json!(u64::MAX), &json!(u64::MAX)) && !equal(&json!(u64::MAX), &json!(-1)));
        assert!(!equal(&json!(1e300), &json!(1)));
    }

    #[test]
    fn lists_and_mappings_must_hold_the_same() {
        assert!(!equal(&json!([1, 2]), &json!([1])) && !equal(&json!({"a": 1}), &json!({"b": 1})));
        assert!(!equal(&json!({"a": null}), &json!({})));
    }
}
