//! Creates one missing object without changing an existing one.

use std::time::Duration;

use kube::api::PatchParams;
use serde_json::{Value as Json, json};

use super::api_client::{Action, ApiClient};
use super::apply_one::{ApplyJob, ApplyResult};
use super::compare::leaving;
use super::failure::{Failure, quoted};
use super::identity::Identity;
use super::managed_fields;
use super::removal::release;

/// The version in a request to create. No object has it, because versions begin with the first write in a cluster.
const NO_VERSION: &str = "1";

/// The number of attempts if others create and remove the object, or its quota is busy.
const ATTEMPTS_TO_MAKE: u32 = 5;

/// The pause between these attempts.
const PAUSE_TO_MAKE: Duration = Duration::from_millis(200);

impl ApplyJob {
    /// Creates a missing object and changes no existing one: an apply that names a version succeeds only on an object
    /// of that version, or if there is no object.
    pub(crate) async fn make(&self, api: &ApiClient) -> Result<ApplyResult, Failure> {
        let mut object = self.payload();
        object["metadata"]["resourceVersion"] = json!(NO_VERSION);
        let params =
            PatchParams { field_manager: Some(api.identity.manager.clone()), ..PatchParams::default() };
        let mut attempt = 1;
        loop {
            let failure = match api.send(&self.path, &self.id.name, Action::Apply(&params, &object)).await {
                Ok(answer) => {
                    let created = answer.created;
                    let made = ApplyResult { created, answer: Some(answer), ..ApplyResult::default() };
                    return self.check_made(api, made).await;
                }
                Err(failure) => failure,
            };
            if failure.lacks_namespace() {
                let message = format!("its namespace `{}` does not exist", self.id.namespace);
                return Err(Failure::rule(message));
            }
            if failure.code() != 409 || attempt >= ATTEMPTS_TO_MAKE {
                return Err(self.explain(failure));
            }
            match api.send(&self.path, &self.id.name, Action::Get).await {
                Ok(answer) => {
                    let live: Json = answer.read()?;
                    // An earlier attempt created the object, and its answer was lost.
                    let is_made = api.identity.owns(&live)
                        && self.is_intact(&live, &api.identity)
                        && leaving(&live).is_none();
                    let made = ApplyResult { created: true, answer: Some(answer), ..ApplyResult::default() };
                    return if is_made { Ok(made) } else { Err(Failure::Exists) };
                }
                // The object was removed again, or the server was busy, as with a quota.
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Err(failure),
            }
            tokio::time::sleep(PAUSE_TO_MAKE).await;
            attempt += 1;
        }
    }

    /// Reports whether the object is exactly as this payload created it.
    fn is_intact(&self, live: &Json, identity: &Identity) -> bool {
        let own = managed_fields::applied_by(live, &identity.manager);
        self.was_applied_to(live) && own.is_some_and(|own| managed_fields::covers(own, &self.payload()))
    }

    /// Releases an object that existed after all: a server that extends the API may ignore versions.
    async fn check_made(&self, api: &ApiClient, applied: ApplyResult) -> Result<ApplyResult, Failure> {
        if applied.created || self.take_over {
            return Ok(applied);
        }
        let Some(answer) = &applied.answer else { return Ok(applied) };
        let object: Json = answer.read()?;
        let others: Vec<&str> = managed_fields::managers(&object)
            .map(|(manager, _)| manager)
            .filter(|manager| *manager != api.identity.manager)
            .collect();
        // An earlier attempt created the object, its answer was lost, and then others changed the object.
        if others.is_empty() || (answer.again && managed_fields::is_maker(&object, &api.identity.manager)) {
            return Ok(applied);
        }
        release(api, &self.path, &self.id, object.pointer("/metadata/uid")).await?;
        Err(Failure::rule(format!("it was created meanwhile by {}", quoted(&others))))
    }
}
