//! Explains a failed request: its meaning for the object, and a message.
//!
//! A server or webhook may quote an object anywhere in its answer. So for a refused Secret, berth shows only the code
//! and the kind of the refusal, if Kubernetes has that kind.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use kube::core::Status;
use kube::core::response::StatusCause;

use crate::live::concurrency::{PANICKED, Panicked};
use crate::live::error::{innermost, one_line};
use crate::sync::backends::BackendError;
use berth_base::model::annotation::ON_CONFLICT;

/// The start of a server's message about a manifest that does not match its kind.
const MISFIT_START: &str = "failed to create typed patch object";

/// A part of a server's message about an invalid value, such as invalid base64.
const UNREADABLE_VALUE: &str = "unable to convert unstructured object to";

/// The kinds of refusals in Kubernetes. A webhook may write any text in their place.
const REASONS: [&str; 19] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StorageReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// The fields of a Secret that messages may name.
const SECRET_FIELDS: [&str; 7] =
    ["apiVersion", "data", "immutable", "kind", "metadata", "stringData", "type"];

/// The pause before such an object is tried again: its kind may be redefined, though rarely.
const MISFIT_PAUSE: Duration = Duration::from_secs(300);

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Refused(Box<Refusal>),
    /// No answer arrived, so the request may have succeeded.
    Unreachable(String),
    /// A rule of berth forbids the request, which was not sent.
    Rule(String),
    /// The object is being removed, and still exists.
    Leaving(String),
    /// The object exists, although berth planned to create it. Nothing was changed.
    Exists,
    /// Berth itself panicked, before or after the request.
    Panicked,
}

impl From<Panicked> for Failure {
    fn from(_: Panicked) -> Failure {
        Failure::Panicked
    }
}

/// The server's refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    pub code: u16,
    pub reason: String,
    pub message: String,
    pub causes: Vec<StatusCause>,
    pub retry_after: Option<u64>,
}

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    pub manager: String,
    pub field: String,
}

impl Failure {
    pub fn rule(message: impl Into<String>) -> Failure {
        Failure::Rule(message.into())
    }

    pub fn unreadable(error: &serde_json::Error) -> Failure {
        // The error names only a position in the answer, never its content.
        Failure::Unreachable(format!("invalid response from the server at byte {}", error.column()))
    }

    pub(crate) fn unsendable(error: &dyn Error) -> Failure {
        Failure::Rule(innermost(error))
    }

    pub fn of(error: &kube::Error) -> Failure {
        Failure::Unreachable(innermost(error))
    }

    /// Makes a failure from an error of the library, which has already read the refusal.
    pub(crate) fn of_answer(error: &kube::Error) -> Failure {
        match error {
            kube::Error::Api(status) => Failure::refused(status.code, (**status).clone(), None),
            // The error may quote the answer, so berth shows only the position.
            kube::Error::SerdeError(error) => {
                Failure::Rule(format!("invalid response from the server at byte {}", error.column()))
            }
            error => Failure::of(error),
        }
    }

    pub(crate) fn from_answer(code: u16, body: &[u8], retry_after: Option<u64>) -> Failure {
        Failure::refused(code, serde_json::from_slice(body).unwrap_or_default(), retry_after)
    }

    fn refused(code: u16, status: Status, retry_after: Option<u64>) -> Failure {
        let (causes, asked) =
            status.details.map(|details| (details.causes, details.retry_after_seconds)).unwrap_or_default();
        let retry_after = retry_after.or((asked > 0).then_some(asked.into()));
        let (reason, message) = (status.reason, one_line(&status.message));
        Failure::Refused(Box::new(Refusal { code, reason, message, causes, retry_after }))
    }

    /// Returns the error of a backend.
    pub(crate) fn into_error(self, is_secret: bool) -> BackendError {
        match self {
            Failure::Leaving(why) => BackendError::Leaving(why),
            failure => BackendError::Failed(failure.words(is_secret)),
        }
    }

    pub fn code(&self) -> u16 {
        match self {
            Failure::Refused(refusal) => refusal.code,
            Failure::Unreachable(_)
            | Failure::Rule(_)
            | Failure::Leaving(_)
            | Failure::Exists
            | Failure::Panicked => 0,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// Reports whether the same request may succeed soon.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Failure::Unreachable(_) => true,
            // A webhook that does not answer also causes a 500, and may answer soon.
            Failure::Refused(refusal) => {
                !self.is_misfit() && matches!(refusal.code, 429 | 500 | 502 | 503 | 504)
            }
            Failure::Rule(_) | Failure::Leaving(_) | Failure::Exists | Failure::Panicked => false,
        }
    }

