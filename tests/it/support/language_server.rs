//! The YAML language server that editors run, spoken to as an editor does.

use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::hermetic;
use super::programs::{made, skipped};

/// The longest time that an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The question for the editor's settings.
const SETTINGS: &str = "workspace/configuration";

/// A running server with one folder open.
#[derive(Debug)]
pub struct LanguageServer {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Json>,
    folder: PathBuf,
    /// The setting `yaml.schemas`.
    schemas: Json,
    last_id: u64,
}

impl Drop for LanguageServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl LanguageServer {
    /// Starts the server. Where it cannot be installed this says so and gives nothing, and the test returns;
    /// under `CI=true` the test fails.
    pub fn start(folder: &Path, schemas: Json) -> Option<LanguageServer> {
        let installed = match made(&["language-server/ready"], "language_server") {
            Ok(installed) => installed,
            Err(why) => {
                skipped("the YAML language server", &why);
                return None;
            }
        };
        let program = installed.join("node_modules/yaml-language-server/bin/yaml-language-server");
        let mut process = hermetic("node")
            .arg(program)
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let input = process.stdin.take().expect("a pipe");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (send, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = message(&mut output) {
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let folder = folder.to_owned();
        let mut server = LanguageServer { process, input, messages, folder, schemas, last_id: 0 };
        let root = server.uri("");
        let folders = json!([{"uri": root, "name": "fleet"}]);
        let capabilities = json!({"workspace": {"configuration": true, "workspaceFolders": true}});
        server.ask("initialize", json!({"processId": null, "rootUri": root, "workspaceFolders": folders, "capabilities": capabilities}));
        server.tell("initialized", json!({}));
        // A file that is opened before is shown once without the settings.
        let asked = server.wait_for(|message| (message["method"] == SETTINGS).then(|| message.clone()));
        server.answer(&asked);
        Some(server)
    }

    fn uri(&self, path: &str) -> String {
        format!("file://{}", self.folder.join(path).display())
    }

    /// Opens a file with this text and returns the faults that the server shows, each with its line (from 1).
    pub fn faults(&mut self, path: &str, text: &str) -> Vec<(u64, String)> {
        let uri = self.uri(path);
        let document = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
        let shown = self.wait_for(|message| {
            let is_of_file =
                message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri;
            is_of_file.then(|| message["params"]["diagnostics"].clone())
        });
        let fault = |one: &Json| {
            let line = one["range"]["start"]["line"].as_u64().expect("a line") + 1;
            (line, one["message"].as_str().expect("a message").to_owned())
        };
        shown.as_array().expect("a list").iter().map(fault).collect()
    }

    /// Opens a file, and returns what the server offers at the place of the `|` in its text.
    pub fn completions(&mut self, path: &str, text: &str) -> Vec<String> {
        let (before, after) = text.split_once('|').expect("a place");
        self.faults(path, &format!("{before}{after}"));
        let position = json!({"line": before.matches('\n').count(), "character": before.lines().last().map_or(0, str::len)});
        let uri = self.uri(path);
        let offered =
            self.ask("textDocument/completion", json!({"textDocument": {"uri": uri}, "position": position}));
        let items = offered["items"].as_array().expect("a list");
        items.iter().map(|item| item["label"].as_str().expect("a label").to_owned()).collect()
    }

    fn ask(&mut self, method: &str, params: Json) -> Json {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.wait_for(|message| {
            let is_answer = message["id"] == id && message.get("method").is_none();
            is_answer.then(|| message["result"].clone())
        })
    }

    fn tell(&mut self, method: &str, params: Json) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn send(&mut self, message: &Json) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        self.input.flush().expect("the server reads");
    }

    /// Waits for a message, and answers what the server asks meanwhile.
    fn wait_for(&mut self, mut is_it: impl FnMut(&Json) -> Option<Json>) -> Json {
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("the server answers in time");
            if let Some(found) = is_it(&message) {
                return found;
            }
            if message.get("id").is_some() && message.get("method").is_some() {
                self.answer(&message);
            }
        }
    }

    fn answer(&mut self, asked: &Json) {
        let items = asked["params"]["items"].as_array().into_iter().flatten();
        let settings: Vec<Json> = items.map(|item| self.setting(item)).collect();
        let result = if asked["method"] == SETTINGS { json!(settings) } else { Json::Null };
        self.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    }

    /// No schema is fetched from anywhere.
    fn setting(&self, item: &Json) -> Json {
        let schemas = &self.schemas;
        let of_yaml = json!({"validate": true, "completion": true, "schemas": schemas, "schemaStore": {"enable": false}});
        if item["section"] == "yaml" { of_yaml } else { Json::Null }
    }
}

fn message(output: &mut impl std::io::BufRead) -> Option<Json> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", number)) => length = number.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut bytes = vec![0; length];
    output.read_exact(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}
