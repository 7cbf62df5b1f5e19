//! The inputs of a release ↔ their stored text: templates, overrides, and the place of the replicas.
//!
//! Equal inputs give equal texts. The text has no places in source files: the source has changed by the time
//! a release is rendered again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use berth_base::diag::Pos;
use berth_base::model::selector::{Requirement, Selector, Term};
use berth_base::model::workload::{ReplicasAt, Retained};
use berth_base::model::{
    API_VERSION, Action, Alternative, Applies, Key, Object, ObjectId, Operation, Override, Pointer, Template,
    Verb, Workload,
};
use berth_base::packed::Packed;
use berth_base::yaml;

use crate::state::decision::{NameForm, present};

const KIND: &str = "ReleaseInputs";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputsForm {
    api_version: String,
    kind: String,
    templates: Vec<TemplateForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    overrides: Vec<OverrideForm>,
    /// The path of the field that holds the decided number of replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replicas_at: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct TemplateForm {
    object: Json,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retained: Vec<RetainedForm>,
}

#[derive(Serialize, Deserialize)]
struct RetainedForm {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clusters: Option<BTreeSet<String>>,
}

#[derive(Default, Serialize, Deserialize)]
struct OverrideForm {
    /// Absent if the override matches clusters by terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    terms: Vec<TermForm>,
    /// The clusters for which one of several alternatives is the first that matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<AlternativeForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    objects: Option<Vec<NameForm>>,
    /// Absent where the cluster gets no copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patch: Option<Vec<OperationForm>>,
}

#[derive(Serialize, Deserialize)]
struct AlternativeForm {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    clusters: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<RequirementForm>>,
}

#[derive(Serialize, Deserialize)]
struct TermForm {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<RequirementForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    claims: Vec<RequirementForm>,
}