    /// Returns the pause that the server asks for.
    pub fn pause(&self) -> Option<Duration> {
        let Failure::Refused(refusal) = self else { return None };
        if self.is_misfit() {
            return Some(MISFIT_PAUSE);
        }
        refusal.retry_after.map(Duration::from_secs)
    }

    /// Reports whether the manifest does not match its kind: an unknown field, a text for a number. Servers answer
    /// 500.
    fn is_misfit(&self) -> bool {
        let is_misfit =
            |message: &str| [MISFIT_START, UNREADABLE_VALUE].iter().any(|part| message.contains(part));
        matches!(self, Failure::Refused(refusal) if is_misfit(&refusal.message))
    }

    /// Returns the fields that others own, if the failure is a conflict.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let Failure::Refused(refusal) = self else { return Vec::new() };
        let conflict = |cause: &StatusCause| {
            let manager = cause.message.split('"').nth(1).unwrap_or_default();
            Conflict { manager: manager.to_owned(), field: cause.field.clone() }
        };
        let ours = refusal.causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
        if refusal.code == 409 { ours.map(conflict).collect() } else { Vec::new() }
    }

    /// Reports whether others wrote to the object at the same moment. A failed precondition is not contention.
    pub(crate) fn is_contention(&self) -> bool {
        let Failure::Refused(refusal) = self else { return false };
        let is_precondition = ["uid mismatch", "recondition", "ensuring all content"]
            .iter()
            .any(|it| refusal.message.contains(it));
        refusal.code == 409 && refusal.reason == "Conflict" && refusal.causes.is_empty() && !is_precondition
    }

    /// Reports whether the request would change an immutable field.
    pub(crate) fn is_immutable(&self) -> bool {
        let Failure::Refused(refusal) = self else { return false };
        let says = |text: &str| {
            ["immutable", "updates to statefulset spec for fields other than", "may not change once set"]
                .iter()
                .any(|words| text.contains(words))
        };
        let cannot_change = refusal.message.contains("cannot change roleRef")
            || refusal.message.contains("updates to parameters are forbidden");
        refusal.code == 422 && (says(&refusal.message) || cannot_change)
    }

    /// Reports whether the namespace is missing.
    pub(crate) fn lacks_namespace(&self) -> bool {
        let Failure::Refused(refusal) = self else { return false };
        refusal.code == 404 && refusal.message.starts_with("namespaces ")
    }

    /// Describes the failure. Quotes nothing of a Secret.
    pub fn words(&self, is_secret: bool) -> String {
        match self {
            Failure::Rule(message) | Failure::Leaving(message) => message.clone(),
            Failure::Exists => "it was created meanwhile".to_owned(),
            Failure::Panicked => PANICKED.to_owned(),
            Failure::Unreachable(why) => format!("the API server cannot be reached: {why}"),
            Failure::Refused(refusal) if self.is_misfit() => misfit_words(&refusal.message, is_secret),
            Failure::Refused(refusal) if is_secret => {
                let fields = secret_fields(refusal.causes.iter().map(|cause| cause.field.as_str()));
                let of =
                    if fields.is_empty() { String::new() } else { format!(", for {}", fields.join(", ")) };
                let known = REASONS.into_iter().find(|reason| *reason == refusal.reason);
                let reason = known.unwrap_or("for a reason that is not shown");
                format!("the API server refuses it: {reason} ({}){of}", refusal.code)
            }
            Failure::Refused(refusal) => {
                let said = if refusal.message.is_empty() { &refusal.reason } else { &refusal.message };
                let later =
                    refusal.retry_after.map(|seconds| format!("; it asks to try again in {seconds} s"));
                let code = refusal.code;
                format!("the API server refuses it: {said} ({code}){}", later.unwrap_or_default())
            }
        }
    }
}

