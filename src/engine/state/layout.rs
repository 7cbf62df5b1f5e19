//! The layout of the rendered branch: its folders, and the file names that berth writes there.

use berth_base::model::path;
use berth_base::source::rendered::document_file;

/// The newest format of the rendered branch that this berth reads and writes.
pub const BRANCH_FORMAT: u64 = 1;

/// The file that marks a branch as berth's.
pub use berth_base::source::MARKER;

pub const CLUSTERS: &str = "clusters";
pub const DECISIONS: &str = "decisions";
pub const FACTS: &str = "facts";
pub const RELEASES: &str = "releases";
pub const KEPT: &str = "kept";
pub const LEDGER: &str = "ledger";

/// The file of the ledger in its folder.
pub const LEDGER_FILE: &str = "ledger.yaml";

/// The folders whose files only berth writes.
pub const OWNED: [&str; 6] = [CLUSTERS, DECISIONS, FACTS, RELEASES, KEPT, LEDGER];

/// Longer path parts in `kept/` are split, not cut, so that the source path can be decoded.
const LONGEST_KEPT_PART: usize = 200;

/// Separates the file of a source document from what it renders.
const RENDERED: &str = "~/";

/// Returns the marker's bytes.
pub fn marker() -> String {
    format!("{{\"format\": {BRANCH_FORMAT}}}\n")
}

/// Returns the format that a marker names; `None` if it is not a marker.
pub fn read_marker(bytes: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    value.get("format")?.as_u64().filter(|format| *format > 0)
}

/// Returns the path of a cluster's facts in their folder.
pub fn facts_file(cluster: &str) -> String {
    format!("{}.yaml", path::encode(cluster))
}

/// Returns the path in `kept/` of a source file's last good form, or of a rendered file. Folders stay folders. No other
/// file's path is below or above this one, unless one file replaces the other's folder.
pub fn kept_path(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let document_ends = document_file(source).map(str::len);
    let mut length = 0;
    for (index, part) in source.split('/').enumerate() {
        if index > 0 {
            // Rendered files are below a file of the source, whose own last good form may be kept too.
            out.push_str(if document_ends == Some(length) { RENDERED } else { "/" });
            length += 1;
        }
        length += part.len();
        let mut rest = path::encode_whole(part);
        while rest.len() > LONGEST_KEPT_PART {
            // Encoded text is ASCII, so any cut is at a character's edge; `~` is in no encoded text. Behind a piece it
            // keeps the folder from having the name of a file; before the next one, a leading dot from meaning something.
            let after = rest.split_off(LONGEST_KEPT_PART - 1);
            out.push_str(&rest);
            out.push_str("~/");
            rest = format!("~{after}");
        }
        out.push_str(&rest);
    }
    out
}

/// Returns the source file whose [`kept_path`] this is; `None` for any other path.
pub fn kept_source(kept: &str) -> Option<String> {
    let joined = kept.replace("~/~", "").replace("~/%2E", "/%2E");
    let parts: Option<Vec<String>> = joined.split('/').map(path::decode_text).collect();
    let source = parts?.join("/");
    (kept_path(&source) == kept).then_some(source)
}
