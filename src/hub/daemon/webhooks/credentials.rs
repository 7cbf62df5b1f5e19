//! Reads from a delivery's headers how its sender proves to know a secret, for each forge.

use berth_base::model::Timestamp;
use berth_base::text::base64;
use berth_http::listener::HeaderMap;
use ring::hmac;

use super::secrets::Secret;

/// The number of signatures of one delivery: while its secret changes, a sender signs with both.
const MOST_SIGNATURES: usize = 4;

/// The seconds by which the sender's clock may differ, or a delivery may be late.
const TOLERANCE: i64 = 300;

type Digest = [u8; 32];

/// The proof of a sender that it knows a secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    /// HMAC-SHA256 of the body: GitHub, Gitea, Forgejo, Gogs, Bitbucket, Flux.
    Body(Digest),
    /// HMAC-SHA256 of an id, a moment and the body, separated by dots: GitLab's signing token, and Standard Webhooks.
    Dated { prefix: Vec<u8>, moment: i64, signatures: Vec<Digest> },
    /// The secret itself, and the name of the delivery: GitLab, Azure DevOps, and a plain POST.
    Token { token: Vec<u8>, delivery: Option<Vec<u8>> },
}

/// Headers with a signature of the body, and the prefix of the digits. Gitea sends several of them.
const BODY_SIGNATURES: [(&str, &str); 6] = [
    ("x-hub-signature-256", "sha256="),
    ("x-forgejo-signature", ""),
    ("x-gitea-signature", ""),
    ("x-gogs-signature", ""),
    ("x-hub-signature", "sha256="),
    ("x-signature", "sha256="),
];

impl Credentials {
    /// Reads the first header with credentials. If it is malformed, the others are ignored.
    pub fn read(headers: &HeaderMap) -> Option<Credentials> {
        if headers.contains_key("webhook-signature") {
            return Credentials::dated(headers);
        }
        if let Some((name, words)) = BODY_SIGNATURES.iter().find(|(name, _)| headers.contains_key(*name)) {
            let digits = one(headers, name)?.strip_prefix(words.as_bytes())?;
            return Some(Credentials::Body(from_hex(digits)?));
        }
        let token = if headers.contains_key("x-gitlab-token") {
            one(headers, "x-gitlab-token")?.to_vec()
        } else {
            authorized(one(headers, "authorization")?)?
        };
        // GitLab's event id is the same for the deliveries of other webhooks.
        let delivery = one(headers, "idempotency-key").or_else(|| one(headers, "x-gitlab-event-uuid"));
        Some(Credentials::Token { token, delivery: delivery.map(<[u8]>::to_vec) })
    }

    fn dated(headers: &HeaderMap) -> Option<Credentials> {
        let [id, moment, listed] =
            ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| one(headers, name));
        let (id, moment) = (id?, moment?);
        let words = std::str::from_utf8(listed?).ok()?.split(' ').filter_map(|word| word.strip_prefix("v1,"));
        let decoded = words.take(MOST_SIGNATURES).filter_map(base64::decode_exactly);
        let signatures: Vec<Digest> = decoded.filter_map(|bytes| bytes.try_into().ok()).collect();
        let prefix = [id, b".", moment, b"."].concat();
        let moment = std::str::from_utf8(moment).ok()?.parse().ok()?;
        (!signatures.is_empty()).then_some(Credentials::Dated { prefix, moment, signatures })
    }
}

/// Returns the secret in `Bearer SECRET`, or the password in `Basic`. The user name is ignored.
fn authorized(value: &[u8]) -> Option<Vec<u8>> {
    let (scheme, rest) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.as_bytes().to_vec());
    }
    let login = scheme.eq_ignore_ascii_case("basic").then(|| base64::decode_exactly(rest))??;
    let colon = login.iter().position(|byte| *byte == b':')?;
    login.get(colon + 1..).map(<[u8]>::to_vec)
}

/// Returns the value of a header that occurs exactly once.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.as_bytes();
    (values.next().is_none() && !value.is_empty()).then_some(value)
}

fn from_hex(digits: &[u8]) -> Option<Digest> {
    if digits.len() != 64 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut digest = Digest::default();
    for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(digest)
}

