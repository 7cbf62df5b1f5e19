//! Publishing to a container registry, and members that follow one.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::alerts::{fires, shows_what_is_documented};
use crate::support::page::page;
use crate::support::registry::{Asked, Deed, Gate, Registry, Shop};
use crate::support::remote::{Fleet, Folder, Https, Running, Server};
use crate::support::wait::until;
use crate::support::{Repo, cluster, config_map, namespace};

const EMPTY: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

#[test]
#[ignore = "needs a container registry"]
fn the_registry_of_the_tests_keeps_what_it_is_given_behind_its_gate() {
    let Some(mut registry) = Registry::start_with_password() else { return };
    let gate = Gate::to(registry.port);
    let started = registry.call("POST", "a/blobs/uploads/", &[], b"");
    assert_eq!(started.status, 202, "{started:?}");
    let place = started.header("location").expect("a place").split_once("/v2/").expect("a path").1.to_owned();
    assert_eq!(registry.call("PUT", &format!("{place}&digest={EMPTY}"), &[], b"{}").status, 201);
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let part =
        serde_json::json!({"mediaType": "application/vnd.oci.empty.v1+json", "digest": EMPTY, "size": 2});
    registry.tag(
        "a",
        "one",
        &serde_json::json!({"schemaVersion": 2, "mediaType": kind, "config": part, "layers": [part]}),
    );

    registry.stop();
    registry.start_again();
    assert_eq!(registry.tags("a"), ["one"]);
    let (manifest, digest) = registry.manifest("a", "one").expect("a manifest");
    assert_eq!(manifest["config"]["digest"], EMPTY);
    assert_eq!(registry.blob("a", EMPTY), b"{}");

    let ask = |port| crate::support::registry::call(port, "GET", "/v2/a/tags/list", &[], b"");
    assert_eq!(ask(gate.port).expect("an answer").status, 401, "it wants a password");
    gate.rule(|asked| if asked.number == 1 { Deed::Cut } else { Deed::answer(418, &[], b"tea") });
    assert!(ask(gate.port).is_err());
    let answer = crate::support::registry::call(gate.port, "PUT", "/cup", &[], b"leaves");
    assert_eq!(answer.expect("an answer").body, b"tea");
    let asked = gate.take();
    assert_eq!(asked.iter().map(|asked| asked.status).collect::<Vec<_>>(), [401, 0, 418]);
    assert_eq!(asked[2].body, b"leaves");

    assert_eq!(registry.call("DELETE", &format!("a/manifests/{digest}"), &[], b"").status, 202);
    assert_eq!(registry.tags("a"), [""; 0]);
}

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// A repository that a fleet of the tests is published below.
const A: &str = "fleet/clusters/a";

fn writes(asked: &[Asked]) -> Vec<&Asked> {
    asked.iter().filter(|asked| !matches!(asked.method.as_str(), "GET" | "HEAD")).collect()
}

