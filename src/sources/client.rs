//! Renders each input once: answers and faults of sources are remembered by everything that they depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::process::{self, Limits, Process, RetryAt};
use crate::program::{self, Program};
use crate::protocol::{
    self, Answer, Base64, FileMessage, HelmRequest, InTree, KustomizeRequest, Message, Reply, SourceFault,
    TreeMessage,
};
use berth_base::text::hex;

/// The bytes of answers that are remembered.
const MOST_REMEMBERED: usize = 256 << 20;

/// The pause before an input is rendered again that crashed the renderer or took too long.
const PAUSE: Duration = Duration::from_secs(300);

/// The files of a chart or base.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// A digest of all paths, modes and ids.
    pub name: String,
}

impl Tree {
    /// Names a tree by its content: the path, mode and id of each file.
    pub fn of<'f>(files: impl Iterator<Item = (&'f str, &'static str, &'f [u8])>) -> Tree {
        let mut digest = Sha256::new();
        for (path, mode, id) in files {
            digest.update(format!("{mode} {} {path}\0{}\0", path.len(), id.len()));
            digest.update(id);
        }
        Tree { name: hex(&digest.finalize()) }
    }
}

/// A file of a tree.
#[derive(Clone, Debug)]
pub struct TreeFile {
    pub path: String,
    /// The mode as Git has it: `100644`, `100755` or `120000`.
    pub mode: &'static str,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
pub enum Request {
    Helm(HelmRequest),
    Kustomize { path: String },
}

/// The reason why a source is not rendered.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// A fault of the source. Every renderer of this identity finds it.
    Source(Box<SourceFault>),
    /// The renderer is missing, or failed. Another try may succeed.
    Renderer { message: String, hint: Option<String> },
}

impl Failure {
    fn of_renderer(message: impl Into<String>) -> Failure {
        Failure::Renderer { message: message.into(), hint: None }
    }
}

type Rendered = Result<Arc<Answer>, Failure>;

/// The renderer, started when it is first needed.
#[derive(Debug, Default)]
pub struct Renderer {
    /// The program; without one, it is searched for.
    program: Option<PathBuf>,
    limits: Limits,
    state: Mutex<RendererState>,
}

#[derive(Debug, Default)]
struct RendererState {
    running: Option<Running>,
    memory: Memory,
    /// The inputs that crashed the renderer, or took too long.
    failed: BTreeMap<String, (Failure, RetryAt)>,
    rendered: usize,
}

#[derive(Debug)]
struct Running {
    process: Process,
    identity: String,
    /// The trees that it was sent.
    trees: BTreeSet<String>,
    last_id: u64,
}

