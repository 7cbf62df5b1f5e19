//! The metadata of documents → the labels of workloads, and the rollout policies that they name.

use berth_base::diag::Pos;
use berth_base::model::Fleet;
use berth_base::model::rollout_policy::{ANNOTATION, PolicyName};
use berth_base::model::selector::Labels;
use berth_base::packed::{Content, View};

use crate::dialects::{Document, ReadingContext};

/// Labels and the named policy of a document that describes a workload.
struct Metadata {
    labels: Option<Labels>,
    policy: Option<PolicyName>,
}

/// Gives the fleet what the documents of its workloads say.
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

/// `None` for most documents, which have neither. Boxed, since a reading is kept for each of them.
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
