//! One template's copies: the overrides of a cluster → that cluster's object → its content id.
//!
//! A draft is reused for the next cluster where the same overrides give the same copy. Copies are compared
//! without the owner's annotation, because several workloads share equal copies.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use super::claims::TemplateClaim;
use super::final_fields;
use berth_base::diag::{Diagnostics, Pos};
use berth_base::model::selector::Labels;
use berth_base::model::{
    Action, Applier, Applies, Cluster, ContentError, ContentId, Contents, Fleet, ObjectId, Override, Pick,
};
use berth_base::patch::{self, Target, variables};
use berth_base::yaml;

/// The reason why a copy could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyFault {
    pub(super) at: Pos,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// The fault is in an override, not in the template.
    pub(super) of_override: bool,
}

/// The result of making one cluster's copy.
#[derive(Clone, Debug)]
pub(super) enum CopyResult {
    Copy(Rc<Draft>),
    /// An override deletes the cluster's copy.
    Deleted,
    /// The last rendered copy stays.
    Frozen,
    Failed(CopyFault),
}

/// A copy whose content is stored when its id is first needed.
#[derive(Debug)]
pub(super) struct Draft {
    object: Json,
    compared: OnceCell<String>,
    id: Cell<Option<ContentId>>,
}

/// The store of rendered contents. It stores each content once.
pub(super) struct Store<'a> {
    contents: &'a mut dyn Contents,
    known: BTreeMap<[u8; 32], ContentId>,
}

impl<'a> Store<'a> {
    pub(super) fn new(contents: &'a mut dyn Contents) -> Store<'a> {
        Store { contents, known: BTreeMap::new() }
    }

    /// Drops the contents of one object: those of another one are never equal.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    fn put(&mut self, text: &str) -> Result<ContentId, ContentError> {
        let hash = Sha256::digest(text.as_bytes()).into();
        if let Some(id) = self.known.get(&hash) {
            return Ok(*id);
        }
        let id = self.contents.put(text.as_bytes())?;
        self.known.insert(hash, id);
        Ok(id)
    }
}

impl Draft {
    fn new(object: Json) -> Draft {
        Draft { object, compared: OnceCell::new(), id: Cell::new(None) }
    }

    /// Reports whether another workload's copy is equal, apart from the owner.
    pub(super) fn is_as(&self, other: &Draft) -> bool {
        self.compared() == other.compared()
    }

    fn compared(&self) -> &str {
        self.compared.get_or_init(|| yaml::emit(&final_fields::without_owner(&self.object)))
    }

    pub(super) fn id(&self, store: &mut Store<'_>) -> Result<ContentId, ContentError> {
        if let Some(id) = self.id.get() {
            return Ok(id);
        }
        let id = store.put(&yaml::emit(&self.object))?;
        self.id.set(Some(id));
        Ok(id)
    }
}

/// The key of equal copies: the matching overrides, the number of replicas, the kept fields that only some
/// clusters keep, and the program that applies the copies.
type Alike = (Vec<usize>, Option<i64>, Vec<bool>, Option<&'static str>);

/// Makes the copies of one claim.
pub(super) struct Copies<'a> {
    fleet: &'a Fleet,
    claim: &'a TemplateClaim<'a>,
    /// The overrides for single clusters, by cluster; as indexes in the workload's list.
    named: BTreeMap<&'a str, Vec<usize>>,
    general: Vec<usize>,
    drafts: BTreeMap<Alike, CopyResult>,
    warned: BTreeSet<(Pos, String)>,
}

