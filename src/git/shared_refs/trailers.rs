//! The trailers of berth's own commits: `Name: value` lines in the last paragraph of the message.

use berth_base::diag::harmless_line;

/// The sequence number of a rendered commit.
pub const SEQ: &str = "Berth-Seq";
/// The name of the fleet. Absent if the daemon has no name for it.
pub const FLEET: &str = "Berth-Fleet";
/// A path in a cluster's folder whose object the member may prune; on a rendered commit, with the clusters.
pub const ALLOW_PRUNE: &str = "Berth-Allow-Prune";

/// The source commit of a rendered one.
pub const SOURCE: &str = "Berth-Source";
/// The moment at which a rendered commit was decided.
pub const NOW: &str = "Berth-Now";
/// The digest over the state and the other trailers.
pub const DIGEST: &str = "Berth-Digest";
/// The hub from which an imported state was read.
pub const IMPORT: &str = "Berth-Import";

/// The limits of the gate.
pub const GATE: &str = "Berth-Gate";
/// The source commit processed before this one.
pub const PROCESSED: &str = "Berth-Processed";
/// The commit whose access rules applied, if the source is not new.
pub const RULES: &str = "Berth-Rules";
/// A held workload: the digest that approves its change, its kind and its name.
pub const HELD: &str = "Berth-Held";
/// An approval that this commit used up.
pub const USED_APPROVAL: &str = "Berth-Used-Approval";
/// The rendered commit whose state this one restores.
pub const ROLLBACK: &str = "Berth-Rollback";

/// The identity of the program that rendered charts and bases.
pub const RENDERER: &str = "Berth-Renderer";
/// A source that this program failed to render, so that its last published objects stayed.
pub const UNRENDERED: &str = "Berth-Unrendered";

/// Iterates over the `Name: value` lines of a message's last paragraph.
pub fn paragraph(message: &str) -> impl Iterator<Item = (&str, &str)> {
    let last = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    last.lines().filter_map(|line| line.split_once(": "))
}

/// Turns foreign text into one line that cannot contain a trailer.
pub fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    harmless_line(text.trim()).into_owned()
}
