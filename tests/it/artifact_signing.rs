//! Signatures and statements beside artifacts: the real cosign and `berth verify` judge them, and what was made of them.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use crate::signers::Agent;
use crate::signing::Keys;
use crate::support::cosign::Cosign;
use crate::support::programs::write_script;
use crate::support::registry::Registry;
use crate::support::{Ran, Repo, berth, config_map, hermetic, run, small_fleet};

const OSLO: &str = "fleet/clusters/a";
const BERGEN: &str = "fleet/clusters/c";

/// A fleet that is published to a registry, signed.
struct Place {
    repo: Repo,
    registry: Registry,
    keys: Keys,
    /// The name of the key.
    key: &'static str,
}

impl Place {
    /// Publishes a fleet whose clusters have different folders, signed with the key of commits.
    fn new() -> Option<Place> {
        Place::signing_with("berth")
    }

    fn signing_with(key: &'static str) -> Option<Place> {
        let (registry, keys) = (Registry::start()?, Keys::new()?);
        let repo = small_fleet();
        repo.write(
            "apps/prod.yaml",
            config_map("prod", "one", "{clusterSelector: {matchLabels: {env: prod}}}"),
        );
        repo.commit("prod");
        let place = Place { repo, registry, keys, key };
        for name in ["berth", "other"] {
            place.write_public(name);
        }
        for name in ["p256", "strange"] {
            let (private, public) = (place.private(name), place.public(name));
            let [private, public] =
                [&private, &public].map(|path| path.to_str().expect("a text path").to_owned());
            openssl(&["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", &private]);
            openssl(&["pkey", "-in", &private, "-pubout", "-out", &public]);
        }
        place.publish().expect(0);
        Some(place)
    }

    fn private(&self, name: &str) -> PathBuf {
        self.keys.path(name)
    }

    /// The file of a public key in PEM.
    fn public(&self, name: &str) -> PathBuf {
        self.keys.path(&format!("{name}.pem"))
    }

    fn write_public(&self, name: &str) {
        let private = self.private(name);
        let printed = run(&["public-key", private.to_str().expect("a text path")]).expect(0);
        std::fs::write(self.public(name), printed.out).expect("a file");
    }

    fn write_public_of_ssh(&self, name: &str) {
        let line = self.keys.path(&format!("{name}.pub"));
        let printed = run(&["public-key", line.to_str().expect("a text path")]).expect(0);
        std::fs::write(self.public(name), printed.out).expect("a file");
    }

    fn publish(&self) -> Ran {
        self.publish_with(&[])
    }

    fn publish_with(&self, more: &[&str]) -> Ran {
        let key = self.private("berth");
        let mut all = vec!["--signing-key", key.to_str().expect("a text path")];
        let artifact_key = self.private(self.key);
        if self.key != "berth" {
            all.extend(["--artifact-signing-key", artifact_key.to_str().expect("a text path")]);
        }
        self.publish_by(&[&all[..], more].concat())
    }

    fn publish_by(&self, flags: &[&str]) -> Ran {
        let mut command = berth();
        command.args(["run", "--once", "--repo", self.repo.arg(), "--publish"]);
        command.arg(format!("oci://{}/fleet", self.registry.host())).args(["--fleet", "shop"]);
        Ran::of(command.args(flags))
    }

    /// An artifact's name as clients of registries write it.
    fn name(&self, repository: &str) -> String {
        format!("{}/{repository}:current", self.registry.host())
    }

    fn verify(&self, repository: &str, key: &str, more: &[&str]) -> Ran {
        self.verify_in(self.repo.arg(), repository, key, more)
    }

    fn verify_in(&self, repo: &str, repository: &str, key: &str, more: &[&str]) -> Ran {
        let mut command = berth();
        command.args(["verify", "--repo", repo, "--key"]).arg(self.public(key));
        command.arg("--artifact").arg(format!("oci://{}", self.name(repository)));
        Ran::of(command.args(more))
    }

    /// The digest of a repository's newest artifact.
    fn digest(&self, repository: &str) -> String {
        self.registry.manifest(repository, "current").expect("an artifact").1
    }