#[derive(Serialize, Deserialize)]
struct RequirementForm {
    key: String,
    operator: Operator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Operator {
    Is,
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperationForm {
    op: String,
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replace_may_add: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    from_the_end: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    variables: bool,
}

/// Writes a workload's inputs as the stored text.
pub(super) fn write(workload: &Workload) -> String {
    let Workload { key: _, origin: _, templates, overrides, replicas, frozen: _, strategy: _ } = workload;
    let form = InputsForm {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        templates: templates.iter().map(TemplateForm::of).collect(),
        overrides: overrides.iter().map(OverrideForm::of).collect(),
        replicas_at: replicas.as_ref().map(|replicas| replicas.path.to_string()),
    };
    yaml::emit(&serde_json::to_value(form).expect("texts, flags and lists always are JSON"))
}

/// Reads stored inputs as the workload with this key; the error is one line.
pub(super) fn read(bytes: &[u8], key: &Key) -> Result<Workload, String> {
    let value = yaml::read_stored(bytes)?.to_json();
    let form = InputsForm::deserialize(value).map_err(|error| error.to_string())?;
    if form.api_version != API_VERSION || form.kind != KIND {
        return Err(format!("it is a {} {}, not a {API_VERSION} {KIND}", form.api_version, form.kind));
    }
    let origin = Pos::file(format!("the last good release of {key}"));
    let templates = form.templates.into_iter().map(|one| one.read(&origin)).collect::<Result<_, _>>()?;
    let by = Arc::new(key.clone());
    let overrides = form.overrides.into_iter().map(|one| one.read(&by, &origin)).collect::<Result<_, _>>()?;
    let replicas = match form.replicas_at {
        Some(path) => Some(ReplicasAt { path: pointer(&path)?, by: key.clone(), origin: origin.clone() }),
        None => None,
    };
    Ok(Workload { overrides, replicas, ..Workload::new(key.clone(), origin, templates) })
}

fn pointer(text: &str) -> Result<Pointer, String> {
    Pointer::parse(text).map_err(|fault| fault.message)
}

impl TemplateForm {
    fn of(template: &Template) -> TemplateForm {
        let Template { object, final_labels, sync_annotations, retained } = template;
        let retained = retained
            .iter()
            .map(|one| RetainedForm { path: one.path.clone(), clusters: one.clusters.clone() })
            .collect();
        TemplateForm {
            object: object.content.to_json(),
            labels: (**final_labels).clone(),
            annotations: (**sync_annotations).clone(),
            retained,
        }
    }

    fn read(self, origin: &Pos) -> Result<Template, String> {
        let id = ObjectId::of(&self.object).ok_or("a template names no object")?;
        let object = Object { id, origin: origin.clone(), content: Packed::of(&self.object) };
        let retained =
            self.retained.into_iter().map(|one| Retained { path: one.path, clusters: one.clusters });
        Ok(Template {
            object: Arc::new(object),
            final_labels: self.labels.into(),
            sync_annotations: self.annotations.into(),
            retained: retained.collect(),
        })
    }
}

impl OverrideForm {
    fn of(one: &Override) -> OverrideForm {
        let Override { by: _, origin: _, clusters, objects, action } = one;
        let mut form = OverrideForm::default();
        match clusters {
            Applies::To(name) => form.cluster = Some(name.clone()),
            Applies::AnyOf(terms) => form.terms = terms.iter().map(TermForm::of).collect(),
            Applies::First(index, alternatives) => {
                form.first = Some(*index);
                form.alternatives = alternatives.iter().map(AlternativeForm::of).collect();
            }
        }
        let patch = match action {
            Action::Patch(operations) => Some(operations.iter().map(OperationForm::of).collect()),
            Action::Delete => None,
        };
        let objects = objects.as_ref().map(|objects| objects.iter().map(NameForm::of).collect());
        OverrideForm { objects, patch, ..form }
    }

    fn read(self, by: &Arc<Key>, origin: &Pos) -> Result<Override, String> {
        let clusters = match (self.cluster, self.first) {
            (Some(name), _) => Applies::To(name),
            (None, Some(index)) => {
                Applies::First(index, self.alternatives.into_iter().map(AlternativeForm::read).collect())
            }
            (None, None) => Applies::AnyOf(self.terms.into_iter().map(TermForm::read).collect()),
        };
        let action = match self.patch {
            Some(operations) => Action::Patch(
                operations.into_iter().map(|one| one.read(origin)).collect::<Result<_, String>>()?,
            ),
            None => Action::Delete,
        };
        let objects = self.objects.map(|objects| objects.iter().map(NameForm::id).collect());
        Ok(Override { by: by.clone(), origin: origin.clone(), clusters, objects, action })
    }
}

impl AlternativeForm {
    fn of(one: &Alternative) -> AlternativeForm {
        let Alternative { clusters, labels } = one;
        AlternativeForm { clusters: clusters.clone(), labels: labels.as_ref().map(RequirementForm::all) }
    }

    fn read(self) -> Alternative {
        Alternative { clusters: self.clusters, labels: self.labels.map(RequirementForm::selector) }
    }
}

impl TermForm {
    /// Leaves out properties and expressions: no system's overrides use them. If a term has any, the stored
    /// term matches nothing.
    fn of(term: &Term) -> TermForm {
        let Term { labels, claims, properties, expressions } = term;
        if properties.is_empty() && expressions.is_empty() {
            return TermForm { labels: RequirementForm::all(labels), claims: RequirementForm::all(claims) };
        }
        let nothing = RequirementForm { key: String::new(), operator: Operator::In, values: Vec::new() };
        TermForm { labels: vec![nothing], claims: Vec::new() }
    }

    fn read(self) -> Term {
        let selector = RequirementForm::selector;
        Term { labels: selector(self.labels), claims: selector(self.claims), ..Term::default() }
    }
}

impl RequirementForm {
    fn all(selector: &Selector) -> Vec<RequirementForm> {
        selector.requirements.iter().map(RequirementForm::of).collect()
    }

    fn selector(forms: Vec<RequirementForm>) -> Selector {
        Selector { requirements: forms.into_iter().map(RequirementForm::read).collect() }
    }

    fn of(requirement: &Requirement) -> RequirementForm {
        let (key, operator, values) = match requirement {
            Requirement::Is(key, value) => (key, Operator::Is, vec![value.clone()]),
            Requirement::In(key, values) => (key, Operator::In, values.clone()),
            Requirement::NotIn(key, values) => (key, Operator::NotIn, values.clone()),
            Requirement::Exists(key) => (key, Operator::Exists, Vec::new()),
            Requirement::DoesNotExist(key) => (key, Operator::DoesNotExist, Vec::new()),
        };
        RequirementForm { key: key.clone(), operator, values }
    }

    fn read(self) -> Requirement {
        let RequirementForm { key, operator, mut values } = self;
        match operator {
            Operator::Is => Requirement::Is(key, values.pop().unwrap_or_default()),
            Operator::In => Requirement::In(key, values),
            Operator::NotIn => Requirement::NotIn(key, values),
            Operator::Exists => Requirement::Exists(key),
            Operator::DoesNotExist => Requirement::DoesNotExist(key),
        }
    }
}

impl OperationForm {
    fn of(operation: &Operation) -> OperationForm {
        let Operation { verb, path, from, value, replace_may_add, from_the_end, variables, at: _ } =
            operation;
        OperationForm {
            op: verb.word().to_owned(),
            path: path.to_string(),
            from: from.as_ref().map(ToString::to_string),
            value: value.clone(),
            replace_may_add: *replace_may_add,
            from_the_end: *from_the_end,
            variables: *variables,
        }
    }

    fn read(self, origin: &Pos) -> Result<Operation, String> {
        let verb = Verb::ALL.iter().find(|(word, _)| *word == self.op);
        let (_, verb) = verb.ok_or_else(|| format!("`{}` is no operation", self.op))?;
        Ok(Operation {
            verb: *verb,
            path: pointer(&self.path)?,
            from: self.from.as_deref().map(pointer).transpose()?,
            value: self.value,
            replace_may_add: self.replace_may_add,
            from_the_end: self.from_the_end,
            variables: self.variables,
            at: origin.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clusters_of_each_override_are_read_back() {
        let labels = Selector { requirements: vec![Requirement::Is("env".to_owned(), "prod".to_owned())] };
        let named = Alternative { clusters: BTreeSet::from(["oslo".to_owned()]), labels: None };
        let labelled = Alternative { clusters: BTreeSet::new(), labels: Some(labels.clone()) };
        let term = Term { labels, ..Term::default() };
        let all = [
            Applies::To("oslo".to_owned()),
            Applies::AnyOf(vec![term]),
            Applies::First(2, Arc::from([named, labelled])),
        ];
        let key = Key::new("", "ConfigMap", "shop", "web");
        let over = |clusters: &Applies| Override {
            by: Arc::new(key.clone()),
            origin: Pos::default(),
            clusters: clusters.clone(),
            objects: None,
            action: Action::Delete,
        };
        let mut workload = Workload::new(key.clone(), Pos::default(), Vec::new());
        workload.overrides = all.iter().map(over).collect::<Vec<_>>().into();
        let read = read(write(&workload).as_bytes(), &key).expect("it is read");
        let clusters: Vec<Applies> = read.overrides.iter().map(|one| one.clusters.clone()).collect();
        assert_eq!(clusters, all);
    }
}
