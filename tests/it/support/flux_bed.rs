//! A fleet with a cluster that the real Flux applies.

use std::ops::Deref;

use super::Repo;
use super::flux::Flux;
use super::kube::{ControlPlane, Wanted};
use super::remote::PASSWORD;
use super::site::Site;

/// A site with Flux.
pub struct Bed {
    site: Site,
    pub flux: Flux,
}

impl Deref for Bed {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

impl Bed {
    pub fn of(people: Repo) -> Option<Bed> {
        let controllers = Flux::made()?;
        let plane = ControlPlane::start(Wanted::SERVER_ONLY)?;
        let flux = Flux::start(&controllers, &plane);
        Some(Bed { site: Site::of(people, plane, "flux")?, flux })
    }

    /// Gives Flux the credentials, and what `berth join` writes for it.
    pub fn join(&self, more: &[&str]) {
        let ca = format!("--from-file=ca.crt={}", self.fleet.root().join("cert.pem").display());
        let (user, password) = ("--from-literal=username=ann", format!("--from-literal=password={PASSWORD}"));
        self.kubectl(&["create", "secret", "generic", "pull", "-n", "flux-system", &ca, user, &password])
            .expect(0);
        self.site.join(&[&["--source-interval", "1s"][..], more].concat());
    }

    /// The commit that Flux should be at.
    pub fn revision(&self) -> String {
        format!(
            "berth/clusters/oslo@sha1:{}",
            self.fleet.bare(&["rev-parse", "refs/heads/berth/clusters/oslo"])
        )
    }
}
