//! `berth run --webhook` and what forges really sent, kept by published packages, with each forge's headers and way of
//! showing that it knows the secret.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;

use crate::support::deliveries::{Delivery, SECRET, SIGNING_KEY, dated, github, signature};
use crate::support::programs::{made, skipped};
use crate::webhooks::Listening;

/// A forge: the folder of its payloads, the kind that the headers of a file's event name, and the headers.
struct Forge {
    name: &'static str,
    folder: &'static str,
    kind: fn(&str) -> String,
    sign: fn(&str, Vec<u8>) -> Delivery,
    /// The files of pushes. What other events tell is no push.
    pushes: &'static [&'static str],
    /// The headers do not say which event it is.
    is_silent: bool,
}

const FORGES: [Forge; 8] = [
    Forge {
        name: "GitLab",
        folder: "gitlab",
        kind: gitlab_kind,
        sign: |kind, body| {
            // Each delivery has its own number.
            let number = signature("uuid", &body)[..32].to_owned();
            (
                owned(&[("X-Gitlab-Event", kind), ("X-Gitlab-Token", SECRET), ("Idempotency-Key", &number)]),
                body,
            )
        },
        pushes: &["push-event", "tag-event"],
        is_silent: false,
    },
    Forge {
        name: "GitLab with a signing token",
        folder: "gitlab",
        kind: gitlab_kind,
        sign: |kind, body| {
            let (mut headers, body) = dated("f5e5f430", &body);
            headers.extend(owned(&[("X-Gitlab-Event", kind)]));
            (headers, body)
        },
        pushes: &["push-event", "tag-event"],
        is_silent: false,
    },
    Forge {
        name: "Gitea",
        folder: "gitea",
        kind: snake,
        sign: |kind, body| {
            let digits = signature(SECRET, &body);
            let words = format!("sha256={digits}");
            let headers = [
                ("X-Gitea-Event", kind),
                ("X-Gitea-Signature", &digits),
                ("X-Gogs-Event", kind),
                ("X-Gogs-Signature", &digits),
                ("X-Hub-Signature-256", &words),
                ("X-GitHub-Event", kind),
            ];
            (owned(&headers), body)
        },
        pushes: &["push-event", "create-event", "delete-event"],
        is_silent: false,
    },
    Forge {
        name: "Forgejo, whose payloads are Gitea's",
        folder: "gitea",
        kind: snake,
        sign: |kind, mut body| {
            // Not the same body again, which Gitea sent before.
            body.push(b'\n');
            let digits = signature(SECRET, &body);
            let headers = [
                ("X-Forgejo-Event", kind),
                ("X-Forgejo-Signature", &digits),
                ("X-Gitea-Event", kind),
                ("X-Gitea-Signature", &digits),
            ];
            (owned(&headers), body)
        },
        pushes: &["push-event", "create-event", "delete-event"],
        is_silent: false,
    },
    Forge {
        name: "Gogs",
        folder: "gogs",
        kind: snake,
        sign: |kind, body| {
            let digits = signature(SECRET, &body);
            (owned(&[("X-Gogs-Event", kind), ("X-Gogs-Signature", &digits)]), body)
        },
        pushes: &["push-event", "create-event", "delete-event"],
        is_silent: false,
    },
    Forge {
        name: "Bitbucket Cloud",
        folder: "bitbucket",
        kind: |file| file.replacen('-', ":", 1).replace("pull:request-", "pullrequest:").replace('-', "_"),
        sign: hub,
        pushes: &["repo-push"],
        is_silent: false,
    },
    Forge {
        name: "Bitbucket Data Center",
        folder: "bitbucket-server",
        kind: |file| file.replacen('-', ":", 1).replace('-', "_"),
        sign: hub,
        pushes: &["repo-refs-changed"],
        is_silent: false,
    },
    Forge {
        name: "Azure DevOps",
        folder: "azuredevops",
        kind: |file| file.to_owned(),
        sign: |_, body| {
            let login = berth_base::text::base64::encode(format!("berth:{SECRET}").as_bytes());
            (owned(&[("Authorization", &format!("Basic {login}"))]), body)
        },
        pushes: &["git.push"],
        is_silent: true,
    },
];

fn owned(headers: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let json = [("Content-Type", "application/json")];
    json.iter().chain(headers).map(|(name, value)| (*name, (*value).to_owned())).collect()
}

