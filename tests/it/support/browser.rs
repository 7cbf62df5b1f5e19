//! A headless Chromium, driven over its DevTools protocol: JSON messages in a WebSocket on loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::programs::{made, skipped};
use super::wait::until;
use berth_base::text::base64;

/// The longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(60);

/// A browser with one page, ended when dropped.
pub struct Browser {
    child: Child,
    socket: TcpStream,
    last: u64,
    /// The events that the page sent so far.
    events: Vec<Json>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts Chromium. `None` where the machine has none.
    pub fn start() -> Option<Browser> {
        let folder = match made(&["chromium/ready"], "chromium") {
            Ok(folder) => folder,
            Err(why) => {
                skipped("Chromium", &why);
                return None;
            }
        };
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(folder.join("chromium"));
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--hide-scrollbars",
        ]);
        command.args(["--remote-debugging-port=0", "--disable-dev-shm-usage", "about:blank"]);
        // A machine without a screen has no mouse either, and the page would speak of touching.
        command.arg("--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4");
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("Chromium starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let address =
            lines.find_map(|line| Some(line.split_once("ws://")?.1.to_owned())).expect("an address");
        // A full pipe would stop the browser.
        std::thread::spawn(move || lines.for_each(drop));
        let host = address.split('/').next().expect("a host").to_owned();
        let socket = open(&host, &page_of(&host));
        let mut browser = Browser { child, socket, last: 0, events: Vec::new(), _profile: profile };
        for domain in ["Page", "Runtime", "Log", "Network", "Performance"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.size(1280);
        Some(browser)
    }

    /// Sets the width of the page.
    pub fn size(&mut self, width: u32) {
        self.area(width, 900);
    }

    /// Sets the width and the height of the page.
    pub fn area(&mut self, width: u32, height: u32) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Sets `prefers-color-scheme` to `light` or `dark`.
    pub fn scheme(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    /// Lets the page run scripts, or not.
    pub fn scripts(&mut self, are_on: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({"value": !are_on}));
    }

    /// Opens a page of a folder.
    pub fn open(&mut self, folder: &Path) {
        self.visit(&format!("file://{}/index.html", folder.display()));
    }

    /// Opens an address.
    pub fn visit(&mut self, address: &str) {
        self.call("Page.navigate", json!({"url": address}));
        self.until("document.readyState === 'complete'");
    }

    /// Goes to a view of the page, and waits until it is shown.
    pub fn go(&mut self, view: &str) {
        self.value("document.querySelector('main').replaceChildren()");
        // A page that is already there does not move.
        self.value(&format!(
            "location.hash === {0} ? dispatchEvent(new Event('hashchange')) : (location.hash = {0})",
            json!(view)
        ));
        self.until("document.querySelector('h1') !== null");
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let text = if key.len() == 1 {
            key
        } else if key == "Enter" {
            "\r"
        } else {
            ""
        };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            other => u32::from(other.to_ascii_uppercase().as_bytes()[0]),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Evaluates an expression in the page.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Json {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Evaluates an expression to a text.
    #[track_caller]
    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn until(&mut self, expression: &str) {
        until(expression, || self.value(expression) == true);
    }

    /// Lets the pages that are opened from now on take this moment for now, in milliseconds.
    pub fn at(&mut self, moment: i64) {
        let source = format!("Date.now = () => {moment};");
        self.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source }));
    }

    /// Waits until the page has drawn what it shows.
    pub fn settle(&mut self) {
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))");
    }

    /// The processor time of the page's main thread so far, in milliseconds.
    pub fn milliseconds(&mut self) -> f64 {
        let metrics = self.call("Performance.getMetrics", json!({}));
        let all = metrics["metrics"].as_array().expect("metrics");
        let thread =
            all.iter().find(|metric| metric["name"] == "ThreadTime").expect("the time of the thread");
        thread["value"].as_f64().expect("a number") * 1_000.0
    }

    /// Takes a picture of the page, or of its visible part, as PNG.
    pub fn picture(&mut self, is_whole: bool) -> Vec<u8> {
        let answer =
            self.call("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": is_whole}));
        base64::decode(answer["data"].as_str().expect("a picture")).expect("base64")
    }

    /// The messages of the console, and exceptions.
    pub fn complaints(&self) -> Vec<String> {
        let complains = |event: &&Json| {
            let method = event["method"].as_str().unwrap_or_default();
            ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"].contains(&method)
        };
        self.events.iter().filter(complains).map(ToString::to_string).collect()
    }

    /// The addresses that the page asked for.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        asked.filter_map(|event| event["params"]["request"]["url"].as_str()).map(str::to_owned).collect()
    }

    fn call(&mut self, method: &str, params: Json) -> Json {
        self.last += 1;
        let message = json!({"id": self.last, "method": method, "params": params}).to_string();
        send(&mut self.socket, message.as_bytes());
        loop {
            let mut answer: Json = serde_json::from_slice(&receive(&mut self.socket)).expect("a message");
            if answer["id"] == self.last {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of the page's own WebSocket.
fn page_of(host: &str) -> String {
    let (mut socket, head) = ask(host, "/json/list", "");
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    // The browser keeps the connection open.
    let mut body = vec![0; length.expect("a length")];
    socket.read_exact(&mut body).expect("a body");
    let list: Json = serde_json::from_slice(&body).expect("a list");
    let page = list.as_array().into_iter().flatten().find(|target| target["type"] == "page");
    let address = page.and_then(|page| page["webSocketDebuggerUrl"].as_str()).expect("a page");
    address.split_once(host).expect("the same host").1.to_owned()
}

/// Opens a WebSocket.
fn open(host: &str, path: &str) -> TcpStream {
    let key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n";
    let (socket, head) = ask(host, path, &format!("Upgrade: websocket\r\nConnection: Upgrade\r\n{key}"));
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    socket
}

/// Sends a request, and returns the connection and the head of the answer.
fn ask(host: &str, path: &str, headers: &str) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(host).expect("the browser listens");
    socket.set_read_timeout(Some(ANSWER)).expect("a timeout");
    write!(socket, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n").expect("asked");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(bytes::<1>(&mut socket));
    }
    (socket, String::from_utf8(head).expect("text"))
}

/// Sends one text frame. A client masks its frames; a mask of zeros changes nothing.
fn send(socket: &mut TcpStream, text: &[u8]) {
    let mut frame = vec![0x81];
    match text.len() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length @ 126..65_536 => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(text);
    socket.write_all(&frame).expect("sent");
}

/// Receives one message, which may come in several frames.
fn receive(socket: &mut TcpStream) -> Vec<u8> {
    let mut message = Vec::new();
    loop {
        let [first, second] = bytes(socket);
        let length = match second & 0x7f {
            126 => u64::from(u16::from_be_bytes(bytes(socket))),
            127 => u64::from_be_bytes(bytes(socket)),
            length => u64::from(length),
        };
        let mut part = vec![0; usize::try_from(length).expect("a length")];
        socket.read_exact(&mut part).expect("a frame");
        // Control frames carry no part of a message.
        if first & 0x0f < 8 {
            message.extend(part);
            if first & 0x80 != 0 {
                return message;
            }
        }
    }
}

fn bytes<const COUNT: usize>(socket: &mut TcpStream) -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    socket.read_exact(&mut bytes).expect("a frame");
    bytes
}
