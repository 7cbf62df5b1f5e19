use berth_base::text::base64;
use berth_git::signature::{PlainSigner, PublicKey};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::bundle::{self, Envelope, signed_bytes};
use super::{SigningError, Statement, Subject, simple, statement};

const ARTIFACT: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
const OTHER: &str = "sha256:00136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

fn signers() -> [PlainSigner; 2] {
    [
        include_str!("../../../fixtures/signatures/artifact-p256.pem"),
        include_str!("../../../fixtures/signatures/artifact-ed25519.pem"),
    ]
    .map(|text| PlainSigner::read(text).expect("a key"))
}

fn key(signer: &PlainSigner) -> [PublicKey; 1] {
    [signer.public().clone()]
}

fn provenance() -> Statement {
    Statement::provenance(vec![Subject::new("clusters/oslo", ARTIFACT)], json!({"buildDefinition": {}}))
}

#[test]
fn the_signed_bytes_are_those_of_the_specification() {
    let bytes = signed_bytes("http://example.com/HelloWorld", b"hello world");
    assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    // Lengths count bytes.
    assert_eq!(signed_bytes("ø", "ø".as_bytes()), "DSSEv1 2 ø 2 ø".as_bytes());
}

#[test]
fn an_envelope_opens_for_its_key_its_kind_and_its_bytes_alone() {
    let [p256, ed25519] = signers();
    for (signer, other) in [(&p256, &ed25519), (&ed25519, &p256)] {
        let sealed = Envelope::sign(signer, "kind", b"payload").expect("an envelope");
        assert_eq!(sealed.open("kind", &key(signer)).as_deref(), Ok(&b"payload"[..]));
        let both = [other.public().clone(), signer.public().clone()];
        assert_eq!(sealed.open("kind", &both).as_deref(), Ok(&b"payload"[..]));
        assert_eq!(sealed.open("kind", &key(other)), Err(SigningError::Untrusted));
        assert_eq!(sealed.open("kind", &[]), Err(SigningError::Untrusted));
        assert!(matches!(sealed.open("other", &key(signer)), Err(SigningError::Unreadable { .. })));
        let json = serde_json::to_value(&sealed).expect("JSON");
        let edited = |edit: &dyn Fn(&mut Json)| {
            let mut json = json.clone();
            edit(&mut json);
            let sealed: Envelope = serde_json::from_value(json).expect("an envelope");
            sealed.open("kind", &key(signer))
        };
        assert_eq!(
            edited(&|json| json["payload"] = json!(base64::encode(b"payloae"))),
            Err(SigningError::Untrusted)
        );
        assert_eq!(edited(&|json| json["payloadType"] = json!("other")), Err(SigningError::Untrusted));
        assert!(edited(&|json| json["payload"] = json!("!")).is_err());
        assert!(edited(&|json| json["signatures"] = json!([])).is_err());
        let one = json["signatures"][0].clone();
        assert!(edited(&|json| json["signatures"] = json!([one, one])).is_err());
        // The URL-safe alphabet is also valid, and the key's id is an unsigned hint.
        let sig = one["sig"].as_str().expect("text").replace('+', "-").replace('/', "_");
        let opened = edited(&|json| json["signatures"] = json!([{"sig": sig, "keyid": "x"}]));
        assert_eq!(opened.as_deref(), Ok(&b"payload"[..]));
    }
}

#[test]
fn a_bundle_has_sigstores_form_and_gives_its_statement_back() {
    for signer in signers() {
        let made = bundle::sign(&signer, &provenance()).expect("a bundle");
        let json: Json = serde_json::from_slice(&made).expect("JSON");
        assert_eq!(json["mediaType"], "application/vnd.dev.sigstore.bundle.v0.3+json");
        assert_eq!(json["dsseEnvelope"]["payloadType"], "application/vnd.in-toto+json");
        assert_eq!(json["verificationMaterial"]["tlogEntries"], json!([]));
        assert_eq!(json["verificationMaterial"]["publicKey"]["hint"].as_str().map(str::len), Some(44));
        let (read, bytes) = bundle::open(&made, &key(&signer)).expect("a statement");
        assert_eq!((&read, bytes), (&provenance(), provenance().bytes()));
        assert_eq!(read.names_of(ARTIFACT), Ok(vec!["clusters/oslo"]));
        assert_eq!(read.names_of(OTHER), Err(SigningError::OtherSubjects));
        let text = String::from_utf8(made).expect("text");
        for wrong in [
            text.replace("v0.3", "v0.4"),
            text.replace("dsseEnvelope", "messageSignature"),
            text[..text.len() - 1].to_owned(),
            "[]".repeat(100_000),
            "[".repeat(100_000),
        ] {
            assert!(matches!(
                bundle::open(wrong.as_bytes(), &key(&signer)),
                Err(SigningError::Unreadable { .. })
            ));
        }
    }
}

