//! The trailers of berth's own commits: `Name: value` lines in the last paragraph of the message.

use berth_base::diag::harmless_line;

/// The sequence number of a rendered commit.
pub const SEQ: &str = "Berth-Seq";
/// The fleet that the commit is for. Absent where the daemon was given no name.
pub const FLEET: &str = "Berth-Fleet";
/// A path in a cluster's folder that a member may remove for good, and on a rendered commit the clusters.
pub const ALLOW_PRUNE: &str = "Berth-Allow-Prune";

/// The source commit of a rendered one.
pub const SOURCE: &str = "Berth-Source";
/// The moment that a rendered commit was decided for.
pub const NOW: &str = "Berth-Now";
/// The digest over the state and the other trailers.
pub const DIGEST: &str = "Berth-Digest";
/// The hub that an imported state was found on.
pub const IMPORT: &str = "Berth-Import";

/// The limits that the gate judged by.
pub const GATE: &str = "Berth-Gate";
/// The source commit that was processed last before.
pub const PROCESSED: &str = "Berth-Processed";
/// The commit whose access rules held, where the source is not new.
pub const RULES: &str = "Berth-Rules";
/// A workload that is held: the digest that approves its change, its kind and its name.
pub const HELD: &str = "Berth-Held";
/// An approval that counted for this commit, and counts no more.
pub const USED_APPROVAL: &str = "Berth-Used-Approval";
/// The rendered commit whose state this one restores.
pub const ROLLBACK: &str = "Berth-Rollback";

/// The `Name: value` lines of a message's last paragraph.
pub fn paragraph(message: &str) -> impl Iterator<Item = (&str, &str)> {
    let last = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    last.lines().filter_map(|line| line.split_once(": "))
}

/// Text from strangers as one line: nothing in it can make a trailer.
pub fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    harmless_line(text.trim()).into_owned()
}
