//! The forms that Kubernetes allows for names, label keys and label values, as predicates.

use crate::diag::is_visible;

/// Reports whether a text has only lower-case letters, digits and inner dashes, at most 63 bytes.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    is_framed(text, 63, inner, |byte| byte != b'-')
}

/// Reports whether a text is a DNS label that begins with a letter.
pub fn is_dns_1035_label(text: &str) -> bool {
    is_dns_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Reports whether a text consists of DNS labels separated by dots, at most 253 bytes.
pub fn is_dns_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        is_framed(part, 253, inner, |byte| byte != b'-')
    };
    text.len() <= 253 && text.split('.').all(part)
}

/// Reports whether a text is a label's key: a name of at most 63 bytes, with an optional DNS prefix and slash
/// before it.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_qualified_name(name),
        None => is_qualified_name(text),
    }
}

/// Reports whether a text is a label's value: empty, or in the form of a key's name.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_qualified_name(text)
}

/// Returns the fault of an object's name that every server would refuse, whatever the kind.
pub fn fault_of_name(name: &str) -> Option<&'static str> {
    if name == "." || name == ".." || name.contains(['/', '%']) {
        return Some("must be one part of a path: no `/`, no `%`, not `.` or `..`");
    }
    if name.chars().any(|c| c.is_whitespace() || !is_visible(c)) {
        return Some("must not hold spaces, control characters or invisible characters");
    }
    (name.len() > 253).then_some("has more than 253 characters")
}

fn is_qualified_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    is_framed(text, 63, inner, |byte| byte.is_ascii_alphanumeric())
}

/// Reports whether a text is not empty and not too long, every byte is `inner`, and the first and last are
/// also `outer`.
fn is_framed(text: &str, longest: usize, inner: impl Fn(u8) -> bool, outer: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= longest && outer(*first) && outer(*last) && bytes.iter().all(|byte| inner(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_keys_may_have_one_prefix() {
        for key in ["region", "example.com/tier", "a.b_c-D", "x/Y"] {
            assert!(is_label_key(key), "{key}");
        }
        for key in ["", "-a", "a-", "a/b/c", "/a", "a/", "Ex.com/a", "a b", "ä"] {
            assert!(!is_label_key(key), "{key}");
        }
    }

    #[test]
    fn label_values_may_be_empty_but_hold_no_spaces() {
        assert!(is_label_value("") && is_label_value("v1.2_x"));
        assert!(!is_label_value("a b") && !is_label_value(&"x".repeat(64)) && !is_label_value("-x"));
    }

    #[test]
    fn subdomains_are_lower_case_labels_with_dots() {
        assert!(is_dns_subdomain("types.kubefed.io") && is_dns_subdomain("a-b.1"));
        assert!(
            !is_dns_subdomain("a..b")
                && !is_dns_subdomain("A.b")
                && !is_dns_subdomain("")
                && !is_dns_subdomain("a_b")
        );
        assert!(is_dns_1035_label("v1beta1") && !is_dns_1035_label("1v") && !is_dns_1035_label("a.b"));
    }
}
