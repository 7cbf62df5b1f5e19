//! A small fleet as people maintain it, and its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::Dice;

/// The system whose objects describe a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    KubeFed,
    KubeFleet,
    Ocm,
}

/// A workload of ConfigMaps.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) dialect: Dialect,
    /// The ConfigMaps, each with its value.
    pub(super) maps: BTreeMap<String, usize>,
    pub(super) clusters: BTreeSet<usize>,
    /// The workload rolls out one cluster at a time.
    pub(super) is_slow: bool,
    /// The placement picks only clusters that report the claim `fit`.
    pub(super) by_claim: bool,
    /// The seconds for which the workload stays on a drained cluster; `None`: for ever.
    pub(super) stays: Option<i64>,
    /// Only the decision exists, for its consumers.
    pub(super) is_bare: bool,
}

/// An order of people about rollouts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    Paused(String),
    Frozen(String),
    Together(String, String),
    After(String, String),
    Pinned(String, usize),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Fleet {
    pub(super) clusters: BTreeSet<usize>,
    /// The clusters with a taint, each with the moment of the taint.
    pub(super) drained: BTreeMap<usize, String>,
    pub(super) works: BTreeMap<String, Work>,
    pub(super) orders: BTreeSet<Order>,
    /// The workloads whose file is unreadable.
    pub(super) broken: BTreeSet<String>,
    /// The workloads that a second file describes, with other clusters.
    pub(super) copied: BTreeSet<String>,
    /// The clusters that a second file describes, with another label.
    pub(super) relabelled: BTreeSet<usize>,
}

pub(super) fn name_of(cluster: usize) -> String {
    format!("c{cluster}")
}

impl Work {
    pub(super) fn kind(&self) -> &'static str {
        match self.dialect {
            Dialect::KubeFed => "FederatedConfigMap",
            Dialect::KubeFleet => "ResourcePlacement",
            Dialect::Ocm => "ManifestWorkReplicaSet",
        }
    }

    fn text(&self, name: &str, clusters: &BTreeSet<usize>) -> String {
        let names: Vec<String> = clusters.iter().map(|cluster| name_of(*cluster)).collect();
        match self.dialect {
            Dialect::KubeFed => {
                let clusters: Vec<String> = names.iter().map(|name| format!("{{name: {name}}}")).collect();
                let value = self.maps.values().next().copied().unwrap_or_default();
                format!(
                    "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\n\
                     metadata: {{name: {name}, namespace: shop}}\nspec:\n  template: {{data: {{value: \"v{value}\"}}}}\n  \
                     placement: {{clusters: [{}]}}\n",
                    clusters.join(", ")
                )
            }
            Dialect::KubeFleet => {
                let selectors = self.maps.keys();
                let selectors: Vec<String> = selectors
                    .map(|map| format!("{{group: '', version: v1, kind: ConfigMap, name: {map}}}"))
                    .collect();
                let unavailable = if self.is_slow { 1 } else { 100 };
                let mut text = format!(
                    "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\n\
                     metadata: {{name: {name}, namespace: shop}}\nspec:\n  resourceSelectors: [{}]\n  \
                     policy: {{placementType: PickFixed, clusterNames: [{}]}}\n  strategy: {{type: RollingUpdate, \
                     rollingUpdate: {{maxUnavailable: {unavailable}, maxSurge: {unavailable}, \
                     unavailablePeriodSeconds: 0}}}}\n",
                    selectors.join(", "),
                    names.join(", ")
                );
                for (map, value) in &self.maps {
                    let _ = write!(
                        text,
                        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {map}, namespace: shop}}\n\
                         data: {{value: \"v{value}\"}}\n"
                    );
                }
                text
            }
            Dialect::Ocm => self.ocm(name, &names),
        }
    }

    fn ocm(&self, name: &str, names: &[String]) -> String {
        let names = if names.is_empty() { "nowhere".to_owned() } else { names.join(", ") };
        let claim = match self.by_claim {
            true => {
                "\n      claimSelector: {matchExpressions: [{key: fit, operator: In, values: [\"yes\"]}]}"
            }
            false => "",
        };
        let stays = self.stays.map(|seconds| format!(", tolerationSeconds: {seconds}")).unwrap_or_default();
        let pace = match self.is_slow {
            true => "{type: Progressive, progressive: {maxConcurrency: 1}}",
            false => "{type: All}",
        };
        let mut text = format!(
            "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
             metadata: {{name: {name}, namespace: shop}}\nspec:\n  \
             tolerations: [{{key: drain, operator: Exists{stays}}}]\n  predicates:\n  - requiredClusterSelector:\n      \
             labelSelector: {{matchExpressions: [{{key: name, operator: In, values: [{names}]}}]}}{claim}\n"
        );
        if self.is_bare {
            return text;
        }
        let _ = write!(
            text,
            "---\n\
             apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
             metadata: {{name: {name}, namespace: shop}}\nspec:\n  \
             placementRefs: [{{name: {name}, rolloutStrategy: {pace}}}]\n  manifestWorkTemplate:\n    workload:\n      \
             manifests:\n"
        );
        if self.maps.is_empty() {
            text.push_str("      []\n");
        }
        for (map, value) in &self.maps {
            let _ = write!(
                text,
                "      - apiVersion: v1\n        kind: ConfigMap\n        \
                 metadata: {{name: {map}, namespace: shop}}\n        data: {{value: \"v{value}\"}}\n"
            );
        }
        text
    }
}