#[test]
#[ignore = "needs a container registry"]
fn folders_are_published_and_followed_and_an_unchanged_one_costs_one_look() {
    let Some(registry) = Registry::start() else { return };
    let (shop, gate) = (Shop::new(), Gate::to(registry.port));
    let url = format!("oci://{}/fleet", gate.host());
    let ran = shop.publish(&url, &[]).expect(0);
    assert!(ran.out.contains("published 3 folders to oci://"), "{}", ran.out);
    assert_eq!(registry.tags(A), ["current", "member", "seq-1"]);
    let (manifest, digest) = registry.manifest(A, "current").expect("a manifest");
    assert_eq!(manifest["layers"].as_array().map(Vec::len), Some(1));
    assert_eq!(manifest["layers"][0]["mediaType"], LAYER);
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.oci.empty.v1+json");
    // Equal folders have one digest, in whichever repository.
    for (repository, tag) in [(A, "seq-1"), ("fleet/clusters/b", "current"), ("fleet/clusters/c", "current")]
    {
        assert_eq!(registry.manifest(repository, tag).expect("a manifest").1, digest);
    }

    let ran = shop.sync("a", &url, &[]).expect(0);
    assert_eq!(shop.fleet.value("a").as_deref(), Some("one"), "{}", ran.out);
    assert!(ran.err.is_empty(), "{}", ran.err);

    // What has not changed is neither pushed nor pulled again.
    gate.take();
    let ran = shop.publish(&url, &[]).expect(0);
    let asked = gate.take();
    assert!(writes(&asked).is_empty() && !ran.out.contains("folder"), "{asked:?} {}", ran.out);
    shop.sync("a", &url, &[]).expect(0);
    assert!(!gate.take().iter().any(|asked| asked.path.contains("/blobs/")));

    shop.fleet.edit("two");
    shop.publish(&url, &["--publish-keep", "1"]).expect(0);
    assert_eq!(registry.tags(A), ["current", "member", "seq-2"], "the old tag is gone");
    let gone = registry.manifest(A, &digest).is_none();
    assert!(gone, "the old folder is gone");
    shop.sync("a", &url, &["--dry-run"]).expect(0);
    assert_eq!(shop.fleet.value("a").as_deref(), Some("one"));
    shop.sync("a", &url, &[]).expect(0);
    assert_eq!(shop.fleet.value("a").as_deref(), Some("two"));

    // An edit that is taken back is a new sequence of the old folder, under its old digest.
    shop.fleet.edit("one");
    shop.publish(&url, &[]).expect(0);
    assert_eq!(registry.manifest(A, "current").expect("a manifest").1, digest);
    assert_eq!(registry.tags(A), ["current", "member", "seq-2", "seq-3"]);
    let ran = shop.sync("d", &url, &[]).expect(6);
    assert!(ran.err.contains("has no `refs/berth/clusters/d`") && ran.err.contains("hint: "), "{}", ran.err);
}

/// A remote at an address.
struct At(String);

impl Server for At {
    fn access(&self) -> Vec<String> {
        vec!["--remote".to_owned(), self.0.clone()]
    }
    fn start(&mut self) {}
    fn stop(&mut self) {}
}

#[test]
#[ignore = "needs a container registry"]
fn a_member_that_polls_asks_one_thing_and_takes_what_is_new() {
    let Some(registry) = Registry::start() else { return };
    let (shop, gate) = (Shop::new(), Gate::to(registry.port));
    let url = format!("oci://{}/fleet", gate.host());
    shop.publish(&url, &[]).expect(0);
    let member = Running::member(&shop.fleet, "a", &At(url.clone()), &[]);
    member.wait_for(&["no status is sent, since a registry takes none"]);
    until("the folder is applied", || shop.fleet.value("a").as_deref() == Some("one"));
    gate.take();
    let mut asked = Vec::new();
    until("five polls", || {
        asked.extend(gate.take());
        asked.len() >= 5
    });
    assert!(
        asked.iter().all(|asked| asked.method == "HEAD" && asked.path.ends_with("/manifests/member")),
        "{asked:?}"
    );
    println!("an unchanged poll: {} bytes sent, {} received", asked[0].sent, asked[0].received);
    shop.fleet.edit("two");
    shop.publish(&format!("oci://{}/fleet", registry.host()), &[]).expect(0);
    until("the edit arrives", || shop.fleet.value("a").as_deref() == Some("two"));
    let pulled: Vec<Asked> = gate.take().into_iter().filter(|asked| asked.method == "GET").collect();
    assert_eq!(pulled.len(), 3, "pointer, manifest, layer: {pulled:?}");
    let (code, log) = member.stop();
    assert_eq!(code, 0, "{log}");
}

