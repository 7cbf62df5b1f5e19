//! Documents → a fleet: every dialect claims and lowers its kinds, and this module merges the results.

use std::collections::{BTreeMap, BTreeSet};

use super::config::FleetConfig;
use super::misspelt_groups::ApiGroups;
use super::tree_objects::Rivals;
use super::{berth_kinds, merge_clusters, rollout_policies, variants};
use crate::dialects::{
    Bearing, Claim, Dialect, Dialects, Document, Input, Lowered, ReadingContext, ReadingContexts,
};
use berth_base::diag::{Diagnostic, Diagnostics, Pos, did_you_mean};
use berth_base::meta::names::is_dns_subdomain;
use berth_base::model::placement::Source;
use berth_base::model::rollout_policy::{ANNOTATION, PolicyName};
use berth_base::model::selector::Labels;
use berth_base::model::{Cluster, Fleet, PlacementRef, Shared};
use berth_base::packed::{Content, Packed, View};

/// A fleet, its faults, and the claim to each document.
#[derive(Debug, Default)]
pub(super) struct Assembled {
    pub fleet: Fleet,
    pub diagnostics: Diagnostics,
    /// One claim per document.
    pub claims: Vec<Claim>,
    /// The documents with a fault in their own content.
    pub faulty: BTreeSet<usize>,
    /// Documents of which only one can be valid.
    pub rivals: Vec<Rivals>,
    /// The bearing of each document on other documents.
    pub bearings: Vec<Bearing>,
}

/// Lowers all documents and merges the results.
pub(super) fn assemble(
    documents: &[Document],
    all: Dialects,
    config: &FleetConfig,
    contexts: &ReadingContexts,
) -> Assembled {
    let dialects: Vec<&Dialect> = all.iter().copied().chain([&berth_kinds::DIALECT]).collect();
    let claims: Vec<Vec<Claim>> = dialects.iter().map(|dialect| (dialect.claim)(documents)).collect();
    let mut done = Assembled::default();
    let mut groups = ApiGroups::of(&dialects);
    for document in documents {
        done.claim(document, &dialects, &claims, &mut groups);
    }
    let claimed = documents.iter().zip(&done.claims);
    let foreign = claimed.filter(|(_, claim)| **claim == Claim::Foreign);
    let plain: Vec<&Document> = foreign.map(|(document, _)| document).collect();
    let (mut selected, mut clusters) = (BTreeSet::new(), Vec::new());
    for (dialect, claims) in dialects.iter().zip(&claims) {
        let is_theirs = |index: &usize| claims.get(*index).is_some_and(|claim| rank(*claim) == 0);
        let is_sound = |index: &usize| !done.faulty.contains(index);
        let theirs: Vec<usize> = (0..documents.len()).filter(is_theirs).filter(is_sound).collect();
        let input = Input {
            documents: theirs.iter().map(|index| &documents[*index]).collect(),
            plain: &plain,
            unknown_fields: config.unknown_fields,
            switched_off: config.switched_off_of(dialect),
            dialects: all,
            contexts,
            asked: None,
        };
        let mut lowered = Lowered::default();
        (dialect.lower)(&input, &mut lowered);
        done.faulty.extend(lowered.faulty.iter().filter_map(|index| theirs.get(*index)));
        selected.append(&mut lowered.selected);
        clusters.append(&mut lowered.clusters);
        take(&mut done, lowered);
    }
    give(&mut done.fleet, documents);
    done.take_clusters(documents, clusters);
    merge_clusters::give_name_labels(&mut done.fleet, all);
    done.define_list_kinds(&plain);
    check_follows(&mut done);
    check_statuses(&mut done);
    let doubts = variants::check(documents, &done.fleet);
    done.diagnostics.extend(doubts);
    let found = rollout_policies::check_policies(&done.fleet);
    done.diagnostics.extend(found.iter().cloned());
    let numbered = plain.into_iter().enumerate();
    let unselected: Vec<&Document> =
        numbered.filter(|(index, _)| !selected.contains(index)).map(|(_, document)| document).collect();
    done.diagnostics.extend(groups.doubtful(unselected.iter().copied()));
    note_what_does_not_count(&mut done, documents, &dialects, &unselected);
    done
}

