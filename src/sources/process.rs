//! One running renderer: frames go to its standard input, and come from its standard output, within limits of time
//! and size.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use berth_git::transport::start_closed;

/// The bytes of complaints that are kept.
const MOST_COMPLAINTS: usize = 4 << 10;

/// The longest output of `--version`.
const LONGEST_IDENTITY: u64 = 4 << 10;

/// The time beyond the renderer's own limit in which it may still answer that it has reached the limit.
const GRACE: Duration = Duration::from_secs(5);

/// The limits of a render.
#[derive(Clone, Debug)]
pub struct Limits {
    pub time: Duration,
    /// The bytes of memory.
    pub memory: u64,
    /// The bytes of the rendered documents.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Duration::from_secs(60), memory: 2 << 30, output: 64 << 20 }
    }
}

impl Limits {
    /// Returns the bytes of the longest answer. JSON may write a byte as several.
    pub(crate) fn longest_frame(&self) -> u64 {
        self.output.saturating_mul(6).min(u32::MAX.into())
    }
}

/// A running renderer. Ends with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    requests: Sender<Vec<u8>>,
    answers: Receiver<io::Result<Vec<u8>>>,
    complaints: Arc<Mutex<Vec<u8>>>,
    time: Duration,
    /// The empty working folder.
    _folder: tempfile::TempDir,
}

impl Process {
    pub fn start(program: &Path, limits: &Limits) -> io::Result<Process> {
        let folder = tempfile::tempdir()?;
        let mut command = closed_command(program, folder.path());
        command
            .arg(format!("--max-output={}", limits.output))
            .arg(format!("--max-memory={}", limits.memory))
            .arg(format!("--timeout={}s", limits.time.as_secs().max(1)))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped());
        // The renderer's own limit comes first, because it can explain itself.
        let mut child = start_closed(&mut command, program, limits.memory.saturating_mul(2))?;
        let complaints = Arc::default();
        let (requests, answers) = connect(&mut child, limits, &complaints)?;
        Ok(Process { child, requests, answers, complaints, time: limits.time + GRACE, _folder: folder })
    }

    /// Sends a frame and waits for the next one.
    pub fn exchange(&self, frame: Vec<u8>) -> Result<Vec<u8>, String> {
        let ended = || Err(format!("the renderer ended{}", self.last_words()));
        if self.requests.send(frame).is_err() {
            return ended();
        }
        match self.answers.recv_timeout(self.time) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err(error.to_string()),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => ended(),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("the renderer did not answer within {} seconds", self.time.as_secs()))
            }
        }
    }

    /// Returns the last line of the complaints, if there are any.
    fn last_words(&self) -> String {
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&complaints);
        let first = text.lines().map(str::trim).find(|line| !line.is_empty());
        first.map(|line| format!(": {line}")).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Asks the program for its identity.
pub(crate) fn identity(program: &Path, limits: &Limits) -> io::Result<String> {
    let folder = tempfile::tempdir()?;
    let mut command = closed_command(program, folder.path());
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = start_closed(&mut command, program, limits.memory.saturating_mul(2))?;
    let (sender, receiver) = sync_channel(1);
    if let Some(out) = child.stdout.take() {
        thread::spawn(move || {
            let mut text = String::new();
            let read = out.take(LONGEST_IDENTITY).read_to_string(&mut text);
            drop(sender.send(read.map(|_| text)));
        });
    }
    let read = receiver.recv_timeout(limits.time).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    drop(child.kill());
    drop(child.wait());
    read
}

/// Prepares the program without an environment, in an empty folder.
fn closed_command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(folder).stdout(Stdio::piped());
    command
}

type Connection = (Sender<Vec<u8>>, Receiver<io::Result<Vec<u8>>>);

/// Starts the threads that carry frames, so that no pipe ever blocks berth.
fn connect(child: &mut Child, limits: &Limits, complaints: &Arc<Mutex<Vec<u8>>>) -> io::Result<Connection> {
    let missing = || io::Error::other("a pipe is missing");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let (requests, outgoing) = channel();
    let (incoming, answers) = sync_channel(1);
    let most = limits.longest_frame();
    thread::Builder::new().name("renderer".into()).spawn(move || write_frames(stdin, &outgoing))?;
    thread::Builder::new().name("renderer".into()).spawn(move || read_frames(stdout, &incoming, most))?;
    let complaints = complaints.clone();
    thread::Builder::new().name("renderer".into()).spawn(move || keep_complaints(stderr, &complaints))?;
    Ok((requests, answers))
}

/// Writes frames until the renderer or berth ends. The reader notices the end of the renderer.
fn write_frames(mut stdin: ChildStdin, frames: &Receiver<Vec<u8>>) {
    while let Ok(frame) = frames.recv() {
        let Ok(length) = u32::try_from(frame.len()) else { return };
        let written = stdin.write_all(&length.to_be_bytes()).and_then(|()| stdin.write_all(&frame));
        if written.and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

fn read_frames(mut stdout: ChildStdout, answers: &SyncSender<io::Result<Vec<u8>>>, most: u64) {
    loop {
        let frame = read_frame(&mut stdout, most);
        let is_end = frame.is_err();
        if answers.send(frame).is_err() || is_end {
            return;
        }
    }
}

fn read_frame(stdout: &mut ChildStdout, most: u64) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stdout.read_exact(&mut length)?;
    let length = u64::from(u32::from_be_bytes(length));
    if length > most {
        let message = format!("the renderer's answer has {length} bytes, above the limit of {most}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    // Grows with what arrives, so that a wrong length takes no memory.
    let mut frame = Vec::new();
    let read = stdout.take(length).read_to_end(&mut frame)?;
    match read as u64 == length {
        true => Ok(frame),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads everything, so that the renderer never waits, and keeps the beginning.
fn keep_complaints(mut stderr: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_COMPLAINTS.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&buffer[..room]);
    }
}

/// A moment at which something is tried again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryAt(Instant);

impl RetryAt {
    pub fn after(pause: Duration) -> RetryAt {
        RetryAt(Instant::now() + pause)
    }

    pub fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}
