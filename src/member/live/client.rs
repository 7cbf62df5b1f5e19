//! A connected cluster: lists objects in pages, several lists at once, each within a time limit.
//!
//! It answers for an account's rights too, as its API server reports them. Asking changes nothing.

use std::collections::BTreeSet;
use std::future::Future;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use kube::api::{Api, ListParams, PostParams};
use kube::core::Request;
use serde_json::{Map, Value as Json};

use super::concurrency::each;
use super::kubeconfig::Access;
use super::resource::{Query, Resource};
use super::session::ApiSession;
use super::{Host, LiveError};
use berth_base::progress::Progress;

/// The number of objects per page, as in kubectl.
const PAGE: u32 = 500;

/// The number of concurrent requests.
const AT_ONCE: usize = 8;

/// The number of attempts at a list whose continuation the server has forgotten.
const ATTEMPTS: usize = 3;

/// A connection to one API server.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) session: ApiSession,
    progress: Progress,
}

impl Host for Cluster {
    fn server(&self) -> &str {
        &self.session.server.address
    }

    fn groups(&self) -> Result<BTreeSet<String>, LiveError> {
        let groups = self.session.runtime.block_on(self.api_groups())?;
        Ok(groups.into_iter().map(|group| group.name).chain([String::new()]).collect())
    }

    fn resources(&self) -> Result<Vec<Resource>, LiveError> {
        self.session.runtime.block_on(self.listable_resources())
    }

    fn list(&self, queries: &[Query]) -> Vec<Result<Vec<Json>, LiveError>> {
        self.session.runtime.block_on(each(AT_ONCE, queries.iter().map(|query| self.list_all(query))))
    }
}

impl Cluster {
    /// Reads the kubeconfig. The first request shows whether the server answers.
    pub fn connect(access: &Access) -> Result<Cluster, LiveError> {
        Ok(Cluster { session: ApiSession::open_kubeconfig(access)?, progress: Progress::default() })
    }

    /// Connects a process that may run in the cluster: without a kubeconfig, it uses its pod's credentials.
    pub fn connect_pod(access: &Access) -> Result<Cluster, LiveError> {
        Ok(Cluster { session: ApiSession::open(access)?, progress: Progress::default() })
    }

    /// Reports the number of arrived objects to `progress`.
    #[must_use]
    pub fn watched(self, progress: &Progress) -> Cluster {
        Cluster { progress: progress.clone(), ..self }
    }

    /// Returns an answer within the time limit, or the reason why there is none.
    pub(super) async fn within<T>(
        &self,
        what: &str,
        verb: &str,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LiveError> {
        let server = &self.session.server;
        server.within(what, answer).await?.map_err(|error| server.explain(&error, what, verb))
    }

    async fn api_groups(&self) -> Result<Vec<APIGroup>, LiveError> {
        let list = self.session.server.client.list_api_groups();
        Ok(self.within("the API groups", "list", list).await?.groups)
    }

    async fn listable_resources(&self) -> Result<Vec<Resource>, LiveError> {
        let preferred = self.api_groups().await?.into_iter().filter_map(|group| {
            let first = group.preferred_version.or_else(|| group.versions.into_iter().next())?;
            Some(first.group_version)
        });
        // Each name becomes a part of a request's path.
        let is_version = |version: &String| {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            Resource::new(group, version, "any", "", false).fault().is_none()
        };
        let versions: Vec<String> =
            ["v1".to_owned()].into_iter().chain(preferred.filter(is_version)).collect();
        let client = &self.session.server.client;
        let list = async |version: &String| {
            let what = format!("the resources of `{version}`");
            if version == "v1" {
                self.within(&what, "list", client.list_core_api_resources(version)).await
            } else {
                self.within(&what, "list", client.list_api_group_resources(version)).await
            }
        };
        let lists = each(AT_ONCE, versions.iter().map(list)).await;
        let mut found = Vec::new();
        for (version, list) in versions.iter().zip(lists) {
            match list {
                Ok(list) => found.extend(listable(version, list)),
                // An aggregated API whose server is down only makes its own group unavailable.
                Err(error) if !error.is_final() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Returns all pages of one list, sorted.
    async fn list_all(&self, query: &Query) -> Result<Vec<Json>, LiveError> {
        let mut attempt = 1;
        loop {
            match self.pages(query).await {
                // The server keeps a continuation only for some minutes.
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
            let page =
                self.within(&what, "list", self.session.server.client.request::<Json>(request)).await?;
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
        // A name with a slash is a subresource.
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

/// The number of concurrent questions.
const QUESTIONS_AT_ONCE: usize = 4;

/// A right to ask about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RightQuestion {
    pub verb: &'static str,
    pub group: String,
    /// The kind's plural, with a subresource if the right is about that: `clusterprofiles/status`.
    pub resource: String,
    /// `None`: in all namespaces.
    pub namespace: Option<String>,
    /// `None`: with all objects.
    pub name: Option<String>,
}

impl Cluster {
    /// Asks the API server about all rights.
    pub fn ask_rights(&self, questions: &[RightQuestion]) -> Vec<Result<bool, LiveError>> {
        self.session
            .runtime
            .block_on(each(QUESTIONS_AT_ONCE, questions.iter().map(|one| self.has_right(one))))
    }

    async fn has_right(&self, question: &RightQuestion) -> Result<bool, LiveError> {
        let (resource, part) = match question.resource.split_once('/') {
            Some((resource, part)) => (resource.to_owned(), Some(part.to_owned())),
            None => (question.resource.clone(), None),
        };
        let mut review = SelfSubjectAccessReview::default();
        review.spec.resource_attributes = Some(ResourceAttributes {
            verb: Some(question.verb.to_owned()),
            group: Some(question.group.clone()),
            resource: Some(resource),
            subresource: part,
            namespace: question.namespace.clone(),
            name: question.name.clone(),
            ..ResourceAttributes::default()
        });
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.session.server.client.clone());
        let params = PostParams::default();
        let answer = self.within("the account's rights", "create", reviews.create(&params, &review)).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}
