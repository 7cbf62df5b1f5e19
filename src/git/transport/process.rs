//! Runs a program until it ends, its time is up, or berth is asked to stop.
//!
//! The program leads its own process group, so its helpers end with it. The group first gets a request to end, so
//! that it can remove its locks, and is killed if it does not. Output is kept up to a limit: a remote that never
//! stops sending fills no memory.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::TransportError;
use super::sandbox::{self, Bounds};

/// Asks all running and later programs to stop.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The end of a program.
#[derive(Debug)]
pub(crate) enum ProcessEnd {
    Done {
        status: ExitStatus,
        out: Vec<u8>,
        err: Vec<u8>,
    },
    TimedOut,
    Cancelled,
    /// The program printed more than any answer holds.
    TooMuch,
}

const MOST_OUT: usize = 256 << 20;
const MOST_ERR: usize = 64 << 10;
const POLL: Duration = Duration::from_millis(25);
/// The time for which helpers may keep the program's pipes open after its end.
const GRACE: Duration = Duration::from_secs(2);
/// The time that a program and its helpers have to end after they are asked to.
const ENDING: Duration = Duration::from_secs(10);

/// The exit status of a shell that does not find the program.
const NOT_FOUND: i32 = 127;

/// Runs a program without bounds.
pub(crate) fn run(command: Command, patience: Duration, cancel: &Cancel) -> std::io::Result<ProcessEnd> {
    watch(command, Command::spawn, patience, cancel)
}

/// Runs `git` within bounds.
pub(super) fn run_within(
    command: Command,
    bounds: &Bounds,
    cancel: &Cancel,
) -> Result<ProcessEnd, TransportError> {
    let start = |command: &mut Command| sandbox::start(command, bounds);
    match watch(command, start, bounds.time, cancel).map_err(TransportError::not_started)? {
        ProcessEnd::Done { status, .. } if status.code() == Some(NOT_FOUND) => {
            Err(TransportError::NoGit { message: "there is no such program".to_owned() })
        }
        ended => Ok(ended),
    }
}

fn watch(
    mut command: Command,
    start: impl FnOnce(&mut Command) -> std::io::Result<Child>,
    patience: Duration,
    cancel: &Cancel,
) -> std::io::Result<ProcessEnd> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = start(&mut command)?;
    let (hear, mut open) = listen_to_both(&mut child);
    let begun = Instant::now();
    let (mut out, mut err, mut cut) = (Vec::new(), Vec::new(), false);
    let mut exited: Option<(ExitStatus, Instant)> = None;
    let mut asked: Option<(ProcessEnd, Instant)> = None;
    loop {
        if open == 0 {
            std::thread::sleep(POLL / 5);
        } else if let Ok((stream, bytes, too_much)) = hear.recv_timeout(POLL) {
            open -= 1;
            match stream {
                Stream::Out => (out, cut) = (bytes, too_much),
                Stream::Err => err = bytes,
            }
        }
        if exited.is_none() {
            exited = child.try_wait()?.map(|status| (status, Instant::now()));
        }
        if let Some((ended, at)) = asked {
            // Once nobody holds its pipes, its helpers have ended too.
            if exited.is_some() && open == 0 {
                return Ok(ended);
            }
            if at.elapsed() > ENDING {
                end(&mut child, true);
                let _ = child.wait();
                return Ok(ended);
            }
            asked = Some((ended, at));
            continue;
        }
        match exited {
            Some((status, at)) if open == 0 || at.elapsed() > GRACE => {
                return Ok(if cut { ProcessEnd::TooMuch } else { ProcessEnd::Done { status, out, err } });
            }
            Some(_) => {}
            None if cancel.is_cancelled() => asked = Some((ProcessEnd::Cancelled, Instant::now())),
            None if begun.elapsed() > patience => asked = Some((ProcessEnd::TimedOut, Instant::now())),
            None => {}
        }
        if asked.is_some() {
            end(&mut child, false);
        }
    }
}

/// Asks the group to end, or kills it. The group's number stays valid until the program is reaped and its helpers
/// have ended.
fn end(child: &mut Child, by_force: bool) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        use rustix::process::Signal;
        let signal = if by_force { Signal::KILL } else { Signal::TERM };
        let _ = rustix::process::kill_process_group(group, signal);
    }
    if by_force || cfg!(not(unix)) {
        let _ = child.kill();
    }
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Out,
    Err,
}

