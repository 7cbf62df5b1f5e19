//! The files of a page, and the changes that bring a folder to them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::assets::ASSETS;
use crate::block::{Block, BlockFault, fnv1a, json, path_of};
use crate::form::{Blocks, FORMAT, Head};
use crate::grid::{Grid, Row};
use crate::inputs::SiteInputs;
use crate::{clusters, document, head, placements, publications, reasons, rollouts};

/// The number of placements in a block of the map, and of publications in a block.
const ROWS_IN_A_BLOCK: usize = 256;
const PUBLICATIONS_IN_A_BLOCK: u64 = 32;

/// The largest mean number of details in a block.
const MOST_IN_A_BLOCK: usize = 64;

/// The folder of the blocks.
const DATA: &str = "data/";

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
    /// The path is new with each content.
    pub is_named_by_content: bool,
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
        let mut blocks = vec![Block::of("names", &head::names(inputs, &grid))];
        let parts = grid.rows.chunks(ROWS_IN_A_BLOCK).enumerate();
        blocks.extend(parts.map(|(index, rows)| Block::of_bytes(format!("map-{index}"), &map(rows))));
        let details = placements::details(inputs, &grid, explanations);
        blocks.extend(by_hash("p", counts.placements, details));
        blocks.extend(by_hash("c", counts.clusters, clusters::details(inputs, &grid)));
        let details = rollouts::details(inputs, &grid);
        blocks.extend(details.iter().map(|(id, details)| Block::of(format!("r-{id}"), details)));
        blocks.extend(by_number(publications::details(inputs, &grid)));
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
        let is_missing = |file: &&SiteFile| match existing.contains(&file.path) {
            true => !file.is_named_by_content && !has(file),
            false => true,
        };
        let own: BTreeSet<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        let is_stale = |path: &&String| is_block(path) && !own.contains(path.as_str());
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

    /// Reports whether a folder has the whole page of a head, as this berth writes it.
    pub fn is_whole(head: &Head, existing: &BTreeSet<String>, has: &dyn Fn(&SiteFile) -> bool) -> bool {
        let mut blocks = head.files.iter().map(|(key, hash)| path_of(key, hash));
        head.format == FORMAT
            && blocks.all(|path| existing.contains(&path))
            && files(head, &[]).iter().all(has)
    }

    /// Returns the number of files of a head's page.
    pub fn file_count(head: &Head) -> usize {
        head.files.len() + files(head, &[]).len()
    }

    /// Reports whether a path in a folder says that a page of berth is there.
    pub fn is_mark(path: &str) -> bool {
        path == Site::HEAD
    }
}

/// Reports whether a path is that of a block: `data/<key>.<8 digits>.js`.
fn is_block(path: &str) -> bool {
    let name = path.strip_prefix(DATA).and_then(|name| name.strip_suffix(".js"));
    let hash = name.and_then(|name| name.rsplit_once('.')).map(|(_, hash)| hash);
    hash.is_some_and(|hash| hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn files(head: &Head, blocks: &[Block]) -> Vec<SiteFile> {
    let fixed =
        |path: &str, bytes: Vec<u8>| SiteFile { path: path.to_owned(), bytes, is_named_by_content: false };
    let block = |block: &Block| SiteFile {
        path: block.path(),
        bytes: block.text.clone().into_bytes(),
        is_named_by_content: true,
    };
    let mut files: Vec<SiteFile> =
        ASSETS.iter().map(|(path, text)| fixed(path, text.as_bytes().to_vec())).collect();
    files.extend(blocks.iter().map(block));
    files.push(fixed("index.html", document::first_page(head).into_bytes()));
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
fn by_hash<T: Serialize>(prefix: &str, count: u32, details: BTreeMap<String, T>) -> Vec<Block> {
    let mut blocks: Vec<BTreeMap<String, T>> = (0..count).map(|_| BTreeMap::new()).collect();
    for (name, one) in details {
        let index = fnv1a(name.as_bytes()) % count;
        blocks[index as usize].insert(name, one);
    }
    blocks.iter().enumerate().map(|(index, block)| Block::of(format!("{prefix}-{index}"), block)).collect()
}

fn by_number<T: Serialize>(details: BTreeMap<u64, T>) -> Vec<Block> {
    let mut blocks: BTreeMap<u64, BTreeMap<u64, T>> = BTreeMap::new();
    for (number, one) in details {
        blocks.entry(number / PUBLICATIONS_IN_A_BLOCK).or_default().insert(number, one);
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
    for one in &row.cells {
        let state = one.cell.state.number();
        match runs.last_mut() {
            Some((start, length, last)) if *start + *length == one.column && *last == state => *length += 1,
            _ => runs.push((one.column, 1, state)),
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
