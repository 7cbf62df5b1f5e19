//! Paths in the rendered branch. Untrusted names are always encoded.

use std::fmt::Write as _;

use super::key::Key;
use super::object::ObjectId;
use crate::text::hex;

/// The folder for objects without a namespace. No namespace can have this name.
pub const CLUSTER_SCOPE: &str = "_cluster";

const LONGEST_PART: usize = 200;

/// Encodes a path part: percent-encoded outside `[A-Za-z0-9.-]`, cut and hashed beyond 200 bytes.
pub fn encode(part: &str) -> String {
    shorten(encode_bytes(part))
}

/// Decodes the result of [`encode`]. `None` for any other part and for a cut one.
pub fn decode(part: &str) -> Option<String> {
    let text = decode_text(part)?;
    (encode(&text) == part).then_some(text)
}

/// Decodes only the percent-encoding, whatever the length.
pub fn decode_text(encoded: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push(high << 4 | low);
    }
    String::from_utf8(bytes).ok()
}

/// Encodes without the limit on length, for parts that must be decoded again.
pub fn encode_whole(text: &str) -> String {
    encode_bytes(text)
}

/// Reports whether a file name may come from [`of_object`] or [`of_key`].
pub fn is_file(folder: &str, name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".yaml") else { return false };
    let named = |part: &str| !part.is_empty() && is_encoded(part);
    let whole = stem.split_once('_').is_some_and(|(kind, name)| named(kind) && named(name));
    (folder == CLUSTER_SCOPE || named(folder) || is_cut(folder)) && (whole || is_cut(stem))
}

fn is_encoded(part: &str) -> bool {
    let mut rest = part.bytes();
    let upper_hex = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
    while let Some(byte) = rest.next() {
        let fine = match byte {
            b'%' => upper_hex(rest.next()) && upper_hex(rest.next()),
            _ => byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.',
        };
        if !fine {
            return false;
        }
    }
    true
}

/// Reports whether a part was cut and so cannot be decoded.
pub fn is_cut(part: &str) -> bool {
    let hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    part.len() == LONGEST_PART && part.rsplit_once('~').is_some_and(|(_, after)| hash(after))
}

/// Returns the path of an object in its cluster's folder.
pub fn of_object(id: &ObjectId) -> String {
    file(&id.namespace, &id.kind, &id.group, &id.name)
}

/// Returns the name of the object at a path; `None` if the path was cut and does not show it.
pub fn object_name(path: &str) -> Option<String> {
    let (_, file) = path.rsplit_once('/')?;
    let (_, name) = file.strip_suffix(".yaml").filter(|stem| !is_cut(stem))?.split_once('_')?;
    decode_text(name)
}

/// Reports whether this is the path of a Secret, whose content must never be shown.
pub fn is_of_secret(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|file| file.starts_with("Secret_"))
}

/// Returns the path of a decision or release in its folder.
pub fn of_key(key: &Key) -> String {
    file(&key.namespace, &key.kind, &key.group, &key.name)
}

/// Returns the name at a path of [`of_object`] or [`of_key`]. `None` for a path that was cut.
pub fn key_of(path: &str) -> Option<Key> {
    let (folder, file) = path.split_once('/')?;
    let (kind, name) = file.strip_suffix(".yaml").filter(|stem| !is_cut(stem))?.split_once('_')?;
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    let namespace = if folder == CLUSTER_SCOPE { String::new() } else { decode(folder)? };
    Some(Key::new(&decode_text(group)?, &decode_text(kind)?, &namespace, &decode_text(name)?))
}

/// Encodes like [`encode`], and avoids the forms that Git refuses in a ref's name: `x.lock`, `a..b`, a final
/// dot, `~`.
pub fn ref_part(name: &str) -> String {
    let part = encode(name).replace('~', "%7E").replace("..", "%2E%2E");
    let (stem, dot) = if part.ends_with(".lock") { part.split_at(part.len() - 5) } else { (&*part, "") };
    match stem.strip_suffix('.').filter(|_| dot.is_empty()) {
        Some(stem) => format!("{stem}%2E"),
        None => format!("{stem}{}", dot.replace('.', "%2E")),
    }
}