/// Reads the output and the errors of a process, each on a thread, and returns the number of these threads.
fn listen_to_both(child: &mut Child) -> (Receiver<(Stream, Vec<u8>, bool)>, usize) {
    let (heard, hear) = channel();
    let mut open = 0;
    if let Some(out) = child.stdout.take() {
        listen(out, Stream::Out, MOST_OUT, heard.clone());
        open += 1;
    }
    if let Some(err) = child.stderr.take() {
        listen(err, Stream::Err, MOST_ERR, heard);
        open += 1;
    }
    (hear, open)
}

/// Reads a stream to its end, keeping the first `most` bytes.
fn listen(
    mut from: impl Read + Send + 'static,
    stream: Stream,
    most: usize,
    to: Sender<(Stream, Vec<u8>, bool)>,
) {
    std::thread::spawn(move || {
        let (mut kept, mut cut, mut part) = (Vec::new(), false, vec![0; 16 << 10]);
        loop {
            match from.read(&mut part) {
                Ok(0) => break,
                Ok(length) => {
                    let take = length.min(most - kept.len());
                    kept.extend_from_slice(part.get(..take).unwrap_or_default());
                    cut |= take < length;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // The receiver is gone if the time was up.
        let _ = to.send((stream, kept, cut));
    });
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn both_streams_and_the_status_are_given_back() {
        let ended = run(shell("echo a; echo b >&2; exit 3"), Duration::from_secs(20), &Cancel::default());
        let ProcessEnd::Done { status, out, err } = ended.unwrap() else { panic!("it ends by itself") };
        assert_eq!((status.code(), out.as_slice(), err.as_slice()), (Some(3), &b"a\n"[..], &b"b\n"[..]));
    }

    #[test]
    fn what_takes_too_long_ends_with_its_helpers() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {0}.new && mv {0}.new {0}; wait", pid.display());
        let begun = Instant::now();
        let ended = run(shell(&script), Duration::from_secs(2), &Cancel::default()).unwrap();
        assert!(matches!(ended, ProcessEnd::TimedOut) && begun.elapsed() < Duration::from_secs(60));
        let helper = std::fs::read_to_string(&pid).unwrap();
        let stat = format!("/proc/{}/stat", helper.trim());
        let gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        let deadline = Instant::now() + Duration::from_secs(20);
        while cfg!(target_os = "linux") && !gone() {
            assert!(Instant::now() < deadline, "the helper lives on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_program_that_is_ended_may_clear_up_and_so_may_its_helpers() {
        let folder = tempfile::tempdir().unwrap();
        let helper =
            "trap 'sleep 1; rm helper.lock; exit' TERM; touch helper.lock; while :; do sleep 0.1; done";
        let script = format!(
            "cd {}; trap 'rm own.lock; exit' TERM; touch own.lock; sh -c \"{helper}\" & while :; do sleep 0.1; done",
            folder.path().display()
        );
        let locks = || std::fs::read_dir(folder.path()).unwrap().count();
        let cancel = Cancel::default();
        std::thread::scope(|scope| {
            let running = scope.spawn(|| run(shell(&script), Duration::from_secs(600), &cancel).unwrap());
            while locks() < 2 {
                std::thread::yield_now();
            }
            cancel.cancel();
            assert!(matches!(running.join().unwrap(), ProcessEnd::Cancelled));
        });
        assert_eq!(locks(), 0);
    }

    #[test]
    fn a_cancelled_program_does_not_run_on() {
        let cancel = Cancel::default();
        cancel.cancel();
        let ended = run(shell("sleep 600"), Duration::from_secs(600), &cancel).unwrap();
        assert!(matches!(ended, ProcessEnd::Cancelled));
    }

    #[test]
    fn a_talkative_program_fills_no_memory() {
        let script = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789012345678901234567890123 >&2; i=$((i+1)); done";
        let ended = run(shell(script), Duration::from_secs(60), &Cancel::default()).unwrap();
        let ProcessEnd::Done { err, .. } = ended else { panic!("it ends by itself") };
        assert_eq!(err.len(), MOST_ERR);
    }
}