#[test]
#[ignore = "needs a container registry"]
fn a_part_that_is_gone_from_the_registry_is_pushed_again_and_members_take_the_folder() {
    let Some(registry) = Registry::start() else { return };
    let shop = Shop::new();
    let url = format!("oci://{}/fleet", registry.host());
    shop.publish(&url, &[]).expect(0);
    let (manifest, digest) = registry.manifest(A, "current").expect("a manifest");
    let layer = manifest["layers"][0]["digest"].as_str().expect("a digest").to_owned();
    for (parts, name) in [
        (vec![format!("blobs/{layer}")], "the layer"),
        (vec![format!("manifests/{digest}")], "the manifest"),
        (vec![format!("manifests/{digest}"), format!("blobs/{layer}"), format!("blobs/{EMPTY}")], "all"),
    ] {
        for part in &parts {
            assert_eq!(registry.call("DELETE", &format!("{A}/{part}"), &[], b"").status, 202, "{part}");
        }
        let _ = std::fs::remove_dir_all(shop.fleet.root().join("copies/oci-a"));
        let lost = shop.sync("a", &url, &[]);
        assert_ne!(lost.code, 0, "{name}: {}{}", lost.out, lost.err);
        shop.publish(&url, &[]).expect(0);
        assert_whole(&shop, &registry, "fleet");
        shop.sync("a", &url, &[]).expect(0);
    }
}

/// A fleet of so many clusters; an edit changes ten of them.
fn many_clusters(count: usize) -> Repo {
    let clusters: String = (0..count)
        .map(|at| {
            cluster(&format!("m{at:04}"), &[("ring", if at < 10 { "first" } else { "later" })]) + "---\n"
        })
        .collect();
    let first = config_map("web", "one", "{clusterSelector: {matchLabels: {ring: first}}}");
    let all = config_map("base", "one", "{clusterSelector: {}}");
    Repo::with(&[
        ("clusters/all.yaml", &clusters),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &first),
        ("apps/base.yaml", &all),
    ])
}

/// `BERTH_REGISTRY_CLUSTERS=1000` takes that many (60 by default).
#[test]
#[ignore = "needs a container registry"]
fn an_edit_on_ten_of_many_clusters_costs_ten_folders() {
    let Some(registry) = Registry::start() else { return };
    let count = std::env::var("BERTH_REGISTRY_CLUSTERS").map_or(60, |count| count.parse().expect("a number"));
    let shop = Shop::of(Fleet::of(many_clusters(count)));
    let gate = Gate::to(registry.port);
    let url = format!("oci://{}/fleet", gate.host());
    shop.publish(&url, &["--max-removed-clusters", "100%"]).expect(0);
    let bytes = |asked: &[Asked]| asked.iter().map(|asked| asked.sent + asked.received).sum::<usize>();
    let first = gate.take();
    let mounted = first.iter().filter(|asked| asked.path.contains("mount=") && asked.status == 201).count();
    assert!(mounted > count, "{mounted} blobs are mounted: equal folders, and the empty config");
    println!("{count} clusters, first publication: {} requests, {} bytes", first.len(), bytes(&first));
    let clusters: Vec<String> = ["m0003", "m0055"].map(str::to_owned).into();
    for cluster in &clusters {
        shop.sync(cluster, &url, &[]).expect(0);
    }
    gate.take();
    let selector = "{clusterSelector: {matchLabels: {ring: first}}}";
    shop.fleet.people.write("apps/web.yaml", config_map("web", "two", selector));
    shop.fleet.people.commit("an edit");
    shop.fleet.push();
    // A process that knows nothing looks at every pointer, and changes ten.
    shop.publish(&url, &[]).expect(0);
    let edit = gate.take();
    let changed: BTreeSet<&str> =
        writes(&edit).iter().filter_map(|asked| asked.path.split('/').nth(4)).collect();
    assert_eq!(changed.len(), 10, "{changed:?}");
    let of_changed: Vec<Asked> = edit
        .iter()
        .filter(|asked| asked.path.split('/').nth(4).is_some_and(|name| changed.contains(name)))
        .cloned()
        .collect();
    println!(
        "an edit on 10 of {count}: {} requests, {} bytes for the ten folders; {} requests, {} bytes with a look at all",
        of_changed.len(),
        bytes(&of_changed),
        edit.len(),
        bytes(&edit)
    );
    assert!(of_changed.len() <= 10 * 9, "{of_changed:?}");
    for (cluster, most) in clusters.iter().zip([4, 2]) {
        shop.sync(cluster, &url, &[]).expect(0);
        let asked = gate.take();
        println!("a member {cluster}: {} requests, {} bytes", asked.len(), bytes(&asked));
        assert!(asked.len() <= most, "{asked:?}");
    }
    // The same in Git, over http: what `cargo bench --bench polling` counts for a whole fleet.
    let Some(server) = Https::open_to_all(shop.fleet.root()) else { return };
    let gate = Gate::to(server.port);
    let remote = At(format!("http://{}/fleet.git", gate.host()));
    for cluster in &clusters {
        shop.fleet.sync_once(cluster, &remote, &["--allow-plain", "--no-report"]).expect(0);
        let asked = gate.take();
        println!("the same member by Git, from nothing: {} requests, {} bytes", asked.len(), bytes(&asked));
    }
    shop.fleet.sync_once("m0003", &remote, &["--allow-plain", "--no-report"]).expect(0);
    let asked = gate.take();
    println!("an unchanged poll by Git: {} requests, {} bytes", asked.len(), bytes(&asked));
    assert!(asked.len() <= 3, "{asked:?}");
    println!("processes: {} and {}", registry.pid(), server.pid());
}

