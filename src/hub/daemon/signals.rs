//! The signals that ask the process to stop, and the one that asks it to look.

/// SIGTERM and SIGINT.
pub(super) struct StopSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl StopSignals {
    pub fn new() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    #[cfg(unix)]
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }

    #[cfg(not(unix))]
    pub async fn received(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// SIGHUP, where there is one.
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

/// Calls back once when the process is asked to stop; for loops that are not this daemon's.
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