    /// A manifest's own bytes, which its digest is of.
    fn raw(&self, repository: &str, reference: &str) -> Vec<u8> {
        let accept = [(
            "accept",
            "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json",
        )];
        self.registry.call("GET", &format!("{repository}/manifests/{reference}"), &accept, b"").body
    }

    fn put(&self, repository: &str, reference: &str, manifest: &[u8]) {
        let json: Json = serde_json::from_slice(manifest).expect("a manifest");
        let kind = [("content-type", json["mediaType"].as_str().expect("a media type"))];
        let path = format!("{repository}/manifests/{reference}");
        assert_eq!(self.registry.call("PUT", &path, &kind, manifest).status, 201, "{path}");
    }

    /// The index of what refers to an artifact, and its tag.
    fn referrers(&self, repository: &str) -> (Json, String) {
        let tag = self.digest(repository).replace(':', "-");
        (self.registry.manifest(repository, &tag).expect("an index").0, tag)
    }

    /// The statement beside an artifact, as anybody can read it.
    fn statement(&self, repository: &str) -> Json {
        let bundle = self.bundle(repository);
        let payload = bundle["dsseEnvelope"]["payload"].as_str().expect("a payload");
        serde_json::from_slice(&berth_base::text::base64::decode(payload).expect("base64")).expect("JSON")
    }

    fn bundle(&self, repository: &str) -> Json {
        let (index, _) = self.referrers(repository);
        let manifest = index["manifests"][0]["digest"].as_str().expect("a digest");
        let (manifest, _) = self.registry.manifest(repository, manifest).expect("a manifest");
        let layer = manifest["layers"][0]["digest"].as_str().expect("a digest");
        serde_json::from_slice(&self.registry.blob(repository, layer)).expect("JSON")
    }

    fn push_blob(&self, repository: &str, bytes: &[u8]) -> String {
        let started = self.registry.call("POST", &format!("{repository}/blobs/uploads/"), &[], b"");
        let place =
            started.header("location").expect("a place").split_once("/v2/").expect("a path").1.to_owned();
        let digest = digest_of(bytes);
        let ended = self.registry.call("PUT", &format!("{place}&digest={digest}"), &[], bytes);
        assert_eq!(ended.status, 201, "{ended:?}");
        digest
    }

    /// Puts a bundle beside an artifact in place of berth's, as whoever may push can.
    fn replace_bundle(&self, repository: &str, bundle: &[u8]) {
        let (mut index, tag) = self.referrers(repository);
        let manifest = index["manifests"][0]["digest"].as_str().expect("a digest");
        let (mut manifest, _) = self.registry.manifest(repository, manifest).expect("a manifest");
        manifest["layers"][0]["digest"] = json!(self.push_blob(repository, bundle));
        manifest["layers"][0]["size"] = json!(bundle.len());
        let bytes = manifest.to_string();
        let digest = digest_of(bytes.as_bytes());
        self.registry.tag(repository, &digest, &manifest);
        index["manifests"][0]["digest"] = json!(digest);
        index["manifests"][0]["size"] = json!(bytes.len());
        self.registry.tag(repository, &tag, &index);
    }

    /// Removes the signature under its tag, so that statements alone are left.
    fn remove_signature(&self, repository: &str) {
        let tag = format!("{}.sig", self.digest(repository).replace(':', "-"));
        let (_, digest) = self.registry.manifest(repository, &tag).expect("a signature");
        self.registry.call("DELETE", &format!("{repository}/manifests/{digest}"), &[], b"");
    }
}

fn openssl(args: &[&str]) {
    Ran::of(hermetic("openssl").args(args)).expect(0);
}

fn digest_of(bytes: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    format!("sha256:{}", berth_base::text::hex(&Sha256::digest(bytes)))
}

