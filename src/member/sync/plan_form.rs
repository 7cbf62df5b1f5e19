//! A plan as JSON for programs: it names objects and never shows their content.

use serde::Serialize;
use serde_json::Value as Json;

use super::plan::SyncPlan;
use berth_base::model::ObjectId;
use berth_base::model::status::Problem;

#[derive(Serialize)]
struct PlanForm<'a> {
    writes: Vec<ObjectForm<'a>>,
    prunes: Vec<ObjectForm<'a>>,
    orphans: Vec<ObjectForm<'a>>,
    held: Vec<ObjectForm<'a>>,
    problems: Vec<ObjectForm<'a>>,
    differences: Vec<ObjectForm<'a>>,
    unchanged: usize,
}

#[derive(Serialize)]
struct ObjectForm<'a> {
    group: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    #[serde(flatten)]
    said: Option<Said<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Said<'a> {
    Action(&'a str),
    Reason(&'a str),
    Message(&'a str),
}

impl SyncPlan {
    /// Returns the plan as JSON.
    pub fn to_json(&self) -> Json {
        let form = PlanForm {
            writes: self
                .writes
                .iter()
                .map(|it| object(&it.id, Some(Said::Action(it.action.word()))))
                .collect(),
            prunes: self.removed().map(|prune| object(&prune.id, None)).collect(),
            orphans: self.orphaned().map(|prune| object(&prune.id, None)).collect(),
            held: self.held.iter().map(|it| object(&it.id, Some(Said::Reason(it.why.words())))).collect(),
            problems: self.problems.iter().map(problem).collect(),
            differences: self.differences.iter().map(problem).collect(),
            unchanged: self.unchanged.len(),
        };
        serde_json::to_value(form).expect("texts and numbers always are JSON")
    }
}

fn object<'a>(id: &'a ObjectId, said: Option<Said<'a>>) -> ObjectForm<'a> {
    ObjectForm { group: &id.group, kind: &id.kind, namespace: &id.namespace, name: &id.name, said }
}

fn problem(problem: &Problem) -> ObjectForm<'_> {
    object(&problem.object, Some(Said::Message(&problem.message)))
}
