//! The ledger ↔ the text of its file on the rendered branch. Places are grouped, so that a change of a workload in many
//! clusters is a few lines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ledger::{Cause, GivenApproval, Ledger, Loss, Place, Stage};
use berth_base::model::{API_VERSION, Digest, Key, ObjectId, Timestamp};
use berth_base::yaml;

const KIND: &str = "Ledger";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    losses: Vec<LossForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    handed_over: Vec<HandedOverForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    approvals: Vec<ApprovalForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    used: Vec<UsedForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    last_releases: Vec<LastReleaseForm>,
}

/// Losses that differ in their places alone.
#[derive(Serialize, Deserialize)]
struct LossForm {
    owner: KeyForm,
    stage: StageForm,
    cause: CauseForm,
    since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    exempt: bool,
    places: Vec<PlacesForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StageForm {
    Held,
    Permitted,
    Gone,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CauseForm {
    Edit,
    Report,
    Time,
}

#[derive(Serialize, Deserialize)]
struct HandedOverForm {
    owner: KeyForm,
    places: Vec<PlacesForm>,
}

/// One object in several clusters.
#[derive(Serialize, Deserialize)]
struct PlacesForm {
    object: KeyForm,
    clusters: Vec<String>,
}

/// The identity of a workload or an object.
#[derive(Serialize, Deserialize)]
struct KeyForm {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    group: String,
    kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
}

#[derive(Serialize, Deserialize)]
struct ApprovalForm {
    digest: String,
    commit: String,
    until: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct UsedForm {
    digest: String,
    publication: u64,
}

#[derive(Serialize, Deserialize)]
struct LastReleaseForm {
    workload: KeyForm,
    number: u64,
}

/// Returns the text of the file.
pub fn write(ledger: &Ledger) -> String {
    let mut losses: BTreeMap<&Loss, Vec<&Place>> = BTreeMap::new();
    for (place, loss) in &ledger.losses {
        losses.entry(loss).or_default().push(place);
    }
    let mut handed_over: BTreeMap<&Key, Vec<&Place>> = BTreeMap::new();
    for (place, owner) in &ledger.handed_over {
        handed_over.entry(owner).or_default().push(place);
    }
    let used =
        ledger.used.iter().map(|(digest, seq)| UsedForm { digest: digest.to_string(), publication: *seq });
    let form = Form {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        losses: losses.into_iter().map(|(loss, places)| loss_form(loss, &places)).collect(),
        handed_over: handed_over
            .into_iter()
            .map(|(owner, places)| HandedOverForm {
                owner: KeyForm::of_key(owner),
                places: place_forms(&places),
            })
            .collect(),
        approvals: ledger
            .approvals
            .iter()
            .map(|(digest, given)| ApprovalForm {
                digest: digest.to_string(),
                commit: given.commit.clone(),
                until: given.until,
            })
            .collect(),
        used: used.collect(),
        last_releases: ledger
            .last_releases
            .iter()
            .map(|(key, number)| LastReleaseForm { workload: KeyForm::of_key(key), number: *number })
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
    let mut ledger = Ledger::default();
    for one in form.losses {
        let loss = one.loss()?;
        ledger.losses.extend(places(one.places).map(|place| (place, loss.clone())));
    }
    for one in form.handed_over {
        let owner = one.owner.key();
        ledger.handed_over.extend(places(one.places).map(|place| (place, owner.clone())));
    }
    for one in form.approvals {
        let given = GivenApproval { commit: one.commit, until: one.until };
        ledger.approvals.insert(digest(&one.digest)?, given);
    }
    for one in form.used {
        ledger.used.insert(digest(&one.digest)?, one.publication);
    }
    ledger.last_releases =
        form.last_releases.into_iter().map(|one| (one.workload.key(), one.number)).collect();
    Ok(ledger)
}

fn digest(text: &str) -> Result<Digest, String> {
    text.parse().map_err(|()| format!("`{text}` is no digest"))
}

fn loss_form(loss: &Loss, places: &[&Place]) -> LossForm {
    let (cause, commit) = match &loss.cause {
        Cause::Edit { commit } => (CauseForm::Edit, Some(commit.clone())),
        Cause::Report => (CauseForm::Report, None),
        Cause::Time => (CauseForm::Time, None),
    };
    let (stage, before) = match &loss.stage {
        Stage::Held => (StageForm::Held, None),
        Stage::Permitted => (StageForm::Permitted, None),
        Stage::Gone { before } => (StageForm::Gone, Some(before.clone())),
    };
    let (owner, places) = (KeyForm::of_key(&loss.owner), place_forms(places));
    LossForm {
        owner,
        stage,
        cause,
        since: loss.since,
        due: loss.due,
        before,
        commit,
        exempt: loss.exempt,
        places,
    }
}

fn place_forms(places: &[&Place]) -> Vec<PlacesForm> {
    let mut by_object: BTreeMap<&ObjectId, Vec<String>> = BTreeMap::new();
    for (cluster, object) in places {
        by_object.entry(object).or_default().push(cluster.clone());
    }
    let form = |(object, clusters)| PlacesForm { object: KeyForm::of_object(object), clusters };
    by_object.into_iter().map(form).collect()
}

fn places(forms: Vec<PlacesForm>) -> impl Iterator<Item = Place> {
    forms.into_iter().flat_map(|form| {
        let object = form.object.object();
        form.clusters.into_iter().map(move |cluster| (cluster, object.clone()))
    })
}

impl LossForm {
    fn loss(&self) -> Result<Loss, String> {
        let cause = match (&self.cause, &self.commit) {
            (CauseForm::Edit, Some(commit)) => Cause::Edit { commit: commit.clone() },
            (CauseForm::Edit, None) => return Err("an edit needs its `commit`".to_owned()),
            (CauseForm::Report, _) => Cause::Report,
            (CauseForm::Time, _) => Cause::Time,
        };
        let stage = match (&self.stage, &self.before) {
            (StageForm::Held, _) => Stage::Held,
            (StageForm::Permitted, _) => Stage::Permitted,
            (StageForm::Gone, Some(before)) => Stage::Gone { before: before.clone() },
            (StageForm::Gone, None) => return Err("what is gone needs the commit `before`".to_owned()),
        };
        let owner = self.owner.key();
        Ok(Loss { owner, cause, since: self.since, due: self.due, stage, exempt: self.exempt })
    }
}

impl KeyForm {
    fn of_key(key: &Key) -> KeyForm {
        let [group, kind, namespace, name] =
            [&key.group, &key.kind, &key.namespace, &key.name].map(|it| it.to_string());
        KeyForm { group, kind, namespace, name }
    }

    fn of_object(object: &ObjectId) -> KeyForm {
        let [group, kind, namespace, name] =
            [&object.group, &object.kind, &object.namespace, &object.name].map(|it| it.to_string());
        KeyForm { group, kind, namespace, name }
    }

    fn key(&self) -> Key {
        Key::new(&self.group, &self.kind, &self.namespace, &self.name)
    }

    fn object(&self) -> ObjectId {
        ObjectId::new(&self.group, &self.kind, &self.namespace, &self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ledger.handed_over.insert(("e".to_owned(), web), held.owner.clone());
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