#[test]
#[ignore = "needs cosign"]
fn cosign_takes_what_the_daemon_signs_by_its_key_and_by_no_other() {
    let Some(cosign) = Cosign::find() else { return };
    for key in ["berth", "p256"] {
        let Some(place) = Place::signing_with(key) else { return };
        let name = place.name(OSLO);
        let verified = cosign.verify(&place.public(key), &name).expect(0);
        assert!(verified.out.contains(&place.digest(OSLO)), "{}", verified.out);
        cosign.verify_provenance(&place.public(key), &name).expect(0);
        for other in ["other", "strange"] {
            assert_ne!(cosign.verify(&place.public(other), &name).code, 0);
            assert_ne!(cosign.verify_provenance(&place.public(other), &name).code, 0);
        }
        // The older form alone, as cosign 2 and Flux before 2.8 look for it.
        let (_, tag) = place.referrers(OSLO);
        let (_, index) = place.registry.manifest(OSLO, &tag).expect("an index");
        assert_eq!(place.registry.call("DELETE", &format!("{OSLO}/manifests/{index}"), &[], b"").status, 202);
        cosign.verify(&place.public(key), &name).expect(0);
        assert_ne!(cosign.verify(&place.public("other"), &name).code, 0);
        assert_ne!(
            cosign.verify_provenance(&place.public(key), &name).code,
            0,
            "a signature is no provenance"
        );
    }
}

#[test]
#[ignore = "needs a container registry"]
fn a_statement_says_where_artifacts_come_from_and_anybody_can_make_it_again() {
    let Some(place) = Place::new() else { return };
    let (statement, commit) = (place.statement(OSLO), place.repo.id("berth/rendered"));
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let subjects = statement["subject"].as_array().expect("subjects");
    assert_eq!(subjects.len(), 3);
    for (subject, cluster) in subjects.iter().zip(["a", "b", "c"]) {
        assert_eq!(subject["name"], format!("clusters/{cluster}"));
        let digest = format!("sha256:{}", subject["digest"]["sha256"].as_str().expect("a digest"));
        assert_eq!(digest, place.digest(&format!("fleet/clusters/{cluster}")));
    }
    let build = &statement["predicate"]["buildDefinition"];
    assert_eq!(build["internalParameters"]["sequence"], 1);
    assert_eq!(build["resolvedDependencies"][0]["digest"]["gitCommit"], place.repo.id("main"));
    assert_eq!(statement["predicate"]["runDetails"]["byproducts"][0]["digest"]["gitCommit"], commit);
    // The statement names the program that makes it, so that the binary must.
    let mut verify = berth();
    verify.args(["verify", "--repo", place.repo.arg(), &commit, "--statement"]);
    let again = Ran::of(&mut verify).expect(0);
    assert_eq!(serde_json::from_str::<Json>(&again.out).expect("JSON"), statement);

    // The next one names what changed, and its parent.
    place
        .repo
        .write("apps/prod.yaml", config_map("prod", "two", "{clusterSelector: {matchLabels: {env: prod}}}"));
    place.repo.commit("two");
    place.publish_with(&["--artifact-source", "https://git.example.com/fleet.git"]).expect(0);
    let next = place.statement(OSLO);
    let names: Vec<&str> =
        next["subject"].as_array().expect("subjects").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["clusters/a", "clusters/b"]);
    let build = &next["predicate"]["buildDefinition"];
    assert_eq!(build["resolvedDependencies"][1]["digest"]["gitCommit"], commit);
    assert_eq!(build["resolvedDependencies"][0]["uri"], "git+https://git.example.com/fleet.git");
    assert_eq!(place.statement(BERGEN), statement, "an artifact that stays keeps its statement");
    place.verify(OSLO, "berth", &[]).expect(0);
}

#[test]
#[ignore = "needs a container registry"]
fn a_second_run_attaches_nothing_again_and_mends_what_was_removed() {
    let Some(place) = Place::signing_with("p256") else { return };
    let (tags, bundle) = (place.registry.tags(OSLO), place.bundle(OSLO));
    place.publish().expect(0);
    assert_eq!((place.registry.tags(OSLO), place.bundle(OSLO)), (tags.clone(), bundle));
    place.remove_signature(OSLO);
    assert_ne!(place.registry.tags(OSLO), tags);
    place.publish().expect(0);
    assert_eq!(place.registry.tags(OSLO), tags);
}

