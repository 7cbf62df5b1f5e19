//! Tenants: the objects of a namespace are written as an account of that namespace.
//!
//! The syncer's flags name the account, never the folder: whoever could choose it there could choose a mightier
//! one. Berth reads with its own rights, and writes with the tenant's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::ClusterSession;
use super::api_client::{ApiClient, ApiRequest, each};
use super::failure::Failure;
use berth_base::model::ObjectId;

/// The account in each namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    pub account: String,
    /// True if objects without a namespace are written with berth's own rights instead of refused.
    pub cluster_scoped: bool,
}

/// The same, with what is known of the cluster.
#[derive(Clone, Debug)]
pub struct Tenants {
    tenant: Arc<Tenant>,
    /// Namespaces without such an account.
    without: Arc<BTreeSet<String>>,
    /// The last look for the account: when, and in which namespaces.
    looked: Option<(Instant, BTreeSet<String>)>,
}

/// The time for which that look counts.
const LOOK_GOOD_FOR: Duration = Duration::from_secs(30);

impl Tenants {
    pub fn new(tenant: Tenant) -> Tenants {
        Tenants { tenant: Arc::new(tenant), without: Arc::default(), looked: None }
    }

    /// Returns the account that makes a request. Berth itself does all the reading.
    pub fn user_for(&self, ask: &ApiRequest) -> Result<Option<String>, Failure> {
        let path = match ask {
            ApiRequest::Get { .. } | ApiRequest::List { .. } => return Ok(None),
            ApiRequest::Apply { path, .. }
            | ApiRequest::Merge { path, .. }
            | ApiRequest::Edit { path, .. }
            | ApiRequest::Delete { path, .. } => path,
        };
        let account = &self.tenant.account;
        match namespace_of(path) {
            None if self.tenant.cluster_scoped => Ok(None),
            None => Err(Failure::rule(
                "it has no namespace, so no tenant's account can write it; `--tenant-cluster-scoped` lets \
                 berth write it",
            )),
            Some(namespace) if self.without.contains(namespace) => Err(Failure::rule(format!(
                "the ServiceAccount {namespace}/{account}, which would write it, does not exist"
            ))),
            Some(namespace) => Ok(Some(format!("system:serviceaccount:{namespace}:{account}"))),
        }
    }
}

/// Returns the namespace in the path of a collection.
fn namespace_of(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/namespaces/")?;
    rest.split_once('/').map(|(namespace, _)| namespace)
}

impl ClusterSession {
    /// Returns the client that writes as the tenants' accounts, where there are any.
    pub fn acting(&self) -> ApiClient {
        self.api.acting(self.tenants.as_ref())
    }

    /// Looks now and then which namespaces have the account. A right outlives the account it was given to.
    pub async fn look_for_accounts(&mut self, ids: impl Iterator<Item = &ObjectId>) {
        let Some(tenants) = &self.tenants else { return };
        let namespaces: BTreeSet<String> =
            ids.map(|id| id.namespace.to_string()).filter(|namespace| !namespace.is_empty()).collect();
        let now = Instant::now();
        if tenants
            .looked
            .as_ref()
            .is_some_and(|(at, known)| now < *at + LOOK_GOOD_FOR && *known == namespaces)
        {
            return;
        }
        let tenant = tenants.tenant.clone();
        let (api, account) = (self.api.clone(), tenant.account.clone());
        let found = each(namespaces.iter().cloned().collect(), self.at_once, |namespace| {
            let (api, account) = (api.clone(), account.clone());
            async move {
                let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
                api.get(&path, &account).await
            }
        });
        // If the look-up failed, the server decides.
        let found = found.await;
        let is_without = |result: &Result<Option<Json>, Failure>| matches!(result, Ok(None));
        let without = namespaces.iter().zip(&found).filter(|(_, result)| is_without(result));
        let without: BTreeSet<String> = without.map(|(namespace, _)| namespace.clone()).collect();
        let looked = without.is_empty().then(|| (now, namespaces.clone()));
        self.tenants = Some(Tenants { tenant, without: Arc::new(without), looked });
    }
}

#[cfg(test)]
mod tests {
    use kube::api::DeleteParams;

    use super::*;

    #[test]
    fn each_namespace_is_written_by_its_own_account_and_nothing_else_is_written() {
        let mut tenants = Tenants::new(Tenant { account: "deployer".to_owned(), cluster_scoped: false });
        tenants.without = Arc::new(BTreeSet::from(["empty".to_owned()]));
        let user = |path: &str| {
            let (path, name) = (path.to_owned(), "x".to_owned());
            tenants.user_for(&ApiRequest::Delete { path, name, params: DeleteParams::default() })
        };
        let deployer = Ok(Some("system:serviceaccount:shop:deployer".to_owned()));
        assert_eq!(user("/api/v1/namespaces/shop/configmaps"), deployer);
        assert_eq!(user("/apis/apps/v1/namespaces/shop/deployments"), deployer);
        for path in ["/api/v1/namespaces", "/apis/a/v1/things", "/api/v1/namespaces/empty/configmaps"] {
            assert!(user(path).is_err(), "{path}");
        }
        assert_eq!(
            tenants
                .user_for(&ApiRequest::Get { path: "/api/v1/namespaces".to_owned(), name: "x".to_owned() }),
            Ok(None)
        );
    }
}