impl Renderer {
    /// Returns the renderer of this process.
    pub fn shared() -> &'static Renderer {
        static SHARED: OnceLock<Renderer> = OnceLock::new();
        SHARED.get_or_init(Renderer::default)
    }

    /// Returns a renderer that runs this program.
    pub fn with(program: PathBuf, limits: Limits) -> Renderer {
        Renderer { program: Some(program), limits, state: Mutex::default() }
    }

    /// Returns everything that the output depends on besides the request, in one line.
    pub fn identity(&self) -> Result<String, Failure> {
        Ok(self.running(&mut self.lock())?.identity.clone())
    }

    /// Returns the number of requests that were rendered rather than remembered.
    pub fn count(&self) -> usize {
        self.lock().rendered
    }

    /// Renders a source. `files` returns the files of the tree, if the renderer needs them.
    pub fn render(
        &self,
        tree: &Tree,
        request: &Request,
        files: &dyn Fn() -> Result<Vec<TreeFile>, Failure>,
    ) -> Rendered {
        let mut state = self.lock();
        let identity = self.running(&mut state)?.identity.clone();
        let key = key_of(&identity, tree, request)?;
        if let Some(known) = state.memory.get(&key) {
            return known;
        }
        if let Some((failure, _)) = state.failed.get(&key).filter(|(_, retry)| !retry.is_over()) {
            return Err(failure.clone());
        }
        state.rendered += 1;
        let is_fresh = state.running.as_ref().is_some_and(|running| running.last_id == 0);
        let mut rendered = self.ask(&mut state, tree, request, files);
        if !is_fresh && matches!(rendered, Err(Failure::Renderer { .. })) {
            // An earlier request may have harmed the process, or somebody may have ended it.
            state.running = None;
            rendered = self.ask(&mut state, tree, request, files);
        }
        match &rendered {
            Err(failure @ Failure::Renderer { .. }) => {
                // The process may be in any state.
                state.running = None;
                state.failed.insert(key, (failure.clone(), RetryAt::after(PAUSE)));
            }
            done => {
                state.failed.remove(&key);
                state.memory.insert(key, done.clone());
            }
        }
        rendered
    }

    fn lock(&self) -> MutexGuard<'_, RendererState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the running process, and starts it if there is none.
    fn running<'s>(&self, state: &'s mut RendererState) -> Result<&'s mut Running, Failure> {
        let running = match state.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        Ok(state.running.insert(running))
    }

    fn start(&self) -> Result<Running, Failure> {
        let program = match self.program.clone().map_or_else(Program::find, Program::Found) {
            Program::Found(program) => program,
            other => return Err(missing(&other)),
        };
        let failed = |error| Failure::Renderer {
            message: format!("the renderer `{}` does not start: {error}", program.display()),
            hint: Some("install the renderer of this release of berth".to_owned()),
        };
        let text = process::identity(&program, &self.limits).map_err(failed)?;
        let mut lines = text.lines();
        if lines.next() != Some(protocol::PROTOCOL) {
            return Err(Failure::Renderer {
                message: format!("`{}` is not a renderer that this berth knows", program.display()),
                hint: Some("install the renderer of this release of berth".to_owned()),
            });
        }
        let identity = lines.collect::<Vec<_>>().join(", ");
        let process = Process::start(&program, &self.limits).map_err(failed)?;
        Ok(Running { process, identity, trees: BTreeSet::new(), last_id: 0 })
    }

    /// Sends the request, and before it the tree if the renderer lacks it.
    fn ask(
        &self,
        state: &mut RendererState,
        tree: &Tree,
        request: &Request,
        files: &dyn Fn() -> Result<Vec<TreeFile>, Failure>,
    ) -> Rendered {
        for _ in 0..2 {
            let running = self.running(state)?;
            if !running.trees.contains(&tree.name) {
                running.send_tree(tree, &files()?)?;
            }
            match running.send_request(tree, request) {
                Err(Failure::Source(fault)) if fault.kind == protocol::TREE_UNKNOWN => {
                    running.trees.remove(&tree.name);
                }
                done => return done.map(Arc::new),
            }
        }
        Err(Failure::of_renderer("the renderer forgets a tree that it was just sent"))
    }
}

/// Returns the digest of everything that an answer depends on.
fn key_of(identity: &str, tree: &Tree, request: &Request) -> Result<String, Failure> {
    let message = message_of(0, tree, request);
    let text = serde_json::to_vec(&message).map_err(|error| Failure::of_renderer(error.to_string()))?;
    let mut digest = Sha256::new();
    digest.update(format!("{identity}\0"));
    digest.update(text);
    Ok(hex(&digest.finalize()))
}

fn message_of<'a>(id: u64, tree: &'a Tree, request: &'a Request) -> MessageParts<'a> {
    MessageParts { id, tree: &tree.name, request }
}

/// A request that is written as a [`Message`].
struct MessageParts<'a> {
    id: u64,
    tree: &'a str,
    request: &'a Request,
}

impl serde::Serialize for MessageParts<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let MessageParts { id, tree, request } = *self;
        match request {
            Request::Helm(request) => {
                let helm = Some(InTree { tree, request });
                Message { id, tree: None, helm, kustomize: None }.serialize(serializer)
            }
            Request::Kustomize { path } => {
                let request = &KustomizeRequest { path: path.clone() };
                let kustomize = Some(InTree { tree, request });
                Message { id, tree: None, helm: None, kustomize }.serialize(serializer)
            }
        }
    }
}

