//! A connected cluster: lists in pages, several at once, each within its time.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::api::ListParams;
use kube::core::Request;
use serde_json::{Map, Value as Json};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Host;
use super::access::{Access, connect};
use super::error::{LiveError, of_kube};
use super::resource::{Query, Resource};
use berth_base::progress::Progress;

/// The number of objects in one answer; kubectl's.
const PAGE: u32 = 500;

/// The number of concurrent requests.
const AT_ONCE: usize = 8;

/// The number of attempts at a list whose continuation the server has forgotten.
const ATTEMPTS: usize = 3;

/// A connection to one API server.
pub struct Cluster {
    runtime: Runtime,
    asker: Asker,
}

/// Everything that one request needs.
#[derive(Clone)]
struct Asker {
    client: kube::Client,
    server: Arc<str>,
    patience: Duration,
    progress: Progress,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("server", &self.asker.server).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Reads the kubeconfig. Whether the server answers shows with the first question.
    pub fn connect(access: &Access) -> Result<Cluster, LiveError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| LiveError::Start(error.to_string()))?;
        let (client, server) = runtime.block_on(connect(access))?;
        let asker =
            Asker { client, server: server.into(), patience: access.patience, progress: Progress::default() };
        Ok(Cluster { runtime, asker })
    }

    /// Reports to `progress` how many objects have arrived.
    #[must_use]
    pub fn watched(mut self, progress: &Progress) -> Cluster {
        self.asker.progress = progress.clone();
        self
    }

    /// Runs one task per item, some at once, and gives their results in the items' order.
    fn each<I, T, F>(&self, items: Vec<I>, task: impl Fn(Asker, I) -> F) -> Vec<Result<T, LiveError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, LiveError>> + Send + 'static,
    {
        self.runtime.block_on(async {
            let permits = Arc::new(Semaphore::new(AT_ONCE));
            let mut tasks = JoinSet::new();
            let count = items.len();
            for (index, item) in items.into_iter().enumerate() {
                let (permits, work) = (permits.clone(), task(self.asker.clone(), item));
                tasks.spawn(async move {
                    let _permit = permits.acquire_owned().await;
                    (index, work.await)
                });
            }
            let mut done: Vec<Option<Result<T, LiveError>>> = (0..count).map(|_| None).collect();
            while let Some(ended) = tasks.join_next().await {
                if let Ok((index, result)) = ended {
                    done[index] = Some(result);
                }
            }
            let lost = || Err(LiveError::Start("a request was cut short".to_owned()));
            done.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
        })
    }
}

impl Host for Cluster {
    fn server(&self) -> &str {
        &self.asker.server
    }

    fn groups(&self) -> Result<BTreeSet<String>, LiveError> {
        let asker = self.asker.clone();
        let groups = self.runtime.block_on(async move {
            let list = asker.client.list_api_groups();
            asker.within("the API groups", "list", list).await
        })?;
        Ok(groups.groups.into_iter().map(|group| group.name).chain([String::new()]).collect())
    }

