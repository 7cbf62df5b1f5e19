//! Finds misspelt fields of Kubernetes' built-in kinds: unknown names so close to a known one that nothing else can
//! be meant.
//!
//! An unknown name without a close one is ignored, because a newer version of Kubernetes may have it. Other kinds are
//! not checked. A JSON deserializer records every name that the type does not know. A type lists its names when it asks for
//! a struct, so no table of fields is needed.

use std::cell::RefCell;
use std::fmt;

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::autoscaling::v2 as autoscaling;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::networking::v1 as networking;
use k8s_openapi::api::policy::v1 as policy;
use k8s_openapi::api::rbac::v1 as rbac;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer as _, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value as Json;

use berth_base::diag::nearest;

/// Finds the slips of an object.
pub fn slips(object: &Json) -> Vec<Slip> {
    let text = |key: &str| object.get(key).and_then(Json::as_str).unwrap_or_default();
    let check: Option<fn(&Json) -> Vec<Slip>> = match (text("apiVersion"), text("kind")) {
        ("apps/v1", "Deployment") => Some(check::<apps::Deployment>),
        ("apps/v1", "StatefulSet") => Some(check::<apps::StatefulSet>),
        ("apps/v1", "DaemonSet") => Some(check::<apps::DaemonSet>),
        ("apps/v1", "ReplicaSet") => Some(check::<apps::ReplicaSet>),
        ("batch/v1", "Job") => Some(check::<batch::Job>),
        ("batch/v1", "CronJob") => Some(check::<batch::CronJob>),
        ("v1", "Pod") => Some(check::<core::Pod>),
        ("v1", "Service") => Some(check::<core::Service>),
        ("v1", "ConfigMap") => Some(check::<core::ConfigMap>),
        ("v1", "Secret") => Some(check::<core::Secret>),
        ("v1", "ServiceAccount") => Some(check::<core::ServiceAccount>),
        ("v1", "Namespace") => Some(check::<core::Namespace>),
        ("v1", "PersistentVolumeClaim") => Some(check::<core::PersistentVolumeClaim>),
        ("v1", "LimitRange") => Some(check::<core::LimitRange>),
        ("v1", "ResourceQuota") => Some(check::<core::ResourceQuota>),
        ("networking.k8s.io/v1", "Ingress") => Some(check::<networking::Ingress>),
        ("networking.k8s.io/v1", "NetworkPolicy") => Some(check::<networking::NetworkPolicy>),
        ("policy/v1", "PodDisruptionBudget") => Some(check::<policy::PodDisruptionBudget>),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => Some(check::<autoscaling::HorizontalPodAutoscaler>),
        ("rbac.authorization.k8s.io/v1", "Role") => Some(check::<rbac::Role>),
        ("rbac.authorization.k8s.io/v1", "RoleBinding") => Some(check::<rbac::RoleBinding>),
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => Some(check::<rbac::ClusterRole>),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding") => Some(check::<rbac::ClusterRoleBinding>),
        _ => None,
    };
    check.map(|check| check(object)).unwrap_or_default()
}

/// Reads the object as its type. A value of the wrong type ends the reading; earlier findings count.
fn check<T: DeserializeOwned>(object: &Json) -> Vec<Slip> {
    unknown_names::<T>(object)
}

/// Returns the unknown names close to a known one, in the order of reading.
fn unknown_names<T: DeserializeOwned>(object: &Json) -> Vec<Slip> {
    let found = RefCell::default();
    // A value that cannot be read as the type is another fault, which the API server reports.
    let _ = T::deserialize(Reader { value: object, path: &Path::Root, found: &found });
    found.into_inner()
}

enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl Path<'_> {
    fn parts(&self) -> Vec<String> {
        match self {
            Path::Root => Vec::new(),
            Path::Key(above, key) => [above.parts(), vec![(*key).to_owned()]].concat(),
            Path::Item(above, index) => [above.parts(), vec![index.to_string()]].concat(),
        }
    }
}

struct Reader<'j, 'p> {
    value: &'j Json,
    path: &'p Path<'p>,
    found: &'p RefCell<Vec<Slip>>,
}

impl Reader<'_, '_> {
    /// Records the unknown names that are close to a known one.
    fn note_slips(&self, fields: &[&str]) {
        let unknown = self
            .value
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, value)| !value.is_null() && !fields.contains(&key.as_str()));
        for (key, _) in unknown {
            // A name that exists already cannot be the intended one.
            let free = fields.iter().copied().filter(|field| self.value.get(field).is_none());
            if let Some(meant) = nearest(key, free) {
                let path = Path::Key(self.path, key).parts();
                self.found.borrow_mut().push(Slip { path, meant: meant.to_owned() });
            }
        }
    }
}

