use super::allowed::AllowedSigners;
use super::{GIT, PublicKey, commit, verify};
use berth_base::model::Timestamp;

/// The text that `ssh-keygen -Y sign` signed for each file of `fixtures/signatures`.
const MESSAGE: &[u8] = b"tree abc\n";
const ED25519: [&str; 2] = pair(
    include_str!("../../../fixtures/signatures/ed25519.pub"),
    include_str!("../../../fixtures/signatures/ed25519.sig"),
);
const OTHERS: [[&str; 2]; 3] = [
    pair(
        include_str!("../../../fixtures/signatures/ecdsab256.pub"),
        include_str!("../../../fixtures/signatures/ecdsab256.sig"),
    ),
    pair(
        include_str!("../../../fixtures/signatures/ecdsab384.pub"),
        include_str!("../../../fixtures/signatures/ecdsab384.sig"),
    ),
    pair(
        include_str!("../../../fixtures/signatures/rsab2048.pub"),
        include_str!("../../../fixtures/signatures/rsab2048.sig"),
    ),
];

const fn pair(key: &'static str, signature: &'static str) -> [&'static str; 2] {
    [key, signature]
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn key(text: &str) -> PublicKey {
    let word = text.split(' ').nth(1).expect("a key");
    PublicKey::from_wire(&berth_base::text::base64::decode_exactly(word.trim()).expect("base64"))
}

/// Makes a commit with this signature, whether it is valid or not.
fn carrying(signature: &str) -> Vec<u8> {
    let lines = signature.trim_end().replace('\n', "\n ");
    format!("tree abc\ngpgsig {lines}\n\nmessage\n").into_bytes()
}

#[test]
fn what_ssh_keygen_signs_is_verified_and_no_other_bytes_are() {
    for [public, signature] in OTHERS.into_iter().chain([ED25519]) {
        assert_eq!(verify(MESSAGE, signature, GIT), Ok(key(public)), "{public}");
        for (message, signature, namespace, why) in [
            (&b"tree abd\n"[..], signature.to_owned(), GIT, "does not match"),
            (MESSAGE, signature.to_owned(), "file", "is for `git`"),
            (MESSAGE, signature.replace("SSH SIG", "PGP SIG"), GIT, "is not an SSH signature"),
            (MESSAGE, signature.replacen("AAAA", "AAA", 1), GIT, "is not an SSH signature"),
        ] {
            let fault = verify(message, &signature, namespace).expect_err(why);
            assert!(fault.contains(why), "{why}: {fault}");
        }
    }
    let for_files = include_str!("../../../fixtures/signatures/for-files.sig");
    assert!(verify(MESSAGE, for_files, GIT).is_err());
}

#[test]
fn no_changed_letter_of_a_signature_is_verified() {
    let [_, signature] = ED25519;
    let bytes = super::wire::unwrap(signature, "SSH SIGNATURE").expect("a signature");
    for index in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[index] ^= 1;
        let text = super::wire::wrap(&changed, "SSH SIGNATURE");
        // SSH signs the reserved field as an empty text, whatever it contains.
        assert!(verify(MESSAGE, &text, GIT).is_err(), "byte {index}");
    }
    for length in 0..bytes.len() {
        let cut = super::wire::wrap(&bytes[..length], "SSH SIGNATURE");
        assert!(verify(MESSAGE, &cut, GIT).is_err(), "{length} bytes");
    }
}

#[test]
fn a_commit_is_taken_apart_as_git_puts_it_together() {
    let [_, signature] = ED25519;
    let raw = carrying(signature);
    let signed = commit::split(&raw).expect("a signed commit");
    assert_eq!(signed.payload, b"tree abc\n\nmessage\n");
    assert_eq!(signed.signature.trim_end(), signature.trim_end());
    assert_eq!(commit::split(b"tree abc\n\ngpgsig in the message\n"), None);
    let text = String::from_utf8(raw).expect("text");
    let (header, rest) = text.split_once("gpgsig ").expect("the header");
    for odd in [
        format!("{header}gpgsig x\ngpgsig {rest}"),
        format!("{header}gpgsig-sha256 x\ngpgsig {rest}"),
        format!("{header}gpgsig {}", rest.replace("\n\n", "\n")),
    ] {
        assert_eq!(commit::split(odd.as_bytes()), None, "{odd}");
    }
}

#[test]
fn the_file_says_who_may_sign_what_and_when() {
    let [public, signature] = ED25519;
    let public = public.trim();
    let message = b"tree abc\n\nmessage\n";
    let now = at("2026-05-01T12:00:00Z");
    // The fixture signs other bytes, so the refusal shows how the file's line was read.
    let refusal = |line: &str| {
        let allowed = AllowedSigners::read("signers", line)?;
        allowed.check(&carrying(signature), now).map(str::to_owned)
    };
    assert!(refusal(&format!("berth@x {public}")).expect_err("tampered").contains("does not match"));
    for (line, why) in [
        ("", "signers: it allows no key"),
        ("# only a comment", "it allows no key"),
        ("berth@x", "signers:1: it holds no key"),
        ("berth@x ssh-ed25519 %%%", "its key is not base64"),
        ("berth@x sk-ssh-ed25519@openssh.com AAAA", "cannot be checked"),
        (&format!("berth@x cert-authority {public}"), "certificates cannot be checked"),
        (&format!("berth@x unknown=1 {public}"), "unknown option `unknown`"),
        (&format!("berth@x valid-before=\"soon\" {public}"), "`soon` is not a time"),
        (&format!("berth@x {}", public.replace("ssh-ed25519", "ssh-rsa")), "is not of the kind"),
    ] {
        let fault = refusal(line).expect_err(why);
        assert!(fault.contains(why), "{why}: {fault}");
    }
    assert_eq!(commit::split(message), None);
    let unsigned = AllowedSigners::read("signers", &format!("x {public}")).expect("a file");
    assert_eq!(unsigned.check(message, now), Err("it is not signed".to_owned()));
}
