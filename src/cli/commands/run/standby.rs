//! The flags of a daemon that is one of several: the place of their lease.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use crate::flags::remote::RemoteArgs;
use crate::process::exit::{CommandError, Exit};
use berth_base::meta::names::{is_dns_label, is_dns_subdomain};
use berth_git::Identity;
use berth_git::protocol::Refs;
use berth_hub::daemon::{LeaseRef, Standby, lease_within};
use berth_member::cluster_lease::ClusterLease;
use berth_member::live::Access;

/// The standby of daemons
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Standby")]
pub(crate) struct StandbyArgs {
    /// Publish only while this daemon has the lease, so that of several one works: `git` for `refs/berth/leader` of the remote, or a Kubernetes Lease, as `lease/NAMESPACE/NAME`. `--once` asks for none
    #[arg(long, value_name = "LEASE", env = "BERTH_STANDBY")]
    standby: Option<LeasePlace>,
    /// Seconds within which another daemon takes over from one that no longer renews the lease
    #[arg(long, value_name = "SECONDS", default_value_t = 60, env = "BERTH_LEASE_DURATION", value_parser = clap::value_parser!(u64).range(4..=3600))]
    lease_duration: u64,
}

/// The place of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LeasePlace {
    Remote,
    Cluster { namespace: String, name: String },
}

impl FromStr for LeasePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<LeasePlace, String> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            ["git"] => Ok(LeasePlace::Remote),
            ["lease", namespace, name] if is_dns_label(namespace) && is_dns_subdomain(name) => {
                Ok(LeasePlace::Cluster { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("write it as `git` or `lease/NAMESPACE/NAME`".to_owned()),
        }
    }
}

impl StandbyArgs {
    /// Opens the place of the lease, if this daemon is one of several. `copy` is the working copy of the remote, and
    /// `access` is for the cluster with the Lease.
    pub fn open(
        &self,
        remote: &RemoteArgs,
        copy: Option<&Path>,
        identity: &Identity,
        access: Access,
    ) -> Result<Option<Standby>, CommandError> {
        let Some(place) = &self.standby else { return Ok(None) };
        let Some(copy) = copy else {
            let error = CommandError::usage("`--standby` needs a remote, which the daemons share");
            return Err(error.hint("name it with `--remote`"));
        };
        let lease = lease_within(Duration::from_secs(self.lease_duration));
        let standby = match place {
            LeasePlace::Remote => {
                let (transport, copy) = remote.open_beside(copy, "lease", lease.patience())?;
                let name = Refs::default().leader;
                Standby::new(LeaseRef::new(Box::new(transport), copy, &name, identity.clone()), lease)
            }
            LeasePlace::Cluster { namespace, name } => {
                let store = ClusterLease::connect(&access, namespace, name, lease.patience());
                let store = store.map_err(|error| {
                    let failed = CommandError::new(Exit::Unreachable, error.to_string());
                    error.hint().into_iter().fold(failed, CommandError::hint)
                })?;
                Standby::new(store, lease)
            }
        };
        Ok(Some(standby))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_in_git_or_has_a_namespace_and_a_name() {
        assert_eq!("git".parse(), Ok(LeasePlace::Remote));
        let (namespace, name) = ("berth-hub".to_owned(), "berth-hub".to_owned());
        assert_eq!("lease/berth-hub/berth-hub".parse(), Ok(LeasePlace::Cluster { namespace, name }));
        for bad in ["", "Git", "lease", "lease/a", "lease/a/B", "lease//b", "lease/a/b/c", "git/a/b"] {
            assert!(bad.parse::<LeasePlace>().is_err(), "{bad}");
        }
    }
}