#[derive(Debug)]
struct Misfit(String);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

impl serde::de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Misfit {
        Misfit(message.to_string())
    }
}

impl<'j> Deserializer<'j> for Reader<'j, '_> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'j>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.value {
            Json::Null => visitor.visit_unit(),
            Json::Bool(value) => visitor.visit_bool(*value),
            Json::String(text) => visitor.visit_borrowed_str(text),
            Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_i64(number),
                (_, Some(number), _) => visitor.visit_u64(number),
                (.., Some(number)) => visitor.visit_f64(number),
                _ => Err(Misfit::custom("a number out of range")),
            },
            Json::Array(items) => visitor.visit_seq(Items { items: items.iter().enumerate(), reader: self }),
            Json::Object(entries) => {
                visitor.visit_map(Entries { entries: entries.iter(), value: None, reader: self })
            }
        }
    }

    fn deserialize_option<V: Visitor<'j>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'j>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'j>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.note_slips(fields);
        self.deserialize_any(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'j>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <V: Visitor<'j>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map enum identifier
    }
}

struct Items<'j, 'p> {
    items: std::iter::Enumerate<std::slice::Iter<'j, Json>>,
    reader: Reader<'j, 'p>,
}

impl<'j> SeqAccess<'j> for Items<'j, '_> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'j>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let Some((index, value)) = self.items.next() else { return Ok(None) };
        let path = Path::Item(self.reader.path, index);
        seed.deserialize(Reader { value, path: &path, found: self.reader.found }).map(Some)
    }
}

struct Entries<'j, 'p> {
    entries: serde_json::map::Iter<'j>,
    value: Option<(&'j str, &'j Json)>,
    reader: Reader<'j, 'p>,
}

impl<'j> MapAccess<'j> for Entries<'j, '_> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'j>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some((key, value));
        seed.deserialize(key.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'j>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let Some((key, value)) = self.value.take() else { return Err(Misfit::custom("no value")) };
        let path = Path::Key(self.reader.path, key);
        seed.deserialize(Reader { value, path: &path, found: self.reader.found })
    }
}

/// A misspelt name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// The keys of the path; a list item is its index.
    pub path: Vec<String>,
    /// The intended name.
    pub meant: String,
}

impl Slip {
    /// Writes the path in the usual notation: `spec.containers[0].imagePullPolcy`.
    pub fn shown(&self) -> String {
        self.path.iter().fold(String::new(), |mut shown, part| {
            if part.bytes().all(|byte| byte.is_ascii_digit()) {
                shown.push_str(&format!("[{part}]"));
            } else {
                let dot = if shown.is_empty() { "" } else { "." };
                shown.push_str(&format!("{dot}{part}"));
            }
            shown
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(object: Json) -> Vec<String> {
        slips(&object).iter().map(|slip| format!("{} -> {}", slip.shown(), slip.meant)).collect()
    }

    #[test]
    fn slips_at_any_depth_are_found_with_what_is_meant() {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labls": {"a": "b"}},
            "spec": {"replica": 2, "template": {"spec": {
                "containers": [{"name": "a"}, {"name": "b", "imagePullPolcy": "Always", "enV": []}],
                "nodeselector": {"x": "y"},
            }}},
        });
        assert_eq!(
            found(deployment),
            [
                "metadata.labls -> labels",
                "spec.replica -> replicas",
                "spec.template.spec.nodeselector -> nodeSelector",
                "spec.template.spec.containers[1].enV -> env",
                "spec.template.spec.containers[1].imagePullPolcy -> imagePullPolicy",
            ]
        );
    }

    #[test]
    fn what_is_no_slip_is_left_alone() {
        let pod =
            |spec: Json| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
        // A field of a newer version, null, any key of a map, names next to the intended one.
        assert!(found(pod(json!({"containers": [], "quantumEntanglement": true}))).is_empty());
        assert!(found(pod(json!({"containers": [], "nodeselector": null}))).is_empty());
        assert!(found(pod(json!({"containers": [], "nodeSelector": {"zone": "a", "zne": "b"}}))).is_empty());
        let quantity =
            json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]});
        assert!(found(pod(quantity)).is_empty());
        let service = json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80, "targetPort": "http"}]}});
        assert!(found(service).is_empty());
        // A kind that is not built in, and one of another group.
        assert!(
            found(json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {"replica": 2}}))
                .is_empty()
        );
        // A value of the wrong type ends the reading and is no misspelling.
        assert!(found(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": "x"})).is_empty());
        assert!(found(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"dta": "x"}})).is_empty());
    }
}
