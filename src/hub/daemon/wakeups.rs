//! Wakes the daemon when refs of a local repository move, and on signals, which stop the process or request a
//! look at the refs.
//!
//! A linked work tree has its own HEAD and shares all other refs with its repository. Watches only HEAD,
//! packed-refs and refs/: objects/ changes too often. Events are only hints, since network mounts send none
//! and queues overflow: the daemon also polls and compares ids.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{EventKind, RecursiveMode, Watcher as _};
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;

/// A watch on refs, until dropped.
#[derive(Debug)]
pub(crate) struct RefWatch {
    _watcher: notify::RecommendedWatcher,
}

/// Watches a repository's Git folder and the folder that its work trees share, mostly the same one. A full channel
/// already contains a wake, so a failed send loses nothing.
pub fn watch_refs(git_folder: &Path, shared: &Path, wake: Sender<()>) -> Result<RefWatch, notify::Error> {
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

/// SIGTERM and SIGINT.
struct StopSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    #[cfg(unix)]
    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }

    #[cfg(not(unix))]
    async fn received(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// A request to stop, shared by everything in the process.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for signals as long as the process runs.
    pub fn on_signals() -> std::io::Result<Stop> {
        let (stop, stopped) = watch::channel(false);
        on_stop(move || {
            let _ = stop.send(true);
        })?;
        Ok(Stop(stopped))
    }

    pub(super) async fn received(&mut self) {
        let _ = self.0.wait_for(|stop| *stop).await;
    }

    /// Waits, at most for `time`. Returns true if asked to stop.
    pub fn within(&mut self, time: Duration) -> std::io::Result<bool> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(runtime.block_on(async { tokio::time::timeout(time, self.received()).await.is_ok() }))
    }
}

/// SIGHUP, on systems that have it.
pub(super) struct Hangup {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangup {
    pub fn new() -> std::io::Result<Hangup> {
        Ok(Hangup {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    #[cfg(unix)]
    pub async fn received(&mut self) {
        let _ = self.signal.recv().await;
    }

    #[cfg(not(unix))]
    pub async fn received(&mut self) {
        std::future::pending().await
    }
}

/// Calls back once when the process is asked to stop. For loops outside of this daemon.
pub fn on_stop(stop: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        StopSignals::new()?
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(signals.received());
        stop();
    })?;
    Ok(())
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
