//! The allowed forms of paths in a layer.

/// The most parts of a path. A cluster's folder has two.
const DEEPEST: usize = 16;
/// The longest path. Berth writes none so long.
pub(super) const LONGEST_PATH: usize = 4_096;

/// Reports whether a path stays in its folder when any program unpacks it.
pub(super) fn is_fit(path: &str) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    path.len() <= LONGEST_PATH
        && path.split('/').count() <= DEEPEST
        && path.split('/').all(is_part)
        && !path.contains(['\0', '\\'])
}

/// Returns the folders above a path, the outermost first.
pub(super) fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_its_folder() {
        for fine in ["a", "a/b.yaml", "a/..b", "_cluster/Namespace_x.yaml", "a/%2E%2E"] {
            assert!(is_fit(fine), "{fine}");
        }
        let deep = ["a"; 17].join("/");
        let long = "a".repeat(5_000);
        for wrong in ["", "/a", "a/", "../a", "a/../b", "./a", "a//b", "a\\..\\b", "a\0b", &deep, &long] {
            assert!(!is_fit(wrong), "{wrong}");
        }
        assert_eq!(folders_above("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
