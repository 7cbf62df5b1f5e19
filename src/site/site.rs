//! The files of a page, and the changes that bring a folder to them.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::parallel;
use serde::Serialize;

use crate::assets::ASSETS;
use crate::block::{Block, BlockFault, fnv1a, hash_of, json, path_of};
use crate::form::{Blocks, FORMAT, Head};
use crate::grid::{Grid, Row};
use crate::inputs::SiteInputs;
use crate::{change, clusters, document, head, placements, publications, reasons, rollouts};

/// The number of placements in a block of the map, and of publications in a block.
const ROWS_IN_A_BLOCK: usize = 256;
const PUBLICATIONS_IN_A_BLOCK: u64 = 32;

/// The largest mean number of details in a block.
const MOST_IN_A_BLOCK: usize = 64;

/// The folder of the blocks.
const DATA: &str = "data/";

/// The blocks that a page has once.
const NAMES: &str = "names";
const CHANGE: &str = "change";

/// The text around the data of the head.
const HEAD_CALL: (&str, &str) = ("berth(\"head\",", ")\n");

/// A page as files.
#[derive(Clone, Debug)]
pub struct Site {
    pub head: Head,
    /// In the order of writing: the head, which names all blocks, is the last.
    pub files: Vec<SiteFile>,
}

/// A file of a page, by its path below the page's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFile {
    pub path: String,
    pub bytes: Vec<u8>,
}

/// The files to write, in order, and then the paths to remove.
#[derive(Debug, Default)]
pub struct Changes<'s> {
    pub write: Vec<&'s SiteFile>,
    pub remove: Vec<String>,
}

impl Site {
    /// The file that names all others.
    pub const HEAD: &str = "data/head.js";

    /// The file that a browser opens.
    pub const INDEX: &str = "index.html";

    /// The folders in which a page has files.
    pub const FOLDERS: [&str; 2] = ["data", "page"];

