//! A decision ↔ the value in its file on the rendered branch ↔ bytes.
//!
//! Clusters are grouped by equal details, so that the file contains each reason once and changes only
//! where the decision does.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use berth_base::model::{
    API_VERSION, Condition, Decision, Failure, Group, Key, ObjectId, Pick, PickDetails, Refused,
};
use berth_base::packed::Packed;
use berth_base::text::hex;
use berth_base::yaml;

const KIND: &str = "Decision";

const CLUSTERS: &str = "clusters";

const IS_JSON: &str = "texts, numbers and lists always are JSON";

/// With more clusters for one reason, their names are split into buckets.
const LARGEST_LIST: usize = 500;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DecisionForm {
    api_version: String,
    kind: String,
    metadata: MetadataForm,
    placement: NameForm,
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    // A policy with the text null differs from no policy.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    policy: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    condition: Option<StoredCondition>,
    #[serde(default)]
    clusters: Vec<PickedForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<StoredRefusal>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    objects: Vec<NameForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailureForm>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct MetadataForm {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct NameForm {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    group: String,
    kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
}

#[derive(Serialize, Deserialize)]
struct StoredCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    message: String,
}

/// The clusters that were picked with equal details.
#[derive(Serialize, Deserialize)]
struct PickedForm {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replicas: Option<i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    scores: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<PickGroupForm>,
    /// Decided but not rolled out yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pending: bool,
    /// No longer picked, but still with its copy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    leaving: bool,
    /// The removal is held for an approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    held: bool,
    #[serde(flatten)]
    clusters: ClusterNames<Arc<str>>,
}

/// Names of clusters, in buckets if there are many.
#[derive(Serialize, Deserialize)]
pub(super) struct ClusterNames<Name> {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<Name>,
    /// Names by the first digits of their hashes: a cluster that joins changes one bucket.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    buckets: BTreeMap<String, Vec<Name>>,
}

impl<Name: AsRef<str>> ClusterNames<Name> {
    pub(super) fn of(names: Vec<Name>) -> ClusterNames<Name> {
        if names.len() <= LARGEST_LIST {
            return ClusterNames { names, buckets: BTreeMap::new() };
        }
        let mut buckets: [Vec<Name>; 256] = [const { Vec::new() }; 256];
        for name in names {
            let [first, ..] = <[u8; 32]>::from(Sha256::digest(name.as_ref()));
            buckets[usize::from(first)].push(name);
        }
        let filled = (0..=u8::MAX).zip(buckets).filter(|(_, names)| !names.is_empty());
        ClusterNames {
            names: Vec::new(),
            buckets: filled.map(|(first, names)| (hex(&[first]), names)).collect(),
        }
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Name> {
        self.names.into_iter().chain(self.buckets.into_values().flatten())
    }
}

#[derive(Serialize, Deserialize)]
struct PickGroupForm {
    index: usize,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
}

#[derive(Serialize, Deserialize)]
struct StoredRefusal {
    reason: String,
    clusters: usize,
}

#[derive(Serialize, Deserialize)]
struct FailureForm {
    cluster: String,
    object: NameForm,
    #[serde(default, rename = "override", skip_serializing_if = "std::ops::Not::not")]
    of_override: bool,
    reason: String,
}

/// Reads a value that may be null.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Returns the stored form of a decision.
pub fn to_json(decision: &Decision) -> Json {
    let mut fields = fields(decision);
    fields.extend([picks_to_json(&decision.picks)]);
    Json::Object(fields)
}

/// Returns the field of the stored form that names the picked clusters.
fn picks_to_json(picks: &[Pick]) -> (String, Json) {
    (CLUSTERS.to_owned(), serde_json::to_value(picked(picks)).expect(IS_JSON))
}

/// Returns the other fields of the stored form.
pub(super) fn fields(decision: &Decision) -> serde_json::Map<String, Json> {
    let key = &decision.key;
    let form = DecisionForm {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        metadata: MetadataForm::of(key),
        placement: NameForm::of_key(key),
        source: decision.source.clone(),
        digest: decision.digest.map(|digest| digest.to_string()),
        policy: decision.policy.as_ref().map(Packed::to_json),
        condition: decision.condition.as_ref().map(|condition| StoredCondition {
            kind: condition.kind.clone(),
            status: status_word(condition.status).to_owned(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        }),
        clusters: Vec::new(),
        refused: decision
            .refused
            .iter()
            .map(|refused| StoredRefusal { reason: refused.reason.clone(), clusters: refused.clusters })
            .collect(),
        objects: decision.objects.iter().map(NameForm::of).collect(),
        failures: decision
            .failures
            .iter()
            .map(|failure| FailureForm {
                cluster: failure.cluster.clone(),
                object: NameForm::of(&failure.object),
                of_override: failure.of_override,
                reason: failure.reason.clone(),
            })
            .collect(),
    };
    let Json::Object(mut fields) = serde_json::to_value(form).expect(IS_JSON) else {
        return Default::default();
    };
    fields.remove(CLUSTERS);
    fields
}

/// Reads a stored form; the error is its fault.
pub(crate) fn from_json(value: &Json) -> Result<Decision, String> {
    let form = DecisionForm::deserialize(value).map_err(|error| error.to_string())?;
    if form.api_version != API_VERSION || form.kind != KIND {
        return Err(format!("it is a {} {}, not a {API_VERSION} {KIND}", form.api_version, form.kind));
    }
    let digest = form.digest.map(|text| text.parse().map_err(|()| format!("`{text}` is no digest")));
    Ok(Decision {
        key: form.placement.key(),
        source: form.source,
        picks: picks(form.clusters)?.into(),
        refused: form
            .refused
            .into_iter()
            .map(|refused| Refused { reason: refused.reason, clusters: refused.clusters })
            .collect(),
        condition: form.condition.map(StoredCondition::read).transpose()?,
        digest: digest.transpose()?,
        policy: form.policy.as_ref().map(Packed::of),
        objects: form.objects.iter().map(NameForm::id).collect(),
        failures: form
            .failures
            .into_iter()
            .map(|failure| Failure {
                object: failure.object.id(),
                cluster: failure.cluster,
                of_override: failure.of_override,
                reason: failure.reason,
            })
            .collect(),
    })
}

pub(super) fn status_word(status: bool) -> &'static str {
    if status { "True" } else { "False" }
}

pub(super) fn read_status_word(word: &str) -> Result<bool, String> {
    match word {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(format!("condition.status is `{word}`, but must be `True` or `False`")),
    }
}

impl StoredCondition {
    fn read(self) -> Result<Condition, String> {
        let status = read_status_word(&self.status)?;
        Ok(Condition { kind: self.kind, status, reason: self.reason, message: self.message })
    }
}

impl MetadataForm {
    pub(super) fn of(key: &Key) -> MetadataForm {
        MetadataForm { name: key.name.to_string(), namespace: key.namespace.to_string() }
    }
}

impl NameForm {
    fn new(group: &str, kind: &str, namespace: &str, name: &str) -> NameForm {
        let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
        NameForm { group, kind, namespace, name }
    }

    pub(crate) fn of(id: &ObjectId) -> NameForm {
        NameForm::new(&id.group, &id.kind, &id.namespace, &id.name)
    }

    pub(super) fn of_key(key: &Key) -> NameForm {
        NameForm::new(&key.group, &key.kind, &key.namespace, &key.name)
    }

    pub(super) fn key(&self) -> Key {
        Key::new(&self.group, &self.kind, &self.namespace, &self.name)
    }

    pub(crate) fn id(&self) -> ObjectId {
        ObjectId::new(&self.group, &self.kind, &self.namespace, &self.name)
    }
}

/// Keys as names, for `#[serde(with)]`.
pub(super) mod name_form {
    use super::{Key, NameForm};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(key: &Key, serializer: S) -> Result<S::Ok, S::Error> {
        NameForm::of_key(key).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        NameForm::deserialize(deserializer).map(|name| name.key())
    }
}

fn picked(picks: &[Pick]) -> Vec<PickedForm> {
    let mut alike: BTreeMap<_, Vec<&Pick>> = BTreeMap::new();
    // Most picks share their details with the one before.
    for same in picks.chunk_by(|one, other| Arc::ptr_eq(&one.details, &other.details)) {
        let [pick, ..] = same else { continue };
        let group = pick.group.as_ref().map(|group| (group.index, &group.name));
        let turn = (pick.pending, pick.leaving, pick.held);
        alike.entry((group, &pick.reason, pick.replicas, &pick.scores, turn)).or_default().extend(same);
    }
    let form = |picks: Vec<&Pick>| {
        let first = picks.first()?;
        Some(PickedForm {
            reason: first.reason.clone(),
            replicas: first.replicas,
            scores: first.scores.clone(),
            group: first
                .group
                .as_ref()
                .map(|group| PickGroupForm { index: group.index, name: group.name.clone() }),
            pending: first.pending,
            leaving: first.leaving,
            held: first.held,
            clusters: ClusterNames::of(picks.iter().map(|pick| pick.cluster.clone()).collect()),
        })
    };
    alike.into_values().filter_map(form).collect()
}

fn picks(forms: Vec<PickedForm>) -> Result<Vec<Pick>, String> {
    let mut picks = Vec::new();
    for form in forms {
        let details = Arc::new(PickDetails {
            reason: form.reason,
            replicas: form.replicas,
            scores: form.scores,
            group: form.group.map(|group| Group { index: group.index, name: group.name }),
            pending: form.pending,
            leaving: form.leaving,
            held: form.held,
        });
        picks.extend(form.clusters.into_iter().map(|cluster| Pick::new(cluster, details.clone())));
    }
    sorted(picks)
}

/// Sorts picks by cluster; a cluster that is picked twice is a fault.
pub(super) fn sorted(mut picks: Vec<Pick>) -> Result<Vec<Pick>, String> {
    picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    match picks.windows(2).find(|pair| pair[0].cluster == pair[1].cluster) {
        Some(pair) => Err(format!("cluster `{}` is picked twice", pair[0].cluster)),
        None => Ok(picks),
    }
}

/// Returns a decision file's text.
pub fn write_decision(decision: &Decision) -> String {
    write_with_picks(decision, &write_picks(&decision.picks))
}

/// Returns the lines of a decision file that name the picked clusters; decisions that share their picks share
/// these lines.
pub fn write_picks(picks: &[Pick]) -> String {
    yaml::emit(&Json::Object([picks_to_json(picks)].into_iter().collect()))
}

/// Returns the same text as [`write_decision`], reusing the lines of the picks.
pub fn write_with_picks(decision: &Decision, picks: &str) -> String {
    let mut after = fields(decision);
    // The other keys follow these in alphabetical order.
    let before =
        ["apiVersion", "kind", "metadata"].iter().filter_map(|key| after.remove_entry(*key)).collect();
    let [before, after] = [before, after].map(|fields| yaml::emit(&Json::Object(fields)));
    [&before, picks, &after].concat()
}

/// Reads a decision file; the error is one line.
pub fn read_decision(bytes: &[u8]) -> Result<Decision, String> {
    from_json(&yaml::read_stored(bytes)?.to_json())
}