impl Assembled {
    /// Records the strongest claim to the next document, and its faults.
    fn claim(
        &mut self,
        document: &Document,
        dialects: &[&Dialect],
        claims: &[Vec<Claim>],
        groups: &mut ApiGroups,
    ) {
        let index = self.claims.len();
        let made = || {
            let all = dialects.iter().zip(claims);
            all.filter_map(move |(dialect, claims)| Some((*dialect, *claims.get(index)?)))
        };
        self.bearings.push(bearing(document, made()));
        let strongest = made().min_by_key(|(_, claim)| rank(*claim));
        let (dialect, claim) = strongest.unwrap_or((dialects[0], Claim::Foreign));
        let misspelt = (claim == Claim::Foreign).then(|| groups.misspelt(document)).flatten();
        // A document with a misspelt group is no plain object: its last good form is used until the group is
        // corrected.
        self.claims.push(if misspelt.is_some() { Claim::Unknown } else { claim });
        let of_variants = || if claim == Claim::Foreign { None } else { variants::fault(document) };
        if let Some(fault) = misspelt.or_else(|| check(document, claim, dialect)).or_else(of_variants) {
            self.diagnostics.push(fault);
            self.faulty.insert(index);
        }
    }

    fn take_clusters(&mut self, documents: &[Document], clusters: Vec<Shared<Cluster>>) {
        let merged = merge_clusters::merge(clusters, &mut self.diagnostics);
        for name in &merged.contradicting {
            let origins = &merged.clusters[name].origins;
            let is_one = |index: &usize| origins.contains(&documents[*index].at);
            let documents = (0..documents.len()).filter(is_one).collect();
            self.rivals.push(Rivals { documents, others: BTreeSet::new() });
        }
        self.fleet.clusters = merged.clusters;
    }

    /// Records the kinds of lists that the fleet's custom resources define.
    fn define_list_kinds(&mut self, plain: &[&Document]) {
        let templates = self.fleet.workloads.values().flat_map(|workload| &workload.templates);
        let placed = templates.map(|template| (&*template.object.id.kind, &template.object.content));
        let objects = placed.chain(plain.iter().map(|document| (&*document.key.kind, &document.root)));
        let defined: Vec<_> =
            objects.filter_map(|(kind, content)| defined_list_kind(kind, content)).collect();
        self.fleet.list_kinds.extend(defined);
    }
}

/// Merges the dialects' bearings of a document. A dialect that does not claim it may still read other
/// documents against it.
fn bearing<'d>(document: &Document, said: impl Iterator<Item = (&'d Dialect, Claim)>) -> Bearing {
    let said = said.map(|(dialect, claim)| (claim, (dialect.bearing)(document, claim)));
    let counts =
        |(claim, bearing): &(Claim, Bearing)| *claim != Claim::Foreign || *bearing == Bearing::Context;
    let all: Vec<Bearing> = said.filter(counts).map(|(_, bearing)| bearing).collect();
    match all.as_slice() {
        all if all.contains(&Bearing::Context) => Bearing::Context,
        [Bearing::Alone] => Bearing::Alone,
        _ => Bearing::Together,
    }
}

/// Ranks a claim: a dialect that reads the document precedes one that only knows its group.
fn rank(claim: Claim) -> u8 {
    match claim {
        Claim::Inventory | Claim::Policy | Claim::Workload => 0,
        Claim::Bookkeeping => 1,
        Claim::Unknown => 2,
        Claim::Foreign => 3,
    }
}

