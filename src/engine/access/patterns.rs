//! The patterns of access rules: folders, names and kinds of objects.
//!
//! `*` matches any text within a name or a part of a path, never a `/`. A folder includes all its files.

use berth_base::text::fits;

/// The API groups whose objects grant rights themselves: `*` in place of a kind does not match them.
const RIGHTS: [&str; 2] = ["rbac.authorization.k8s.io", "authorization.openshift.io"];
const RIGHTS_KINDS: [&str; 4] = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/// A folder of the repository, or one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Empty for the whole repository.
    parts: Vec<String>,
}

impl Folder {
    /// Reads a pattern. The error completes a sentence that begins with the pattern's text.
    pub fn new(text: &str) -> Result<Folder, &'static str> {
        if text == "/" {
            return Ok(Folder { parts: Vec::new() });
        }
        let inner = text.trim_start_matches("./").trim_matches('/');
        let parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
        if parts.iter().any(|part| part == "." || part == ".." || part.is_empty()) {
            return Err("is not a plain path below the root");
        }
        if parts.iter().any(|part| part.contains("**")) {
            return Err("holds `**`, but a folder already includes everything in it");
        }
        Ok(Folder { parts })
    }

    /// Reports whether the folder contains a file.
    pub fn covers(&self, path: &str) -> bool {
        let mut of_path = path.split('/');
        self.parts.iter().all(|pattern| of_path.next().is_some_and(|part| fits(pattern, part)))
    }
}

/// Names, each as a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl Names {
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
        Names(names.into_iter().map(str::to_owned).collect())
    }

    pub fn every() -> Names {
        Names::of(["*"])
    }

    pub fn hold(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| fits(pattern, name))
    }

    /// Reports whether the patterns match every name.
    pub(crate) fn hold_every(&self) -> bool {
        self.0.iter().any(|pattern| pattern == "*")
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Kinds of objects: `Kind` of any group, `Kind.group`, `*.group`, or `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds(Vec<String>);

impl Kinds {
    pub fn of<'a>(kinds: impl IntoIterator<Item = &'a str>) -> Kinds {
        Kinds(kinds.into_iter().map(str::to_owned).collect())
    }

    pub fn every() -> Kinds {
        Kinds::of(["*"])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports whether the patterns match a kind. `group` is `None` where it is unknown.
    pub fn hold(&self, group: Option<&str>, kind: &str) -> bool {
        let gives_rights = match group {
            Some(group) => RIGHTS.contains(&group),
            None => RIGHTS_KINDS.contains(&kind),
        };
        self.0.iter().any(|pattern| {
            let (of_kind, of_group) = match pattern.split_once('.') {
                Some((of_kind, of_group)) => (of_kind, Some(of_group)),
                None => (pattern.as_str(), None),
            };
            let is_named = of_kind == kind || of_group.is_some_and(|group| RIGHTS.contains(&group));
            fits(of_kind, kind)
                && of_group.is_none_or(|pattern| group.is_some_and(|group| fits(pattern, group)))
                && (is_named || !gives_rights)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_all_that_is_in_it_and_nothing_that_only_begins_alike() {
        let covers = |folder: &str, path: &str| Folder::new(folder).expect("a folder").covers(path);
        assert!(covers("teams/a", "teams/a/x.yaml") && covers("teams/a/", "teams/a/b/x.yaml"));
        assert!(
            covers("teams/*/net", "teams/b/net/x.yaml")
                && covers("/", "x.yaml")
                && covers("x.yaml", "x.yaml")
        );
        assert!(!covers("teams/a", "teams/ab/x.yaml") && !covers("teams/*", "teams.yaml"));
        assert!(!covers("teams/a", "other/teams/a/x.yaml") && !covers("a/b", "a"));
        for odd in ["", "..", "a/../b", "a//b", "a/**", "./"] {
            assert!(Folder::new(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn kinds_that_give_rights_are_named_or_not_meant() {
        let hold = |pattern: &str, group: &str, kind: &str| Kinds::of([pattern]).hold(Some(group), kind);
        assert!(hold("*", "apps", "Deployment") && hold("Deployment", "apps", "Deployment"));
        assert!(hold("*.apps", "apps", "Deployment") && !hold("*.apps", "", "ConfigMap"));
        for group in RIGHTS {
            assert!(!hold("*", group, "Role") && !hold("R*", group, "Role") && !hold("*.*", group, "Role"));
            assert!(hold("Role", group, "Role") && hold(&format!("*.{group}"), group, "Role"), "{group}");
        }
        assert!(
            !Kinds::every().hold(None, "ClusterRole") && Kinds::of(["ClusterRole"]).hold(None, "ClusterRole")
        );
    }
}
