//! The connection to a cluster: its settings, the client, the kinds that the server serves, and the accounts
//! that write.
//!
//! Tenants: berth writes a namespace's objects as an account of that namespace. The syncer's flags name the
//! account, never the folder, whose authors could choose a mightier account. Berth reads with its own rights,
//! and writes with the tenant's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::api_client::ApiClient;
use super::drift::DriftMode;
use super::failure::Failure;
use super::kinds::ServedKinds;
use crate::live::concurrency::each;
use crate::live::{Access, LiveError};
use crate::sync::desired::Desired;
use crate::sync::health::custom::HealthRules;
use crate::sync::local_overrides::OverrideObjects;
use berth_base::model::ObjectId;
use berth_base::model::object::version_of;
use berth_lease::Lease;

/// The connection to one cluster.
pub struct Connection {
    pub api: ApiClient,
    pub kinds: ServedKinds,
    /// The number of concurrent requests.
    pub at_once: usize,
    tenants: Option<Tenants>,
    /// True if the credentials were read again since the last [`Connection::take_renewed`].
    is_renewed: bool,
}

impl Connection {
    pub fn new(api: ApiClient, at_once: usize, tenant: Option<Tenant>) -> Connection {
        let tenants = tenant.map(Tenants::new);
        Connection { api, kinds: ServedKinds::default(), at_once, tenants, is_renewed: false }
    }

    /// Reads the credentials again: those of a pod change while it runs.
    pub(crate) async fn reconnect(&mut self) -> Result<(), LiveError> {
        self.api.server.reconnect().await?;
        self.is_renewed = true;
        Ok(())
    }

    /// Reports once that the credentials were read again.
    pub(crate) fn take_renewed(&mut self) -> bool {
        std::mem::take(&mut self.is_renewed)
    }

    /// Returns the client that writes as the tenants' accounts, if there are tenants.
    pub fn acting(&self) -> ApiClient {
        self.api.acting(self.tenants.as_ref())
    }

    /// Asks for the served kinds, the first time and whenever a wanted or owned kind is unknown.
    pub(crate) async fn know_kinds<'a>(
        &mut self,
        mut desired: impl Iterator<Item = &'a Desired>,
        mut owned: impl Iterator<Item = &'a String>,
    ) -> Result<(), Failure> {
        let lacks_owned = owned.any(|name| !self.kinds.serves(name));
        if self.kinds.is_empty() || lacks_owned || desired.any(|object| !self.is_served(object)) {
            self.ask_kinds().await?;
        }
        Ok(())
    }

    pub(crate) async fn ask_kinds(&mut self) -> Result<(), Failure> {
        self.kinds = ServedKinds::ask(&self.api.server.client).await?;
        Ok(())
    }

    fn is_served(&self, object: &Desired) -> bool {
        let (id, version) = (&object.id, version_of(object.api_version()));
        self.kinds.version(&id.group, &id.kind, version).is_some()
    }

    /// Returns the path of a wanted object's collection.
    pub fn path_of(&self, object: &Desired) -> Result<String, Failure> {
        let version = object.api_version();
        match self.kinds.version(&object.id.group, &object.id.kind, version_of(version)) {
            Some(served) => served.place_of(&object.id),
            None => Err(Failure::rule(format!(
                "the cluster does not serve {} of {version}; it is applied once it does",
                object.id.kind
            ))),
        }
    }

    /// Checks from time to time which namespaces lack the account. A right outlives the account that it was granted
    /// to.
    pub(crate) async fn look_for_accounts(&mut self, ids: impl Iterator<Item = &ObjectId>) {
        let Some(tenants) = &mut self.tenants else { return };
        let namespaces: BTreeSet<String> =
            ids.map(|id| id.namespace.to_string()).filter(|namespace| !namespace.is_empty()).collect();
        let now = Instant::now();
        if tenants.has_looked(&namespaces) {
            return;
        }
        let (api, account) = (&self.api, tenants.account());
        let look = async |namespace: &String| {
            api.get(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), account).await
        };
        // If the look-up fails, the server decides at the write.
        let found = each(self.at_once, namespaces.iter().map(look)).await;
        let is_without = |result: &Result<Option<Json>, Failure>| matches!(result, Ok(None));
        let without = namespaces.iter().zip(&found).filter(|(_, result)| is_without(result));
        let without = without.map(|(namespace, _)| namespace.clone()).collect();
        tenants.note_look(now, namespaces, without);
    }
}

/// The settings of a Kubernetes backend.
#[derive(Clone, Debug)]
pub struct Settings {
    pub access: Access,
    pub fleet: String,
    /// The namespace of the parent object.
    pub namespace: String,
    /// The number of concurrent requests.
    pub at_once: usize,
    /// The time an object may take to become healthy.
    pub deadline: Duration,
    /// The user's rules for the health of other kinds.
    pub rules: Arc<HealthRules>,
    /// The silence after which a watch counts as lost.
    pub silence: Duration,
    /// `None`: two syncers can write at the same time.
    pub lease: Option<Lease>,
    /// The account that writes the objects of a namespace; berth's own if unset.
    pub tenant: Option<Tenant>,
    /// Namespaces that are never removed; a name that ends with `*` is a prefix.
    pub protected: Vec<String>,
    /// The objects of berth's namespace that contain local overrides.
    pub overrides_from: Vec<OverrideObjects>,
    /// Writes Events about syncs.
    pub events: bool,
    /// Tries every object that may differ from its wanted form. For commands that write nothing and show the server's
    /// answers.
    pub only_tries: bool,
    /// The treatment of drift, unless an object's annotation sets it.
    pub drift: DriftMode,
}

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
    fn has_looked(&self, namespaces: &BTreeSet<String>) -> bool {
        self.looked.as_ref().is_some_and(|(at, known)| at.elapsed() < LOOK_GOOD_FOR && known == namespaces)
    }

    /// Records which of these namespaces lack the account.
    fn note_look(&mut self, at: Instant, namespaces: BTreeSet<String>, without: BTreeSet<String>) {
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
