//! The clusters to which a daemon writes objects: whether they are reachable, serve the kinds that it writes, and grant
//! the rights for them.

use super::finding::Findings;
use crate::commands::run::hub_cluster::HubCluster;
use berth_engine::hub_objects::decisions::{self, DecisionApi};
use berth_engine::hub_objects::profiles;
use berth_engine::hub_objects::{Right, rights};
use berth_member::cluster_events::EventPlace;
use berth_member::live::client::RightQuestion;
use berth_member::live::{Access, Cluster, Host as _, LiveError, Resource};

const NEEDS_MORE: &str =
    "give the account this right; `berth install hub` with the same flags writes the rules";
const NEEDS_DECISIONS: &str =
    "install the CRD of SIG Multicluster's or of Open Cluster Management's PlacementDecision";
const NEEDS_PROFILES: &str = "install the CRD of SIG Multicluster's ClusterProfile";

/// Checks a hub cluster, to which the daemon writes decisions and clusters.
pub(super) fn check_hub(hub: &HubCluster, to: &mut Findings) {
    let asked = Cluster::connect_pod(&hub.access).and_then(|cluster| {
        let served = cluster.resources()?;
        Ok((cluster, served))
    });
    let (cluster, served) = match asked {
        Ok(asked) => asked,
        Err(error) => return cluster_fault(&error, to),
    };
    to.good(format!("the hub cluster answers at {}", cluster.server()));
    let serves = |group: &str, plural: &str| {
        served.iter().any(|one: &Resource| one.group == group && one.plural == plural)
    };
    let (there, missing): (Vec<DecisionApi>, Vec<DecisionApi>) =
        hub.forms.iter().partition(|form| serves(form.group(), decisions::PLURAL));
    if there.is_empty() || !hub.takes_served_forms {
        for form in missing {
            not_served(decisions::PLURAL, form.group(), NEEDS_DECISIONS, to);
        }
    }
    let sig = DecisionApi::Sig.group();
    if hub.profiles && !serves(sig, profiles::PLURAL) {
        not_served(profiles::PLURAL, sig, NEEDS_PROFILES, to);
    }
    let needed = rights(&there, hub.profiles.then_some(hub.place.profiles.as_str()));
    check_rights(&cluster, &needed.iter().flat_map(questions).collect::<Vec<_>>(), to);
}

/// Checks the cluster to which the daemon writes Events.
pub(super) fn check_events(place: &EventPlace, access: &Access, to: &mut Findings) {
    match Cluster::connect_pod(access) {
        Ok(cluster) => check_rights(&cluster, &place.rights(), to),
        Err(error) => cluster_fault(&error, to),
    }
}

fn not_served(plural: &str, group: &str, hint: &str, to: &mut Findings) {
    to.fault(format!("the hub cluster serves no `{plural}.{group}`"), hint);
}

/// Returns one question for each verb.
fn questions(right: &Right) -> impl Iterator<Item = RightQuestion> + '_ {
    right.verbs.iter().map(|verb| RightQuestion {
        verb,
        group: right.group.to_owned(),
        resource: right.resource.to_owned(),
        namespace: None,
        name: right.name.clone(),
    })
}

/// Names the objects of a right, as `kubectl auth can-i` does.
fn objects(right: &RightQuestion) -> String {
    let (plural, part) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
    let dot = |text: &str| if text.is_empty() { String::new() } else { format!(".{text}") };
    let slash = |text: &str| if text.is_empty() { String::new() } else { format!("/{text}") };
    let place = right.namespace.as_ref().map(|namespace| format!(" in `{namespace}`")).unwrap_or_default();
    let name = slash(right.name.as_deref().unwrap_or_default());
    format!("`{plural}{}{}{name}`{place}", dot(&right.group), slash(part))
}

/// Asks all questions at once, and reports the answers grouped by object.
fn check_rights(cluster: &Cluster, questions: &[RightQuestion], to: &mut Findings) {
    let mut answers = cluster.ask_rights(questions).into_iter();
    for alike in questions.chunk_by(|one, next| objects(one) == objects(next)) {
        let objects = objects(&alike[0]);
        let (mut granted, mut refused) = (Vec::new(), Vec::new());
        for (question, answer) in alike.iter().zip(answers.by_ref()) {
            match answer {
                Ok(true) => granted.push(question.verb),
                Ok(false) => refused.push(question.verb),
                Err(error) if error.is_final() => return cluster_fault(&error, to),
                Err(error) => {
                    to.not_known(format!("whether the account may {} {objects}: {error}", question.verb));
                }
            }
        }
        if !granted.is_empty() {
            to.good(format!("the account may {} {objects}", granted.join(", ")));
        }
        if !refused.is_empty() {
            to.fault(format!("the account may not {} {objects}", refused.join(", ")), NEEDS_MORE);
        }
    }
}

fn cluster_fault(error: &LiveError, to: &mut Findings) {
    if matches!(error, LiveError::Unreachable { .. } | LiveError::Late { .. }) {
        to.cannot_be_reached();
    }
    let hint = error.hint().unwrap_or_else(|| "check the address, the network and the API server".to_owned());
    to.fault(error.to_string(), hint);
}
