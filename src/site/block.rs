//! A block of data ↔ a script named by its content.
//!
//! A page that opens from a folder may load scripts, and nothing else. So a block is a script with one call:
//! `berth("<key>","<its data, deflated, in base64>")`.

use std::io::{Read as _, Write as _};

use berth_base::text::{base64, hex};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

/// The length of a block's hash in its name, in bytes.
const HASH_BYTES: usize = 4;

/// A block with its name, and the hash of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub key: String,
    pub hash: String,
    pub text: String,
}

/// The fault of a text that is no block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFault {
    pub message: String,
}

impl Block {
    /// Writes a form as a block.
    pub(crate) fn of(key: impl Into<String>, form: &impl Serialize) -> Block {
        Block::of_bytes(key, &json(form))
    }

    /// Writes bytes as a block.
    pub(crate) fn of_bytes(key: impl Into<String>, bytes: &[u8]) -> Block {
        let key = key.into();
        let text = format!("berth(\"{key}\",\"{}\")\n", base64::encode(&deflated(bytes)));
        let hash = hash_of(text.as_bytes());
        Block { key, hash, text }
    }

    /// Returns the block's file below the page's folder.
    pub fn path(&self) -> String {
        path_of(&self.key, &self.hash)
    }

    /// Reads the form in the text of a block.
    pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, BlockFault> {
        let fault = |message: String| BlockFault { message };
        let bytes = Block::read_bytes(text)?;
        serde_json::from_slice(&bytes).map_err(|error| fault(error.to_string()))
    }

    /// Reads the bytes in the text of a block.
    pub fn read_bytes(text: &str) -> Result<Vec<u8>, BlockFault> {
        let fault = |message: &str| BlockFault { message: message.to_owned() };
        let call = text.trim_end().strip_prefix("berth(\"").and_then(|rest| rest.strip_suffix("\")"));
        let (_, data) = call.and_then(|call| call.split_once("\",\"")).ok_or(fault("no call of `berth`"))?;
        let packed = base64::decode(data).ok_or(fault("its data is not base64"))?;
        let mut bytes = Vec::new();
        DeflateDecoder::new(packed.as_slice())
            .read_to_end(&mut bytes)
            .map_err(|error| BlockFault { message: error.to_string() })?;
        Ok(bytes)
    }
}

/// Returns the hash of a block's text, as its name has it.
pub(crate) fn hash_of(text: &[u8]) -> String {
    hex(&Sha256::digest(text)[..HASH_BYTES])
}

/// Returns the file of a block with this content.
pub(crate) fn path_of(key: &str, hash: &str) -> String {
    format!("data/{key}.{hash}.js")
}

/// Writes a form as JSON.
pub(crate) fn json(form: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(form).expect("keys are texts, and writing to memory does not fail")
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}

/// Hashes bytes as the page's scripts do (FNV-1a, 32 bits): the block of a name.
pub fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
