//! Tenants: berth writes a namespace's objects as an account of that namespace.
//!
//! The syncer's flags name the account, never the folder, whose authors could choose a mightier account. Berth reads
//! with its own rights, and writes with the tenant's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::failure::Failure;

/// The setting for tenants' accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    pub account: String,
    /// True if objects without a namespace are written with berth's own rights instead of refused.
    pub cluster_scoped: bool,
}

/// The setting, with the knowledge of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Tenants {
    tenant: Arc<Tenant>,
    /// Namespaces without such an account.
    without: Arc<BTreeSet<String>>,
    /// The moment and the namespaces of the last look-up of accounts.
    looked: Option<(Instant, BTreeSet<String>)>,
}

/// The time for which that look-up is valid.
const LOOK_GOOD_FOR: Duration = Duration::from_secs(30);

impl Tenants {
    pub fn new(tenant: Tenant) -> Tenants {
        Tenants { tenant: Arc::new(tenant), without: Arc::default(), looked: None }
    }

    /// Returns the account that writes to a collection. Berth itself reads.
    pub(crate) fn user_for(&self, path: &str) -> Result<Option<String>, Failure> {
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

    pub fn account(&self) -> &str {
        &self.tenant.account
    }

    /// Reports whether these namespaces were checked lately, and all have the account.
    pub(crate) fn has_looked(&self, namespaces: &BTreeSet<String>) -> bool {
        self.looked.as_ref().is_some_and(|(at, known)| at.elapsed() < LOOK_GOOD_FOR && known == namespaces)
    }

    /// Records which of these namespaces lack the account.
    pub(crate) fn note_look(&mut self, at: Instant, namespaces: BTreeSet<String>, without: BTreeSet<String>) {
        self.looked = without.is_empty().then_some((at, namespaces));
        self.without = Arc::new(without);
    }
}

/// Returns the namespace in the path of a collection.
fn namespace_of(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/namespaces/")?;
    rest.split_once('/').map(|(namespace, _)| namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_is_written_by_its_own_account_and_nothing_else_is_written() {
        let mut tenants = Tenants::new(Tenant { account: "deployer".to_owned(), cluster_scoped: false });
        tenants.without = Arc::new(BTreeSet::from(["empty".to_owned()]));
        let user = |path: &str| tenants.user_for(path);
        let deployer = Ok(Some("system:serviceaccount:shop:deployer".to_owned()));
        assert_eq!(user("/api/v1/namespaces/shop/configmaps"), deployer);
        assert_eq!(user("/apis/apps/v1/namespaces/shop/deployments"), deployer);
        for path in ["/api/v1/namespaces", "/apis/a/v1/things", "/api/v1/namespaces/empty/configmaps"] {
            assert!(user(path).is_err(), "{path}");
        }
    }
}
