//! The cache key of an object's copies: a digest of all that they are made from.
//!
//! Each field of the model is named here, so that a new one must be encoded or left out on purpose. Places in files
//! are left out: copies are reused only where they caused no diagnostic.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::claims::Claim;
use super::copies::{Copies, varies};
use berth_base::codec::Encoder;
use berth_base::model::workload::{ReplicasAt, Retained};
use berth_base::model::{
    Action, Fleet, Key, Map, Object, ObjectId, Operation, Override, Pointer, Template, Workload,
};

pub(super) type CacheKey = [u8; 16];

/// The cache keys of copies, by the object's path in lower case.
pub(super) type CacheKeys = Map<String, CacheKey>;

pub(super) fn of(fleet: &Fleet, claim: &Claim<'_>) -> CacheKey {
    let Workload { key, origin: _, templates: _, overrides, replicas, frozen: _, strategy: _ } =
        claim.workload;
    let mut encoder = Encoder::default();
    encoder.text(&claim.path);
    let Key { group, kind, namespace, name } = key;
    put_texts(&mut encoder, [group, kind, namespace, name]);
    put_template(&mut encoder, claim.template);
    encoder.list(overrides.iter(), put_override);
    encoder.maybe(replicas.as_ref(), |encoder, ReplicasAt { path, by: _, origin: _ }| {
        put_pointer(encoder, path);
    });
    encoder.list(fleet.list_kinds.iter(), |encoder, (group, kind)| {
        encoder.text(group);
        encoder.text(kind);
    });
    // Of a cluster, its copy reads which overrides apply there, the labels that variables stand for, and the applier.
    let copies = Copies::new(fleet, claim);
    encoder.list(claim.numbers(), |encoder, (cluster, number)| {
        encoder.text(cluster);
        encoder.maybe(number, Encoder::signed);
        let places = copies.places(cluster);
        let reads_labels = places.iter().any(|place| varies(&overrides[*place]));
        let known = fleet.clusters.get(cluster);
        encoder.list(places.into_iter(), Encoder::count);
        encoder.maybe(known.filter(|_| reads_labels), |encoder, known| put_map(encoder, &known.labels));
        let applier = known.and_then(|known| known.applier);
        encoder.maybe(applier, |encoder, applier| encoder.text(applier.name));
    });
    let mut key = [0; 16];
    key.copy_from_slice(&Sha256::digest(encoder.into_bytes())[..16]);
    key
}

fn put_template(encoder: &mut Encoder, template: &Template) {
    let Template { object, final_labels, sync_annotations, retained } = template;
    let Object { id: ObjectId { group, kind, namespace, name }, origin: _, content } = &**object;
    put_texts(encoder, [group, kind, namespace, name]);
    encoder.bytes(content.bytes());
    put_map(encoder, final_labels);
    put_map(encoder, sync_annotations);
    encoder.list(retained.iter(), |encoder, Retained { path, clusters }| {
        encoder.text(path);
        encoder.maybe(clusters.as_ref(), |encoder, clusters| {
            encoder.list(clusters.iter(), |encoder, name| encoder.text(name));
        });
    });
}

/// Encodes what the override does. Where it applies is encoded by cluster.
fn put_override(encoder: &mut Encoder, one: &Override) {
    let Override { by: _, origin: _, clusters: _, objects: _, action } = one;
    let operations = match action {
        Action::Patch(operations) => Some(operations),
        Action::Delete => None,
    };
    encoder.maybe(operations, |encoder, operations| encoder.list(operations.iter(), put_operation));
}

fn put_operation(encoder: &mut Encoder, operation: &Operation) {
    let Operation { verb, path, from, value, replace_may_add, from_the_end, variables, at: _ } = operation;
    encoder.text(verb.word());
    put_pointer(encoder, path);
    encoder.maybe(from.as_ref(), put_pointer);
    encoder.maybe(value.as_ref(), Encoder::json);
    [replace_may_add, from_the_end, variables].into_iter().for_each(|flag| encoder.flag(*flag));
}

fn put_pointer(encoder: &mut Encoder, pointer: &Pointer) {
    encoder.list(pointer.parts().iter(), |encoder, part| encoder.text(part));
}

fn put_texts(encoder: &mut Encoder, texts: [&Arc<str>; 4]) {
    texts.into_iter().for_each(|text| encoder.text(text));
}

fn put_map(encoder: &mut Encoder, map: &BTreeMap<String, String>) {
    encoder.list(map.iter(), |encoder, (name, value)| {
        encoder.text(name);
        encoder.text(value);
    });
}
