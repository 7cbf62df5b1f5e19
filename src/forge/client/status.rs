//! A commit's status, which a forge shows at the commit and its pull request.

use crate::environment::Forge;

/// A commit's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub state: State,
    /// The name that identifies the status, and by which a rule can require it.
    pub context: String,
    /// One line, cut to the forge's limit.
    pub description: String,
    /// The page that the status links to.
    pub link: Option<String>,
}

/// A verdict on a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Pending,
    Success,
    /// The change is refused.
    Failure,
    /// No verdict was reached.
    Error,
}

impl Status {
    /// A status with the context `berth`.
    pub fn new(state: State, description: &str) -> Status {
        Status { state, context: "berth".to_owned(), description: description.to_owned(), link: None }
    }

    /// Adds the page that the status links to.
    #[must_use]
    pub fn link(self, link: Option<String>) -> Status {
        Status { link, ..self }
    }
}

impl State {
    pub(super) fn name(self, forge: Forge) -> &'static str {
        match (self, forge) {
            (State::Pending, _) => "pending",
            (State::Success, _) => "success",
            (State::Failure, Forge::GitHub | Forge::Gitea) => "failure",
            (State::Error, Forge::GitHub | Forge::Gitea) => "error",
            (State::Failure | State::Error, Forge::GitLab) => "failed",
        }
    }
}

/// Cuts a description to the forge's limit, with `…` as its last character.
pub(super) fn cut(description: &str, forge: Forge) -> String {
    let most = match forge {
        Forge::GitHub => 140,
        Forge::GitLab | Forge::Gitea => 255,
    };
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_one_line_within_the_limit() {
        assert_eq!(cut("a\n b", Forge::GitHub), "a b");
        let long = "ä".repeat(300);
        for (forge, most) in [(Forge::GitHub, 140), (Forge::GitLab, 255)] {
            let text = cut(&long, forge);
            assert_eq!(text.chars().count(), most);
            assert!(text.ends_with("ä…"));
        }
        assert_eq!(cut(&"ä".repeat(140), Forge::GitHub), "ä".repeat(140));
    }
}
