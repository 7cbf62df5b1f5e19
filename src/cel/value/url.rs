//! URLs, as Kubernetes reads them: absolute ones, or absolute paths.

/// The parts of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    pub(crate) scheme: String,
    /// The host with the port.
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) query: String,
}

impl Url {
    /// Reads a URL.
    pub(crate) fn read(text: &str) -> Option<Url> {
        if text.chars().any(|character| character.is_ascii_control() || character == ' ') {
            return None;
        }
        let (text, _fragment) = text.split_once('#').unwrap_or((text, ""));
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let query = query.to_owned();
        if place.starts_with('/') && !place.starts_with("//") {
            return is_escaped(place).then(|| Url { path: place.to_owned(), query, ..Url::default() });
        }
        let (scheme, rest) = place.split_once(':')?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if !is_scheme {
            return None;
        }
        let scheme = scheme.to_ascii_lowercase();
        let Some(rest) = rest.strip_prefix("//") else {
            // Without a host, the path must be absolute; otherwise the whole rest is opaque.
            let path = if rest.starts_with('/') { rest.to_owned() } else { String::new() };
            return is_escaped(rest).then_some(Url { scheme, path, query, host: String::new() });
        };
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let (name, port) = split(host);
        let is_name = if host.starts_with('[') {
            name.parse::<core::net::Ipv6Addr>().is_ok()
        } else {
            !name.contains(['[', ']', '<', '>', '"', ':'])
        };
        (is_name && is_port(port) && is_escaped(path)).then(|| Url {
            scheme,
            host: host.to_owned(),
            path: path.to_owned(),
            query,
        })
    }

    /// Returns the host without brackets around an IPv6 address, and the port.
    pub(crate) fn name_and_port(&self) -> (&str, &str) {
        split(&self.host)
    }
}

/// Splits name and port; the name of an IPv6 address has no brackets.
fn split(host: &str) -> (&str, &str) {
    if let Some((name, rest)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (name, rest.strip_prefix(':').unwrap_or(rest));
    }
    host.rsplit_once(':').unwrap_or((host, ""))
}

/// Reports whether each `%` begins an escape.
fn is_escaped(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| {
        let digits = part.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

/// Returns a text with its escapes replaced; `None` if the result is not valid text.
pub(crate) fn unescape(text: &str) -> Option<String> {
    if !is_escaped(text) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}
