//! Reads the arguments of every process of this machine, again and again, in search of a secret.

use crate::support::wait::pause;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Looks for as long as it lives.
pub struct Spy {
    stop: Arc<AtomicBool>,
    looking: Option<JoinHandle<(usize, Vec<String>)>>,
}

impl Spy {
    /// Looks for any of these in processes whose arguments hold all of `among`; servers have to know the secret.
    pub fn start(secrets: &[&str]) -> Spy {
        let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let looking = std::thread::spawn(move || {
            let (mut seen, mut found) = (0, Vec::new());
            while !stopped.load(Ordering::SeqCst) {
                for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
                    let Ok(bytes) = std::fs::read(process.path().join("cmdline")) else { continue };
                    let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
                    seen += usize::from(line.contains("git-remote-https") || line.contains("git fetch"));
                    let is_server = line.contains("https_server.py");
                    if !is_server && secrets.iter().any(|secret| line.contains(secret)) {
                        found.push(line);
                    }
                }
                pause(std::time::Duration::from_millis(2), "a look at all processes, again and again");
            }
            (seen, found)
        });
        Spy { stop, looking: Some(looking) }
    }

    /// How often a git of berth's was seen, and every line with a secret.
    pub fn finish(mut self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::SeqCst);
        self.looking.take().expect("it looks").join().expect("it ends")
    }
}
