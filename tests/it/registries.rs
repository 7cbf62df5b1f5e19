//! A container registry for tests of publishing.

use crate::support::registry::{Deed, Gate, Registry};

const EMPTY: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

#[test]
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
    assert_eq!(ask(gate.port).expect("an answer").body, b"tea");
    let asked = gate.take();
    assert_eq!(asked.iter().map(|asked| asked.status).collect::<Vec<_>>(), [401, 0, 418]);

    assert_eq!(registry.call("DELETE", &format!("a/manifests/{digest}"), &[], b"").status, 202);
    assert_eq!(registry.tags("a"), [""; 0]);
}