/// Describes the mismatch of a manifest and its kind. For a Secret, names only fields.
fn misfit_words(message: &str, is_secret: bool) -> String {
    let faults = match message.split_once(MISFIT_START) {
        Some((_, faults)) => faults.split_once("): ").map_or(faults, |(_, faults)| faults),
        None => {
            let (_, fault) = message.split_once(UNREADABLE_VALUE).unwrap_or_default();
            fault
                .split_once(": ")
                .map_or(fault, |(_, fault)| fault)
                .trim_start_matches("error decoding from json: ")
        }
    };
    let faults = faults.trim_start_matches("errors:").trim();
    let hint = "correct the manifest: berth rarely retries it until it changes";
    // The server's own message names fields of the manifest. A webhook's message begins differently and may contain
    // anything.
    let is_of_server = message.starts_with(MISFIT_START);
    let fields = || {
        let is_field = |word: &&str| word.starts_with('.') && word.ends_with(':');
        let named = faults.split_whitespace().filter(is_field).map(first_field);
        let told: BTreeSet<&str> =
            named.filter(|field| is_of_server || SECRET_FIELDS.contains(field)).collect();
        told.into_iter().map(|field| format!("`.{field}`")).collect::<Vec<_>>().join(", ")
    };
    let faults = if is_secret { fields() } else { faults.to_owned() };
    let about = if faults.is_empty() { String::new() } else { format!(": {faults}") };
    format!("the API server refuses it: the manifest does not match its kind{about}; {hint}")
}

/// Returns the fields of a Secret that contain these paths. Only fields are named, since a path may contain anything.
fn secret_fields<'p>(paths: impl Iterator<Item = &'p str>) -> Vec<&'static str> {
    let named: BTreeSet<&str> = paths.map(first_field).collect();
    SECRET_FIELDS.into_iter().filter(|field| named.contains(field)).collect()
}

fn first_field(path: &str) -> &str {
    path.trim_start_matches('.').split(['.', '[', ':']).next().unwrap_or_default()
}

/// Describes conflicts that the object's annotations do not settle.
pub(crate) fn conflict_words(owners: &str) -> String {
    format!(
        "others own the fields to change: {owners}; annotate it `{ON_CONFLICT}: force` to take the fields over, \
         or `yield` to leave them to their owners"
    )
}

pub(crate) fn owners_words(conflicts: &[Conflict]) -> String {
    let words = conflicts.iter().map(|it| format!("`{}` of `{}`", it.field, it.manager));
    words.collect::<Vec<_>>().join(", ")
}

pub fn quoted(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_others_wrote_of_a_refused_secret_is_told() {
        let quoted = "hunter2";
        let misfit = format!("webhook denied it: {MISFIT_START} (a/b): errors: .{quoted}: .data.{quoted}: ");
        let answers = [
            format!(r#"{{"code": 403, "reason": "{quoted}", "message": "{quoted}"}}"#),
            format!(
                r#"{{"code": 422, "reason": "Invalid", "message": "{quoted}", "details":
                   {{"causes": [{{"field": "{quoted}"}}, {{"field": "data.{quoted}", "message": "{quoted}"}}]}}}}"#
            ),
            format!(r#"{{"code": 500, "message": "{misfit}"}}"#),
        ];
        let told = answers.map(|answer| {
            let code = serde_json::from_str::<serde_json::Value>(&answer).expect("JSON")["code"].as_u64();
            let failure = Failure::from_answer(code.expect("a code") as u16, answer.as_bytes(), None);
            assert!(failure.words(false).contains(quoted));
            failure.words(true)
        });
        assert!(told.iter().all(|told| !told.contains(quoted)), "{told:?}");
        assert_eq!(told[1], "the API server refuses it: Invalid (422), for data");
        assert!(
            told[0].ends_with("for a reason that is not shown (403)") && told[2].contains("`.data`"),
            "{told:?}"
        );
    }

    #[test]
    fn a_value_that_its_kind_cannot_have_is_described_and_rarely_tried_again() {
        let start = "failed to convert new object (a/b; v1, Kind=Lease) to proper version";
        for fault in
            ["error decoding from json: illegal base64 data at input byte 3", "parsing time \"x\": no"]
        {
            let message = format!("{start}: {UNREADABLE_VALUE} v1, Kind=Lease: {fault}");
            let answer = serde_json::json!({"code": 500, "message": message}).to_string();
            let failure = Failure::from_answer(500, answer.as_bytes(), None);
            let fault = fault.trim_start_matches("error decoding from json: ");
            assert!(
                failure.words(false).contains(&format!("match its kind: {fault}; ")),
                "{}",
                failure.words(false)
            );
            assert!(!failure.words(true).contains(fault), "{}", failure.words(true));
            assert!(!failure.may_pass() && failure.pause() == Some(MISFIT_PAUSE));
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_not_quoted() {
        let error = serde_json::from_str::<u64>(r#""hunter2""#).expect_err("it is a text");
        let words = Failure::of_answer(&kube::Error::SerdeError(error)).words(false);
        assert!(!words.contains("hunter2"), "{words}");
    }
}
