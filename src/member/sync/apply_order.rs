//! The order in which a folder's objects are applied: ranks of kinds, waves and dependencies.
//!
//! Kinds are ordered by rank: CRDs, namespaces, cluster-scoped objects, configuration and services, the rest,
//! admission webhooks. Within a workload, a wave waits until every lower wave exists and is healthy; an object waits
//! for the objects that its annotation names. Ranks only order writes; waves and dependencies hold them.

use std::collections::{BTreeMap, BTreeSet};

use super::desired::{Desired, DesiredSet};
use super::plan::{is_definition, is_namespace};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{DEPENDS_ON, WAVE};

/// Kinds that others read when they start.
const EARLY: &[(&str, &str)] = &[
    ("", "ConfigMap"),
    ("", "LimitRange"),
    ("", "PersistentVolumeClaim"),
    ("", "ResourceQuota"),
    ("", "Secret"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
];

/// The place of a kind in the order of writes, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    Definition,
    Namespace,
    ClusterWide,
    Early,
    Rest,
    /// Admission webhooks: once written, servers call them before any other write.
    Webhook,
}

pub fn rank(id: &ObjectId) -> Rank {
    if is_definition(id) {
        Rank::Definition
    } else if is_namespace(id) {
        Rank::Namespace
    } else if &*id.group == "admissionregistration.k8s.io" {
        Rank::Webhook
    } else if id.namespace.is_empty() {
        Rank::ClusterWide
    } else if EARLY.contains(&(&*id.group, &*id.kind)) {
        Rank::Early
    } else {
        Rank::Rest
    }
}

/// The waves and dependencies of one folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplyOrder {
    /// The waves of the workloads that have more than one.
    waves: BTreeMap<String, BTreeMap<i64, Vec<ObjectId>>>,
    /// The wave of each object of these workloads.
    wave_of: BTreeMap<ObjectId, (String, i64)>,
    needs: BTreeMap<ObjectId, Vec<Dependency>>,
    /// Objects that cannot be ordered, with the reason. They are not applied.
    pub faults: BTreeMap<ObjectId, String>,
}

#[derive(Clone, Debug)]
struct Dependency {
    name: String,
    objects: Vec<ObjectId>,
}

impl ApplyOrder {
    pub fn of(desired: &DesiredSet) -> ApplyOrder {
        let mut order = ApplyOrder::default();
        let mut workloads: BTreeMap<&str, Vec<&Desired>> = BTreeMap::new();
        for object in desired.objects.values() {
            workloads.entry(object.workload()).or_default().push(object);
        }
        for (workload, objects) in &workloads {
            order.read_waves(workload, objects);
        }
        for object in desired.objects.values() {
            if let Some(text) = object.annotation(DEPENDS_ON) {
                order.read_needs(&object.id, text, desired, &workloads);
            }
        }
        for id in order.in_circles() {
            let message = format!("its `{DEPENDS_ON}` forms a circle");
            order.faults.insert(id, message);
        }
        order
    }

    fn read_waves(&mut self, workload: &str, objects: &[&Desired]) {
        if objects.iter().all(|object| object.annotation(WAVE).is_none()) {
            return;
        }
        let mut waves: BTreeMap<i64, Vec<ObjectId>> = BTreeMap::new();
        for object in objects {
            let text = object.annotation(WAVE).unwrap_or("0");
            match text.parse::<i64>() {
                // Namespaces and CRDs never wait: other objects need them.
                Ok(_) if rank(&object.id) <= Rank::Namespace => {}
                Ok(wave) => {
                    waves.entry(wave).or_default().push(object.id.clone());
                    self.wave_of.insert(object.id.clone(), (workload.to_owned(), wave));
                }
                Err(_) => {
                    let message =
                        format!("its annotation `{WAVE}` is `{}`, not a whole number", text.escape_debug());
                    self.faults.insert(object.id.clone(), message);
                }
            }
        }
        self.waves.insert(workload.to_owned(), waves);
    }

