//! The ledger: every lost place, from the moment at which its loss is inevitable until the loss no longer
//! counts; the places that another workload takes over; and the approvals that were given and used.
//!
//! In its file on the rendered branch, places are grouped, so that a change of a workload in many clusters
//! takes a few lines.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::decision::{NameForm, name_form};
use berth_base::model::{API_VERSION, Digest, Key, ObjectId, Timestamp};
use berth_base::yaml;

/// An object in a cluster. A cluster that a decision names for its consumers is a place too: its object is
/// the placement itself.
pub type Place = (String, ObjectId);

/// Objects in clusters.
pub type Places = BTreeSet<Place>;

/// The maximal number of unused approvals. Anybody who may merge a commit can give approvals.
const MOST_APPROVALS: usize = 1_000;

/// The maximal number of used approvals to keep.
const MOST_USED: usize = 5_000;

/// The ledger of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub losses: BTreeMap<Place, Loss>,
    /// The owners of copies whose owners the decisions do not show.
    pub owners: BTreeMap<Place, CopyOwner>,
    /// The approvals from commits that are not used yet.
    pub approvals: BTreeMap<Digest, GivenApproval>,
    /// The used approvals, each with the number of the publication that used it.
    pub used: BTreeMap<Digest, u64>,
    /// The highest release number of each workload that has no releases any more.
    pub last_releases: BTreeMap<Key, u64>,
}

/// A place that a workload has, or had within the window, and that nobody will have in the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Loss {
    /// The workload that had the place.
    #[serde(with = "name_form")]
    pub owner: Key,
    #[serde(flatten)]
    pub cause: Cause,
    /// The moment at which the loss was found or, once it is permitted, of the permit. Limits count the loss
    /// from then on.
    pub since: Timestamp,
    /// The deadline at which the place is lost. `None`: the loss waits only for its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    #[serde(flatten)]
    pub stage: Stage,
    /// An approval or a rollback permitted the loss, so it does not count against later ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exempt: bool,
}

/// The cause of a loss: the input without which the place would stay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "lowercase")]
pub enum Cause {
    /// An edit, in this source commit.
    Edit {
        commit: String,
    },
    /// A report of a member, or its silence.
    Report,
    Time,
}

/// The stage of a loss.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "lowercase")]
pub enum Stage {
    /// The loss waits for an approval.
    Held,
    /// The loss is permitted but not carried out yet.
    Permitted,
    /// The loss was carried out. `before` is the rendered commit right before it.
    Gone { before: String },
}

/// The workload whose copy is at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyOwner {
    #[serde(rename = "owner", with = "name_form")]
    pub workload: Key,
    /// The workload's release no longer has the copy: the copy only stays until another workload takes the
    /// object over. If false, the decisions of several workloads name the object, and only this one has its
    /// copy there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_handed_over: bool,
}

/// An approval in the message of a source commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenApproval {
    pub commit: String,
    pub until: Timestamp,
}

impl Cause {
    /// Reports whether an edit of the fleet repository is the cause.
    pub fn is_edit(&self) -> bool {
        matches!(self, Cause::Edit { .. })
    }
}

impl Loss {
    /// Reports whether the loss is not carried out yet.
    pub fn is_pending(&self) -> bool {
        !matches!(self.stage, Stage::Gone { .. })
    }
}

impl CopyOwner {
    /// Returns the owner of a copy that is part of the workload's release.
    pub fn by_release(workload: Key) -> CopyOwner {
        CopyOwner { workload, is_handed_over: false }
    }

    /// Returns the owner of a copy that another workload takes over.
    pub fn until_handed_over(workload: Key) -> CopyOwner {
        CopyOwner { workload, is_handed_over: true }
    }
}

impl Ledger {
    /// Returns the losses that are not carried out yet.
    pub fn pending(&self) -> impl Iterator<Item = (&Place, &Loss)> {
        self.losses.iter().filter(|(_, loss)| loss.is_pending())
    }

    /// Drops the losses that were carried out and are older than the window, the expired approvals, and the
    /// oldest of too many approvals.
    pub fn forget(&mut self, window: Timestamp, now: Timestamp) {
        self.losses.retain(|_, loss| loss.is_pending() || loss.since > window);
        self.approvals.retain(|_, approval| approval.until > now);
        keep_last(&mut self.approvals, MOST_APPROVALS, |approval| approval.until);
        keep_last(&mut self.used, MOST_USED, |seq| *seq);
    }

    pub fn is_empty(&self) -> bool {
        *self == Ledger::default()
    }
}

/// Keeps the last `most` entries by this order.
fn keep_last<V, O: Ord>(entries: &mut BTreeMap<Digest, V>, most: usize, order: impl Fn(&V) -> O) {
    let too_many = entries.len().saturating_sub(most);
    if too_many > 0 {
        let mut in_order: Vec<Digest> = entries.keys().copied().collect();
        in_order.sort_by_key(|digest| order(&entries[digest]));
        in_order.iter().take(too_many).for_each(|digest| drop(entries.remove(digest)));
    }
}

const KIND: &str = "Ledger";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LedgerForm {
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    losses: Vec<LedgerGroupForm<Loss>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    owners: Vec<LedgerGroupForm<CopyOwner>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    approvals: BTreeMap<Digest, GivenApproval>,
    /// The number of the publication that used each approval.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    used: BTreeMap<Digest, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    last_releases: Vec<LastReleaseForm>,
}

