//! Addresses as KubeFed accepts them: a host, a host with a port, or a URL.

/// Returns the fault of an API server's address.
pub(super) fn fault_of_endpoint(text: &str) -> Option<String> {
    match text.split_once("://") {
        Some((scheme, rest)) => {
            fault_of_scheme(scheme, &["http", "https"]).or_else(|| fault_of_authority(rest))
        }
        None => fault_of_authority(text),
    }
}

/// Returns the fault of a proxy's address.
pub(super) fn fault_of_proxy(text: &str) -> Option<String> {
    match text.split_once("://") {
        Some((scheme, rest)) => {
            fault_of_scheme(scheme, &["http", "https", "socks5"]).or_else(|| fault_of_authority(rest))
        }
        None => Some("it has no scheme".to_owned()),
    }
}

fn fault_of_scheme(scheme: &str, known: &[&str]) -> Option<String> {
    let found = known.iter().any(|one| one.eq_ignore_ascii_case(scheme));
    (!found).then(|| format!("its scheme is `{scheme}`, but must be {}", known.join(" or ")))
}

fn fault_of_authority(rest: &str) -> Option<String> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Some("it names no host".to_owned());
    }
    let port_is_good = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|number| number > 0));
    (!port_is_good).then(|| "its port must be a number from 1 to 65535".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_ports_and_urls_are_accepted() {
        for good in
            ["a.example.com", "a:6443", "https://a:6443/x", "http://[::1]:80", "[fe80::1]", "10.0.0.1"]
        {
            assert_eq!(fault_of_endpoint(good), None, "{good}");
        }
        assert_eq!(fault_of_proxy("socks5://proxy:1080"), None);
    }

    #[test]
    fn other_schemes_ports_and_empty_hosts_are_not() {
        for bad in ["ftp://a", "a:0", "a:70000", "https://", ":6443", "a:b", "https://a b"] {
            assert!(fault_of_endpoint(bad).is_some(), "{bad}");
        }
        assert!(fault_of_proxy("proxy:1080").is_some());
    }
}