fn file(namespace: &str, kind: &str, group: &str, name: &str) -> String {
    let folder = if namespace.is_empty() { CLUSTER_SCOPE.to_owned() } else { encode(namespace) };
    let mut stem = encode_bytes(kind);
    if !group.is_empty() {
        stem.push('.');
        stem.push_str(&encode_bytes(group));
    }
    stem.push('_');
    stem.push_str(&encode_bytes(name));
    format!("{folder}/{}.yaml", shorten(stem))
}

fn encode_bytes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, byte) in text.bytes().enumerate() {
        // A leading dot would make `.`, `..`, `.git` and hidden folders.
        let plain = byte.is_ascii_alphanumeric() || byte == b'-' || (byte == b'.' && index > 0);
        if plain {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn shorten(encoded: String) -> String {
    use sha2::{Digest as _, Sha256};
    if encoded.len() <= LONGEST_PART {
        return encoded;
    }
    let hash = Sha256::digest(encoded.as_bytes());
    let hash = hex(&hash[..8]);
    // Encoded text is ASCII, so any cut is at a character boundary; `~` never occurs in encoded text.
    format!("{}~{hash}", &encoded[..LONGEST_PART - 17])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_folder() {
        for name in ["..", ".", "../x", "/etc/passwd", ".git", "a/b", "a\\b", "a\0b", "x.lock"] {
            let encoded = encode(name);
            assert!(
                !encoded.starts_with('.') && !encoded.contains(['/', '\\', '\0']),
                "{name} became {encoded}"
            );
        }
    }

    #[test]
    fn rbac_names_are_encoded_and_plain_names_are_not() {
        let id = ObjectId::new("rbac.authorization.k8s.io", "ClusterRole", "", "system:node");
        assert_eq!(of_object(&id), "_cluster/ClusterRole.rbac.authorization.k8s.io_system%3Anode.yaml");
        let id = ObjectId::new("", "ConfigMap", "shop", "web.v2");
        assert_eq!(of_object(&id), "shop/ConfigMap_web.v2.yaml");
    }

    #[test]
    fn decoding_undoes_encoding_and_nothing_else() {
        for name in ["eu-west", ".hidden", "system:node", "straße", "a b", "x.lock", "100%"] {
            assert_eq!(decode(&encode(name)).as_deref(), Some(name));
        }
        for part in ["%2e", "a_b", "a%3", "%zz", "%FF", "%61", "a~b", ".git"] {
            assert_eq!(decode(part), None, "{part}");
        }
        let long = encode(&"x".repeat(300));
        assert!(decode(&long).is_none() && is_cut(&long));
    }

    #[test]
    fn every_path_of_an_object_is_known_as_one() {
        let names = ["web", "system:node", "..", &"x".repeat(300)];
        for (name, group) in names.iter().flat_map(|name| [(name, ""), (name, "apps"), (name, ".odd")]) {
            for namespace in ["", "shop", &"n".repeat(300)] {
                let path = of_object(&ObjectId::new(group, "Deployment", namespace, name));
                let (folder, file) = path.split_once('/').unwrap();
                assert!(is_file(folder, file), "{path}");
            }
        }
        for (folder, file) in [
            ("shop", "README.md"),
            ("shop", "web.yaml"),
            ("shop", "_web.yaml"),
            ("_x", "ConfigMap_web.yaml"),
            ("shop", "ConfigMap_web_2.yaml"),
            ("shop", "ConfigMap_w%6x.yaml"),
        ] {
            assert!(!is_file(folder, file), "{folder}/{file}");
        }
    }

    #[test]
    fn every_cluster_has_a_ref_that_git_takes() {
        for (name, part) in [
            ("eu-1.example", "eu-1.example"),
            ("x.lock", "x%2Elock"),
            ("a..b", "a%2E%2Eb"),
            ("a...", "a%2E%2E%2E"),
            ("a.", "a%2E"),
            ("a@{b", "a%40%7Bb"),
        ] {
            assert_eq!(ref_part(name), part);
        }
        assert!(!ref_part(&"x".repeat(300)).contains('~'));
    }

    #[test]
    fn long_names_stay_apart() {
        let (a, b) = (format!("{}a", "x".repeat(300)), format!("{}b", "x".repeat(300)));
        assert_ne!(encode(&a), encode(&b));
        assert_eq!(encode(&a).len(), LONGEST_PART);
    }
}
