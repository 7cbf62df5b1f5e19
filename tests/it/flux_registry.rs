//! Flux as the member, from a registry: the real controllers take signed artifacts, and no others.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;

use crate::support::flux::condition;
use crate::support::flux_bed::Bed;
use crate::support::registry::Registry;
use crate::support::site::{Running, image, is_well};
use crate::support::site_fleet::{deployment, namespace, people, work};
use crate::support::{Ran, berth, run};

const FOLDER: &str = "fleet/clusters/oslo";

/// A fleet whose cluster `oslo` takes its folder from a registry.
struct Place {
    bed: Bed,
    registry: Registry,
}

impl Place {
    /// Publishes `web:1`, and lets Flux apply what the key `good` signed.
    fn new() -> Option<Place> {
        let registry = Registry::start()?;
        let bed = Bed::of(people("flux", &web("1")))?;
        let place = Place { bed, registry };
        for name in ["good", "other"] {
            let private = place.key(name);
            let made = Command::new("openssl")
                .args(["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out"])
                .arg(&private)
                .output();
            assert!(made.expect("openssl").status.success());
        }
        place.publish("good").expect(0);
        place.join();
        Some(place)
    }

    fn key(&self, name: &str) -> PathBuf {
        self.bed.fleet.root().join(format!("{name}.pem"))
    }

    fn publish(&self, key: &str) -> Ran {
        let (address, key) = (format!("oci://{}/fleet", self.registry.host()), self.key(key));
        let key = key.to_str().expect("a text path");
        self.bed.fleet.run_once(&self.bed.server, &["--publish", &address, "--artifact-signing-key", key])
    }

    fn edit(&self, tag: &str, key: &str) -> Ran {
        self.bed.fleet.people.write("apps/web.yaml", web(tag));
        self.bed.fleet.people.commit(&format!("web:{tag}"));
        self.bed.fleet.push();
        self.publish(key)
    }

    /// Gives Flux the key and the objects that `berth join` writes for a registry.
    fn join(&self) {
        let public = self.bed.fleet.root().join("good.pub");
        let printed = run(&["public-key", self.key("good").to_str().expect("a text path")]).expect(0);
        std::fs::write(&public, printed.out).expect("a file");
        let from = format!("--from-file=good.pub={}", public.display());
        let secret = ["create", "secret", "generic", "berth-keys", "-n", "flux-system", &from];
        self.bed.kubectl(&secret).expect(0);
        let (out, source) =
            (self.bed.fleet.root().join("flux"), format!("oci://{}/fleet", self.registry.host()));
        let mut command = berth();
        command.args(["join", "oslo", "--dialect", "ocm", "--applier", "flux", "--applier-source", &source]);
        command.args(["--insecure-registry", "--artifact-keys-secret", "berth-keys"]);
        command.args(["--source-interval", "1s", "--repo", self.bed.fleet.people.arg(), "--applier-out"]);
        Ran::of(command.arg(&out)).expect(0);
        let file = out.join("oslo.yaml");
        self.bed.kubectl(&["apply", "--server-side", "-f", file.to_str().expect("text")]).expect(0);
    }

    /// The digest that the tag `current` has.
    fn current(&self) -> String {
        self.registry.manifest(FOLDER, "current").expect("the folder is there").1
    }

    /// Waits until Flux applied what the tag `current` has.
    #[track_caller]
    fn until_applied(&self) {
        // Flux may leave `lastAppliedRevision` as it is where a tag goes away and comes back.
        let wanted = format!("Applied revision: current@{}", self.current());
        self.bed.flux.until(&self.bed.plane, "kustomization", "berth-oslo", |object| {
            condition(object, "Ready").is_some_and(|it| it["status"] == "True" && it["message"] == *wanted)
        });
    }

    /// Waits until the source says something of the signature.
    #[track_caller]
    fn until_verified(&self, status: &str, reason: &str) -> Json {
        self.bed.flux.until(&self.bed.plane, "ocirepository", "berth-oslo", |object| {
            condition(object, "SourceVerified")
                .is_some_and(|it| it["status"] == status && it["reason"] == reason)
        })
    }
}

fn web(tag: &str) -> String {
    work(&[namespace("shop"), deployment(tag)])
}

#[test]
#[ignore = "needs a container registry"]
fn flux_takes_signed_folders_from_a_registry_and_a_bad_image_halts_the_rollout() {
    let Some(place) = Place::new() else { return };
    let bed = &place.bed;
    let _reporter = Running::start(bed);
    place.until_verified("True", "Succeeded");
    bed.halts_at_a_bad_image(&web, || place.publish("good"));
}

#[test]
#[ignore = "needs a container registry"]
fn flux_refuses_another_key_and_follows_a_moved_tag_until_berth_puts_it_back() {
    let Some(place) = Place::new() else { return };
    let bed = &place.bed;
    let _reporter = Running::start(bed);
    bed.set_status("1", true);
    place.until_applied();
    bed.until_reported(is_well);
    place.publish("good").expect(0);
    let first = place.current();

    // Signed by a key that the cluster does not know: Flux keeps what it has.
    place.edit("2", "other").expect(0);
    let refused = place.until_verified("False", "VerificationError");
    assert!(refused["status"]["artifact"]["revision"].as_str().is_some_and(|it| it.ends_with(&first)));
    let web = bed.get("deployment", "web").expect("it");
    assert_eq!(web["spec"]["template"]["spec"]["containers"][0]["image"], image("1"));
    place.edit("3", "good").expect(0);
    place.until_verified("True", "Succeeded");
    bed.set_status("3", true);
    place.until_applied();

    // No signature says which folder is the newest: Flux goes back with the tag, and a new daemon puts the tag right.
    let newest = place.current();
    let folder = place.registry.call("GET", &format!("{FOLDER}/manifests/{first}"), &[ACCEPT], b"");
    let headers = [("content-type", "application/vnd.oci.image.manifest.v1+json")];
    let path = format!("{FOLDER}/manifests/current");
    assert_eq!(place.registry.call("PUT", &path, &headers, &folder.body).status, 201);
    assert_eq!(place.current(), first);
    // While Flux waits for the health of one folder, it takes no other one.
    bed.set_status("1", true);
    place.publish("good").expect(0);
    assert_eq!(place.current(), newest);
    bed.set_status("3", true);
    place.until_applied();
    bed.until_reported(is_well);
}

const ACCEPT: (&str, &str) = ("accept", "application/vnd.oci.image.manifest.v1+json");