fn check(document: &Document, claim: Claim, dialect: &Dialect) -> Option<Diagnostic> {
    let key = &document.key;
    match claim {
        Claim::Unknown => {
            let message = format!("unknown kind `{}` in the group `{}`", key.kind, key.group);
            let hint = did_you_mean(&key.kind, dialect.kinds.iter().copied());
            Some(Diagnostic::error(document.at.clone(), message).maybe_hint(hint))
        }
        // The name becomes a folder and a ref. Only lower case, so that no two names differ by case alone.
        Claim::Inventory if !is_dns_subdomain(&key.name) => {
            let message = format!("`{}` cannot be the name of a {}", key.name.escape_default(), key.kind);
            let hint = "use lower-case letters, digits, dashes and dots, at most 253";
            Some(Diagnostic::error(document.at.clone(), message).hint(hint))
        }
        _ => None,
    }
}

/// Returns the kind that a CustomResourceDefinition defines, if its name ends in `List`.
fn defined_list_kind(kind: &str, content: &Packed) -> Option<(String, String)> {
    if kind != "CustomResourceDefinition" {
        return None;
    }
    let text = |path: &str| content.pointer(path).and_then(View::as_str);
    let kind = text("/spec/names/kind").filter(|kind| kind.ends_with("List"))?;
    Some((text("/spec/group")?.to_owned(), kind.to_owned()))
}

fn take(done: &mut Assembled, lowered: Lowered) {
    done.diagnostics.extend(lowered.diagnostics);
    for placement in lowered.placements {
        done.fleet.placements.or_insert(placement.key.clone(), placement);
    }
    for workload in lowered.workloads {
        done.fleet.workloads.or_insert(workload.key.clone(), workload);
    }
    done.fleet.approvals.extend(lowered.approvals);
    done.fleet.replaced.extend(lowered.replaced);
    for policy in lowered.rollout_policies {
        done.fleet.rollout_policies.or_insert(policy.key.clone(), policy.into());
    }
    for run in lowered.runs {
        done.fleet.runs.entry(run.key.clone()).or_insert(run);
    }
    for strategy in lowered.stage_strategies {
        done.fleet.stage_strategies.entry(strategy.key.clone()).or_insert(strategy);
    }
    for approval in lowered.stage_approvals {
        done.fleet.stage_approvals.entry(approval.key.clone()).or_insert(approval);
    }
    done.fleet.list_kinds.extend(lowered.list_kinds);
    for (cluster, status) in lowered.statuses {
        // Scores come from separate objects, not from the cluster's status.
        let known = done.fleet.statuses.or_insert(cluster, status.clone());
        for (named, score) in &status.scores {
            known.scores.entry(named.clone()).or_insert(*score);
        }
    }
}

/// Reports references to missing placements. The placements that follow them are uncertain, so they keep
/// their clusters.
fn check_follows(done: &mut Assembled) {
    let mut lost = Vec::new();
    for placement in done.fleet.placements.values() {
        let Source::Follows(follow) = &placement.source else { continue };
        let missing = follow.placements.iter().filter(|wanted| done.fleet.find(wanted).is_none());
        lost.extend(
            missing.map(|wanted| (placement.origin.file.to_string(), missing_placement(&done.fleet, wanted))),
        );
    }
    for (file, fault) in lost {
        done.fleet.doubt.files.insert(file);
        done.diagnostics.push(fault);
    }
}

fn missing_placement(fleet: &Fleet, wanted: &PlacementRef) -> Diagnostic {
    let shown = if wanted.namespace.is_empty() {
        wanted.name.clone()
    } else {
        format!("{}/{}", wanted.namespace, wanted.name)
    };
    let keys = || {
        fleet.placements.values().filter(|one| !matches!(one.source, Source::Follows(_))).map(|one| &one.key)
    };
    let siblings = keys()
        .filter(|key| *key.kind == *wanted.kind && *key.namespace == *wanted.namespace)
        .map(|key| &*key.name);
    let hint = did_you_mean(&wanted.name, siblings)
        .or_else(|| {
            let elsewhere = keys().find(|key| *key.kind == *wanted.kind && *key.name == *wanted.name)?;
            Some(format!("there is one in the namespace `{}`", elsewhere.namespace))
        })
        .or_else(|| {
            did_you_mean(&wanted.kind, keys().map(|key| &*key.kind).filter(|kind| *kind != wanted.kind))
        });
    let message = format!("there is no {} `{shown}`", wanted.kind);
    Diagnostic::error(wanted.at.clone(), message).maybe_hint(hint)
}