    fn resources(&self) -> Result<Vec<Resource>, LiveError> {
        let asker = self.asker.clone();
        let groups = self.runtime.block_on(async move {
            let list = asker.client.list_api_groups();
            asker.within("the API groups", "list", list).await
        })?;
        let preferred = groups.groups.into_iter().filter_map(|group| {
            let first = group.preferred_version.or_else(|| group.versions.into_iter().next())?;
            Some(first.group_version)
        });
        // Each name becomes a part of a path.
        let is_version = |version: &String| {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            Resource::new(group, version, "any", "", false).fault().is_none()
        };
        let versions: Vec<String> =
            ["v1".to_owned()].into_iter().chain(preferred.filter(is_version)).collect();
        let lists = self.each(versions.clone(), |asker, version| async move {
            let what = format!("the resources of `{version}`");
            if version == "v1" {
                asker.within(&what, "list", asker.client.list_core_api_resources(&version)).await
            } else {
                asker.within(&what, "list", asker.client.list_api_group_resources(&version)).await
            }
        });
        let mut found = Vec::new();
        for (version, list) in versions.iter().zip(lists) {
            match list {
                Ok(list) => found.extend(listable(version, list)),
                // An aggregated API whose server is down takes only its own group with it.
                Err(error) if !error.is_final() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn list(&self, queries: &[Query]) -> Vec<Result<Vec<Json>, LiveError>> {
        self.each(queries.to_vec(), |asker, query| async move { asker.list(&query).await })
    }
}

impl Asker {
    /// Returns an answer within the time limit, or the reason why there is none.
    async fn within<T>(
        &self,
        what: &str,
        verb: &str,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LiveError> {
        match tokio::time::timeout(self.patience, answer).await {
            Ok(answer) => answer.map_err(|error| of_kube(&error, &self.server, what, verb)),
            Err(_) => Err(LiveError::Late {
                server: self.server.to_string(),
                what: what.to_owned(),
                seconds: self.patience.as_secs(),
            }),
        }
    }

    /// Returns all pages of one list, sorted.
    async fn list(&self, query: &Query) -> Result<Vec<Json>, LiveError> {
        let mut attempt = 1;
        loop {
            match self.pages(query).await {
                // The server keeps a continuation for some minutes only.
                Err(LiveError::Refused { code: 410, .. }) if attempt < ATTEMPTS => attempt += 1,
                done => return done,
            }
        }
    }

    async fn pages(&self, query: &Query) -> Result<Vec<Json>, LiveError> {
        let what = query.to_string();
        if let Some(why) = query.fault() {
            return Err(LiveError::Malformed { what, why });
        }
        let fields = query.fields();
        let mut found = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let mut params = ListParams { field_selector: fields.clone(), ..ListParams::default() };
            params.limit = Some(PAGE);
            params.continue_token = token.take();
            let request = Request::new(query.path())
                .list(&params)
                .map_err(|error| LiveError::Unreadable { what: what.clone(), why: error.to_string() })?;
            let page = self.within(&what, "list", self.client.request::<Json>(request)).await?;
            token = page
                .pointer("/metadata/continue")
                .and_then(Json::as_str)
                .filter(|token| !token.is_empty())
                .map(str::to_owned);
            let items = items(page, &query.resource);
            self.progress.add(items.len());
            found.extend(items);
            if token.is_none() {
                break;
            }
        }
        found.sort_by(|a, b| name_of(a).cmp(&name_of(b)));
        Ok(found)
    }
}

/// Returns the items of one page, and adds the version and kind that servers leave out.
fn items(page: Json, resource: &Resource) -> Vec<Json> {
    let Json::Object(mut page) = page else { return Vec::new() };
    let Some(Json::Array(items)) = page.remove("items") else { return Vec::new() };
    let named = |item: Json| {
        let Json::Object(fields) = item else { return None };
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), resource.api_version().into());
        object.insert("kind".to_owned(), resource.kind.clone().into());
        object.extend(fields);
        Some(Json::Object(object))
    };
    items.into_iter().filter_map(named).collect()
}

fn name_of(object: &Json) -> (&str, &str) {
    let text = |pointer| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    (text("/metadata/namespace"), text("/metadata/name"))
}

fn listable(version: &str, list: APIResourceList) -> impl Iterator<Item = Resource> {
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let (group, version) = (group.to_owned(), version.to_owned());
    list.resources.into_iter().filter_map(move |one: APIResource| {
        // A name with a slash is a part of another resource.
        let lists = !one.name.contains('/') && one.verbs.iter().any(|verb| verb == "list");
        lists.then(|| Resource {
            group: group.clone(),
            version: version.clone(),
            plural: one.name,
            kind: one.kind,
            namespaced: one.namespaced,
            short: std::iter::once(one.singular_name).chain(one.short_names.unwrap_or_default()).collect(),
        })
    })
}
