//! Blobs: pulled with a check of their digest, by which a registry knows bytes, and pushed once, in parts if
//! they are long.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::http::{Answer, Ask};
use super::login::Rights;
use super::{Descriptor, Repository};
use crate::error::RegistryError;
use berth_base::text::hex;
use berth_http::client::{self, BodyReader};

/// The time limit for a long blob, in each direction.
const PATIENCE: Duration = Duration::from_secs(600);
/// Longer blobs are pushed in parts of this length, so that a cut connection costs one part.
const PART: usize = 8 << 20;
/// The attempts of an upload from its start.
const TRIES: u32 = 3;

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mounted {
    /// The repository already had the blob.
    Present,
    /// Another repository of the registry had the blob, and it was mounted.
    FromOther,
    Uploaded,
}

impl Repository {
    /// Reports whether the repository has a blob.
    pub fn has_blob(&self, digest: Digest) -> Result<bool, RegistryError> {
        let answer = self.ask("HEAD", &format!("{}/blobs/{digest}", self.name), &[], None, Rights::Pull)?;
        match answer.status.as_u16() {
            404 => Ok(false),
            200..=299 => Ok(true),
            _ => Err(self.http.refusal(&answer, &self.named(&digest.to_string()))),
        }
    }

    /// Pulls a short blob completely.
    pub fn pull_blob(&self, wanted: &Descriptor, most: u64) -> Result<Vec<u8>, RegistryError> {
        let mut reader = self.open_blob(wanted, most)?;
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|error| self.http.unreachable(&error.to_string()))?;
        self.finish_blob(reader)?;
        Ok(bytes)
    }

    /// Begins to pull a blob. Its bytes are verified only by [`Repository::finish_blob`].
    pub fn open_blob(&self, wanted: &Descriptor, most: u64) -> Result<BlobReader, RegistryError> {
        let digest = wanted.digest().ok_or_else(|| self.wrong("", "a digest is not a SHA-256"))?;
        let named = self.named(&digest.to_string());
        if wanted.size > most {
            return Err(self.http.wrong(&named, &format!("it has {} bytes, more than {most}", wanted.size)));
        }
        let path = format!("{}/blobs/{digest}", self.name);
        let ask = Ask {
            method: "GET",
            path: &path,
            headers: &[],
            body: None,
            repository: &self.name,
            rights: Rights::Pull,
        };
        let answer = self.http.open(&ask, PATIENCE)?;
        if !answer.status().is_success() {
            let answer = self.http.finish(answer)?;
            return Err(self.http.refusal(&answer, &named));
        }
        let reader = client::reader(answer.into_body());
        Ok(BlobReader { from: reader, hash: Sha256::new(), left: wanted.size, digest, is_longer: false })
    }

    /// Reads the rest of a blob, and checks its digest.
    pub fn finish_blob(&self, mut reader: BlobReader) -> Result<(), RegistryError> {
        let named = self.named(&reader.digest.to_string());
        io::copy(&mut reader, &mut io::sink()).map_err(|error| self.http.unreachable(&error.to_string()))?;
        let BlobReader { hash, left, digest, is_longer, .. } = reader;
        if left > 0 {
            return Err(self.http.unreachable(&format!("`{named}` ends {left} bytes early")));
        }
        if is_longer || Digest::finished(hash) != digest {
            return Err(self.http.wrong(&named, "its bytes are not those of its digest"));
        }
        Ok(())
    }

    /// Brings bytes into the repository, unless it has them: mounts them from another repository of the registry that
    /// is known to have them, or uploads them.
    pub fn push_blob(&self, bytes: &[u8], from: Option<&str>) -> Result<Mounted, RegistryError> {
        let digest = Digest::of(bytes);
        if self.has_blob(digest)? {
            return Ok(Mounted::Present);
        }
        let mut start = self.start_upload(digest, from)?;
        let mut attempt = 1;
        loop {
            let Some(place) = start else { return Ok(Mounted::FromOther) };
            match self.upload(&place, bytes, digest) {
                Ok(()) => return Ok(Mounted::Uploaded),
                Err(error) if attempt < TRIES && error.is_passing() => {
                    // The upload may have succeeded with only its answer lost.
                    if self.has_blob(digest)? {
                        return Ok(Mounted::Uploaded);
                    }
                    attempt += 1;
                    start = self.start_upload(digest, None)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Checks that the account may push, by an upload that is begun and cancelled, so that nothing stays.
    pub fn may_push(&self) -> Result<(), RegistryError> {
        if let Some(place) = self.start_upload(Digest::of(b"{}"), None)? {
            // If the registry does not cancel the upload, it removes it later.
            let _ = self.ask("DELETE", &place, &[], None, Rights::Push);
        }
        Ok(())
    }

    /// Opens an upload and returns its address; `None` if the blob was mounted instead.
    fn start_upload(&self, digest: Digest, from: Option<&str>) -> Result<Option<String>, RegistryError> {
        let query = from.map(|from| format!("?mount={digest}&from={from}")).unwrap_or_default();
        let path = format!("{}/blobs/uploads/{query}", self.name);
        let answer = self.ask("POST", &path, &[], Some(b""), Rights::Push)?;
        match answer.status.as_u16() {
            201 => Ok(None),
            202 => self.place(&answer).map(Some),
            // Some registries refuse to mount from a repository that the account may not read.
            _ if from.is_some() => self.start_upload(digest, None),
            _ => Err(self.http.refusal(&answer, &self.name)),
        }
    }

    fn upload(&self, place: &str, bytes: &[u8], digest: Digest) -> Result<(), RegistryError> {
        let mut place = place.to_owned();
        let mut sent = 0;
        if bytes.len() > PART {
            while sent < bytes.len() {
                (place, sent) = self.send_part(&place, bytes, sent)?;
            }
        }
        let separator = if place.contains('?') { '&' } else { '?' };
        let url = format!("{place}{separator}digest={digest}");
        let rest = bytes.get(sent..).unwrap_or_default();
        let kind = ("content-type", "application/octet-stream");
        let answer = self.ask_patiently("PUT", &url, &[kind], Some(rest))?;
        if answer.status.is_success() {
            return Ok(());
        }
        Err(self.http.refusal(&answer, &self.named(&digest.to_string())))
    }

    /// Sends the next part of a long blob. If the connection is cut, asks the registry how much arrived.
    fn send_part(&self, place: &str, bytes: &[u8], sent: usize) -> Result<(String, usize), RegistryError> {
        let end = bytes.len().min(sent + PART);
        let part = bytes.get(sent..end).unwrap_or_default();
        let range = format!("{sent}-{}", end - 1);
        let headers = [("content-type", "application/octet-stream"), ("content-range", range.as_str())];
        match self.ask_patiently("PATCH", place, &headers, Some(part)) {
            Ok(answer) if answer.status.is_success() => Ok((self.place(&answer)?, end)),
            Ok(answer) => Err(self.http.refusal(&answer, &self.name)),
            Err(error) if error.is_passing() => {
                let answer = self.ask("GET", place, &[], None, Rights::Push)?;
                let range = answer.header("range").map(|range| range.trim_start_matches("bytes="));
                let last = range.and_then(|range| range.strip_prefix("0-")?.parse::<usize>().ok());
                let arrived = last.map_or(0, |last| if last == 0 { 0 } else { last + 1 });
                // The upload is gone, or beyond this part: it must start again.
                if answer.status != 204 || arrived > end || arrived < sent {
                    return Err(error);
                }
                Ok((self.place(&answer)?, arrived))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the address in an answer for the next request of an upload.
    fn place(&self, answer: &Answer) -> Result<String, RegistryError> {
        let place = answer.header("location").map(str::to_owned);
        place.ok_or_else(|| self.wrong("", "the answer to an upload has no `location` header"))
    }

    pub(super) fn ask(
        &self,
        method: &'static str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Option<&[u8]>,
        rights: Rights,
    ) -> Result<Answer, RegistryError> {
        self.http.send(&Ask { method, path, headers, body, repository: &self.name, rights })
    }

    fn ask_patiently(
        &self,
        method: &'static str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Answer, RegistryError> {
        let ask = Ask { method, path, headers, body, repository: &self.name, rights: Rights::Push };
        let answer = self.http.open(&ask, PATIENCE)?;
        self.http.finish(answer)
    }
}

/// Reads a blob's bytes as they arrive, and hashes them. Never returns more bytes than the blob should have.
pub struct BlobReader {
    from: BodyReader<'static>,
    hash: Sha256,
    /// The number of bytes still to come.
    left: u64,
    digest: Digest,
    is_longer: bool,
}

impl fmt::Debug for BlobReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobReader")
            .field("digest", &self.digest)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Read for BlobReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || self.is_longer {
            return Ok(0);
        }
        if self.left == 0 {
            let mut more = [0];
            self.is_longer = self.from.read(&mut more)? > 0;
            return Ok(0);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let into = into.get_mut(..most).unwrap_or_default();
        let length = self.from.read(into)?;
        self.hash.update(into.get(..length).unwrap_or_default());
        self.left -= length as u64;
        Ok(length)
    }
}

/// The SHA-256 of bytes, which identifies them. Other hash functions are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Makes a digest of a finished hash.
    fn finished(hash: Sha256) -> Digest {
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
