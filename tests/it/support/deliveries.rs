//! Webhooks in the form in which each forge sends them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;
use sha2::{Digest as _, Sha256};

/// The key below GitLab's signing token.
pub const SIGNING_KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

pub const SECRET: &str = "a secret that a forge signs with";

/// A delivery of a forge: its headers and the body.
pub type Delivery = (Vec<(&'static str, String)>, Vec<u8>);

/// RFC 2104, for keys of at most 64 bytes.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let pad = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::digest([&pad(0x36)[..], message].concat());
    Sha256::digest([&pad(0x5c)[..], &inner].concat()).to_vec()
}

pub fn signature(secret: &str, body: &[u8]) -> String {
    hmac(secret.as_bytes(), body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A delivery of GitHub's with any body.
pub fn github(secret: &str, event: &str, body: &str) -> Delivery {
    let headers = vec![
        ("User-Agent", "GitHub-Hookshot/044aadd".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("X-GitHub-Hook-ID", "292430182".to_owned()),
        ("X-GitHub-Event", event.to_owned()),
        ("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958".to_owned()),
        ("X-Hub-Signature", "sha1=d57c68ca6f92289e6987922ff26938930f6e66a2".to_owned()),
        ("X-Hub-Signature-256", format!("sha256={}", signature(secret, body.as_bytes()))),
    ];
    (headers, body.as_bytes().to_vec())
}

/// A delivery with GitLab's signing token, or of Standard Webhooks.
pub fn dated(id: &str, body: &[u8]) -> Delivery {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs();
    let signed = [format!("{id}.{now}.").as_bytes(), body].concat();
    let signature = berth_base::text::base64::encode(&hmac(SIGNING_KEY, &signed));
    let headers = vec![
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", now.to_string()),
        ("webhook-signature", format!("v1,{signature}")),
    ];
    (headers, body.to_vec())
}

/// Sends a delivery; gives the status of the answer, or nothing where the connection was closed.
pub fn send(address: &str, (headers, body): &Delivery) -> Option<u16> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let mut request = format!("POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let _ = stream.write_all(&[request.as_bytes(), b"\r\n", body].concat());
    status(stream)
}

pub fn status(mut stream: TcpStream) -> Option<u16> {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}

const COMMIT: &str = "da1560886d4f094c3e6c9ef40349f7d38b5d27d7";
const BEFORE: &str = "95790bf891e76fee5e1747ab589903a6a1f80f22";
const REF: &str = "refs/heads/main";

/// A push as each forge tells it.
pub fn pushes() -> Vec<(&'static str, Delivery)> {
    let owned = |headers: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
    };
    let push = |more: &str| {
        json!({"ref": REF, "before": BEFORE, "after": COMMIT, "compare": more, "created": false, "forced": false,
            "commits": [{"id": COMMIT, "message": "Update\n", "timestamp": "2026-11-20T10:00:00Z",
                "author": {"name": "Ann", "email": "ann@example.com"}, "modified": ["apps/web.yaml"]}],
            "repository": {"id": 186_853_002, "full_name": "team/fleet", "default_branch": "main"},
            "pusher": {"name": "ann", "email": "ann@example.com"}})
        .to_string()
    };
    let gitea = push("gitea").into_bytes();
    let digits = signature(SECRET, &gitea);
    let uuid = "f6266f16-1bf3-46a5-9ea4-602e06ead473";
    let words = format!("sha256={digits}");
    let from_gitea = owned(&[
        ("Content-Type", "application/json"),
        ("X-GitHub-Delivery", uuid),
        ("X-GitHub-Event", "push"),
        ("X-GitHub-Event-Type", "push"),
        ("X-Gitea-Delivery", uuid),
        ("X-Gitea-Event", "push"),
        ("X-Gitea-Event-Type", "push"),
        ("X-Gitea-Signature", &digits),
        ("X-Gogs-Delivery", uuid),
        ("X-Gogs-Event", "push"),
        ("X-Gogs-Event-Type", "push"),
        ("X-Gogs-Signature", &digits),
        ("X-Hub-Signature", "sha1=0123456789012345678901234567890123456789"),
        ("X-Hub-Signature-256", &words),
    ]);
    let forgejo = push("forgejo").into_bytes();
    let digits = signature(SECRET, &forgejo);
    let from_forgejo = owned(&[
        ("X-Forgejo-Delivery", uuid),
        ("X-Forgejo-Event", "push"),
        ("X-Forgejo-Event-Type", "push"),
        ("X-Forgejo-Signature", &digits),
        ("X-Gitea-Delivery", uuid),
        ("X-Gitea-Event", "push"),
        ("X-Gitea-Signature", &digits),
    ]);
    let gitlab =
        json!({"object_kind": "push", "event_name": "push", "before": BEFORE, "after": COMMIT, "ref": REF,
        "checkout_sha": COMMIT, "user_username": "ann", "project_id": 15, "total_commits_count": 1,
        "project": {"path_with_namespace": "team/fleet", "default_branch": "main"}})
        .to_string()
        .into_bytes();
    let from_gitlab = owned(&[
        ("User-Agent", "GitLab/18.6.0"),
        ("Idempotency-Key", "f5e5f430-f57b-4e6e-9fac-d9128cd7232f"),
        ("X-Gitlab-Event", "Push Hook"),
        ("X-Gitlab-Webhook-UUID", "1f8b0b2b-7bd1-4e2c-9b7a-8c1a4a9a0a11"),
        ("X-Gitlab-Event-UUID", "13792a34-cac6-4fda-95a8-c58e00a3954e"),
        ("X-Gitlab-Instance", "https://gitlab.example.com"),
        ("X-Gitlab-Token", SECRET),
    ]);
    let (mut from_signing_gitlab, _) = dated("f5e5", &gitlab);
    from_signing_gitlab.extend(owned(&[("X-Gitlab-Event", "Push Hook")]));
    let bitbucket = json!({"actor": {"display_name": "Ann"}, "repository": {"full_name": "team/fleet"},
        "push": {"changes": [{"new": {"type": "branch", "name": "main", "target": {"hash": COMMIT}},
            "old": {"type": "branch", "name": "main", "target": {"hash": BEFORE}}, "forced": false}]}})
    .to_string()
    .into_bytes();
    let words = format!("sha256={}", signature(SECRET, &bitbucket));
    let from_bitbucket = owned(&[
        ("X-Event-Key", "repo:push"),
        ("X-Hook-UUID", "{a3e1f4c2-0000-4c1c-8f0e-000000000001}"),
        ("X-Request-UUID", "a3e1f4c2-0000-4c1c-8f0e-000000000002"),
        ("X-Attempt-Number", "1"),
        ("X-Hub-Signature", &words),
    ]);
    vec![
        ("GitHub", github(SECRET, "push", &push("github"))),
        ("GitLab", (from_gitlab, gitlab.clone())),
        ("GitLab with a signing token", (from_signing_gitlab, gitlab)),
        ("Gitea", (from_gitea, gitea)),
        ("Forgejo", (from_forgejo, forgejo)),
        ("Bitbucket", (from_bitbucket, bitbucket)),
        ("a plain POST", (owned(&[("Authorization", &format!("Bearer {SECRET}"))]), Vec::new())),
    ]
}