#[test]
#[ignore = "needs a container registry"]
fn an_artifact_is_proven_down_to_its_source_by_whoever_has_the_branch() {
    let Some(place) = Place::new() else { return };
    let ran = place.verify(OSLO, "berth", &["-o", "json"]).expect(0);
    let proof = ran.json();
    assert_eq!((&proof["verdict"], &proof["failed"]), (&json!("ok"), &json!(false)));
    assert_eq!((&proof["folder"], &proof["sequence"]), (&json!("clusters/a"), &json!(1)));
    assert_eq!(proof["source"], place.repo.id("main"));
    for key in ["other", "strange"] {
        let ran = place.verify(OSLO, key, &[]).expect(3);
        assert!(ran.out.contains("no statement about it is signed by a trusted key"), "{}", ran.out);
    }
    // A clone without the state cannot say.
    let bare = Repo::with(&[("x", "x")]);
    let ran = place.verify_in(bare.arg(), OSLO, "berth", &["--rendered", "refs/heads/main"]).expect(6);
    assert!(ran.out.contains("fetch it"), "{}", ran.out);
}

#[test]
#[ignore = "needs a container registry"]
fn an_artifact_in_another_clusters_repository_is_told() {
    let Some(place) = Place::new() else { return };
    // Whoever may push copies it with all that is beside it; the key signed it.
    let (artifact, digest) = place.registry.manifest(BERGEN, "current").expect("an artifact");
    let layers = artifact["layers"].as_array().expect("layers").iter().chain([&artifact["config"]]);
    for layer in layers {
        let bytes = place.registry.blob(BERGEN, layer["digest"].as_str().expect("a digest"));
        place.push_blob(OSLO, &bytes);
    }
    let (index, tag) = place.referrers(BERGEN);
    let entry = index["manifests"][0]["digest"].as_str().expect("a digest");
    let (manifest, _) = place.registry.manifest(BERGEN, entry).expect("a manifest");
    let bundle = place.registry.blob(BERGEN, manifest["layers"][0]["digest"].as_str().expect("a digest"));
    place.push_blob(OSLO, &bundle);
    for reference in [entry, &tag, "current"] {
        place.put(OSLO, reference, &place.raw(BERGEN, reference));
    }
    assert_eq!(place.digest(OSLO), digest);
    let ran = place.verify(OSLO, "berth", &[]).expect(3);
    assert!(ran.out.contains("this is another cluster's repository"), "{}", ran.out);
    // cosign knows keys and digests, and nothing of clusters.
    if let Some(cosign) = Cosign::find() {
        cosign.verify(&place.public("berth"), &place.name(OSLO)).expect(0);
    }
}

#[test]
#[ignore = "needs a container registry"]
fn an_older_artifact_is_proven_and_told_to_be_old() {
    let Some(place) = Place::new() else { return };
    let old = place.raw(OSLO, "current");
    place
        .repo
        .write("apps/prod.yaml", config_map("prod", "two", "{clusterSelector: {matchLabels: {env: prod}}}"));
    place.repo.commit("two");
    place.publish().expect(0);
    assert!(!place.verify(OSLO, "berth", &[]).expect(0).out.contains("newer folder"));
    place.put(OSLO, "current", &old);
    let ran = place.verify(OSLO, "berth", &[]).expect(0);
    assert!(ran.out.contains("the branch has a newer folder for this cluster"), "{}", ran.out);
    if let Some(cosign) = Cosign::find() {
        // No signature says "newest".
        cosign.verify(&place.public("berth"), &place.name(OSLO)).expect(0);
    }
}

