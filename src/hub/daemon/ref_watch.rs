//! Wakes the daemon when refs of a local repository move.
//!
//! A linked work tree has its own HEAD and shares all other refs with its repository. Watches only HEAD, packed-refs
//! and refs/: objects/ changes too often. Events are only hints, since network mounts send none and queues overflow:
//! the daemon also polls and compares ids.

use std::path::{Path, PathBuf};

use notify::{EventKind, RecursiveMode, Watcher as _};
use tokio::sync::mpsc::Sender;

/// A watch on refs, until dropped.
#[derive(Debug)]
pub(crate) struct RefWatch {
    _watcher: notify::RecommendedWatcher,
}

/// Watches a repository's Git folder and the folder that its work trees share, mostly the same one. A full channel
/// already contains a wake, so a failed send loses nothing.
pub fn watch(git_folder: &Path, shared: &Path, wake: Sender<()>) -> Result<RefWatch, notify::Error> {
    let roots: Vec<PathBuf> = if git_folder == shared {
        vec![shared.to_owned()]
    } else {
        vec![shared.to_owned(), git_folder.to_owned()]
    };
    let handler = {
        let roots = roots.clone();
        move |event: notify::Result<notify::Event>| {
            let relevant = match &event {
                Ok(event) => {
                    event.need_rescan()
                        || (is_write(event.kind) && event.paths.iter().any(|path| is_ref(&roots, path)))
                }
                Err(_) => true,
            };
            if relevant {
                let _ = wake.try_send(());
            }
        }
    };
    let mut watcher = notify::recommended_watcher(handler)?;
    for root in &roots {
        watcher.watch(root, RecursiveMode::NonRecursive)?;
    }
    watcher.watch(&shared.join("refs"), RecursiveMode::Recursive)?;
    Ok(RefWatch { _watcher: watcher })
}

fn is_write(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(_))
}

fn is_ref(roots: &[PathBuf], path: &Path) -> bool {
    roots.iter().filter_map(|root| path.strip_prefix(root).ok()).any(|relative| is_ref_in_it(relative, path))
}

fn is_ref_in_it(relative: &Path, path: &Path) -> bool {
    let is_lock = path.extension().is_some_and(|extension| extension == "lock");
    !is_lock
        && (relative.starts_with("refs")
            || relative == Path::new("HEAD")
            || relative == Path::new("packed-refs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refs_wake() {
        let roots = [PathBuf::from("/r/.git"), PathBuf::from("/r/.git/worktrees/w")];
        for path in
            ["/r/.git/refs/heads/main", "/r/.git/HEAD", "/r/.git/packed-refs", "/r/.git/worktrees/w/HEAD"]
        {
            assert!(is_ref(&roots, Path::new(path)), "{path}");
        }
        for path in ["/r/.git/objects/ab/cd", "/r/.git/index", "/r/.git/refs/heads/main.lock", "/r/x.yaml"] {
            assert!(!is_ref(&roots, Path::new(path)), "{path}");
        }
    }
}
