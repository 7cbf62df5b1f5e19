//! The rights of an account in a cluster, as its API server reports them. Asking changes nothing.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview};
use kube::api::{Api, PostParams};

use super::concurrency::each;
use super::{Cluster, LiveError};

/// The number of concurrent questions.
const AT_ONCE: usize = 4;

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
        self.session.runtime.block_on(each(AT_ONCE, questions.iter().map(|one| self.has_right(one))))
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
