//! Prometheus itself, with the rules of `deploy/monitoring`, whose waits are made shorter: the numbers are read each
//! second in place of each half minute, so an alert that waits for five minutes waits for ten seconds.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value as Json, json};

use crate::support::hermetic;
use crate::support::page::page_in_one_piece;
use crate::support::programs::made;
use crate::support::wait::until;

/// A second here stands for so many.
const SHORTER: u32 = 30;

pub struct Alarms {
    prometheus: Child,
    address: String,
}

impl Alarms {
    /// Reads these processes, each with a name and a port, and keeps what it reads in this folder.
    pub fn over(processes: &[(&str, u16)], port: u16, folder: &Path) -> Result<Alarms, String> {
        let program = made(&["prometheus/ready"], "prometheus")?.join("prometheus");
        std::fs::create_dir_all(folder).expect("a folder");
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring/alerts.yaml");
        let rules = std::fs::read_to_string(rules).expect("rules");
        std::fs::write(folder.join("alerts.yaml"), shortened(&rules)).expect("a file");
        let jobs = ["daemon", "member"].map(|job| {
            let is_daemon = |name: &str| name.starts_with("daemon");
            let targets = processes.iter().filter(|(name, _)| is_daemon(name) == (job == "daemon"));
            let targets: Vec<Json> = targets
                .map(|(name, port)| json!({"targets": [format!("127.0.0.1:{port}")], "labels": {"instance": name}}))
                .collect();
            json!({"job_name": job, "static_configs": targets})
        });
        let config = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["alerts.yaml"],
            "scrape_configs": jobs,
        });
        std::fs::write(folder.join("prometheus.yml"), config.to_string()).expect("a file");
        let address = format!("127.0.0.1:{port}");
        let mut command = hermetic(program.to_str().expect("a text path"));
        command.current_dir(folder).args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
        command.arg(format!("--web.listen-address={address}")).stdout(Stdio::null()).stderr(Stdio::null());
        let prometheus = command.spawn().expect("Prometheus starts");
        let is_ready = || {
            std::net::TcpStream::connect(&address).is_ok()
                && page_in_one_piece(&address, "/-/ready").contains("200 OK")
        };
        until("Prometheus is ready", is_ready);
        Ok(Alarms { prometheus, address })
    }

    /// The alerts that fire now, each with the process that it is about.
    pub fn firing(&self) -> BTreeSet<String> {
        let answer = page_in_one_piece(&self.address, "/api/v1/alerts");
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        let answer: Json = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
        let alerts = answer["data"]["alerts"].as_array().expect("a list").iter();
        let firing = alerts.filter(|alert| alert["state"] == "firing");
        firing
            .map(|alert| {
                let label = |name: &str| alert["labels"][name].as_str().unwrap_or_default();
                format!("{} {}", label("alertname"), label("instance")).trim_end().to_owned()
            })
            .collect()
    }
}

impl Drop for Alarms {
    fn drop(&mut self) {
        let _ = self.prometheus.kill();
        let _ = self.prometheus.wait();
    }
}

/// The rules with each `for: 5m` and `[15m]` so much shorter.
fn shortened(rules: &str) -> String {
    let mut text = String::new();
    let mut rest = rules;
    let starts =
        |text: &str| ["for: ", "["].into_iter().filter_map(|mark| Some(text.find(mark)? + mark.len())).min();
    while let Some(start) = starts(rest) {
        let (before, after) = rest.split_at(start);
        text.push_str(before);
        let digits = after.find(|letter: char| !letter.is_ascii_digit()).expect("more text");
        let seconds = match after[digits..].chars().next() {
            Some('m') => 60,
            Some('h') => 3600,
            _ => 0,
        };
        rest = after;
        if let (Ok(number @ 1..), 1..) = (after[..digits].parse::<u32>(), seconds) {
            text.push_str(&format!("{}s", number * seconds / SHORTER));
            rest = &after[digits + 1..];
        }
    }
    text + rest
}