    fn read_needs(
        &mut self,
        id: &ObjectId,
        text: &str,
        desired: &DesiredSet,
        workloads: &BTreeMap<&str, Vec<&Desired>>,
    ) {
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let one = object_named(name).filter(|id| desired.objects.contains_key(id));
            let objects: Vec<ObjectId> = match (one, workloads.get(name)) {
                (Some(one), _) => vec![one],
                (None, Some(objects)) => objects.iter().map(|object| object.id.clone()).collect(),
                (None, None) => {
                    let message = format!(
                        "its `{DEPENDS_ON}` names `{}`, which is not in this cluster's folder",
                        name.escape_debug()
                    );
                    self.faults.insert(id.clone(), message);
                    return;
                }
            };
            self.needs.entry(id.clone()).or_default().push(Dependency { name: name.to_owned(), objects });
        }
    }

    fn in_circles(&self) -> BTreeSet<ObjectId> {
        let reaches_itself = |start: &ObjectId| {
            let mut seen = BTreeSet::new();
            let mut next: Vec<&ObjectId> = vec![start];
            while let Some(id) = next.pop() {
                for object in self.needs.get(id).into_iter().flatten().flat_map(|need| &need.objects) {
                    if object == start {
                        return true;
                    }
                    if seen.insert(object) {
                        next.push(object);
                    }
                }
            }
            false
        };
        self.needs.keys().filter(|id| reaches_itself(id)).cloned().collect()
    }

    /// Returns the first object that this one waits for, with a description. `is_fine` reports whether an object
    /// exists and is healthy.
    pub(crate) fn waits_for(
        &self,
        id: &ObjectId,
        mut is_fine: impl FnMut(&ObjectId) -> bool,
    ) -> Option<(ObjectId, String)> {
        for need in self.needs.get(id).into_iter().flatten() {
            if let Some(first) = need.objects.iter().find(|object| !is_fine(object)) {
                return Some((first.clone(), format!("`{}`, which it depends on", need.name)));
            }
        }
        let (workload, wave) = self.wave_of.get(id)?;
        for (lower, objects) in self.waves.get(workload)?.range(..wave) {
            if let Some(first) = objects.iter().find(|object| !is_fine(object)) {
                return Some((first.clone(), format!("{first} of wave {lower}")));
            }
        }
        None
    }
}

/// Parses `Kind.group/namespace/name`.
fn object_named(name: &str) -> Option<ObjectId> {
    let mut parts = name.splitn(3, '/');
    let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    Some(ObjectId::new(group, kind, namespace, name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn set(objects: &[Json]) -> DesiredSet {
        let read = |object: &Json| {
            let desired = Desired::new(object, false).unwrap();
            (desired.id.clone(), desired)
        };
        DesiredSet { objects: objects.iter().map(read).collect(), ..DesiredSet::default() }
    }

    fn map(name: &str, annotations: &[(&str, &str)]) -> Json {
        let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap",
               "metadata": {"name": name, "namespace": "shop", "annotations": annotations}})
    }

    fn id(name: &str) -> ObjectId {
        ObjectId::new("", "ConfigMap", "shop", name)
    }

    const OURS: (&str, &str) = ("berth.dev/workload", "F/shop/app");

    #[test]
    fn a_wave_waits_for_the_lower_ones_of_its_own_workload_only() {
        let order = ApplyOrder::of(&set(&[
            map("first", &[OURS]),
            map("second", &[OURS, (WAVE, "1")]),
            map("before", &[OURS, (WAVE, "-1")]),
            map("other", &[(WAVE, "5"), ("berth.dev/workload", "F/shop/other")]),
        ]));
        let waits = |name: &str, fine: &[&str]| {
            order.waits_for(&id(name), |id| fine.contains(&&*id.name)).map(|(id, _)| id.name.to_string())
        };
        assert_eq!(waits("first", &[]).as_deref(), Some("before"));
        assert_eq!(waits("first", &["before"]), None);
        assert_eq!(waits("second", &["before"]).as_deref(), Some("first"));
        assert_eq!(waits("other", &[]), None);
    }

    #[test]
    fn dependencies_name_objects_and_workloads_and_circles_are_found() {
        let order = ApplyOrder::of(&set(&[
            map("a", &[OURS]),
            map("b", &[(DEPENDS_ON, "ConfigMap/shop/a")]),
            map("c", &[(DEPENDS_ON, "F/shop/app, ConfigMap/shop/b")]),
            map("d", &[(DEPENDS_ON, "ConfigMap/shop/e")]),
            map("e", &[(DEPENDS_ON, "ConfigMap/shop/d")]),
            map("f", &[(DEPENDS_ON, "ConfigMap/shop/lost")]),
        ]));
        assert!(order.waits_for(&id("b"), |_| false).is_some());
        assert!(order.waits_for(&id("b"), |id| &*id.name == "a").is_none());
        assert!(order.waits_for(&id("c"), |id| &*id.name == "a").unwrap().1.contains("ConfigMap/shop/b"));
        let faulty: Vec<&str> = order.faults.keys().map(|id| &*id.name).collect();
        assert_eq!(faulty, ["d", "e", "f"]);
    }

    #[test]
    fn configuration_comes_before_what_reads_it_and_webhooks_come_last() {
        let of = |group: &str, kind: &str, namespace: &str| rank(&ObjectId::new(group, kind, namespace, "x"));
        let ranks = [
            of("apiextensions.k8s.io", "CustomResourceDefinition", ""),
            of("", "Namespace", ""),
            of("rbac.authorization.k8s.io", "ClusterRole", ""),
            of("", "Secret", "shop"),
            of("apps", "Deployment", "shop"),
            of("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", ""),
        ];
        assert!(ranks.is_sorted() && ranks.windows(2).all(|pair| pair[0] != pair[1]), "{ranks:?}");
    }
}