impl Running {
    fn send_tree(&mut self, tree: &Tree, files: &[TreeFile]) -> Result<(), Failure> {
        let id = self.next_id();
        let files = files.iter().map(|TreeFile { path, mode, bytes }| FileMessage {
            path,
            mode,
            data: Base64::of(bytes),
        });
        let message = TreeMessage { name: &tree.name, files: files.collect() };
        let message = Message { id, tree: Some(message), helm: None, kustomize: None };
        let reply = self.exchange(id, &message)?;
        if reply.tree.is_none() {
            return Err(Failure::of_renderer("the renderer does not confirm a tree"));
        }
        self.trees.insert(tree.name.clone());
        Ok(())
    }

    fn send_request(&mut self, tree: &Tree, request: &Request) -> Result<Answer, Failure> {
        let id = self.next_id();
        let reply = self.exchange(id, &message_of(id, tree, request))?;
        let answer = match request {
            Request::Helm(_) => reply.helm.map(Answer::Helm),
            Request::Kustomize { .. } => reply.kustomize.map(Answer::Kustomize),
        };
        answer.ok_or_else(|| Failure::of_renderer("the renderer answers another question"))
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn exchange(&self, id: u64, message: &impl serde::Serialize) -> Result<Reply, Failure> {
        let frame = serde_json::to_vec(message).map_err(|error| Failure::of_renderer(error.to_string()))?;
        let answer = self.process.exchange(frame).map_err(Failure::of_renderer)?;
        let reply: Reply = serde_json::from_slice(&answer).map_err(|error| {
            Failure::of_renderer(format!("the renderer's answer cannot be read: {error}"))
        })?;
        match reply.error {
            Some(fault) if fault.is_of_renderer() => Err(Failure::of_renderer(fault.message)),
            _ if reply.id != id => Err(Failure::of_renderer("the renderer answers another question")),
            Some(fault) => Err(Failure::Source(fault.into())),
            None => Ok(Reply { error: None, ..reply }),
        }
    }
}

fn missing(program: &Program) -> Failure {
    let (variable, name) = (program::VARIABLE, program::NAME);
    match program {
        Program::Wrong(path) => Failure::Renderer {
            message: format!("{variable} names `{}`, which is not a file", path.display()),
            hint: Some(format!("correct {variable}, or unset it")),
        },
        _ => Failure::Renderer {
            message: format!("charts and bases need the program `{name}`, which is missing"),
            hint: Some(format!(
                "install `{name}` beside berth or on the PATH, or set {variable} to its path"
            )),
        },
    }
}

/// Answers by the digests of their inputs. When they take too much memory, those that were used longest ago are forgotten.
#[derive(Debug, Default)]
struct Memory {
    answers: BTreeMap<String, Remembered>,
    /// The number of uses so far.
    uses: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Remembered {
    answer: Rendered,
    size: usize,
    last_use: u64,
}

impl Memory {
    fn get(&mut self, key: &str) -> Option<Rendered> {
        let remembered = self.answers.get_mut(key)?;
        self.uses += 1;
        remembered.last_use = self.uses;
        Some(remembered.answer.clone())
    }

    fn insert(&mut self, key: String, answer: Rendered) {
        self.forget(&key);
        self.uses += 1;
        let size = key.len() + size_of_answer(&answer);
        self.bytes += size;
        self.answers.insert(key, Remembered { answer, size, last_use: self.uses });
        if self.bytes > MOST_REMEMBERED {
            let mut keys: Vec<(u64, String)> =
                self.answers.iter().map(|(key, one)| (one.last_use, key.clone())).collect();
            keys.sort_unstable();
            // Half of them at a time, so that most insertions look at no other answer.
            for (_, key) in keys {
                if self.bytes <= MOST_REMEMBERED / 2 {
                    break;
                }
                self.forget(&key);
            }
        }
    }

    fn forget(&mut self, key: &str) {
        self.bytes -= self.answers.remove(key).map_or(0, |one| one.size);
    }
}

fn size_of_answer(answer: &Rendered) -> usize {
    match answer.as_deref() {
        Ok(Answer::Helm(answer)) => {
            let documents = answer.crds.iter().chain(&answer.documents).chain(&answer.dropped);
            documents.map(|document| document.text.len() + document.file.len() + 64).sum::<usize>() + 4096
        }
        Ok(Answer::Kustomize(answer)) => {
            answer.documents.iter().map(|document| document.len() + 64).sum::<usize>()
        }
        Err(_) => 4096,
    }
}
