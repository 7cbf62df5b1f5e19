//! The digest by which a registry knows bytes.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use berth_base::text::hex;

/// The SHA-256 of bytes, which identifies them. Other hash functions are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Makes a digest of a finished hash.
    pub(super) fn finished(hash: Sha256) -> Digest {
        Digest(hash.finalize().into())
    }

    /// Returns the digest as a tag, under which signatures and referrers are found: `sha256-<hex>`.
    pub fn tag(&self) -> String {
        format!("sha256-{}", hex(&self.0))
    }

    /// Returns the hexadecimal digits.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex(&self.0))
    }
}

impl FromStr for Digest {
    type Err = ();

    fn from_str(text: &str) -> Result<Digest, ()> {
        let digits = text.strip_prefix("sha256:").filter(|digits| digits.len() == 64).ok_or(())?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
            return Err(());
        }
        let mut bytes = [0; 32];
        for (byte, two) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let two = std::str::from_utf8(two).map_err(|_| ())?;
            *byte = u8::from_str_radix(two, 16).map_err(|_| ())?;
        }
        Ok(Digest(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Digest::of(b"{}");
        let text = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        for wrong in
            ["", "sha256:", "sha512:44", &text.to_uppercase(), &text[..70], &format!("{text}0"), "sha256:é"]
        {
            assert_eq!(wrong.parse::<Digest>(), Err(()), "{wrong}");
        }
    }
}