#[test]
#[ignore = "needs a container registry"]
fn bundles_that_were_made_of_others_do_not_count() {
    let Some(place) = Place::new() else { return };
    let cosign = Cosign::find();
    let good = place.bundle(OSLO);
    let text = |json: &Json| json.to_string().into_bytes();
    let edited = |edit: &dyn Fn(&mut Json)| {
        let mut statement = place.statement(OSLO);
        edit(&mut statement);
        let mut bundle = good.clone();
        bundle["dsseEnvelope"]["payload"] =
            json!(berth_base::text::base64::encode(statement.to_string().as_bytes()));
        text(&bundle)
    };
    let mut unsigned = good.clone();
    unsigned["dsseEnvelope"]["signatures"] = json!([]);
    let cases = [
        (
            "an altered claim",
            edited(&|one| one["predicate"]["buildDefinition"]["internalParameters"]["sequence"] = json!(9)),
        ),
        (
            "swapped subjects",
            edited(&|one| {
                let (first, last) =
                    (one["subject"][0]["digest"].clone(), one["subject"][2]["digest"].clone());
                one["subject"][0]["digest"] = last;
                one["subject"][2]["digest"] = first;
            }),
        ),
        ("no signature", text(&unsigned)),
        ("no bundle", b"{}".to_vec()),
        ("deep nesting", "[".repeat(200_000).into_bytes()),
        ("more than is read", vec![b' '; 9 << 20]),
    ];
    place.remove_signature(OSLO);
    for (what, bundle) in cases {
        place.replace_bundle(OSLO, &bundle);
        let ran = place.verify(OSLO, "berth", &[]).expect(3);
        assert!(ran.out.contains("no statement about it is signed"), "{what}: {}", ran.out);
        if let Some(cosign) = &cosign {
            assert_ne!(cosign.verify(&place.public("berth"), &place.name(OSLO)).code, 0, "{what}");
            assert_ne!(cosign.verify_provenance(&place.public("berth"), &place.name(OSLO)).code, 0, "{what}");
        }
    }
    place.replace_bundle(OSLO, &text(&good));
    place.verify(OSLO, "berth", &[]).expect(0);

    // The statement about another artifact, by the same key.
    place
        .repo
        .write("apps/dev.yaml", config_map("dev", "one", "{clusterSelector: {matchLabels: {env: dev}}}"));
    place.repo.commit("dev");
    place.publish().expect(0);
    place.replace_bundle(OSLO, &text(&place.bundle(BERGEN)));
    let ran = place.verify(OSLO, "berth", &[]).expect(3);
    assert!(ran.out.contains("a statement about other artifacts"), "{}", ran.out);
    if let Some(cosign) = &cosign {
        assert_ne!(cosign.verify(&place.public("berth"), &place.name(OSLO)).code, 0);
    }
}

#[test]
#[ignore = "needs a container registry"]
fn a_statement_by_the_key_that_the_commit_does_not_give_is_told() {
    let Some(place) = Place::signing_with("p256") else { return };
    // The holder of the key signs other claims, and another fleet's publication.
    let sign = |statement: &Json| {
        use berth_registry::signing::{Statement, bundle};
        let text = std::fs::read_to_string(place.private("p256")).expect("a key");
        let signer = berth_git::signature::PlainSigner::read(&text).expect("a key");
        let statement = Statement::read(statement.to_string().as_bytes()).expect("a statement");
        bundle::sign(&signer, &statement).expect("a bundle")
    };
    let honest = place.statement(OSLO);
    for (claim, value, said) in [
        (
            "/buildDefinition/internalParameters/sequence",
            json!(9),
            "predicate.buildDefinition.internalParameters.sequence",
        ),
        ("/buildDefinition/internalParameters/now", json!("2020-01-01T00:00:00Z"), "internalParameters.now"),
        (
            "/buildDefinition/resolvedDependencies/0/digest/gitCommit",
            json!("0".repeat(40)),
            "resolvedDependencies[0]",
        ),
        ("/buildDefinition/externalParameters/fleet", json!("other"), "externalParameters.fleet"),
        ("/buildDefinition/externalParameters/more", json!("x"), "externalParameters.more"),
        ("/runDetails/byproducts/0/digest/gitCommit", json!("x"), "names no commit"),
    ] {
        let mut statement = honest.clone();
        let (parent, name) = claim.rsplit_once('/').expect("a path");
        statement["predicate"].pointer_mut(parent).expect("a place")[name] = value;
        place.replace_bundle(OSLO, &sign(&statement));
        let ran = place.verify(OSLO, "p256", &[]).expect(3);
        assert!(ran.out.contains(said), "{claim}: {}", ran.out);
    }
    let mut statement = honest.clone();
    statement["subject"][1]["name"] = json!("clusters/nowhere");
    place.replace_bundle(OSLO, &sign(&statement));
    let ran = place.verify(OSLO, "p256", &[]).expect(3);
    assert!(ran.out.contains("`clusters/nowhere`, which the commit did not change"), "{}", ran.out);
    let mut statement = honest.clone();
    statement["predicate"]["runDetails"]["byproducts"][0]["digest"]["gitCommit"] =
        json!(place.repo.id("main"));
    place.replace_bundle(OSLO, &sign(&statement));
    place.verify(OSLO, "p256", &[]).expect(3);
    place.replace_bundle(OSLO, &sign(&honest));
    place.verify(OSLO, "p256", &[]).expect(0);
    place.verify(OSLO, "p256", &["--fleet", "shop"]).expect(0);
    place.verify(OSLO, "p256", &["--fleet", "another"]).expect(3);
}

