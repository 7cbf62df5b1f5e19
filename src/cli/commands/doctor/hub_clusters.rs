//! The clusters in which a daemon writes objects: reached, with the kinds that it writes, and with the rights for them.

use super::finding::Findings;
use crate::commands::hub_cluster::Hub;
use berth_engine::hub_objects::decisions::{self, Form};
use berth_engine::hub_objects::profiles;
use berth_engine::hub_objects::rights::{Right, rights};
use berth_member::cluster_events::EventPlace;
use berth_member::live::rights::{RightQuestion, ask};
use berth_member::live::{Access, Cluster, Host as _, LiveError, Resource};

const NEEDS_MORE: &str =
    "give the account this right; `berth install hub` with the same flags writes the rules";
const NEEDS_DECISIONS: &str =
    "install the CRD of SIG Multicluster's or of Open Cluster Management's PlacementDecision";
const NEEDS_PROFILES: &str = "install the CRD of SIG Multicluster's ClusterProfile";

/// Checks a hub cluster, which gets decisions and clusters.
pub(super) fn check_hub(hub: &Hub, to: &mut Findings) {
    let served = Cluster::connect_pod(&hub.access)
        .and_then(|cluster| Ok((cluster.server().to_owned(), cluster.resources()?)));
    let (server, served) = match served {
        Ok(served) => served,
        Err(error) => return fault(&error, to),
    };
    to.good(format!("the hub cluster answers at {server}"));
    let serves = |group: &str, plural: &str| {
        served.iter().any(|one: &Resource| one.group == group && one.plural == plural)
    };
    let (there, missing): (Vec<Form>, Vec<Form>) =
        hub.forms.iter().partition(|form| serves(form.group(), decisions::PLURAL));
    if there.is_empty() || !hub.takes_served_forms {
        for form in missing {
            not_served(decisions::PLURAL, form.group(), NEEDS_DECISIONS, to);
        }
    }
    let sig = Form::Sig.group();
    if hub.profiles && !serves(sig, profiles::PLURAL) {
        not_served(profiles::PLURAL, sig, NEEDS_PROFILES, to);
    }
    let needed = rights(&there, hub.profiles.then_some(hub.place.profiles.as_str()));
    check_rights(&hub.access, needed.iter().map(|right| (named(right), questions(right))).collect(), to);
}

/// Checks the cluster that gets Events.
pub(super) fn check_events(place: &EventPlace, access: &Access, to: &mut Findings) {
    let asked = place.rights().map(|question| (named_question(&question), vec![question]));
    check_rights(access, asked.into(), to);
}

fn not_served(plural: &str, group: &str, hint: &str, to: &mut Findings) {
    to.fault(format!("the hub cluster serves no `{plural}.{group}`"), hint);
}

fn questions(right: &Right) -> Vec<RightQuestion> {
    let ask = |verb: &&'static str| RightQuestion {
        verb,
        group: right.group.to_owned(),
        resource: right.resource.to_owned(),
        namespace: None,
        name: right.name.clone(),
    };
    right.verbs.iter().map(ask).collect()
}

fn named(right: &Right) -> String {
    object(right.group, right.resource, right.name.as_deref(), None)
}

fn named_question(question: &RightQuestion) -> String {
    object(&question.group, &question.resource, question.name.as_deref(), question.namespace.as_deref())
}

/// The objects of a right, as `kubectl auth can-i` would name them.
fn object(group: &str, resource: &str, name: Option<&str>, namespace: Option<&str>) -> String {
    let (plural, part) = resource.split_once('/').unwrap_or((resource, ""));
    let dot = |text: &str| if text.is_empty() { String::new() } else { format!(".{text}") };
    let slash = |text: &str| if text.is_empty() { String::new() } else { format!("/{text}") };
    let place = namespace.map(|namespace| format!(" in `{namespace}`")).unwrap_or_default();
    format!("`{plural}{}{}{}`{place}", dot(group), slash(part), slash(name.unwrap_or_default()))
}

/// Asks all questions at once, and tells of those about the same objects together.
fn check_rights(access: &Access, asked: Vec<(String, Vec<RightQuestion>)>, to: &mut Findings) {
    let all: Vec<RightQuestion> = asked.iter().flat_map(|(_, questions)| questions).cloned().collect();
    let mut answers = ask(access, &all).into_iter();
    for (objects, questions) in asked {
        let (mut granted, mut refused) = (Vec::new(), Vec::new());
        for (question, answer) in questions.iter().zip(answers.by_ref()) {
            match answer {
                Ok(true) => granted.push(question.verb),
                Ok(false) => refused.push(question.verb),
                Err(error) if error.is_final() => return fault(&error, to),
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

fn fault(error: &LiveError, to: &mut Findings) {
    if matches!(error, LiveError::Unreachable { .. } | LiveError::Late { .. }) {
        to.cannot_be_reached();
    }
    let hint = error.hint().unwrap_or_else(|| "check the address, the network and the API server".to_owned());
    to.fault(error.to_string(), hint);
}