impl Fleet {
    pub(super) fn new(dice: &mut Dice) -> Fleet {
        let mut fleet = Fleet { clusters: (0..4 + dice.roll(9)).collect(), ..Fleet::default() };
        for name in ["a", "b", "c", "d"].into_iter().take(1 + dice.roll(4)) {
            fleet.add(name, dice);
        }
        fleet
    }

    fn add(&mut self, name: &str, dice: &mut Dice) {
        let dialect = [Dialect::KubeFed, Dialect::KubeFleet, Dialect::Ocm][dice.roll(3)];
        let clusters = self.clusters.iter().copied().filter(|_| !dice.one_in(4)).collect();
        let more =
            if dialect == Dialect::Ocm && dice.one_in(3) { vec![format!("{name}-more")] } else { Vec::new() };
        let maps = [name.to_owned()].into_iter().chain(more).map(|map| (map, 0)).collect();
        let (is_slow, by_claim, is_bare) = (dice.one_in(2), dice.one_in(3), dice.one_in(8));
        let work = Work { dialect, maps, clusters, is_slow, by_claim, stays: None, is_bare };
        self.works.insert(name.to_owned(), work);
    }

    /// Returns the files of the source, by path.
    pub(super) fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let namespace = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedNamespace\n\
                         metadata: {name: shop, namespace: shop}\nspec:\n  placement: {clusterSelector: {}}\n";
        let sets = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
                    metadata: {name: global, namespace: shop}\nspec: {clusterSet: global}\n---\n\
                    apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\n\
                    metadata: {name: global}\n\
                    spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}\n";
        files.insert("shop.yaml".to_owned(), namespace.to_owned());
        files.insert("sets.yaml".to_owned(), sets.to_owned());
        for cluster in &self.clusters {
            let (name, taint) = (name_of(*cluster), self.drained.get(cluster));
            let taint = taint.map(|since| {
                format!("  taints: [{{key: drain, effect: NoSelect, timeAdded: \"{since}\"}}]\n")
            });
            let text = format!(
                "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n\
                 metadata: {{name: {name}, labels: {{name: {name}}}}}\nspec:\n  hubAcceptsClient: true\n{}",
                taint.unwrap_or_default()
            );
            if self.relabelled.contains(cluster) {
                let other = text.replacen(&format!("{{name: {name}}}"), "{name: another}", 1);
                files.insert(format!("drafts/clusters/{name}.yaml"), other);
            }
            files.insert(format!("clusters/{name}.yaml"), text);
        }
        for (name, work) in &self.works {
            let text = match self.broken.contains(name) {
                true => "kind: [".to_owned(),
                false => work.text(name, &work.clusters),
            };
            files.insert(format!("works/{name}.yaml"), text);
            if self.copied.contains(name) && !self.broken.contains(name) {
                let few = work.clusters.iter().copied().take(1).collect();
                files.insert(format!("drafts/{name}.yaml"), work.text(name, &few));
            }
        }
        for (number, order) in self.orders.iter().enumerate() {
            if let Some(spec) = self.order(order) {
                let text = format!(
                    "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\n\
                     metadata: {{name: order-{number}, namespace: shop}}\nspec:\n{spec}"
                );
                files.insert(format!("orders/{number}.yaml"), text);
            }
        }
        files
    }

    fn order(&self, order: &Order) -> Option<String> {
        let exactly = |name: &String| {
            let work = self.works.get(name)?;
            Some(format!("{{kind: {}, namespace: shop, name: {name}}}", work.kind()))
        };
        Some(match order {
            Order::Paused(name) => {
                format!("  workloads: [{}]\n  paused: {{reason: later}}\n", exactly(name)?)
            }
            Order::Frozen(name) => {
                let nights = "freeze: [{schedule: 0 18 * * *, for: 12h, reason: nights}]";
                format!("  workloads: [{}]\n  {nights}\n", exactly(name)?)
            }
            Order::Together(one, other) => {
                format!("  workloads: [{}, {}]\n  together: true\n", exactly(one)?, exactly(other)?)
            }
            Order::After(one, other) => {
                format!("  workloads: [{}]\n  after: [{}]\n", exactly(one)?, exactly(other)?)
            }
            Order::Pinned(name, cluster) => {
                let cluster = name_of(*cluster);
                format!(
                    "  workloads: [{}]\n  pins: [{{clusters: [{cluster}], reason: here}}]\n",
                    exactly(name)?
                )
            }
        })
    }

    fn any(&self, dice: &mut Dice) -> Option<String> {
        dice.pick(self.works.keys()).cloned()
    }

    /// Makes a random edit of the fleet. `now` is the moment, as text.
    pub(super) fn edit(&mut self, dice: &mut Dice, now: &str) {
        let Some(name) = self.any(dice) else {
            return self.add("a", dice);
        };
        match dice.roll(25) {
            0..=4 => self.place(&name, dice),
            5..=7 => self.works.get_mut(&name).into_iter().for_each(|work| {
                work.maps.values_mut().for_each(|value| *value += 1);
            }),
            8..=9 => self.move_map(&name, dice),
            10 => self.rename(&name, dice),
            11 => self.convert(&name, dice),
            12 => drop(self.works.remove(&name)),
            13..=14 => {
                let new = format!("n{}", dice.roll(20));
                if !self.works.contains_key(&new) {
                    self.add(&new, dice);
                }
            }
            15 => self.works.get_mut(&name).into_iter().for_each(|work| work.is_slow = !work.is_slow),
            16 => self.works.get_mut(&name).into_iter().for_each(|work| work.by_claim = !work.by_claim),
            17 => {
                let stays = [None, Some(600), Some(7_200)][dice.roll(3)];
                self.works.get_mut(&name).into_iter().for_each(|work| work.stays = stays);
            }
            18 => {
                let cluster = dice.pick(self.clusters.iter()).copied();
                if let Some(cluster) = cluster.filter(|cluster| self.drained.remove(cluster).is_none()) {
                    self.drained.insert(cluster, now.to_owned());
                }
            }
            19 => toggle(&mut self.broken, name),
            20 => toggle(&mut self.copied, name),
            21 => {
                let cluster = dice.roll(14);
                toggle(&mut self.clusters, cluster);
            }
            22 => {
                let cluster = dice.pick(self.clusters.iter()).copied();
                cluster.into_iter().for_each(|cluster| toggle(&mut self.relabelled, cluster));
            }
            _ => self.give_order(name, dice),
        }
    }

    fn place(&mut self, name: &str, dice: &mut Dice) {
        let all = self.clusters.clone();
        let Some(work) = self.works.get_mut(name) else { return };
        work.clusters = match dice.roll(5) {
            0 => BTreeSet::new(),
            1 => all,
            2 => all.into_iter().filter(|_| dice.one_in(2)).collect(),
            // Removes a few clusters.
            _ => work.clusters.iter().copied().filter(|_| !dice.one_in(4)).collect(),
        };
    }

    /// Moves a ConfigMap to another workload, which places it in its own clusters or takes over the earlier
    /// ones.
    fn move_map(&mut self, from: &str, dice: &mut Dice) {
        let Some(to) = self.any(dice).filter(|to| to != from) else { return };
        let is_movable = |work: &Work| work.dialect != Dialect::KubeFed && !work.maps.is_empty();
        let clusters = self.works[from].clusters.clone();
        if !is_movable(&self.works[from]) || self.works[&to].dialect == Dialect::KubeFed {
            return;
        }
        let moved = self.works.get_mut(from).and_then(|work| work.maps.pop_last());
        if self.works[from].maps.is_empty() {
            self.works.remove(from);
        }
        if let (Some((map, value)), Some(work)) = (moved, self.works.get_mut(&to)) {
            work.maps.insert(map, value);
            if !dice.one_in(4) {
                work.clusters.extend(clusters);
            }
        }
    }

    fn rename(&mut self, name: &str, dice: &mut Dice) {
        let new = format!("r{}", dice.roll(20));
        if self.works[name].dialect != Dialect::KubeFed && !self.works.contains_key(&new) {
            let work = self.works.remove(name).expect("it is there");
            self.works.insert(new, work);
        }
    }

    fn convert(&mut self, name: &str, dice: &mut Dice) {
        let Some(work) = self.works.get_mut(name) else { return };
        let has_its_own_name = work.maps.len() == 1 && work.maps.contains_key(name);
        work.dialect = match dice.roll(3) {
            0 if has_its_own_name => Dialect::KubeFed,
            1 => Dialect::KubeFleet,
            _ => Dialect::Ocm,
        };
    }

    fn give_order(&mut self, name: String, dice: &mut Dice) {
        if dice.one_in(2) && !self.orders.is_empty() {
            let order = dice.pick(self.orders.iter()).cloned();
            if let Some(order) = order {
                self.orders.remove(&order);
            }
            return;
        }
        let other = self.any(dice).filter(|other| *other != name);
        let order = match (dice.roll(5), other) {
            (0, _) => Order::Paused(name),
            (4, _) => Order::Frozen(name),
            (1, _) => Order::Pinned(name, dice.roll(6)),
            (2, Some(other)) => Order::Together(name, other),
            (_, Some(other)) => Order::After(name, other),
            (_, None) => return,
        };
        self.orders.insert(order);
    }

    /// Ends all exceptions: nothing stays paused, pinned, broken or described twice.
    pub(super) fn calm(&mut self) {
        self.orders.retain(|order| matches!(order, Order::Together(..)));
        self.broken.clear();
        self.copied.clear();
        self.relabelled.clear();
        // KubeFleet counts the clusters that a placement names, even missing ones.
        let Fleet { works, clusters, .. } = self;
        for work in works.values_mut() {
            work.clusters.retain(|cluster| clusters.contains(cluster));
            // A placement that names no cluster is refused.
            if work.dialect == Dialect::KubeFleet && work.clusters.is_empty() {
                work.clusters.clone_from(clusters);
            }
        }
    }
}

fn toggle<T: Ord>(set: &mut BTreeSet<T>, value: T) {
    if !set.remove(&value) {
        set.insert(value);
    }
}