#[test]
#[ignore = "needs a container registry"]
fn a_registry_that_is_away_holds_no_publication_up_and_gets_what_it_missed() {
    let Some(mut registry) = Registry::start() else { return };
    let shop = Shop::new();
    let url = format!("oci://{}/fleet", registry.host());
    registry.stop();
    let ran = shop.publish(&url, &[]).expect(6);
    assert!(
        ran.out.contains("published ") && ran.err.contains("folders not in the registry"),
        "{} {}",
        ran.out,
        ran.err
    );
    assert!(shop.fleet.has("refs/berth/clusters/a"), "Git has it");
    let more = ["--publish", &url, "--metrics", "127.0.0.1:0"];
    let daemon = Running::daemon(&shop.fleet, &Folder::of(&shop.fleet), &more);
    daemon.wait_for(&["publishing folders to the registry failed; retrying"]);
    let address = daemon.address("serving /metrics");
    let behind = |count: &str| {
        let line = format!("berth_run_registry_behind_clusters {count}");
        page(&address, "/metrics").lines().any(|shown| shown == line)
    };
    until("the page tells", || behind("3"));
    let outage = page(&address, "/metrics");
    shop.fleet.edit("two");
    until("Git has the edit", || {
        shop.fleet.bare(&["cat-file", "-p", "refs/berth/clusters/a"]).contains("Berth-Seq: 2")
    });
    registry.start_again();
    daemon.wait_for(&["the registry accepts folders again"]);
    until("nothing is behind", || behind("0"));
    let calm = page(&address, "/metrics");
    fires(&calm, &calm, 60, &[]);
    fires(&outage, &outage, 60, &["BerthRegistryIsBehind"]);
    shows_what_is_documented(&calm, &["berth_run_registry_"]);
    until("the newest is there", || registry.tags(A).contains(&"seq-2".to_owned()));
    let (code, log) = daemon.stop();
    assert_eq!(code, 0, "{log}");
    registry.stop();
    shop.sync("a", &url, &[]).expect(6);
    registry.start_again();
    shop.sync("a", &url, &[]).expect(0);
    registry.stop();
    let ran = shop.sync("a", &url, &[]).expect(6);
    assert!(ran.err.contains("cannot be reached"), "{}", ran.err);
    assert_eq!(shop.fleet.value("a").as_deref(), Some("two"), "the last good folder stays");
}

