//! Sends requests to one API server: several at once, each with a time limit, and retried if that is safe.
//!
//! Every request may be sent twice: applies are idempotent, and deletes carry a UID. So a request without an answer
//! is sent again. Pauses that a busy server asks for are kept.
//!
//! A page of a list is read object by object, so that only one of them is in memory as a parsed value.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::Request;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::super::BackendError;
use super::connection::Tenants;
use super::failure::Failure;
use super::identity::Identity;
use crate::live::session::ApiServer;
use berth_base::backoff::{Backoff, chance};
use berth_base::progress::Progress;
use berth_lease::Fence;

/// The number of attempts before a request fails.
const ATTEMPTS: u32 = 5;

/// The pauses before a retry, if the server names none.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(300), LONGEST_PAUSE);

/// The longest pause that a server may ask for within a sync. If it asks for a longer one, the request fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The number of objects per page.
const PAGE: u32 = 500;

/// The client for one API server and one fleet.
#[derive(Clone)]
pub(crate) struct ApiClient {
    pub server: ApiServer,
    /// Berth's names in the cluster.
    pub identity: Arc<Identity>,
    /// The accounts that write instead of berth's own.
    tenants: Option<Tenants>,
    /// Forbids writes without the lease, and limits the time of each.
    fence: Option<(Fence, Duration)>,
    /// Receives the progress of a batch.
    pub progress: Progress,
}

/// The request to make on an object or collection.
#[derive(Clone, Copy, Debug)]
pub enum Action<'a> {
    Get,
    List(&'a ListParams),
    Create(&'a Json),
    Apply(&'a PatchParams, &'a Json),
    Merge(&'a PatchParams, &'a Json),
    /// Applies RFC 6902 operations.
    Edit(&'a PatchParams, &'a Json),
    Delete(&'a DeleteParams),
}

impl Action<'_> {
    /// Reports whether the request changes anything.
    fn is_write(self) -> bool {
        match self {
            Action::Get | Action::List(_) => false,
            Action::Create(_) => true,
            Action::Apply(params, _) | Action::Merge(params, _) | Action::Edit(params, _) => !params.dry_run,
            Action::Delete(params) => !params.dry_run,
        }
    }

    /// Reports whether the request only reads. A dry run of a write is not a read.
    fn only_reads(self) -> bool {
        matches!(self, Action::Get | Action::List(_))
    }

    /// Reports whether the request may be repeated, because it names no version of the object.
    fn names_no_version(self) -> bool {
        match self {
            Action::Apply(_, object) => object.pointer("/metadata/resourceVersion").is_none(),
            Action::Merge(..) | Action::Delete(_) => true,
            Action::Get | Action::List(_) | Action::Create(_) | Action::Edit(..) => false,
        }
    }
}

/// A successful answer.
#[derive(Debug)]
pub(crate) struct Response {
    /// True if the request created the object.
    pub created: bool,
    /// True if an earlier attempt failed without an answer, and may have succeeded.
    pub again: bool,
    bytes: Vec<u8>,
}

impl Response {
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.bytes).map_err(|error| Failure::unreadable(&error))
    }
}

impl ApiClient {
    pub fn new(server: ApiServer, identity: Identity) -> ApiClient {
        ApiClient {
            server,
            identity: Arc::new(identity),
            tenants: None,
            fence: None,
            progress: Progress::default(),
        }
    }

    /// Returns a client that writes as the tenants' accounts.
    #[must_use]
    pub fn acting(&self, tenants: Option<&Tenants>) -> ApiClient {
        ApiClient { tenants: tenants.cloned(), ..self.clone() }
    }

    /// Returns the client with a fence: a write needs `patience` before the fence closes.
    #[must_use]
    pub(crate) fn fenced(self, fence: Fence, patience: Duration) -> ApiClient {
        ApiClient { fence: Some((fence, patience)), ..self }
    }

    /// Returns the time limit of a request. `None` if the fence forbids it.
    fn patience_for(&self, action: Action<'_>) -> Option<Duration> {
        let longest = self.server.patience();
        let Some((fence, patience)) = self.fence.as_ref().filter(|_| action.is_write()) else {
            return Some(longest);
        };
        fence.leaves(*patience).then(|| longest.min(*patience))
    }