impl<'a> Copies<'a> {
    pub(super) fn new(fleet: &'a Fleet, claim: &'a TemplateClaim<'a>) -> Copies<'a> {
        let mut copies = Copies {
            fleet,
            claim,
            named: BTreeMap::new(),
            general: Vec::new(),
            drafts: BTreeMap::new(),
            warned: BTreeSet::new(),
        };
        for (index, one) in claim.workload.overrides.iter().enumerate() {
            if !one.concerns(&claim.template.object.id) {
                continue;
            }
            match &one.clusters {
                Applies::To(name) => copies.named.entry(name).or_default().push(index),
                Applies::AnyOf(_) | Applies::First(..) => copies.general.push(index),
            }
        }
        copies
    }

    /// Returns the overrides for a cluster, as indexes in the workload's list.
    pub(super) fn places(&self, cluster: &str, known: Option<&Cluster>) -> Vec<usize> {
        let named = self.named.get(cluster).map(Vec::as_slice).unwrap_or_default();
        let overrides = &self.claim.workload.overrides;
        let matching =
            self.general.iter().filter(|index| overrides[**index].clusters.include(cluster, known));
        let mut places: Vec<usize> = matching.chain(named).copied().collect();
        places.sort_unstable();
        places
    }

    /// Makes the copy for a picked cluster. Each place gets its warning once.
    pub(super) fn make(&mut self, pick: &Pick, found: &mut Diagnostics) -> CopyResult {
        if self.claim.workload.frozen {
            return CopyResult::Frozen;
        }
        let cluster = &*pick.cluster;
        let known = self.fleet.clusters.get(cluster).map(|known| &**known);
        let places = self.places(cluster, known);
        let overrides = &self.claim.workload.overrides;
        let shareable =
            !self.named.contains_key(cluster) && !places.iter().any(|index| varies(&overrides[*index]));
        let of_some = self.claim.template.retained.iter().filter_map(|one| one.clusters.as_ref());
        let keeps = of_some.map(|clusters| clusters.contains(cluster)).collect();
        let applier = known.and_then(|known| known.applier);
        let alike = (places, pick.replicas, keeps, applier.map(|applier| applier.name));
        if shareable && let Some(made) = self.drafts.get(&alike) {
            return made.clone();
        }
        let no_labels = Labels::new();
        let labels = known.map_or(&no_labels, |known| &known.labels);
        let made = self.draft(&alike.0, pick.replicas, Target { cluster, labels }, applier, found);
        if shareable {
            self.drafts.insert(alike, made.clone());
        }
        made
    }

    fn draft(
        &mut self,
        places: &[usize],
        replicas: Option<i64>,
        target: Target<'_>,
        applier: Option<&Applier>,
        found: &mut Diagnostics,
    ) -> CopyResult {
        let (template, workload) = (self.claim.template, self.claim.workload);
        let mut object = template.object.content.to_json();
        let overrides = places.iter().map(|index| &workload.overrides[*index]);
        let overrides = final_fields::with_replicas(workload, overrides, replicas);
        for one in &overrides {
            match self.patch(&object, one, target, found) {
                Ok(Some(after)) => object = after,
                Ok(None) => return CopyResult::Deleted,
                Err(fault) => return CopyResult::Failed(fault),
            }
        }
        let retain = final_fields::retain(template, target.cluster, &overrides);
        let at = || overrides.last().map_or(&template.object.origin, |one| &one.origin).clone();
        let fault = |message: String, hint: Option<&str>| {
            CopyResult::Failed(CopyFault {
                at: at(),
                message,
                hint: hint.map(str::to_owned),
                of_override: false,
            })
        };
        if ObjectId::of(&object).as_ref() != Some(&*self.claim.id) {
            let message = format!(
                "the overrides change the object's API group, kind, namespace or name: it must stay {}",
                self.claim.id
            );
            return CopyResult::Failed(CopyFault { at: at(), message, hint: None, of_override: true });
        }
        if let Some(refusal) = final_fields::refusal(&object, self.fleet, applier) {
            return fault(refusal.message, Some(refusal.hint));
        }
        match final_fields::finished(object, &workload.key, template, retain, applier) {
            Ok(object) => CopyResult::Copy(Rc::new(Draft::new(object))),
            Err(message) => fault(message, None),
        }
    }

    /// Applies an override; `None` if it deletes the copy.
    fn patch(
        &mut self,
        before: &Json,
        one: &Override,
        target: Target<'_>,
        found: &mut Diagnostics,
    ) -> Result<Option<Json>, CopyFault> {
        let Action::Patch(operations) = &one.action else { return Ok(None) };
        let after = patch::apply(before, operations, target).map_err(|error| CopyFault {
            at: error.at,
            message: error.message,
            hint: error.hint,
            of_override: true,
        })?;
        for warning in after.warnings {
            if let Some(at) = &warning.at
                && self.warned.insert((at.clone(), warning.message.clone()))
            {
                found.push(warning);
            }
        }
        let of = ObjectId::of(&after.object);
        let is_same = |id: &ObjectId| of.as_ref() == Some(id);
        // An override that changes the API group may come before or after other overrides.
        if !is_same(&self.claim.id) && !is_same(&self.claim.template.object.id) {
            let message = "the override changes the object's API group, kind, namespace or name".to_owned();
            let hint = Some(format!("it must stay {}", self.claim.id));
            return Err(CopyFault { at: one.origin.clone(), message, hint, of_override: true });
        }
        Ok(Some(after.object))
    }
}

/// Reports whether the override's result differs between the clusters that it matches.
pub(super) fn varies(one: &Override) -> bool {
    let Action::Patch(operations) = &one.action else { return false };
    let with_variables = operations.iter().filter(|operation| operation.variables);
    with_variables.filter_map(|operation| operation.value.as_ref()).any(variables::holds_variables)
}