fn check_statuses(done: &mut Assembled) {
    let fleet = &done.fleet;
    let lost = fleet.statuses.keys().filter(|name| !fleet.clusters.contains_key(*name));
    let note = |name: &String| {
        Diagnostic::note(format!("a status names `{name}`, which is not a cluster of the fleet"))
    };
    let notes: Vec<Diagnostic> = lost.map(note).collect();
    done.diagnostics.extend(notes);
}

fn note_what_does_not_count(
    done: &mut Assembled,
    documents: &[Document],
    dialects: &[&Dialect],
    unselected: &[&Document],
) {
    let mut bookkeeping: BTreeMap<&str, usize> = BTreeMap::new();
    for (document, claim) in documents.iter().zip(&done.claims) {
        if *claim == Claim::Bookkeeping {
            *bookkeeping.entry(&document.key.kind).or_default() += 1;
        }
    }
    for (kind, n) in bookkeeping {
        let message = format!("skipped {n} x `{kind}`: a hub's own bookkeeping");
        done.diagnostics.push(Diagnostic::note(message));
    }
    let mut acted_on: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for document in unselected {
        let advice = dialects.iter().find_map(|dialect| (dialect.shown.acted_on_by_hub)(&document.key));
        if let Some(advice) = advice {
            *acted_on.entry((&document.key.kind, advice)).or_default() += 1;
        }
    }
    for ((kind, advice), n) in &acted_on {
        let message = format!("{n} x `{kind}` has no effect in berth: {advice}");
        done.diagnostics.push(Diagnostic::note(message));
    }
    let unselected = unselected.len() - acted_on.values().sum::<usize>();
    if unselected > 0 {
        let message = format!("{unselected} x plain Kubernetes objects that no placement selects");
        let hint = "`berth federate` makes Federated kinds of plain objects, and a ClusterResourcePlacement selects them";
        done.diagnostics.push(Diagnostic::note(message).hint(hint));
    }
}

/// The labels and the named policy of a workload's document.
struct Metadata {
    labels: Option<Labels>,
    policy: Option<PolicyName>,
}

/// Adds the metadata of the workloads' documents to the fleet.
pub(super) fn give(fleet: &mut Fleet, documents: &[Document]) {
    let against = ReadingContext::alone("metadata");
    for document in documents {
        let key = fleet.key_of(&document.key);
        if !fleet.workloads.contains_key(key) {
            continue;
        }
        let metadata = document.recall(against, || read(document));
        let Some(Metadata { labels, policy }) = metadata.as_deref() else { continue };
        let key = key.clone();
        if let Some(policy) = policy {
            fleet.named_policies.insert(key.clone(), policy.clone());
        }
        if let Some(labels) = labels {
            fleet.labels.insert(key, labels.clone());
        }
    }
}

/// Returns `None` for most documents, which have neither. Boxed, because a reading is cached for each of
/// them.
fn read(document: &Document) -> Option<Box<Metadata>> {
    let metadata = document.root.get("metadata")?;
    let found = Metadata { labels: labels(metadata), policy: policy(document, metadata) };
    (found.labels.is_some() || found.policy.is_some()).then(|| Box::new(found))
}

fn labels(metadata: View<'_>) -> Option<Labels> {
    let Content::Map(entries) = metadata.get("labels")?.content() else { return None };
    let text = |(key, _, value): (&str, _, View<'_>)| Some((key.to_owned(), value.as_str()?.to_owned()));
    Some(entries.filter_map(text).collect())
}

fn policy(document: &Document, metadata: View<'_>) -> Option<PolicyName> {
    let node = metadata.get("annotations")?.get(ANNOTATION)?;
    let at = Pos { file: document.at.file.clone(), line: node.at().line, column: node.at().column };
    Some(PolicyName { name: node.as_str()?.to_owned(), at })
}