fn hub(kind: &str, body: Vec<u8>) -> Delivery {
    let words = format!("sha256={}", signature(SECRET, &body));
    (owned(&[("X-Event-Key", kind), ("X-Hub-Signature", &words)]), body)
}

/// `push-event` is `Push Hook`, and all that begins with `system` is a `System Hook`.
fn gitlab_kind(file: &str) -> String {
    let event = file.trim_end_matches("-event");
    match event {
        "tag" => "Tag Push Hook".to_owned(),
        _ if event.starts_with("system") => "System Hook".to_owned(),
        _ => {
            let words = event.split('-').map(|word| word[..1].to_uppercase() + &word[1..]);
            words.chain(["Hook".to_owned()]).collect::<Vec<_>>().join(" ")
        }
    }
}

fn snake(file: &str) -> String {
    file.trim_end_matches("-event").replace('-', "_")
}

/// The payloads of a forge, by the names of their files.
fn payloads(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read(path).expect("a file"))).collect()
}

/// Sends a delivery as often as it is sent away for coming too soon.
fn deliver(listening: &Listening, delivery: &Delivery) -> Option<u16> {
    loop {
        match listening.send(delivery) {
            Some(429) => std::thread::yield_now(),
            status => return status,
        }
    }
}

#[test]
#[ignore = "needs payloads of forges"]
fn pushes_that_forges_sent_wake_the_daemon_and_their_other_events_do_not() {
    let folder = match made(&["ready", "payloads"], "payloads") {
        Ok(folder) => folder,
        Err(why) => return skipped("the payloads of forges", &why),
    };
    let signing = berth_base::text::base64::encode(SIGNING_KEY);
    let mut listening = Listening::start(&format!("{SECRET}\nwhsec_{signing}\n"));
    let (mut accepted, mut ignored) = (0, 0);
    let mut examined = BTreeSet::new();
    for forge in FORGES {
        let (mut pushes, mut others) = (0, 0);
        for (file, body) in payloads(&folder.join(forge.folder)) {
            let is_push = forge.pushes.contains(&file.as_str());
            let is_heard = is_push || forge.is_silent || (forge.kind)(&file) == "System Hook";
            if is_push {
                listening.edit();
            }
            let delivery = (forge.sign)(&(forge.kind)(&file), body.clone());
            assert_eq!(deliver(&listening, &delivery), Some(202), "{} {file}", forge.name);
            if is_push {
                listening.follows();
                pushes += 1;
            }
            others += u64::from(!is_push);
            (accepted, ignored) = (accepted + u64::from(is_heard), ignored + u64::from(!is_heard));
            // The same with one more byte is of a stranger.
            let (headers, mut body) = delivery;
            body.push(b' ');
            let by_token = headers.iter().any(|(name, _)| ["X-Gitlab-Token", "Authorization"].contains(name));
            let stranger = deliver(&listening, &(headers, body));
            assert!(by_token || stranger == Some(401), "{} {file}: {stranger:?}", forge.name);
            accepted += u64::from(by_token && is_heard && forge.is_silent);
            ignored += u64::from(by_token && !is_heard);
        }
        assert_eq!(pushes, forge.pushes.len(), "{}", forge.name);
        assert!(others > 0, "{}", forge.name);
        examined.insert(forge.folder);
    }
    assert_eq!(examined.len(), 6);
    assert_eq!((listening.count("accepted"), listening.count("ignored")), (accepted, ignored));

    let examples = std::fs::read_to_string(folder.join("github.json")).expect("a file");
    let examples: Vec<Json> = serde_json::from_str(&examples).expect("JSON");
    let (mut heard, mut sent) = (BTreeSet::new(), 0);
    for event in &examples {
        let name = event["name"].as_str().expect("a name");
        for example in event["examples"].as_array().expect("a list") {
            let body = example.to_string();
            let is_push = ["push", "create", "delete"].contains(&name);
            let is_new = !is_push || heard.insert(body.clone());
            let expected = if is_new { Some(202) } else { Some(200) };
            assert_eq!(deliver(&listening, &github(SECRET, name, &body)), expected, "GitHub {name}");
            (accepted, ignored) = (accepted + u64::from(is_push && is_new), ignored + u64::from(!is_push));
            sent += 1;
        }
    }
    assert!(sent > 300 && heard.len() > 10, "{sent} {}", heard.len());
    assert_eq!((listening.count("accepted"), listening.count("ignored")), (accepted, ignored));
    let (code, log) = listening.stop();
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains(SECRET), "{log}");
}
