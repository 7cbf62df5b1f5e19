//! The rule that selects the refs with previews and names the previews.

use berth_base::text::fits;

const REFS: &str = "refs/";
const BRANCHES: &str = "refs/heads/";
/// The branches that berth writes itself.
const OWN: &str = "refs/heads/berth/";

/// Selects the refs that get a preview. Set by flags and environment only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviewRule {
    /// Full names of refs, in which `*` matches any text.
    patterns: Vec<String>,
    /// The maximum number of previews.
    most: usize,
}

impl PreviewRule {
    /// Reads patterns: short names for branches, full names for other refs.
    pub fn new(patterns: &[String], most: usize) -> PreviewRule {
        let full = |pattern: &String| match pattern.starts_with(REFS) {
            true => pattern.clone(),
            false => format!("{BRANCHES}{pattern}"),
        };
        PreviewRule { patterns: patterns.iter().map(full).collect(), most }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.patterns.is_empty()
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Returns the prefixes of all matching names. None of them is a prefix of another.
    pub(crate) fn prefixes(&self) -> Vec<&str> {
        let beginning = |pattern: &'_ str| pattern.find('*').map_or(pattern.len(), |star| star);
        let mut found: Vec<&str> = self.patterns.iter().map(|one| &one[..beginning(one)]).collect();
        found.sort_unstable();
        // In sorted order, names with a common prefix directly follow that prefix.
        found.dedup_by(|later, earlier| later.starts_with(*earlier));
        found
    }

    /// Returns the name of a ref's preview below the previews' prefix, if the ref gets one.
    pub(super) fn name<'n>(&self, full: &'n str) -> Option<&'n str> {
        let is_wanted = self.patterns.iter().any(|pattern| fits(pattern, full));
        let is_own = full.starts_with(OWN) || format!("{full}/") == OWN;
        let short = full.strip_prefix(BRANCHES).or_else(|| full.strip_prefix(REFS));
        short.filter(|short| is_wanted && !is_own && !short.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_get_previews_by_pattern_and_other_refs_by_their_full_names_alone() {
        let rule = |patterns: &[&str]| {
            PreviewRule::new(&patterns.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>(), 9)
        };
        let all = rule(&["*"]);
        for (full, name) in [
            ("refs/heads/fix", Some("fix")),
            ("refs/heads/team/fix", Some("team/fix")),
            ("refs/heads/berth/rendered", None),
            ("refs/heads/berth/preview/fix", None),
            ("refs/heads/berth", None),
            ("refs/heads/berthing", Some("berthing")),
            ("refs/pull/7/head", None),
            ("refs/berth/clusters/oslo", None),
        ] {
            assert_eq!(all.name(full), name, "{full}");
        }
        let some = rule(&["team/*", "hotfix", "refs/pull/*/head"]);
        assert_eq!(some.name("refs/heads/team/fix"), Some("team/fix"));
        assert_eq!(some.name("refs/heads/hotfix"), Some("hotfix"));
        assert_eq!(some.name("refs/heads/hotfixes"), None);
        assert_eq!(some.name("refs/pull/7/head"), Some("pull/7/head"));
        assert_eq!(some.name("refs/pull/7/merge"), None);
        assert_eq!(some.prefixes(), ["refs/heads/hotfix", "refs/heads/team/", "refs/pull/"]);
        assert_eq!(rule(&["a*", "a*b", "*"]).prefixes(), ["refs/heads/"]);
        assert!(rule(&[]).is_off());
    }
}