    /// Makes a page.
    pub fn of(inputs: &SiteInputs<'_>) -> Site {
        let grid = Grid::of(inputs);
        let counts = Blocks {
            placements: blocks_for(grid.rows.len()),
            clusters: blocks_for(grid.columns.names.len()),
            publications: PUBLICATIONS_IN_A_BLOCK,
            rows: ROWS_IN_A_BLOCK,
        };
        let explanations = reasons::explain(inputs, &grid.columns, &grid.rows);
        let mut blocks = vec![Block::of(NAMES, &head::names(inputs, &grid))];
        let parts: Vec<(usize, &[Row<'_>])> = grid.rows.chunks(ROWS_IN_A_BLOCK).enumerate().collect();
        let part = |(index, rows): &(usize, &[Row<'_>])| Block::of_bytes(format!("map-{index}"), &map(rows));
        blocks.extend(parallel::map_large(&parts, part));
        let details = placements::details(inputs, &grid, explanations);
        blocks.extend(by_hash("p", counts.placements, details));
        blocks.extend(by_hash("c", counts.clusters, clusters::details(inputs, &grid)));
        let details = rollouts::details(inputs, &grid);
        blocks.extend(details.iter().map(|(id, details)| Block::of(format!("r-{id}"), details)));
        blocks.extend(by_number(publications::details(inputs, &grid)));
        blocks.extend(inputs.change.map(|planned| Block::of(CHANGE, &change::details(planned, &grid))));
        let mut head = head::head(inputs, &grid, counts);
        head.files = blocks.iter().map(|block| (block.key.clone(), block.hash.clone())).collect();
        let files = files(&head, &blocks);
        Site { head, files }
    }

    /// Returns the changes that bring a folder to this page. `existing` are the folder's paths; `has` reports whether
    /// the file at a path has these bytes.
    pub fn changes<'s>(
        &'s self,
        existing: &BTreeSet<String>,
        has: &dyn Fn(&SiteFile) -> bool,
    ) -> Changes<'s> {
        // A block may be damaged, so that its name is not enough.
        let is_missing = |file: &&SiteFile| !existing.contains(&file.path) || !has(file);
        let own: BTreeSet<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        let is_stale =
            |path: &&String| (is_block(path) || is_unfinished(path)) && !own.contains(path.as_str());
        Changes {
            write: self.files.iter().filter(is_missing).collect(),
            remove: existing.iter().filter(is_stale).cloned().collect(),
        }
    }

    /// Reads the head of an earlier page.
    pub fn read_head(text: &str) -> Result<Head, BlockFault> {
        let fault = |message: String| BlockFault { message };
        let data = text.strip_prefix(HEAD_CALL.0).and_then(|data| data.strip_suffix(HEAD_CALL.1));
        let data = data.ok_or_else(|| fault("no call of `berth`".to_owned()))?;
        serde_json::from_str(data).map_err(|error| fault(error.to_string()))
    }

    /// Reports whether a folder has the whole page of a head, as this berth writes it. `read` returns the bytes of a
    /// file.
    pub fn is_whole(head: &Head, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> bool {
        let is_block_whole = |(key, hash): (&String, &String)| {
            read(&path_of(key, hash)).is_some_and(|bytes| hash_of(&bytes) == *hash)
        };
        head.format == FORMAT
            && files(head, &[]).iter().all(|file| read(&file.path).is_some_and(|bytes| bytes == file.bytes))
            && head.files.iter().all(is_block_whole)
    }

    /// Reports whether a Git tree has the whole page of a head, as this berth writes it. `has` reports whether the file
    /// at a path has these bytes. Git keeps the content of a block, so that its name is enough.
    pub fn is_whole_tree(head: &Head, has: &dyn Fn(&SiteFile) -> bool, names: &dyn Fn(&str) -> bool) -> bool {
        head.format == FORMAT
            && files(head, &[]).iter().all(has)
            && head.files.iter().all(|(key, hash)| names(&path_of(key, hash)))
    }

    /// Returns the number of files of a head's page.
    pub fn file_count(head: &Head) -> usize {
        head.files.len() + files(head, &[]).len()
    }

    /// Reports whether a text is the head of a page of berth, of any format.
    pub fn is_head(text: &[u8]) -> bool {
        text.starts_with(HEAD_CALL.0.as_bytes()) && text[HEAD_CALL.0.len()..].starts_with(b"{\"format\":")
    }

    /// Reports whether a page has a file at this path, whole or not.
    pub fn is_own(path: &str) -> bool {
        is_fixed(path) || is_block(path) || is_unfinished(path)
    }

    /// Reports whether a file of a page may be removed: a block with its call, or an unfinished file.
    pub fn is_removable(path: &str, bytes: &[u8]) -> bool {
        is_unfinished(path) || (is_block(path) && bytes.starts_with(b"berth(\""))
    }
}

fn is_fixed(path: &str) -> bool {
    path == Site::INDEX || path == Site::HEAD || ASSETS.iter().any(|(asset, _)| *asset == path)
}

/// Reports whether a path is that of a block: `data/<key>.<8 digits>.js`, with a key as pages have them.
fn is_block(path: &str) -> bool {
    let name = path.strip_prefix(DATA).and_then(|name| name.strip_suffix(".js"));
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.and_then(|name| name.rsplit_once('.')).is_some_and(|(key, hash)| {
        let index = key.split_once('-');
        let is_key = [NAMES, CHANGE].contains(&key)
            || index.is_some_and(|(kind, index)| match kind {
                "map" | "p" | "c" | "n" => {
                    !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit())
                }
                "r" => index.split_once('-').is_some_and(|(name, release)| is_hex(name) && is_hex(release)),
                _ => false,
            });
        is_key && hash.len() == 8 && is_hex(hash)
    })
}

/// Reports whether a path is that of a file of a page that was not written completely: `data/.<name>.berth-new`.
fn is_unfinished(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let whole = name.strip_prefix('.').and_then(|name| name.strip_suffix(".berth-new"));
    whole.is_some_and(|whole| {
        let path = if folder.is_empty() { whole.to_owned() } else { format!("{folder}/{whole}") };
        is_fixed(&path) || is_block(&path)
    })
}

fn files(head: &Head, blocks: &[Block]) -> Vec<SiteFile> {
    let fixed = |path: &str, bytes: Vec<u8>| SiteFile { path: path.to_owned(), bytes };
    let block = |block: &Block| SiteFile { path: block.path(), bytes: block.text.clone().into_bytes() };
    let mut files: Vec<SiteFile> =
        ASSETS.iter().map(|(path, text)| fixed(path, text.as_bytes().to_vec())).collect();
    files.extend(blocks.iter().map(block));
    files.push(fixed(Site::INDEX, document::first_page(head).into_bytes()));
    let mut script = HEAD_CALL.0.as_bytes().to_vec();
    script.extend(json(head));
    script.extend(HEAD_CALL.1.as_bytes());
    files.push(fixed(Site::HEAD, script));
    files
}

/// Returns the number of blocks for details: a power of two, so that few details move when it grows.
fn blocks_for(count: usize) -> u32 {
    count.div_ceil(MOST_IN_A_BLOCK).next_power_of_two() as u32
}

/// Distributes details by the hashes of their names, so that a new name changes one block.
fn by_hash<T: Serialize + Sync>(prefix: &str, count: u32, details: BTreeMap<String, T>) -> Vec<Block> {
    let mut blocks: Vec<BTreeMap<String, T>> = (0..count).map(|_| BTreeMap::new()).collect();
    for (name, form) in details {
        let index = fnv1a(name.as_bytes()) % count;
        blocks[index as usize].insert(name, form);
    }
    let blocks: Vec<(usize, BTreeMap<String, T>)> = blocks.into_iter().enumerate().collect();
    parallel::map_large(&blocks, |(index, block)| Block::of(format!("{prefix}-{index}"), block))
}

fn by_number<T: Serialize>(details: BTreeMap<u64, T>) -> Vec<Block> {
    let mut blocks: BTreeMap<u64, BTreeMap<u64, T>> = BTreeMap::new();
    for (number, form) in details {
        blocks.entry(number / PUBLICATIONS_IN_A_BLOCK).or_default().insert(number, form);
    }
    blocks.iter().map(|(index, block)| Block::of(format!("n-{index}"), block)).collect()
}

/// Writes the copies of placements: for each the number of runs, then each run's distance from the one before, and its
/// length and state in one number.
fn map(rows: &[Row<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in rows {
        let runs = state_runs(row);
        varint(&mut bytes, runs.len());
        let mut end = 0;
        for (start, length, state) in runs {
            varint(&mut bytes, start - end);
            varint(&mut bytes, length * 8 + usize::from(state));
            end = start + length;
        }
    }
    bytes
}

fn state_runs(row: &Row<'_>) -> Vec<(usize, usize, u8)> {
    let mut runs: Vec<(usize, usize, u8)> = Vec::new();
    for placed in &row.cells {
        let state = placed.cell.state.number();
        match runs.last_mut() {
            Some((start, length, last)) if *start + *length == placed.column && *last == state => {
                *length += 1;
            }
            _ => runs.push((placed.column, 1, state)),
        }
    }
    runs
}

fn varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