    /// Turns a failure that concerns the whole cluster into an error.
    pub fn whole(&self, failure: &Failure) -> BackendError {
        let (words, server) = (failure.words(false), &self.server.address);
        match failure.code() {
            401 => BackendError::Failed(format!(
                "the API server {server} does not accept the credentials: {words}"
            )),
            _ => BackendError::Failed(format!("{server}: {words}")),
        }
    }

    /// Applies one of berth's own objects, even if others own its fields. Also returns the number of attempts.
    pub(crate) async fn apply_own(
        &self,
        path: &str,
        name: &str,
        object: &Json,
    ) -> (Result<Response, Failure>, u32) {
        let field_manager = Some(self.identity.manager.clone());
        let params = PatchParams { field_manager, force: true, ..PatchParams::default() };
        self.send_counted(path, name, Action::Apply(&params, object)).await
    }

    /// Sends a request until it gets a final answer.
    pub async fn send(&self, path: &str, name: &str, action: Action<'_>) -> Result<Response, Failure> {
        self.send_counted(path, name, action).await.0
    }

    async fn send_counted(
        &self,
        path: &str,
        name: &str,
        action: Action<'_>,
    ) -> (Result<Response, Failure>, u32) {
        let mut attempt = 1;
        loop {
            let Some(patience) = self.patience_for(action) else {
                let late = "the lease was not renewed in time, so nothing more is written";
                return (Err(Failure::rule(late)), attempt);
            };
            let failure = match tokio::time::timeout(patience, self.send_once(path, name, action)).await {
                Ok(Ok(answer)) => return (Ok(Response { again: attempt > 1, ..answer }), attempt),
                Ok(Err(failure)) => failure,
                Err(_) => Failure::Unreachable(format!("no answer in {} s", patience.as_secs())),
            };
            let pause = failure.pause().unwrap_or_else(|| PAUSES.jittered(attempt, chance()));
            let may_pass = failure.may_pass() || (failure.is_contention() && action.names_no_version());
            if attempt >= ATTEMPTS || !may_pass || pause > LONGEST_PAUSE {
                return (Err(failure), attempt);
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn send_once(&self, path: &str, name: &str, action: Action<'_>) -> Result<Response, Failure> {
        let request = Request::new(path);
        let request = match action {
            Action::Get => request.get(name, &Default::default()),
            Action::List(params) => request.list(params),
            Action::Create(object) => request.create(&PostParams::default(), object.to_string().into_bytes()),
            Action::Apply(params, object) => request.patch(name, params, &Patch::Apply(object)),
            Action::Merge(params, patch) => request.patch(name, params, &Patch::Merge(patch)),
            Action::Edit(params, operations) => {
                // The library supports JSON patches only behind a feature. A merge patch is sent the same way, with
                // another content type.
                request.patch(name, params, &Patch::Merge(operations)).map(|mut request| {
                    if let Ok(kind) = "application/json-patch+json".parse() {
                        request.headers_mut().insert("content-type", kind);
                    }
                    request
                })
            }
            Action::Delete(params) => request.delete(name, params),
        };
        let mut request = request.map_err(|error| Failure::unsendable(&error))?;
        if let Some(tenants) = self.tenants.as_ref().filter(|_| !action.only_reads())
            && let Some(user) = tenants.user_for(path)?
        {
            let user = user.parse().map_err(|_| Failure::rule("its ServiceAccount's name is unusable"))?;
            request.headers_mut().insert("impersonate-user", user);
        }
        let response =
            self.server.client.send(request.map(Body::from)).await.map_err(|error| Failure::of(&error))?;
        let status = response.status();
        let header = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let retry_after = header.and_then(|text| text.trim().parse::<u64>().ok());
        let body = response.into_body().collect_bytes().await.map_err(|error| Failure::of(&error))?;
        if status.is_success() {
            return Ok(Response { created: status.as_u16() == 201, again: false, bytes: body.to_vec() });
        }
        Err(Failure::from_answer(status.as_u16(), &body, retry_after))
    }

    /// Reads one object. `None` if it does not exist.
    pub async fn get(&self, path: &str, name: &str) -> Result<Option<Json>, Failure> {
        match self.send(path, name, Action::Get).await {
            Ok(answer) => answer.read().map(Some),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads one page of a list.
    pub(crate) async fn list_once<T: DeserializeOwned>(
        &self,
        path: &str,
        params: &ListParams,
    ) -> Result<T, Failure> {
        self.send(path, "", Action::List(params)).await?.read()
    }

    /// Lists every object with a label, page by page. Returns the version of the whole list.
    pub async fn list(
        &self,
        path: &str,
        selector: &str,
        mut each: impl FnMut(Json),
    ) -> Result<String, Failure> {
        let mut token: Option<String> = None;
        loop {
            let mut params = ListParams { limit: Some(PAGE), ..ListParams::default() };
            params.label_selector = Some(selector.to_owned());
            params.continue_token = token.take();
            let answer = self.send(path, "", Action::List(&params)).await?;
            let page = read(&answer.bytes, &mut each).map_err(|error| Failure::unreadable(&error))?;
            token = page.token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(page.version);
            }
        }
    }
}

/// Sends a request of the library until it gets a final answer.
pub(crate) async fn patiently<T, F>(question: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let mut attempt = 1;
    loop {
        let failure = match question().await {
            Ok(answer) => return Ok(answer),
            Err(error) => Failure::of_answer(&error),
        };
        let pause = failure.pause().unwrap_or_else(|| PAUSES.jittered(attempt, chance()));
        if attempt >= ATTEMPTS || !failure.may_pass() || pause > LONGEST_PAUSE {
            return Err(failure);
        }
        tokio::time::sleep(pause).await;
        attempt += 1;
    }
}

/// The metadata of a page.
#[derive(Debug, Default, serde::Deserialize)]
pub(crate) struct PageMetadata {
    #[serde(rename = "resourceVersion", default)]
    pub version: String,
    #[serde(rename = "continue")]
    pub token: Option<String>,
}

/// Reads a page and passes each object to `each`.
pub(crate) fn read(bytes: &[u8], each: &mut dyn FnMut(Json)) -> Result<PageMetadata, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let metadata = Page(each).deserialize(&mut reader)?;
    reader.end()?;
    Ok(metadata)
}

struct Page<'f>(&'f mut dyn FnMut(Json));

impl<'de> DeserializeSeed<'de> for Page<'_> {
    type Value = PageMetadata;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<PageMetadata, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Page<'_> {
    type Value = PageMetadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PageMetadata, A::Error> {
        let mut metadata = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => metadata = map.next_value::<Option<PageMetadata>>()?,
                "items" => map.next_value_seed(Items(&mut *self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(metadata.unwrap_or_default())
    }
}

struct Items<'f>(&'f mut dyn FnMut(Json));

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(object) = items.next_element()? {
            (self.0)(object);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn berth_reads_with_its_own_rights_and_tries_writes_with_a_tenants() {
        assert!(Action::Get.only_reads() && Action::List(&ListParams::default()).only_reads());
        let trial = DeleteParams::default().dry_run();
        assert!(!Action::Delete(&trial).only_reads() && !Action::Delete(&trial).is_write());
    }

    fn names(text: &str) -> Result<(Vec<String>, PageMetadata), String> {
        let mut names = Vec::new();
        let page = read(text.as_bytes(), &mut |object| names.push(object["name"].to_string()));
        page.map(|page| (names, page)).map_err(|error| error.to_string())
    }

    #[test]
    fn objects_come_in_order_and_the_metadata_wherever_it_stands() {
        let text = r#"{"kind": "List", "items": [{"name": 1}, {"name": 2}], "metadata": {"resourceVersion": "7", "continue": "x"}}"#;
        let (found, page) = names(text).unwrap();
        assert_eq!(found, ["1", "2"]);
        assert_eq!((page.version.as_str(), page.token.as_deref()), ("7", Some("x")));
        let (found, page) = names(r#"{"metadata": null}"#).unwrap();
        assert!(found.is_empty() && page.version.is_empty());
    }

    #[test]
    fn an_answer_that_is_cut_off_is_an_error() {
        assert!(
            names(r#"{"items": [{"name": 1}"#).is_err() && names("[]").is_err() && names("{} x").is_err()
        );
    }
}
