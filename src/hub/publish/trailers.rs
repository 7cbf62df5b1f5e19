//! The trailers of a rendered commit: its inputs, in the last paragraph of its message.
//!
//! `Berth-Digest` covers the state's tree and the other trailers. It distinguishes berth's commits from other commits
//! on the branch.

use berth_git::protocol::trailers::{DIGEST, FLEET, NOW, SEQ, SOURCE, one_line, paragraph};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use berth_base::model::{Digest, Timestamp};

use berth_git::{CommitId, TreeId};

/// The trailers of berth's last commit. Empty if there is no such commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    /// The source commit.
    pub source: Option<CommitId>,
    pub now: Option<Timestamp>,
    /// The parent's sequence plus one; 1 for the first commit.
    pub seq: u64,
    pub digest: Option<Digest>,
    /// Trailers of other steps, such as approvals.
    pub others: Vec<(String, String)>,
}

impl Trailers {
    /// Returns the paragraph, with the digest of its other lines and the state's tree.
    pub(super) fn write(&self, state_tree: TreeId) -> (String, Digest) {
        let lines = self.lines();
        let digest = digest_of(state_tree, &lines);
        (format!("{lines}{DIGEST}: {digest}\n"), digest)
    }

    fn lines(&self) -> String {
        let own = [
            (SOURCE, self.source.map(|id| id.to_string())),
            (NOW, self.now.map(|now| now.to_string())),
            (SEQ, Some(self.seq.to_string())),
        ];
        let own = own.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let own = own.map(|(name, value)| format!("{name}: {value}\n"));
        let others = self.others.iter().map(|(name, value)| {
            format!("{}: {}\n", one_line(name).replace([':', ' '], "-"), one_line(value))
        });
        own.chain(others).collect()
    }

    /// Returns the fleet's name, if the commit has one.
    pub fn fleet(&self) -> Option<&str> {
        self.others.iter().find(|(name, _)| name == FLEET).map(|(_, value)| value.as_str())
    }

    /// Reads a message's last paragraph. `None` if a required trailer is missing.
    pub fn read(message: &str) -> Option<Trailers> {
        let mut trailers = Trailers::default();
        let mut seq = None;
        for (name, value) in paragraph(message) {
            match name {
                SOURCE => trailers.source = Some(value.parse().ok()?),
                NOW => trailers.now = Some(Timestamp::from_str(value).ok()?),
                SEQ => seq = Some(value.parse().ok()?),
                DIGEST => trailers.digest = Some(value.parse().ok()?),
                _ => trailers.others.push((name.to_owned(), value.to_owned())),
            }
        }
        trailers.seq = seq?;
        trailers.digest.is_some().then_some(trailers)
    }

    /// Reports whether the digest matches, so that the commit is as berth made it.
    pub(super) fn fit(&self, state_tree: TreeId) -> bool {
        self.digest == Some(digest_of(state_tree, &self.lines()))
    }
}

/// Returns the values of one trailer, in any case of its name.
pub fn values<'m>(message: &'m str, name: &str) -> impl Iterator<Item = &'m str> {
    paragraph(message)
        .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

fn digest_of(state_tree: TreeId, lines: &str) -> Digest {
    let hash = Sha256::digest(format!("{state_tree}\n{lines}").as_bytes());
    let mut digest = Digest([0; 16]);
    for (to, from) in digest.0.iter_mut().zip(hash) {
        *to = from;
    }
    digest
}
