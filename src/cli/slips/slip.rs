//! A slip, and the place of it.

/// A name that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// The keys that lead there; an item of a list is its number.
    pub path: Vec<String>,
    /// The name that is meant.
    pub meant: String,
}

impl Slip {
    /// The path as people write it: `spec.containers[0].imagePullPolcy`.
    pub fn shown(&self) -> String {
        self.path.iter().fold(String::new(), |mut shown, part| {
            if part.bytes().all(|byte| byte.is_ascii_digit()) {
                shown.push_str(&format!("[{part}]"));
            } else {
                let dot = if shown.is_empty() { "" } else { "." };
                shown.push_str(&format!("{dot}{part}"));
            }
            shown
        })
    }
}
