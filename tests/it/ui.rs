//! `berth ui`: the page from a server, which follows the fleet.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use serde_json::json;

use crate::support::browser::Browser;
use crate::support::{Repo, berth, config_map, run, small_fleet};

/// A server of a repository's page, ended when dropped.
struct Served {
    process: Child,
    /// `http://127.0.0.1:PORT/`, and a token where there is one.
    address: String,
}

impl Served {
    fn start(repo: &Repo, listen: &str) -> Served {
        let args = ["ui", "--repo", repo.arg(), "--listen", listen];
        let mut process =
            berth().args(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("berth starts");
        let mut address = String::new();
        let out = process.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut address).expect("an address");
        Served { process, address: address.trim().to_owned() }
    }

    fn host(&self) -> &str {
        self.address.trim_start_matches("http://").split('/').next().expect("a host")
    }

    /// Asks for a path with these lines of a head.
    fn ask(&self, request: &str, head: &str) -> String {
        let port = self.host().rsplit_once(':').expect("a port").1;
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
        stream.write_all(format!("{request} HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).expect("sent");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path}"), &format!("Host: {}", self.host()))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn stamp_of(event: &str) -> String {
    let line = event.lines().find_map(|line| line.strip_prefix("data: "));
    line.unwrap_or_else(|| panic!("no data in {event}")).to_owned()
}

fn edit(repo: &Repo, value: &str) {
    repo.write("apps/web.yaml", config_map("web", value, "{clusterSelector: {}}"));
    repo.commit(&format!("web has the value {value}"));
    repo.publish().expect(0);
}

#[test]
fn the_files_are_those_of_a_folder_and_each_newer_page_is_an_event() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let served = Served::start(&repo, "127.0.0.1:0");
    let index = served.get("/");
    assert!(index.starts_with("HTTP/1.1 200 ") && index.contains("page/live.js"), "{index}");
    assert!(
        index.contains("connect-src 'self'") && index.contains("x-content-type-options: nosniff"),
        "{index}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("page");
    run(&["site", "--repo", repo.arg(), "--out", out.to_str().expect("text")]).expect(0);
    let script = std::fs::read_to_string(out.join("page/main.js")).expect("a script");
    assert!(served.get("/page/main.js").ends_with(&script));
    let first = stamp_of(&served.get("/events"));
    edit(&repo, "two");
    // The commit and its publication are two pages, unless the server looks only after both.
    let mut last = first;
    while !served.get("/data/head.js?x").contains("web has the value two") {
        let head = format!("Host: {}\r\nLast-Event-ID: {last}", served.host());
        let next = stamp_of(&served.ask("GET /events", &head));
        assert_ne!(last, next);
        last = next;
    }
}

#[test]
fn only_the_page_is_served_and_only_to_those_who_may_see_it() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let own = Served::start(&repo, "127.0.0.1:0");
    for path in ["/../Cargo.toml", "/%2e%2e/x", "/data/", "/.git/config", "/nothing"] {
        assert!(own.get(path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    assert!(own.ask("POST /", &format!("Host: {}", own.host())).starts_with("HTTP/1.1 405 "));
    // A page of somebody else whose name leads to this machine.
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example"] {
        assert!(own.ask("GET /", &format!("Host: {host}")).starts_with("HTTP/1.1 404 "), "{host}");
    }
    let open = Served::start(&repo, "0.0.0.0:0");
    let token = open.address.trim_end_matches('/').rsplit_once('/').expect("a token").1;
    assert_eq!(token.len(), 32, "{}", open.address);
    for path in [
        "/",
        "/index.html",
        "/data/head.js",
        "/events",
        &format!("/{}/", "0".repeat(32)),
        &format!("/{token}"),
    ] {
        assert!(open.get(path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    assert!(open.get(&format!("/{token}/data/head.js")).starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_fleet_without_a_publication_has_no_page() {
    let repo = small_fleet();
    let refused = run(&["ui", "--repo", repo.arg(), "--listen", "0"]).expect(2);
    assert!(refused.err.contains("nothing is published yet"), "{}", refused.err);
}

#[test]
fn a_port_that_is_taken_is_named_with_a_way_out() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let refused = run(&["ui", "--repo", repo.arg(), "--listen", &port]).expect(6);
    assert!(refused.err.contains("`--listen 0` takes a free port"), "{}", refused.err);
}

#[test]
#[ignore = "needs Chromium"]
fn a_newer_page_is_shown_in_the_place_of_the_one_before() {
    let Some(mut browser) = Browser::start() else { return };
    let repo = small_fleet();
    repo.publish().expect(0);
    let served = Served::start(&repo, "127.0.0.1:0");
    browser.visit(&served.address);
    browser.until("view?.rowUnits?.length > 0");
    browser.value(
        "(view.box.focus(), view.stand(1, 1), document.body.style.minHeight = '4000px', scrollTo(0, 40))",
    );
    let cursor = browser.value("named(view, view.cursor)");
    edit(&repo, "two");
    browser.until("head.shown.sequence === 2");
    browser.until("document.getElementById('live').textContent.startsWith('number 2 is published')");
    assert_eq!(browser.value("named(view, view.cursor)"), cursor);
    assert_eq!(browser.value("[document.activeElement === view.box, scrollY]"), json!([true, 40]));
    browser.go("#/p/FederatedConfigMap/shop/web");
    browser.until("/number 2|web has the value two/.test(document.querySelector('main').textContent)");
    browser.value("document.querySelectorAll('main details').forEach((element) => { element.open = true; })");
    edit(&repo, "three");
    browser.until("/web has the value three/.test(document.querySelector('main').textContent)");
    assert_eq!(
        browser.value("[...document.querySelectorAll('main details')].every((element) => element.open)"),
        json!(true)
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let requests = browser.requests();
    assert!(
        requests.iter().all(|address| address.starts_with(&served.address) || address.starts_with("data:")),
        "{requests:?}"
    );
}
