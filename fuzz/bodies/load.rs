//! Any source tree loads: the bytes are cut at 0xFF into files, the first of which is the last good form of all.

use std::sync::Arc;

use berth_base::source::{SourceFile, SourceTree};
use berth_engine::load::{History, load};

pub fn run(bytes: &[u8]) {
    let mut parts = bytes.split(|byte| *byte == 0xFF);
    let last_good: Option<Arc<[u8]>> = parts.next().map(Into::into);
    let path = |index: usize| if index == 0 { "berth.yaml".to_owned() } else { format!("{index:04}.yaml") };
    let file = |(index, bytes): (usize, &[u8])| SourceFile::new(path(index), bytes);
    let tree = SourceTree { files: parts.enumerate().map(file).collect(), ..SourceTree::default() };
    load(&tree, History::Known(&|_| last_good.clone()));
}
