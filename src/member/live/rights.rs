//! The rights of an account in a cluster, as its API server tells them. Asking changes nothing.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview};
use kube::api::{Api, PostParams};

use super::access::connect_member;
use super::concurrency::each;
use super::error::of_kube;
use super::{Access, LiveError};

/// The number of questions that are asked at once.
const AT_ONCE: usize = 4;

/// A question: whether the account may do this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RightQuestion {
    pub verb: &'static str,
    pub group: String,
    /// The kind's plural, for a part of its objects with that part: `clusterprofiles/status`.
    pub resource: String,
    /// `None`: in all namespaces.
    pub namespace: Option<String>,
    /// `None`: with all objects.
    pub name: Option<String>,
}

/// Asks an API server all questions.
pub fn ask(access: &Access, questions: &[RightQuestion]) -> Vec<Result<bool, LiveError>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| LiveError::Start(error.to_string()));
    let asked = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let (client, server) = connect_member(access).await?;
            let reviews: Api<SelfSubjectAccessReview> = Api::all(client);
            Ok(each(AT_ONCE, questions.iter().map(|one| answer(&reviews, &server, access, one))).await)
        })
    });
    asked.unwrap_or_else(|error| questions.iter().map(|_| Err(error.clone())).collect())
}

async fn answer(
    reviews: &Api<SelfSubjectAccessReview>,
    server: &str,
    access: &Access,
    question: &RightQuestion,
) -> Result<bool, LiveError> {
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
    let params = PostParams::default();
    let what = "the account's rights";
    let answered = tokio::time::timeout(access.patience, reviews.create(&params, &review)).await;
    let answered = answered.map_err(|_| LiveError::Late {
        server: server.to_owned(),
        what: what.to_owned(),
        seconds: access.patience.as_secs(),
    })?;
    let answered = answered.map_err(|error| of_kube(&error, server, what, "create"))?;
    Ok(answered.status.is_some_and(|status| status.allowed))
}
