//! A gate in front of a registry: it writes down every request, and does to the answers what a test wants.

use std::io::{BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::exchange::{Exchange, send};

/// One request that came to the gate.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The place among all requests, from 0.
    pub number: usize,
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The status of the answer, or 0 where the connection was cut.
    pub status: u16,
    /// The bytes of the request and of its answer, heads included.
    pub sent: usize,
    pub received: usize,
}

/// What happens to one request.
pub enum Deed {
    Pass,
    /// The connection ends before the registry hears of it.
    Cut,
    /// The registry does what it is asked for, and its answer is lost.
    LoseAnswer,
    /// The connection ends after so many bytes of the answer's body.
    CutAnswer(usize),
    /// Somebody else answers.
    Answer(Exchange),
    /// The answer is another one.
    Alter(fn(&mut Exchange)),
}

impl Deed {
    /// Answers with a status, headers and a body.
    pub fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Deed {
        let mut answer = Exchange { line: format!("HTTP/1.1 {status} Said"), status, ..Exchange::default() };
        for (name, value) in headers {
            answer.set(name, Some(value));
        }
        answer.body = body.to_vec();
        Deed::Answer(answer)
    }
}

type Rule = Box<dyn Fn(&Asked) -> Deed + Send + Sync>;

/// A port in front of another one, for as long as the test runs.
pub struct Gate {
    pub port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    to: u16,
    rule: Mutex<Option<Rule>>,
    asked: Mutex<Vec<Asked>>,
}

impl Gate {
    /// Opens a gate in front of a port of this machine.
    pub fn to(to: u16) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State { to, ..State::default() });
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = shared.clone();
                std::thread::spawn(move || serve(&stream, &state));
            }
        });
        Gate { port, state }
    }

    /// Returns `HOST:PORT`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// From now on this happens to requests.
    pub fn rule(&self, rule: impl Fn(&Asked) -> Deed + Send + Sync + 'static) {
        *self.state.rule.lock().expect("a rule") = Some(Box::new(rule));
    }

    /// From now on everything passes.
    pub fn no_rule(&self) {
        *self.state.rule.lock().expect("a rule") = None;
    }

    /// Reports whether the first so many of the requests that `take` would return have been answered.
    pub fn has_answered(&self, count: usize) -> bool {
        self.state.asked.lock().expect("a list").iter().take(count).all(|asked| asked.status != 0)
    }

    /// Returns the requests since the last call.
    pub fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.state.asked.lock().expect("a list"))
    }
}

fn serve(stream: &TcpStream, state: &State) {
    let mut from = BufReader::new(stream);
    while let Some(mut request) = Exchange::read(&mut from, false) {
        let mut words = request.line.split(' ').map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else { break };
        let is_head = method == "HEAD";
        let mut asked = Asked {
            number: 0,
            method,
            path,
            headers: request.headers.clone(),
            body: request.body.clone(),
            status: 0,
            sent: request.bytes(false).len(),
            received: 0,
        };
        let at = {
            let mut list = state.asked.lock().expect("a list");
            asked.number = list.len();
            list.push(asked.clone());
            asked.number
        };
        let deed = state.rule.lock().expect("a rule").as_ref().map_or(Deed::Pass, |rule| rule(&asked));
        // Each request has a connection of its own to the registry.
        request.set("connection", Some("close"));
        let forwarded = |request: &Exchange| send(state.to, request, is_head).ok();
        let mut most = None;
        let answer = match deed {
            Deed::Cut => None,
            Deed::LoseAnswer => {
                forwarded(&request);
                None
            }
            Deed::Answer(answer) => Some(answer),
            Deed::CutAnswer(length) => {
                most = Some(length);
                forwarded(&request)
            }
            Deed::Alter(alter) => forwarded(&request).map(|mut answer| {
                alter(&mut answer);
                answer
            }),
            Deed::Pass => forwarded(&request),
        };
        let Some(mut answer) = answer else { break };
        answer.set("connection", None);
        let mut bytes = answer.bytes(is_head);
        if let Some(most) = most {
            bytes.truncate(bytes.len() - answer.body.len() + most.min(answer.body.len()));
        }
        if let Some(noted) = state.asked.lock().expect("a list").get_mut(at) {
            (noted.status, noted.received) = (answer.status, bytes.len());
        }
        let mut back = stream;
        if back.write_all(&bytes).is_err() || most.is_some() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}
