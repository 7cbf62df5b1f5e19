//! A fleet that is published to a registry, and members that follow it.

use std::process::Command;

use super::super::remote::{Fleet, Folder};
use super::super::{Ran, berth};

/// A fleet whose Git repository is a folder of this machine.
pub struct Shop {
    pub fleet: Fleet,
    git: Folder,
}

impl Shop {
    pub fn new() -> Shop {
        Shop::of(Fleet::new())
    }

    pub fn of(fleet: Fleet) -> Shop {
        let git = Folder::of(&fleet);
        Shop { fleet, git }
    }

    /// `berth run --once --publish`.
    pub fn publish(&self, url: &str, more: &[&str]) -> Ran {
        let mut all = vec!["--publish", url];
        all.extend(more);
        self.fleet.run_once(&self.git, &all)
    }

    /// The same, not yet started.
    pub fn publishing(&self, url: &str) -> Command {
        let mut command = berth();
        command.args(["run", "--once", "--publish", url, "--repo"]);
        command.arg(self.fleet.root().join("copies/run")).arg("--remote").arg(self.fleet.bare_path());
        command
    }

    /// `berth sync --once --remote oci://…` of a cluster.
    pub fn sync(&self, cluster: &str, url: &str, more: &[&str]) -> Ran {
        Ran::of(self.syncing(cluster, url).arg("--once").args(more))
    }

    /// The same, not yet started.
    pub fn syncing(&self, cluster: &str, url: &str) -> Command {
        let mut command = berth();
        command.args(["sync", "--cluster", cluster, "--remote", url, "--repo"]);
        command.arg(self.fleet.root().join("copies").join(format!("oci-{cluster}")));
        command.arg("--target").arg(format!("dir:{}", self.fleet.target(cluster).display()));
        command
    }
}