/// Checks a delivery against each secret while its body arrives.
pub(super) struct Check<'a> {
    credentials: Credentials,
    running: Vec<(&'a hmac::Key, hmac::Context)>,
    secrets: &'a [Secret],
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeliveryVerdict {
    /// No secret matches.
    Unsigned,
    /// The signature is valid, but its time is too far from now.
    Stale,
    /// The signature is valid. A delivery with the same mark is a repetition.
    Signed { mark: Option<Digest> },
}

impl<'a> Check<'a> {
    pub fn new(credentials: Credentials, secrets: &'a [Secret]) -> Check<'a> {
        let mut running: Vec<(&hmac::Key, hmac::Context)> = match &credentials {
            Credentials::Body(_) => secrets.iter().map(|secret| begun(&secret.of_body)).collect(),
            Credentials::Dated { .. } => secrets.iter().map(|secret| begun(&secret.of_dated)).collect(),
            Credentials::Token { .. } => Vec::new(),
        };
        let mut check = Check { credentials, running: Vec::new(), secrets };
        if let Credentials::Dated { prefix, .. } = &check.credentials {
            running.iter_mut().for_each(|(_, context)| context.update(prefix));
        }
        check.running = running;
        check
    }

    pub fn update(&mut self, piece: &[u8]) {
        self.running.iter_mut().for_each(|(_, context)| context.update(piece));
    }

    pub fn end(self, now: Timestamp) -> DeliveryVerdict {
        let Check { credentials, running, secrets } = self;
        let digests = running.into_iter().map(|(key, context)| (key, context.sign()));
        let matching = |given: &[Digest]| {
            let mut matching = None;
            for (key, digest) in digests {
                if given.iter().any(|given| is_same(key, given, digest.as_ref())) {
                    matching = digest.as_ref().try_into().ok();
                }
            }
            matching
        };
        match credentials {
            Credentials::Body(given) => match matching(&[given]) {
                None => DeliveryVerdict::Unsigned,
                mark => DeliveryVerdict::Signed { mark },
            },
            Credentials::Dated { moment, signatures, .. } => match matching(&signatures) {
                None => DeliveryVerdict::Unsigned,
                Some(_) if moment.abs_diff(now.as_second()) > TOLERANCE.unsigned_abs() => {
                    DeliveryVerdict::Stale
                }
                mark => DeliveryVerdict::Signed { mark },
            },
            Credentials::Token { token, delivery } => {
                let Some(secret) = secrets.iter().find(|secret| secret.is(&token)) else {
                    return DeliveryVerdict::Unsigned;
                };
                let mark = delivery.map(|id| hmac::sign(&secret.of_body, &id));
                DeliveryVerdict::Signed { mark: mark.and_then(|mark| mark.as_ref().try_into().ok()) }
            }
        }
    }
}

fn begun(key: &hmac::Key) -> (&hmac::Key, hmac::Context) {
    (key, hmac::Context::with_key(key))
}

/// Compares digests in constant time.
fn is_same(key: &hmac::Key, given: &[u8], right: &[u8]) -> bool {
    hmac::verify(key, given, hmac::sign(key, right).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::secrets::tests::secrets;
    use super::*;

    /// The signature of the body `payload` with the key `0123456789abcdef`.
    const SIGNED: &str = "46ff18fcd34b7c0d3ff9008026b8d5236c371f16f82656ddabc88b61d511aad5";

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().expect("a value"));
        }
        headers
    }

    fn verdict(lines: &[(&'static str, &str)], second: i64) -> Option<DeliveryVerdict> {
        let secrets = secrets(&["another secret of mine", "0123456789abcdef", KEY]);
        let mut check = Check::new(Credentials::read(&headers(lines))?, &secrets);
        check.update(b"pay");
        check.update(b"load");
        Some(check.end(Timestamp::from_second(second).expect("a moment")))
    }

    fn is_signed(lines: &[(&'static str, &str)]) -> bool {
        matches!(verdict(lines, 0), Some(DeliveryVerdict::Signed { .. }))
    }

    #[test]
    fn each_forge_shows_that_it_knows_a_secret() {
        let words = format!("sha256={SIGNED}");
        let capitals = SIGNED.to_uppercase();
        for lines in [
            &[("x-hub-signature-256", &*words), ("x-hub-signature", "sha1=00")][..],
            &[("x-hub-signature", &*words)],
            &[("x-gitea-signature", SIGNED), ("x-gogs-signature", "00")],
            &[("x-forgejo-signature", &*capitals)],
            &[("x-gogs-signature", SIGNED)],
            &[("x-signature", &*words), ("gotk-component", "kustomize-controller")],
            &[("x-gitlab-token", "0123456789abcdef")],
            &[("authorization", "bearer another secret of mine")],
            &[("authorization", "Basic YW5uOjAxMjM0NTY3ODlhYmNkZWY=")],
        ] {
            assert!(is_signed(lines), "{lines:?}");
        }
    }

    #[test]
    fn a_malformed_claim_is_none_and_a_wrong_one_is_not_saved_by_another() {
        let right = format!("sha256={SIGNED}");
        let (odd, long) = (format!("sha256={}", &SIGNED[1..]), format!("sha256={SIGNED}00"));
        let (strange, other) = (right.replace(&SIGNED[..1], "g"), format!("sha256={}", "0".repeat(64)));
        for lines in [
            &[][..],
            &[("x-hub-signature-256", "")],
            &[("x-hub-signature-256", "sha256=")],
            &[("x-hub-signature-256", SIGNED)],
            &[("x-hub-signature-256", &*odd)],
            &[("x-hub-signature-256", &*long)],
            &[("x-hub-signature-256", &*strange)],
            &[("x-hub-signature-256", "sha256=é")],
            &[("x-hub-signature", "sha1=0000000000000000000000000000000000000000")],
            &[("x-signature", SIGNED)],
            &[("x-hub-signature-256", &*right), ("x-hub-signature-256", &*right)],
            &[("x-hub-signature-256", &*other), ("x-gitea-signature", SIGNED)],
            &[("x-gitea-signature", "0"), ("x-gitlab-token", "0123456789abcdef")],
            &[("x-gitlab-token", "0123456789abcdeF")],
            &[("x-gitlab-token", "")],
            &[("x-gitlab-token", "0123456789abcdef"), ("x-gitlab-token", "0123456789abcdef")],
            &[("authorization", "Bearer")],
            &[("authorization", "Bearer ")],
            &[("authorization", "Basic 0123456789abcdef")],
            &[("authorization", "Basic MDEyMzQ1Njc4OWFiY2RlZg==")],
            &[("authorization", "Basic MDEyMzQ1Njc4OWFiY2RlZjphbm4=")],
            &[("authorization", "Digest YW5uOjAxMjM0NTY3ODlhYmNkZWY=")],
            &[("webhook-signature", "v1,AAAA"), ("x-gitlab-token", "0123456789abcdef")],
        ] {
            assert!(!is_signed(lines), "{lines:?}");
        }
    }

    const KEY: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    #[test]
    fn a_dated_signature_holds_for_its_id_and_its_moment() {
        const DATED: &str = "v1,QGLzZ4rePwF1QWf0kx8bb1kfDK7qT96fXOrZxD4MO30=";
        let two = format!("v1a,x v1,AAAA {DATED}");
        let many = format!("{}{DATED}", "v1,AAAA ".repeat(MOST_SIGNATURES));
        let with = |id, moment, signature: &str| {
            let lines = [("webhook-id", id), ("webhook-timestamp", moment), ("webhook-signature", signature)];
            verdict(&lines, 1_700_000_300)
        };
        for signature in [DATED, &two] {
            let mark = with("msg", "1700000000", signature);
            assert!(matches!(mark, Some(DeliveryVerdict::Signed { mark: Some(_) })), "{signature}: {mark:?}");
        }
        assert_eq!(with("msg2", "1700000000", DATED), Some(DeliveryVerdict::Unsigned));
        assert_eq!(with("msg", "1700000001", DATED), Some(DeliveryVerdict::Unsigned));
        assert_eq!(with("msg", "1700000000", &many), None);
        for (moment, signature) in
            [("", DATED), ("now", DATED), ("1700000000", ""), ("1700000000", "v2,AAAA")]
        {
            assert_eq!(with("msg", moment, signature), None, "{moment} {signature}");
        }
        let lines =
            [("webhook-id", "msg"), ("webhook-timestamp", "1700000000"), ("webhook-signature", DATED)];
        for second in [1_700_000_301, 1_699_999_699] {
            assert_eq!(verdict(&lines, second), Some(DeliveryVerdict::Stale));
        }
    }

    #[test]
    fn a_mark_is_what_is_signed_and_a_token_needs_the_name_of_the_delivery() {
        let right = format!("sha256={SIGNED}");
        let one = verdict(&[("x-hub-signature-256", &right), ("x-github-delivery", "a")], 0);
        assert_eq!(one, verdict(&[("x-gitea-signature", SIGNED), ("idempotency-key", "b")], 0));
        let token = ("x-gitlab-token", "0123456789abcdef");
        assert_eq!(verdict(&[token], 0), Some(DeliveryVerdict::Signed { mark: None }));
        let named = |id| verdict(&[token, ("idempotency-key", id), ("x-gitlab-event-uuid", "same")], 0);
        assert_eq!(named("a"), named("a"));
        assert_ne!(named("a"), named("b"));
    }
}
