//! The connection to a cluster: the client, the kinds that the server serves, and the accounts that write.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::Value as Json;

use super::api_client::ApiClient;
use super::failure::Failure;
use super::served_kinds::ServedKinds;
use super::tenant::{Tenant, Tenants};
use crate::live::LiveError;
use crate::live::concurrency::each;
use crate::sync::desired::Desired;
use berth_base::model::ObjectId;
use berth_base::model::object::version_of;

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
