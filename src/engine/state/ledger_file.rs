//! The ledger ↔ the text of its file on the rendered branch. Places are grouped, so that a change of a
//! workload in many clusters takes a few lines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::decision::NameForm;
use super::ledger::{CopyOwner, GivenApproval, Ledger, Loss, Place};
use berth_base::model::{API_VERSION, Digest, ObjectId};
use berth_base::yaml;

const KIND: &str = "Ledger";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    losses: Vec<GroupForm<Loss>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    owners: Vec<GroupForm<CopyOwner>>,
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
struct GroupForm<T> {
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
pub fn write(ledger: &Ledger) -> String {
    let Ledger { losses, owners, approvals, used, last_releases } = ledger;
    let form = Form {
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
pub fn read(bytes: &[u8]) -> Result<Ledger, String> {
    let form = Form::deserialize(yaml::read_stored(bytes)?.to_json()).map_err(|error| error.to_string())?;
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
fn grouped<T: Clone + Ord>(places: &BTreeMap<Place, T>) -> Vec<GroupForm<T>> {
    let mut by_value: BTreeMap<&T, BTreeMap<&ObjectId, Vec<String>>> = BTreeMap::new();
    for ((cluster, object), value) in places {
        by_value.entry(value).or_default().entry(object).or_default().push(cluster.clone());
    }
    let places = |(object, clusters)| PlacesForm { object: NameForm::of(object), clusters };
    let group = |(value, objects): (&T, BTreeMap<_, _>)| GroupForm {
        value: value.clone(),
        places: objects.into_iter().map(places).collect(),
    };
    by_value.into_iter().map(group).collect()
}

fn ungrouped<T: Clone>(groups: Vec<GroupForm<T>>) -> BTreeMap<Place, T> {
    let mut by_place = BTreeMap::new();
    for GroupForm { value, places } in groups {
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
    use crate::state::ledger::{Cause, Stage};
    use berth_base::model::{Key, Timestamp};

    fn loss(stage: Stage, cause: Cause) -> Loss {
        let owner = Key::new("types.kubefed.io", "FederatedConfigMap", "shop", "web");
        Loss { owner, cause, since: Timestamp::UNIX_EPOCH, due: None, stage, exempt: false }
    }

    #[test]
    fn a_ledger_reads_back_and_is_short() {
        let mut ledger = Ledger::default();
        assert_eq!(read(write(&ledger).as_bytes()), Ok(ledger.clone()));
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
        let text = write(&ledger);
        assert_eq!(read(text.as_bytes()), Ok(ledger));
        assert_eq!(text.matches("stage: held").count(), 1, "{text}");
    }

    #[test]
    fn what_is_no_ledger_is_refused() {
        for text in ["", "kind: Ledger", "apiVersion: berth.dev/v1alpha1\nkind: Releases\n", "a: [", "\u{0}"]
        {
            assert!(read(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