/// Everything that a tag leads to is there, and a member takes it.
fn assert_whole(shop: &Shop, registry: &Registry, prefix: &str) {
    for cluster in ["a", "b", "c"] {
        let repository = format!("{prefix}/clusters/{cluster}");
        for tag in registry.tags(&repository) {
            let (manifest, _) = registry.manifest(&repository, &tag).expect("a manifest");
            for part in manifest["layers"].as_array().into_iter().flatten().chain([&manifest["config"]]) {
                registry.blob(&repository, part["digest"].as_str().expect("a digest"));
            }
            if let Some(folder) = manifest["annotations"]["dev.berth.folder"].as_str() {
                assert!(registry.manifest(&repository, folder).is_some(), "{repository} {tag}");
                let current = registry.manifest(&repository, "current").expect("a tag").1;
                assert_eq!(current, folder, "the pointer moves last");
            }
        }
    }
    let url = format!("oci://{}/{prefix}", registry.host());
    let _ = std::fs::remove_dir_all(shop.fleet.root().join("copies/oci-a"));
    let ran = shop.sync("a", &url, &[]);
    assert!(ran.code == 0 || ran.err.contains("has no `refs/berth/clusters/a`"), "{}", ran.err);
}

#[test]
#[ignore = "needs a container registry"]
fn an_upload_cut_at_any_request_leaves_nothing_half_visible_and_is_made_up_for() {
    let Some(registry) = Registry::start() else { return };
    let (shop, gate) = (Shop::new(), Gate::to(registry.port));
    for (name, lost) in [("cut", false), ("lost", true)] {
        let mut at = 0;
        loop {
            let prefix = format!("{name}-{at}");
            let url = format!("oci://{}/{prefix}", gate.host());
            gate.take();
            gate.rule(move |asked| match (asked.number >= at && asked.number < at + 3, lost) {
                (true, false) => Deed::Cut,
                (true, true) => Deed::LoseAnswer,
                (false, _) => Deed::Pass,
            });
            let ran = shop.publish(&url, &[]);
            let count = gate.take().len();
            gate.no_rule();
            assert!(ran.code == 0 || ran.code == 6, "{} {}", ran.out, ran.err);
            assert_whole(&shop, &registry, &prefix);
            shop.publish(&url, &[]).expect(0);
            assert_whole(&shop, &registry, &prefix);
            assert_eq!(registry.tags(&format!("{prefix}/clusters/c")), ["current", "member", "seq-1"]);
            if count <= at {
                assert!(at > 20, "there were {at} requests");
                break;
            }
            at += 4;
        }
    }
}

#[test]
#[ignore = "needs a container registry"]
fn a_daemon_that_is_killed_on_the_way_leaves_nothing_half_visible() {
    let Some(registry) = Registry::start() else { return };
    let (shop, gate) = (Shop::new(), Gate::to(registry.port));
    for at in [0_usize, 4, 9, 14, 19, 24, 29] {
        let prefix = format!("killed-{at}");
        let url = format!("oci://{}/{prefix}", gate.host());
        gate.take();
        let reached = Arc::new(AtomicUsize::new(0));
        let told = reached.clone();
        gate.rule(move |asked| {
            if asked.number < at {
                return Deed::Pass;
            }
            told.fetch_add(1, Ordering::SeqCst);
            Deed::Cut
        });
        let mut daemon =
            shop.publishing(&url).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        until("it is on the way", || {
            reached.load(Ordering::SeqCst) > 0 || daemon.try_wait().expect("a process").is_some()
        });
        let _ = daemon.kill();
        daemon.wait().expect("it ends");
        // It may still be at the last request, and lists a tag somewhat before it serves it.
        until("the registry has answered", || gate.has_answered(at));
        gate.no_rule();
        assert_whole(&shop, &registry, &prefix);
        shop.publish(&url, &[]).expect(0);
        assert_whole(&shop, &registry, &prefix);
    }
}

#[test]
#[ignore = "needs a container registry"]
fn a_registry_that_deletes_nothing_is_told_of_once() {
    let Some(registry) = Registry::start_without_deletion() else { return };
    let shop = Shop::new();
    let url = format!("oci://{}/fleet", registry.host());
    for value in ["one", "two", "three"] {
        shop.fleet.edit(value);
        let ran = shop.publish(&url, &["--publish-keep", "1"]).expect(0);
        assert_eq!(ran.err.matches("deletes nothing").count(), usize::from(value != "one"), "{}", ran.err);
    }
    assert_eq!(registry.tags(A).len(), 5);
    shop.sync("a", &url, &[]).expect(0);
}