#[test]
fn huge_bundles_and_statements_are_not_read() {
    let [_, signer] = signers();
    let huge = vec![b' '; bundle::LONGEST + 1];
    assert!(matches!(bundle::open(&huge, &key(&signer)), Err(SigningError::TooLong { .. })));
    let many = (0..1025).map(|n| Subject::new(&format!("clusters/c{n}"), ARTIFACT)).collect();
    let many = bundle::sign(&signer, &Statement::provenance(many, Json::Null)).expect("a bundle");
    assert!(bundle::open(&many, &key(&signer)).expect_err("too many").to_string().contains("1025 subjects"));
    let none = bundle::sign(&signer, &Statement::provenance(Vec::new(), Json::Null)).expect("a bundle");
    assert!(bundle::open(&none, &key(&signer)).is_err());
    assert!(matches!(
        simple::check(&vec![b' '; simple::LONGEST + 1], &[], ARTIFACT, &key(&signer)),
        Err(SigningError::TooLong { .. })
    ));
}

#[test]
fn a_signature_of_cosign_is_no_provenance() {
    let [signer, _] = signers();
    let mut json = serde_json::to_value(provenance()).expect("JSON");
    json["predicateType"] = json!("https://sigstore.dev/cosign/sign/v1");
    let envelope =
        Envelope::sign(&signer, statement::PAYLOAD_TYPE, json.to_string().as_bytes()).expect("an envelope");
    let bundle = json!({"mediaType": bundle::MEDIA_TYPE, "dsseEnvelope": envelope}).to_string();
    let (read, _) = bundle::open(bundle.as_bytes(), &key(&signer)).expect("a statement");
    assert!(matches!(read.names_of(ARTIFACT), Err(SigningError::NoProvenance(_))));
}

#[test]
fn a_simple_signature_counts_for_its_artifact_key_and_bytes() {
    for signer in signers() {
        let payload = simple::payload("registry.example.com/fleet/clusters/oslo", ARTIFACT);
        assert_eq!(
            String::from_utf8_lossy(&payload),
            format!(
                r#"{{"critical":{{"identity":{{"docker-reference":"registry.example.com/fleet/clusters/oslo"}},"image":{{"docker-manifest-digest":"{ARTIFACT}"}},"type":"cosign container image signature"}},"optional":null}}"#
            )
        );
        let made = simple::sign(&signer, &payload).expect("a signature");
        assert_eq!(simple::check(&payload, &made, ARTIFACT, &key(&signer)), Ok(()));
        let other = Err(SigningError::OtherArtifact { other: ARTIFACT.to_owned() });
        assert_eq!(simple::check(&payload, &made, OTHER, &key(&signer)), other);
        let swapped = String::from_utf8_lossy(&payload).replace(ARTIFACT, OTHER).into_bytes();
        assert_eq!(simple::check(&swapped, &made, OTHER, &key(&signer)), Err(SigningError::Untrusted));
        assert_eq!(simple::check(&payload, &made, ARTIFACT, &[]), Err(SigningError::Untrusted));
        // A signature of an envelope over the same bytes is not valid here.
        let bytes = signed_bytes(statement::PAYLOAD_TYPE, &payload);
        let sealed = signer.sign(&bytes).expect("a signature");
        assert_eq!(simple::check(&payload, &sealed, ARTIFACT, &key(&signer)), Err(SigningError::Untrusted));
    }
}

proptest! {
    #[test]
    fn whatever_strangers_write_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let [signer, _] = signers();
        prop_assert!(bundle::open(&bytes, &key(&signer)).is_err());
        prop_assert!(simple::check(&bytes, &bytes, ARTIFACT, &key(&signer)).is_err());
        prop_assert!(Statement::read(&bytes).is_err());
    }
}
