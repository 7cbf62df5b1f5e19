//! Wakes the daemon when refs of a local repository move.
//!
//! Watches HEAD, packed-refs and refs/ only: objects/ would storm. Events are a hint and nothing
//! more, since network mounts give none and queues overflow: the daemon also polls, and compares ids.

use std::path::{Path, PathBuf};

use notify::{EventKind, RecursiveMode, Watcher as _};
use tokio::sync::mpsc::Sender;

/// Keeps watching while it lives.
#[derive(Debug)]
pub struct RefWatch {
    _watcher: notify::RecommendedWatcher,
}

/// Watches a repository's Git folder. A full channel already holds a wake, so a lost send loses nothing.
pub fn watch(git_folder: &Path, wake: Sender<()>) -> Result<RefWatch, notify::Error> {
    let root: PathBuf = git_folder.to_owned();
    let handler = {
        let root = root.clone();
        move |event: notify::Result<notify::Event>| {
            let relevant = match &event {
                Ok(event) => {
                    event.need_rescan()
                        || (is_write(event.kind) && event.paths.iter().any(|path| is_ref(&root, path)))
                }
                Err(_) => true,
            };
            if relevant {
                let _ = wake.try_send(());
            }
        }
    };
    let mut watcher = notify::recommended_watcher(handler)?;
    watcher.watch(&root, RecursiveMode::NonRecursive)?;
    watcher.watch(&root.join("refs"), RecursiveMode::Recursive)?;
    Ok(RefWatch { _watcher: watcher })
}

fn is_write(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(_))
}

fn is_ref(root: &Path, path: &Path) -> bool {
    let Ok(relative) = path.strip_prefix(root) else { return false };
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
        let root = Path::new("/r/.git");
        for path in ["/r/.git/refs/heads/main", "/r/.git/HEAD", "/r/.git/packed-refs"] {
            assert!(is_ref(root, Path::new(path)), "{path}");
        }
        for path in ["/r/.git/objects/ab/cd", "/r/.git/index", "/r/.git/refs/heads/main.lock", "/r/x.yaml"] {
            assert!(!is_ref(root, Path::new(path)), "{path}");
        }
    }
}
