#[path = "../../../../tests/archive/mod.rs"]
mod archive;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use super::field_discovery::{self, Field};
use super::{Kind, json_schema, kinds};
use archive::{Archive, archives};
use berth_base::diag::Diagnostics;
use berth_base::yaml::{self, Limits};
use verdict::refusal;

/// Parts of a reader's messages about documents of another form.
const OF_FORM: [&str; 8] = [
    "unknown field `",
    " must be a mapping, not ",
    " must be a list, not ",
    " must be a string, not ",
    " must be true or false, not ",
    " must be a whole number, not ",
    ", but must be one of ",
    ", but must be from ",
];

/// Faults for which a reader only warns: it reads the intended value, or nothing.
const WARNED: [&str; 5] = [
    "; it is read as ",
    "; its only entry is read",
    "the selector has no effect beside ",
    " is ignored",
    ", but must be one of ",
];

/// The number of documents changed at the same place.
const AT_ONE_PLACE: usize = 3;

struct Judge {
    kind: Kind,
    fields: Field,
    schema: Json,
}

/// All kinds. Finding their fields takes long, so the tests share them.
static JUDGES: LazyLock<Vec<Judge>> = LazyLock::new(|| {
    std::thread::scope(|scope| {
        let all: Vec<_> = kinds().into_iter().map(|kind| scope.spawn(|| Judge::of(kind))).collect();
        all.into_iter().map(|one| one.join().expect("no reader panics")).collect()
    })
});

impl Judge {
    fn of(kind: Kind) -> Judge {
        let fields = field_discovery::fields(&kind);
        Judge { schema: json_schema::of_kind(&kind.kind, &fields), fields, kind }
    }

    /// Compares the verdicts of the schema and the reader, and returns the difference.
    fn difference(&self, document: &Json) -> Option<String> {
        let refused = refusal(&self.schema, document, self.kind.kind.kind);
        let found = self.read(document);
        let errors: Vec<&str> = found.errors().map(|one| one.message.as_str()).collect();
        let says = |message: &str, parts: &[&str]| parts.iter().any(|part| message.contains(part));
        let is_warned = found.iter().any(|one| says(&one.message, &WARNED));
        // A status is written by its server: some parts are only read if others require it.
        let of_form = errors.iter().find(|error| says(error, &OF_FORM) && !error.starts_with("status."));
        // An empty word counts as absent in some places.
        let is_empty_word = |why: &String| why.contains(" is \"\", but enum is ");
        match (refused, of_form) {
            (Some(why), _) if errors.is_empty() && !is_warned && !is_empty_word(&why) => {
                Some(format!("only the schema refuses: {why}"))
            }
            (None, Some(error)) => Some(format!("only the reader refuses: {error}")),
            _ => None,
        }
        .map(|what| format!("{what}\n{document}"))
    }

    fn read(&self, document: &Json) -> Diagnostics {
        let read = yaml::read(document.to_string().as_bytes(), &Limits::default());
        read.documents.into_iter().map(|one| (self.kind.read)(None, one.root)).fold(
            Diagnostics::new(),
            |mut all, found| {
                all.extend(found);
                all
            },
        )
    }
}

/// Returns the documents of all cases, valid and invalid, without duplicates.
fn documents() -> Vec<(&'static Judge, Json)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut met = BTreeSet::new();
    let mut found = Vec::new();
    for system in ["kubefed", "kubefleet", "ocm", "kubefed-render", "kubefleet-render", "ocm-render"] {
        for path in archives(&fixtures.join(system)) {
            let case = Archive::read(&path);
            for (_, text) in case.below("fleet") {
                for one in yaml::read(text.as_bytes(), &Limits::default()).documents {
                    let document = one.root.to_json();
                    let is_of = |judge: &&Judge| {
                        let kind = &judge.kind.kind;
                        let version = kind
                            .versions
                            .iter()
                            .find(|one| document["apiVersion"] == format!("{}/{one}", kind.group));
                        version.is_some() && document["kind"] == kind.kind
                    };
                    let judge = JUDGES.iter().find(is_of);
                    found.extend(
                        judge.filter(|_| met.insert(document.to_string())).map(|judge| (judge, document)),
                    );
                }
            }
        }
    }
    assert!(found.len() > 500, "{}", found.len());
    found
}

#[test]
fn schemas_and_readers_agree_on_all_cases_and_on_single_changes_of_them() {
    let documents = documents();
    let mut differences = BTreeSet::new();
    let (mut n_changed, mut changed_at) = (0, BTreeMap::<_, usize>::new());
    for (judge, document) in &documents {
        differences.extend(judge.difference(document));
        for pointer in pointers(document) {
            let place = (judge.kind.file(), pointer.replace(|c: char| c.is_ascii_digit(), ""));
            let n_times = changed_at.entry(place).or_default();
            *n_times += 1;
            if *n_times > AT_ONE_PLACE {
                continue;
            }
            for other in
                [json!(true), json!(7), json!("other"), json!(["other"]), json!({"other": 1}), Json::Null]
            {
                let mut changed = document.clone();
                let place = changed.pointer_mut(&pointer).expect("it is there");
                *place = other;
                differences.extend(judge.difference(&changed));
                n_changed += 1;
            }
        }
    }
    assert!(n_changed > 10_000, "{n_changed}");
    let all: Vec<_> = differences.into_iter().collect();
    assert!(all.is_empty(), "{} of {n_changed}:\n{}", all.len(), all.join("\n\n"));
}

/// Returns the places of a document's values, except those that identify the document.
fn pointers(document: &Json) -> Vec<String> {
    fn below(value: &Json, at: &str, found: &mut Vec<String>) {
        let mut take = |name: &str, value: &Json| {
            let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            below(value, &at, found);
            found.push(at);
        };
        match value {
            Json::Object(fields) => fields.iter().for_each(|(name, value)| take(name, value)),
            Json::Array(items) => {
                items.iter().enumerate().for_each(|(index, value)| take(&index.to_string(), value));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    below(document, "", &mut found);
    found.retain(|at| at != "/apiVersion" && at != "/kind");
    found
}

#[test]
fn every_field_has_a_description_and_every_description_a_field() {
    let lines = json_schema::lines();
    let (mut bare, mut used) = (Vec::new(), BTreeSet::new());
    for Judge { kind, fields, .. } in JUDGES.iter() {
        fields.walk("", &mut |path, _| {
            // Few fields of a status are read, and users do not write them.
            let is_named = !path.ends_with("[]")
                && !path.ends_with(field_discovery::ANY)
                && !path.starts_with("status.");
            match json_schema::line(&lines, kind.kind.kind, path) {
                Some(line) => drop(used.insert(std::ptr::from_ref(line))),
                None if is_named => bare.push(format!("{} {path}", kind.kind.kind)),
                None => {}
            }
        });
    }
    assert!(bare.is_empty(), "without a description:\n{}", bare.join("\n"));
    let idle: Vec<_> = lines.iter().filter(|line| !used.contains(&std::ptr::from_ref(*line))).collect();
    assert!(idle.is_empty(), "for no field: {idle:#?}");
}
