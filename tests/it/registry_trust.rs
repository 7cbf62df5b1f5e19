//! Registries that somebody tampers with, and credentials that nobody else may see.

use serde_json::Value as Json;

use crate::signing::Keys;
use crate::support::registry::{Asked, Deed, Exchange, Gate, PASSWORD, Registry, Shop, USER};
use crate::support::remote::Spy;
use crate::support::{Ran, berth, hermetic};

const A: &str = "fleet/clusters/a";

#[test]
#[ignore = "needs a container registry"]
fn an_older_daemon_moves_nothing_back_and_a_moved_tag_is_mended() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let url = format!("oci://{}/fleet", registry.host());
    shop.publish(&url, &[]).expect(0);
    let old = registry.manifest(A, "current").expect("a manifest").0;
    let old_branch = shop.fleet.root().join("old");
    let copied = hermetic("cp").arg("-R").arg(shop.fleet.bare_path()).arg(&old_branch).status();
    assert!(copied.expect("cp runs").success());
    shop.fleet.edit("two");
    shop.publish(&url, &[]).expect(0);
    let new = registry.manifest(A, "current").expect("a manifest").1;

    let mut command = berth();
    command.args(["run", "--once", "--publish", &url, "--repo"]).arg(shop.fleet.root().join("copies/old"));
    let ran = Ran::of(command.arg("--remote").arg(&old_branch)).expect(6);
    assert!(ran.err.contains("already has sequence 2, newer than this daemon's 1"), "{}", ran.err);
    assert_eq!(registry.manifest(A, "current").expect("a manifest").1, new);

    registry.tag(A, "current", &old);
    shop.publish(&url, &[]).expect(0);
    assert_eq!(registry.manifest(A, "current").expect("a manifest").1, new, "the tag is mended");
}

#[test]
#[ignore = "needs a container registry"]
fn credentials_are_those_of_docker_and_nobody_sees_them() {
    let Some(registry) = Registry::start_with_password() else { return };
    let shop = Shop::new();
    let url = format!("oci://{}/fleet", registry.host());
    let config = shop.fleet.root().join("docker");
    std::fs::create_dir(&config).expect("a folder");
    let file = config.join("config.json");
    let write = |password: &str| {
        let auth = berth_base::text::base64::encode(format!("{USER}:{password}").as_bytes());
        let json: Json = serde_json::json!({"auths": {registry.host(): {"auth": auth}}});
        std::fs::write(&file, json.to_string()).expect("a file");
        auth
    };
    let auth = write(PASSWORD);
    let spy = Spy::start(&[PASSWORD, &auth]);
    let ran = shop.publish(&url, &[]).expect(6);
    assert!(
        ran.err.contains("denies access") && ran.err.contains("hint: log in with `docker login`"),
        "{}",
        ran.err
    );
    let flag = file.to_str().expect("text");
    let mut said = String::new();
    let ran = Ran::of(shop.publishing(&url).env("DOCKER_CONFIG", &config)).expect(0);
    said.push_str(&(ran.out + &ran.err));
    let ran = shop.sync("a", &url, &["--registry-auth", flag, "-v"]).expect(0);
    said.push_str(&(ran.out + &ran.err));
    write("wrong");
    shop.fleet.edit("two");
    for ran in
        [shop.publish(&url, &["--registry-auth", flag]), shop.sync("a", &url, &["--registry-auth", flag])]
    {
        let ran = ran.expect(6);
        assert!(ran.err.contains("hint: "), "{}", ran.err);
        said.push_str(&(ran.out + &ran.err));
    }
    let ran = shop.publish(&format!("oci://{USER}:{PASSWORD}@{}/fleet", registry.host()), &[]).expect(2);
    said.push_str(&(ran.out + &ran.err));
    let (_, seen) = spy.finish();
    let seen: Vec<String> = seen.into_iter().filter(|line| !line.contains("oci://berth:")).collect();
    assert!(seen.is_empty(), "{seen:?}");
    for secret in [PASSWORD, &auth] {
        assert!(!said.contains(secret), "{said}");
    }
}

/// Asserts that a member keeps its folder, and says these words with this exit code.
#[track_caller]
fn keeps(shop: &Shop, url: &str, more: &[&str], value: Option<&str>, code: i32, words: &str) {
    let ran = shop.sync("a", url, more).expect(code);
    assert!(ran.err.contains(words), "{words}\n{}", ran.err);
    assert_eq!(shop.fleet.value("a").as_deref(), value);
}

