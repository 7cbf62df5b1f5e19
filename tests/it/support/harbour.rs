//! A dialect of a system that does not exist: all that a new one needs, in one place.
//!
//! A Quay is a cluster, a Freight carries one object to the quays that it selects, and a Tariff changes how
//! everything is read.

use std::collections::BTreeMap;

use berth_base::meta;
use berth_base::model::placement::{Filter, Policy, Rule};
use berth_base::model::{
    Cluster, Effect, Key, Object, ObjectId, Placement, Source, Taint, Template, Workload,
};
use berth_base::packed::Packed;
use berth_base::yaml::{Fields, Node, Scope};
use berth_engine::dialects::{
    AccessRole, CarriedObject, Claim, ClusterKind, Described, Dialect, Document, Input, Lowered, NewCluster,
    Shown,
};
use serde_json::{Value as Json, json};

pub const HARBOUR: Dialect = Dialect {
    name: "harbour",
    claim: |documents| documents.iter().map(|document| claim(&document.key)).collect(),
    lower,
    groups: &[GROUP],
    kinds: &["Quay", "Freight", "Tariff", "Logbook"],
    cluster_kind: Some(&QUAY),
    access_role,
    carried_objects: |document| {
        object_node(document).and_then(|node| CarriedObject::of(&node, node.at)).into_iter().collect()
    },
    switches: &["flags"],
    shown: Shown { describe, ..Shown::NOTHING },
    ..Dialect::BLANK
};

const QUAY: ClusterKind = ClusterKind {
    group: GROUP,
    kind: "Quay",
    effects: &["Closed"],
    cordon: Some("Closed"),
    dated: false,
    in_default_set: false,
    needs_endpoint: false,
    document: quay,
};

const GROUP: &str = "harbour.test";

fn claim(key: &Key) -> Claim {
    match (&*key.group, &*key.kind) {
        (GROUP, "Quay") => Claim::Inventory,
        (GROUP, "Tariff") => Claim::Policy,
        (GROUP, "Freight") => Claim::Workload,
        (GROUP, "Logbook") => Claim::Bookkeeping,
        (GROUP, _) => Claim::Unknown,
        _ => Claim::Foreign,
    }
}

fn access_role(key: &Key) -> AccessRole<'_> {
    match claim(key) {
        Claim::Foreign => AccessRole::Plain,
        Claim::Policy => AccessRole::FleetWide,
        _ => AccessRole::Policy,
    }
}

fn quay(new: &NewCluster) -> Json {
    json!({
        "apiVersion": "harbour.test/v1", "kind": "Quay",
        "metadata": {"name": new.name, "labels": new.labels}, "spec": {},
    })
}

fn describe(described: &Described<'_>) -> Option<Json> {
    let quays = described.placed.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    (*described.decision.key.group == *GROUP).then(|| json!({ "moored": quays }))
}

fn lower(input: &Input<'_>, lowered: &mut Lowered) {
    for (index, document) in input.documents.iter().enumerate() {
        let scope = Scope::new(document.at.file.clone(), input.unknown_fields);
        match &*document.key.kind {
            "Quay" => lowered.clusters.extend(read_quay(&scope, document).map(Into::into)),
            "Freight" => {
                let flags = !input.switched_off.contains(&"flags");
                if let Some((placement, workload)) = read_freight(&scope, document, flags) {
                    lowered.placements.push(placement.into());
                    lowered.workloads.push(workload.into());
                }
            }
            _ => {}
        }
        if scope.has_errors() {
            lowered.faulty.insert(index);
        }
        lowered.diagnostics.extend(scope.into_diagnostics());
    }
}

fn read_quay(scope: &Scope, document: &Document) -> Option<Cluster> {
    let root = document.open();
    let (mut fields, metadata) = meta::open(scope, &root)?;
    let mut spec = fields.required_fields("spec")?;
    let taint = |mut fields: Fields<'_>| {
        let key = fields.required_str("key")?.to_owned();
        let effect_word = fields.choice("effect", QUAY.effects)?.to_owned();
        fields.finish();
        Some(Taint {
            key,
            value: String::new(),
            effect: Effect::Refuse,
            effect_word,
            since: None,
            frozen: None,
        })
    };
    let taints = spec.each("taints").into_iter().filter_map(taint).collect();
    spec.finish();
    fields.finish();
    let origins = vec![document.at.clone()];
    Some(Cluster {
        name: metadata.name.into(),
        origins,
        labels: metadata.labels,
        taints,
        ..Cluster::default()
    })
}

fn read_freight(scope: &Scope, document: &Document, flags: bool) -> Option<(Placement, Workload)> {
    let root = document.open();
    let (mut fields, _) = meta::open(scope, &root)?;
    let mut spec = fields.required_fields("spec")?;
    let selector = meta::label_selector(scope, spec.node("to")?, "spec.to")?;
    let content = spec.node("object")?.to_json();
    spec.finish();
    fields.finish();
    let (key, origin) = (document.key.clone(), document.at.clone());
    let template = Template {
        object: Object { id: ObjectId::of(&content)?, origin: origin.clone(), content: Packed::of(&content) }
            .into(),
        final_labels: BTreeMap::from_iter(flags.then(|| ("flag".to_owned(), "red".to_owned()))).into(),
        sync_annotations: Default::default(),
        retained: Vec::new(),
    };
    let filter = |rule| Filter { rule, by: None };
    let policy = Policy {
        filters: vec![filter(Rule::Labels(selector)), filter(Rule::Tolerates(Vec::new()))],
        ..Policy::BLANK
    };
    let source = Source::Own(Box::new(policy));
    Some((Placement::new(key.clone(), origin.clone(), source), Workload::new(key, origin, vec![template])))
}

fn object_node(document: &Document) -> Option<Node> {
    Some(Node::unpack(document.root.get("spec")?.get("object")?))
}