/// Places with equal entries in the ledger.
#[derive(Serialize, Deserialize)]
struct LedgerGroupForm<T> {
    #[serde(flatten)]
    value: T,
    places: Vec<PlacesForm>,
}

/// One object in several clusters.
#[derive(Serialize, Deserialize)]
struct PlacesForm {
    object: NameForm,
    clusters: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct LastReleaseForm {
    workload: NameForm,
    number: u64,
}

/// Returns the text of the file.
pub fn write_ledger(ledger: &Ledger) -> String {
    let Ledger { losses, owners, approvals, used, last_releases } = ledger;
    let form = LedgerForm {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        losses: grouped(losses),
        owners: grouped(owners),
        approvals: approvals.clone(),
        used: used.clone(),
        last_releases: last_releases
            .iter()
            .map(|(key, number)| LastReleaseForm { workload: NameForm::of_key(key), number: *number })
            .collect(),
    };
    yaml::emit(&serde_json::to_value(form).expect("texts and numbers always are JSON"))
}

/// Reads the file.
pub fn read_ledger(bytes: &[u8]) -> Result<Ledger, String> {
    let form =
        LedgerForm::deserialize(yaml::read_stored(bytes)?.to_json()).map_err(|error| error.to_string())?;
    if form.api_version != API_VERSION || form.kind != KIND {
        return Err(format!("it is no {KIND} of {API_VERSION}"));
    }
    Ok(Ledger {
        losses: ungrouped(form.losses),
        owners: ungrouped(form.owners),
        approvals: form.approvals,
        used: form.used,
        last_releases: form.last_releases.into_iter().map(|one| (one.workload.key(), one.number)).collect(),
    })
}

/// Groups the places by their entries in the ledger.
fn grouped<T: Clone + Ord>(places: &BTreeMap<Place, T>) -> Vec<LedgerGroupForm<T>> {
    let mut by_value: BTreeMap<&T, BTreeMap<&ObjectId, Vec<String>>> = BTreeMap::new();
    for ((cluster, object), value) in places {
        by_value.entry(value).or_default().entry(object).or_default().push(cluster.clone());
    }
    let places = |(object, clusters)| PlacesForm { object: NameForm::of(object), clusters };
    let group = |(value, objects): (&T, BTreeMap<_, _>)| LedgerGroupForm {
        value: value.clone(),
        places: objects.into_iter().map(places).collect(),
    };
    by_value.into_iter().map(group).collect()
}

fn ungrouped<T: Clone>(groups: Vec<LedgerGroupForm<T>>) -> BTreeMap<Place, T> {
    let mut by_place = BTreeMap::new();
    for LedgerGroupForm { value, places } in groups {
        for PlacesForm { object, clusters } in places {
            let object = object.id();
            by_place.extend(clusters.into_iter().map(|cluster| ((cluster, object.clone()), value.clone())));
        }
    }
    by_place
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::model::{Key, Timestamp};

    fn loss(stage: Stage, cause: Cause) -> Loss {
        let owner = Key::new("types.kubefed.io", "FederatedConfigMap", "shop", "web");
        Loss { owner, cause, since: Timestamp::UNIX_EPOCH, due: None, stage, exempt: false }
    }

    #[test]
    fn a_ledger_reads_back_and_is_short() {
        let mut ledger = Ledger::default();
        assert_eq!(read_ledger(write_ledger(&ledger).as_bytes()), Ok(ledger.clone()));
        let web = ObjectId::new("", "ConfigMap", "shop", "web");
        let held = loss(Stage::Held, Cause::Edit { commit: "abc".to_owned() });
        for number in 0..100 {
            ledger.losses.insert((format!("c{number:02}"), web.clone()), held.clone());
        }
        let due = Some(Timestamp::UNIX_EPOCH);
        let others = [
            loss(Stage::Gone { before: "abc".to_owned() }, Cause::Time),
            Loss { exempt: true, due, ..loss(Stage::Permitted, Cause::Report) },
        ];
        for (number, other) in others.into_iter().enumerate() {
            ledger
                .losses
                .insert((format!("d{number}"), ObjectId::new("apps", "Deployment", "shop", "yes")), other);
        }
        ledger.owners.insert(("e".to_owned(), web.clone()), CopyOwner::until_handed_over(held.owner.clone()));
        ledger.owners.insert(("f".to_owned(), web), CopyOwner::by_release(held.owner.clone()));
        let digest = Digest([7; 16]);
        let given = GivenApproval { commit: "abc".to_owned(), until: Timestamp::UNIX_EPOCH };
        ledger.approvals.insert(digest, given);
        ledger.used.insert(Digest([0; 16]), 12);
        ledger.last_releases.insert(held.owner, 7);
        let text = write_ledger(&ledger);
        assert_eq!(read_ledger(text.as_bytes()), Ok(ledger));
        assert_eq!(text.matches("stage: held").count(), 1, "{text}");
    }

    #[test]
    fn what_is_no_ledger_is_refused() {
        for text in ["", "kind: Ledger", "apiVersion: berth.dev/v1alpha1\nkind: Releases\n", "a: [", "\u{0}"]
        {
            assert!(read_ledger(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
