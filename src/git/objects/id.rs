//! Ids of commits and trees, as plain bytes that outlive their repository.

use std::fmt;
use std::str::FromStr;

use berth_base::model::ContentId;

macro_rules! object_id {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 20]);

        impl $name {
            pub(super) fn of(id: git2::Oid) -> $name {
                $name(bytes_of(id))
            }

            pub(super) fn oid(self) -> git2::Oid {
                oid(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                ContentId(self.0).fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                ContentId(self.0).fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ();

            /// Reads all forty hexadecimal digits. A shortened id is a revision, not an id.
            fn from_str(text: &str) -> Result<$name, ()> {
                if text.len() != 40 {
                    return Err(());
                }
                git2::Oid::from_str(text).map($name::of).map_err(|_| ())
            }
        }
    };
}

object_id!(CommitId, "The id of a commit.");
object_id!(TreeId, "The id of a tree.");

impl TreeId {
    /// The empty tree, which every repository knows.
    pub const EMPTY: TreeId = TreeId([
        0x4b, 0x82, 0x5d, 0xc6, 0x42, 0xcb, 0x6e, 0xb9, 0xa0, 0x60, 0xe5, 0x4b, 0xf8, 0xd6, 0x92, 0x88, 0xfb,
        0xee, 0x49, 0x04,
    ]);
}

impl CommitId {
    /// Returns the first twelve digits, for messages.
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(12);
        text
    }
}

pub(super) fn bytes_of(id: git2::Oid) -> [u8; 20] {
    let mut bytes = [0; 20];
    for (to, from) in bytes.iter_mut().zip(id.as_bytes()) {
        *to = *from;
    }
    bytes
}

pub(super) fn oid(bytes: [u8; 20]) -> git2::Oid {
    git2::Oid::from_bytes(&bytes).expect("twenty bytes are an id")
}
