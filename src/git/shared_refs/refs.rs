//! The names of berth's refs. The daemon's flags set them, never the fleet repository.

use super::statuses;
use berth_base::model::path;

/// Full ref names; prefixes end in a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refs {
    /// The state.
    pub rendered: String,
    /// The prefix of the clusters' folders, one ref per cluster.
    pub clusters: String,
    /// The prefix of the branches for clusters whose folder another program applies, one branch per cluster.
    pub cluster_branches: String,
    /// The prefix of the members' last reports, one ref per cluster.
    pub status: String,
    /// The ref that gathers the statuses sent by POST.
    pub statuses: String,
    /// The last processed source commit, and its outcome.
    pub processed: String,
    /// The fleet's live status.
    pub report: String,
    /// The lease of the daemon that publishes.
    pub leader: String,
    /// The prefix of previews: branches that show what merging another branch would publish.
    pub preview: String,
    /// The imported commit that the state began with. Written once.
    pub root: String,
}

impl Default for Refs {
    fn default() -> Refs {
        Refs {
            rendered: "refs/heads/berth/rendered".to_owned(),
            clusters: "refs/berth/clusters/".to_owned(),
            cluster_branches: "refs/heads/berth/clusters/".to_owned(),
            status: "refs/berth/status/".to_owned(),
            statuses: "refs/berth/statuses".to_owned(),
            processed: "refs/berth/processed".to_owned(),
            report: "refs/berth/report".to_owned(),
            leader: "refs/berth/leader".to_owned(),
            preview: "refs/heads/berth/preview/".to_owned(),
            root: "refs/berth/root".to_owned(),
        }
    }
}

impl Refs {
    pub fn cluster(&self, cluster: &str) -> String {
        format!("{}{}", self.clusters, path::ref_part(cluster))
    }

    /// Returns the full name of a cluster's branch.
    pub fn cluster_branch(&self, cluster: &str) -> String {
        format!("{}{}", self.cluster_branches, path::ref_part(cluster))
    }

    pub fn status_of(&self, cluster: &str) -> String {
        format!("{}{}", self.status, path::ref_part(cluster))
    }

    /// Returns the place of a cluster's gathered status, as `ref:path`.
    pub fn gathered_status_of(&self, cluster: &str) -> String {
        format!("{}:{}", self.statuses, statuses::path_of(cluster))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_becomes_a_valid_ref_of_its_own() {
        let long = "x".repeat(250);
        let names =
            ["eu-west", "x.lock", "x%2Elock", "a..b", "end.", ".hidden", "a/b", "@", "a~b", "", &long];
        let refs = Refs::default();
        let made: BTreeSet<String> = names.iter().map(|name| refs.cluster(name)).collect();
        assert_eq!(made.len(), names.len());
        for name in names.iter().filter(|name| !name.is_empty()) {
            assert!(crate::is_valid_ref(&refs.cluster(name)), "{name}: {}", refs.cluster(name));
        }
        assert_eq!(refs.cluster("eu-west.1"), "refs/berth/clusters/eu-west.1");
        assert_eq!(refs.status_of("x.lock"), "refs/berth/status/x%2Elock");
    }
}
