//! The signals that stop the process, and the one that requests a look at the refs.

use std::time::Duration;

use tokio::sync::watch;

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
