//! Describes a failed connection or request in a sentence, with a hint.

use std::error::Error;

use kube::client::AuthError;

use super::concurrency::{PANICKED, Panicked};
use berth_base::diag::did_you_mean;

/// A failed connection or request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiveError {
    #[error("no kubeconfig can be read from {from}: {why}")]
    NoKubeconfig { from: String, why: String },
    #[error("there is no context `{wanted}` in the kubeconfig of {from}")]
    NoContext { wanted: String, from: String, contexts: Vec<String> },
    #[error("the kubeconfig of {from} cannot be used: {why}")]
    Config { from: String, why: String },
    #[error("the API server {server} cannot be reached: {why}")]
    Unreachable { server: String, why: String },
    #[error("the API server {server} did not answer in {seconds} s when asked for {what}")]
    Late { server: String, what: String, seconds: u64 },
    #[error("the API server {server} does not accept the credentials: {message}")]
    Unknown { server: String, message: String },
    #[error("listing {what} is not allowed: {message}")]
    Forbidden { what: String, verb: String, message: String },
    #[error("the API server does not serve {what}")]
    NotServed { what: String },
    #[error("the API server refuses to list {what}: {message} ({code})")]
    Refused { what: String, code: u16, message: String },
    #[error("invalid response from the server about {what}: {why}")]
    Unreadable { what: String, why: String },
    #[error("the API server {server} serves no `{group}`, so there is no {system} on it")]
    NoHub { server: String, system: String, group: String },
    #[error("{what} cannot be requested: {why}")]
    Malformed { what: String, why: String },
    #[error("there is no {system} in the namespace `{namespace}`")]
    NoPlane { system: String, namespace: String, others: Vec<String> },
    #[error("cannot start the client for the cluster: {0}")]
    Start(String),
    #[error("{PANICKED}")]
    Panicked,
}

impl From<Panicked> for LiveError {
    fn from(_: Panicked) -> LiveError {
        LiveError::Panicked
    }
}

impl LiveError {
    /// Describes an answer that cannot be read. The error may quote the answer, so berth shows only its place.
    pub(crate) fn unreadable(what: &str, error: &serde_json::Error) -> LiveError {
        LiveError::Unreadable { what: what.to_owned(), why: format!("at byte {}", error.column()) }
    }

    /// Returns the hint, if the error has one.
    pub fn hint(&self) -> Option<String> {
        match self {
            LiveError::NoKubeconfig { .. } => {
                Some("name the file with `--kubeconfig`, or in the variable KUBECONFIG".to_owned())
            }
            LiveError::NoContext { wanted, contexts, .. } if contexts.is_empty() => {
                let _ = wanted;
                Some("name another file with `--kubeconfig`: this one has no contexts".to_owned())
            }
            LiveError::NoContext { wanted, contexts, .. } => {
                let near = did_you_mean(wanted, contexts.iter().map(String::as_str));
                Some(near.unwrap_or_else(|| format!("name one of them with `--context`: {}", contexts.join(", "))))
            }
            LiveError::Config { .. } => Some("test it with `kubectl --context NAME version`".to_owned()),
            LiveError::Unreachable { .. } | LiveError::Late { .. } => Some(
                "check that the cluster runs and that this machine can reach it; `--context` names another one"
                    .to_owned(),
            ),
            LiveError::Unknown { .. } => {
                Some("log in again: the credentials have expired or belong to another cluster".to_owned())
            }
            LiveError::Forbidden { what, verb, .. } => {
                Some(format!("ask for the right to {verb} {what}, or use a context that has it"))
            }
            LiveError::NoHub { .. } => {
                Some("name the host cluster with `--context`, or its kubeconfig with `--kubeconfig`".to_owned())
            }
            LiveError::NoPlane { system, others, .. } => Some(match others.as_slice() {
                [] => format!("name the namespace that {system} has, with `--namespace`"),
                some => format!("name it with `--namespace`; it is in `{}`", some.join("`, `")),
            }),
            LiveError::NotServed { .. }
            | LiveError::Malformed { .. }
            | LiveError::Refused { .. }
            | LiveError::Unreadable { .. }
            | LiveError::Start(_)
            | LiveError::Panicked => None,
        }
    }

    /// Reports whether the whole cluster is unreachable, so that further requests are pointless.
    pub fn is_final(&self) -> bool {
        !matches!(
            self,
            LiveError::Forbidden { .. }
                | LiveError::NotServed { .. }
                | LiveError::Malformed { .. }
                | LiveError::Refused { .. }
                | LiveError::Unreadable { .. }
                | LiveError::Late { .. }
        )
    }
}

/// Turns an error of the library into a sentence. `what` is the object of the request.
pub(crate) fn of_kube(error: &kube::Error, server: &str, what: &str, verb: &str) -> LiveError {
    let (server, what) = (server.to_owned(), what.to_owned());
    match error {
        kube::Error::Api(status) => {
            let message = one_line(&status.message);
            match status.code {
                401 => LiveError::Unknown { server, message },
                403 => LiveError::Forbidden { what, verb: verb.to_owned(), message },
                404 => LiveError::NotServed { what },
                code => LiveError::Refused { what, code, message },
            }
        }
        kube::Error::SerdeError(error) => LiveError::unreadable(&what, error),
        kube::Error::Auth(error) => LiveError::Unknown { server, message: login(error) },
        error => LiveError::Unreachable { server, why: innermost(error) },
    }
}

/// Describes why a client cannot be built, without quoting the kubeconfig.
pub(crate) fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Auth(error) => login(error),
        error => innermost(error),
    }
}

/// Describes why there are no credentials. The output of a login program is left out: it may hold them.
fn login(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecRun { out, .. } => format!("the login program failed: {}", out.status),
        AuthError::AuthExecStart(error) => format!("the login program cannot be started: {error}"),
        AuthError::ExecPluginFailed | AuthError::AuthExecParse(_) => {
            "the login program printed no credentials".to_owned()
        }
        AuthError::ReadTokenFile(error, path) => {
            format!("the token's file {} cannot be read: {error}", path.display())
        }
        AuthError::InvalidBasicAuth(_) | AuthError::InvalidBearerToken(_) => {
            "the token or password has characters that cannot be sent".to_owned()
        }
        AuthError::MissingCommand => "the kubeconfig names no login program".to_owned(),
        _ => "the kubeconfig's login method does not work".to_owned(),
    }
}

/// Returns the innermost of a chain of errors. The outer ones only add context.
pub fn innermost(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    one_line(&last.to_string())
}

/// Joins the words of a text with single spaces.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
