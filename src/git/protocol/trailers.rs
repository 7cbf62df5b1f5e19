//! The trailers of berth's own commits: `Name: value` lines in the last paragraph of the message.

use berth_base::diag::harmless_line;

/// The sequence number of a rendered commit.
pub const SEQ: &str = "Berth-Seq";
/// The fleet that the commit is for. Absent where the daemon was given no name.
pub const FLEET: &str = "Berth-Fleet";
/// A path in a cluster's folder that a member may remove for good, and on a rendered commit the clusters.
pub const ALLOW_PRUNE: &str = "Berth-Allow-Prune";

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