#[test]
#[ignore = "needs a container registry"]
fn a_member_keeps_its_folder_whatever_the_registry_says() {
    let (Some(registry), Some(keys)) = (Registry::start(), Keys::new()) else { return };
    let shop = Shop::new();
    let url = format!("oci://{}/fleet", registry.host());
    let allowed = keys.allow(&[("berth", "")]);
    let allowed = ["--allowed-signers", allowed.to_str().expect("text")];
    let sign = |name: &str| vec!["--signing-key".to_owned(), keys.path(name).display().to_string()];
    let publish = |url: &str, key: &str| {
        let key = sign(key);
        shop.publish(url, &key.iter().map(String::as_str).collect::<Vec<_>>()).expect(0)
    };
    shop.publish(&url, &[]).expect(0);
    keeps(&shop, &url, &allowed, None, 5, "is not trusted");
    publish(&url, "berth");
    shop.sync("a", &url, &allowed).expect(0);
    let (old_pointer, _) = registry.manifest(A, "member").expect("a pointer");

    // An older one: whoever can move the tag has it, and its signature is good.
    shop.fleet.edit("two");
    publish(&url, "berth");
    shop.sync("a", &url, &allowed).expect(0);
    let (pointer, _) = registry.manifest(A, "member").expect("a pointer");
    registry.tag(A, "member", &old_pointer);
    keeps(&shop, &url, &allowed, Some("two"), 5, "has sequence 1, but its last known sequence was 3");

    // Another cluster's, and the folder of another one beside a commit that is signed.
    let (of_b, _) = registry.manifest("fleet/clusters/b", "member").expect("a pointer");
    registry.tag(A, "member", &of_b);
    keeps(&shop, &url, &allowed, Some("two"), 5, "names cluster `b`");
    let _ = std::fs::remove_dir_all(shop.fleet.root().join("copies/oci-a"));
    let mut swapped = pointer.clone();
    swapped["annotations"]["dev.berth.folder"] = old_pointer["annotations"]["dev.berth.folder"].clone();
    registry.tag(A, "member", &swapped);
    keeps(&shop, &url, &allowed, Some("two"), 5, "not the one that the signed commit names");
    for (odd, words) in [
        (Json::Null, "is not a pointer that berth wrote"),
        (Json::from("AAAA"), "names no tree"),
        (Json::from(berth_base::text::base64::encode(format!("tree {}\n", "0".repeat(40)).as_bytes())), ""),
    ] {
        let mut broken = pointer.clone();
        broken["annotations"]["dev.berth.commit"] = odd;
        if broken["annotations"]["dev.berth.commit"].is_null() {
            broken["annotations"].as_object_mut().expect("a map").remove("dev.berth.commit");
        }
        registry.tag(A, "member", &broken);
        keeps(&shop, &url, &allowed, Some("two"), 5, words);
    }
    registry.tag(A, "member", &pointer);
    shop.sync("a", &url, &allowed).expect(0);

    // A layer that is altered where it lies, and one that is altered on the way.
    let folder = pointer["annotations"]["dev.berth.folder"].as_str().expect("a digest");
    let (manifest, _) = registry.manifest(A, folder).expect("a manifest");
    let hex =
        manifest["layers"][0]["digest"].as_str().expect("a digest").trim_start_matches("sha256:").to_owned();
    let _ = std::fs::remove_dir_all(shop.fleet.root().join("copies/oci-a"));
    let data = registry.storage().join(format!("docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]));
    let whole = std::fs::read(&data).expect("the layer");
    let mut altered = whole.clone();
    altered[20] ^= 1;
    std::fs::write(&data, altered).expect("a file");
    keeps(&shop, &url, &allowed, Some("two"), 5, "not those of its digest");
    std::fs::write(&data, whole).expect("a file");
    let _ = std::fs::remove_dir_all(shop.fleet.root().join("copies/oci-a"));
    let gate = Gate::to(registry.port);
    let through = format!("oci://{}/fleet", gate.host());
    let path = format!("/blobs/sha256:{hex}");
    let wanted = path.clone();
    gate.rule(move |asked| {
        let alter = |answer: &mut Exchange| {
            let middle = answer.body.len() / 2;
            answer.body[middle] ^= 1;
        };
        if asked.path.ends_with(&wanted) { Deed::Alter(alter) } else { Deed::Pass }
    });
    keeps(&shop, &through, &allowed, Some("two"), 5, "not those of its digest");
    let wanted = path.clone();
    gate.rule(move |asked| if asked.path.ends_with(&wanted) { Deed::CutAnswer(100) } else { Deed::Pass });
    keeps(&shop, &through, &allowed, Some("two"), 6, "cannot be reached");
    gate.no_rule();
    shop.sync("a", &through, &allowed).expect(0);

    // Signed by a key that nobody allows.
    shop.fleet.edit("three");
    publish(&url, "other");
    keeps(&shop, &through, &allowed, Some("two"), 5, "is not trusted");
    shop.sync("a", &through, &[]).expect(0);
}

#[test]
#[ignore = "needs a container registry"]
fn a_hostile_registry_gets_no_login_for_others_and_no_memory() {
    let Some(registry) = Registry::start() else { return };
    let (shop, gate, elsewhere) = (Shop::new(), Gate::to(registry.port), Gate::to(registry.port));
    let url = format!("oci://{}/fleet", gate.host());
    shop.publish(&url, &[]).expect(0);
    let config = shop.fleet.root().join("config.json");
    let auths = serde_json::json!({"auths": {gate.host(): {"username": USER, "password": PASSWORD}}});
    std::fs::write(&config, auths.to_string()).expect("a file");
    let login = ["--registry-auth", config.to_str().expect("text")];
    let has_login = |asked: &[Asked]| {
        asked.iter().any(|asked| asked.headers.iter().any(|(name, _)| name == "authorization"))
    };

    // It asks for a login and sends the blob's reader elsewhere, as registries with a store of their own do.
    let other = elsewhere.host();
    gate.rule(move |asked| {
        let is_in = asked.headers.iter().any(|(name, _)| name == "authorization");
        match (is_in, asked.path.contains("/blobs/")) {
            (false, _) => Deed::answer(401, &[("www-authenticate", "Basic realm=\"r\"")], b""),
            (true, true) => Deed::answer(307, &[("location", &format!("http://{other}{}", asked.path))], b""),
            (true, false) => Deed::Pass,
        }
    });
    shop.sync("a", &url, &login).expect(0);
    assert!(has_login(&gate.take()), "it is logged in");
    let taken = elsewhere.take();
    assert!(!taken.is_empty() && !has_login(&taken), "{taken:?}");

    // Answers without end, or that lead in a circle, or that are something else.
    let _ = std::fs::remove_dir_all(shop.fleet.root().join("copies/oci-a"));
    type Rule = fn(&Asked) -> Deed;
    let rules: [(Rule, &str); 7] = [
        (|asked| Deed::answer(307, &[("location", &asked.path)], b""), "redirects too often"),
        (|_| Deed::answer(307, &[("location", "file:///etc/passwd")], b""), "an address that it names"),
        (
            |asked| {
                if asked.method == "HEAD" { Deed::Pass } else { Deed::answer(200, &[], &[b' '; 6 << 20]) }
            },
            "more than 5242880 bytes",
        ),
        (
            |asked| if asked.method == "HEAD" { Deed::Pass } else { Deed::answer(200, &[], b"{}") },
            "not those of its digest",
        ),
        (|_| Deed::answer(200, &[("docker-content-digest", "sha256:xyz")], b""), "digest is not readable"),
        (|_| Deed::answer(500, &[], b"s3cret-p4ss"), "500"),
        (
            |_| Deed::answer(401, &[("www-authenticate", "Bearer realm=\"gopher://x\"")], b""),
            "its address is not https",
        ),
    ];
    for (rule, words) in rules {
        gate.rule(rule);
        let ran = shop.sync("a", &url, &login);
        assert!(matches!(ran.code, 5 | 6) && ran.err.contains(words), "{words}: {} {}", ran.code, ran.err);
        assert!(!ran.err.contains(PASSWORD), "{}", ran.err);
        assert_eq!(shop.fleet.value("a").as_deref(), Some("one"));
    }
    gate.no_rule();
    shop.sync("a", &url, &login).expect(0);
}

#[test]
#[ignore = "needs a container registry"]
fn a_server_of_tokens_is_asked_once_for_each_repository() {
    let Some(registry) = Registry::start() else { return };
    let (shop, gate, tokens) = (Shop::new(), Gate::to(registry.port), Gate::to(registry.port));
    let realm = format!("Bearer realm=\"http://{}/token\",service=\"r\",scope=\"x\"", tokens.host());
    tokens.rule(|asked| {
        let basic =
            format!("Basic {}", berth_base::text::base64::encode(format!("{USER}:{PASSWORD}").as_bytes()));
        if asked.headers.iter().any(|(name, value)| name == "authorization" && *value == basic) {
            Deed::answer(200, &[], b"{\"token\": \"t0ken\", \"expires_in\": 300}")
        } else {
            Deed::answer(401, &[], b"")
        }
    });
    gate.rule(move |asked| {
        let is_in =
            asked.headers.iter().any(|(name, value)| name == "authorization" && value == "Bearer t0ken");
        if is_in { Deed::Pass } else { Deed::answer(401, &[("www-authenticate", &realm)], b"") }
    });
    let url = format!("oci://{}/fleet", gate.host());
    let config = shop.fleet.root().join("config.json");
    let auths = serde_json::json!({"auths": {gate.host(): {"username": USER, "password": PASSWORD}}});
    std::fs::write(&config, auths.to_string()).expect("a file");
    let login = ["--registry-auth", config.to_str().expect("text")];
    shop.publish(&url, &login).expect(0);
    let asked = tokens.take();
    // Reading and writing each cluster's repository.
    assert!(asked.len() <= 6, "{asked:?}");
    assert!(
        asked
            .iter()
            .any(|asked| asked.path.contains("scope=repository%3Afleet%2Fclusters%2Fa%3Apull%2Cpush")),
        "{asked:?}"
    );
    shop.sync("a", &url, &login).expect(0);
    assert_eq!(registry.tags(A), ["current", "member", "seq-1"]);
}