#[test]
#[ignore = "needs a container registry"]
fn an_agent_or_a_program_has_the_key_of_artifacts() {
    let Some(place) = Place::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    place.keys.make("ecdsa", &["-t", "ecdsa", "-b", "256", "-N", ""]);
    place.write_public_of_ssh("ecdsa");
    let text = |path: PathBuf| path.to_str().expect("a text path").to_owned();
    let [commits, artifacts] = ["berth.pub", "ecdsa.pub"].map(|name| text(place.keys.path(name)));
    let agent = Agent::start(folder.path());
    let socket = text(agent.socket.clone());
    let flags = |artifacts: &str, holder: &[&str]| {
        let keys = ["--signing-key", &commits, "--artifact-signing-key", artifacts];
        place.publish_by(&[&keys[..], holder].concat())
    };
    agent.add(&[&text(place.keys.path("berth"))]);
    let refused = flags(&artifacts, &["--signing-agent", &socket]).expect(6);
    assert!(refused.err.contains("cannot be signed"), "{}", refused.err);
    place.verify(OSLO, "ecdsa", &[]).expect(3);
    agent.add(&[&text(place.keys.path("ecdsa"))]);
    flags(&artifacts, &["--signing-agent", &socket]).expect(0);
    place.verify(OSLO, "ecdsa", &[]).expect(0);
    place.verify(OSLO, "berth", &[]).expect(0);

    // A program that asks whoever has the keys, here the agent and OpenSSL.
    let program = folder.path().join("sign");
    let private = text(place.private("p256"));
    let script = format!(
        "case \"$BERTH_SIGNING_PUBLIC_KEY\" in\necdsa*) exec openssl dgst -sha256 -sign '{private}' ;;\nesac\nexit 1"
    );
    write_script(&program, &script);
    let public = text(place.public("p256"));
    // Nothing changed, so no commit needs a signature.
    flags(&public, &["--signer-command", &text(program)]).expect(0);
    place.verify(OSLO, "p256", &[]).expect(0);
    if let Some(cosign) = Cosign::find() {
        for key in ["ecdsa", "p256", "berth"] {
            cosign.verify(&place.public(key), &place.name(OSLO)).expect(0);
        }
    }
}

#[test]
#[ignore = "needs a container registry"]
fn an_artifact_that_the_registry_offers_as_the_folder_is_neither_signed_nor_tagged() {
    let Some(place) = Place::new() else { return };
    let (mut evil, honest) = place.registry.manifest(OSLO, "current").expect("an artifact");
    evil["annotations"] = json!({"made": "by somebody else"});
    let digest = digest_of(evil.to_string().as_bytes());
    place.registry.tag(OSLO, &digest, &evil);
    place.registry.tag(OSLO, "current", &evil);
    let (mut pointer, _) = place.registry.manifest(OSLO, "member").expect("a pointer");
    pointer["annotations"]["dev.berth.folder"] = json!(digest);
    place.registry.tag(OSLO, "member", &pointer);
    assert_eq!(place.digest(OSLO), digest);
    place.publish().expect(0);
    assert_eq!(place.digest(OSLO), honest);
    let tags = place.registry.tags(OSLO);
    assert!(!tags.iter().any(|tag| tag.starts_with(&digest.replace(':', "-"))), "{tags:?}");
    place.verify(OSLO, "berth", &[]).expect(0);
}
