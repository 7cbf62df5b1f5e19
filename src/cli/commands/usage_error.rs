//! Faults of the command line, in the form of all other errors.

use super::exit::CommandError;

/// Returns the error with the first tip as its hint, or else the usage of the command.
pub(crate) fn of(error: &clap::Error) -> CommandError {
    let text = error.render().to_string();
    let (mut message, mut tips, mut usage) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_usage = false;
    for line in text.lines().map(str::trim_end) {
        is_usage |= line.starts_with("Usage: ");
        match line.trim_start() {
            "" => {}
            rest if rest.starts_with("For more information") => {}
            rest if is_usage => usage.push(rest),
            rest if rest.starts_with("tip: ") => tips.push(rest.trim_start_matches("tip: ")),
            rest => message.push(rest.trim_start_matches("error: ")),
        }
    }
    let hint = match (tips.is_empty(), usage.is_empty()) {
        (false, _) => tips.join("; "),
        (true, false) => usage.join("\n  ").replacen("Usage: ", "usage: ", 1),
        (true, true) => "see `berth --help`".to_owned(),
    };
    CommandError::usage(in_backquotes(&message.join(" "))).hint(in_backquotes(&hint))
}

/// clap quotes words with apostrophes, berth with backquotes.
fn in_backquotes(text: &str) -> String {
    let mut shown = String::new();
    let mut is_open = false;
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_end = rest.peek().is_none_or(|next| !next.is_alphanumeric());
        match c {
            '\'' if is_open && is_end => (is_open, shown) = (false, shown + "`"),
            '\'' if !is_open && !before.is_alphanumeric() => (is_open, shown) = (true, shown + "`"),
            c => shown.push(c),
        }
        before = c;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn fault(words: &[&str]) -> String {
        let error = super::super::Cli::try_parse_from(words).expect_err("a fault");
        of(&error).to_string()
    }

    #[test]
    fn faults_of_the_command_line_read_like_all_others() {
        let slip = fault(&["berth", "vaildate"]);
        assert!(slip.starts_with("error: unrecognized subcommand `vaildate`\n  hint: "), "{slip}");
        assert!(slip.contains("`validate`"), "{slip}");
        let unknown = fault(&["berth", "decide", "--reop", "x"]);
        assert!(unknown.starts_with("error: unexpected argument `--reop` found\n  hint: "), "{unknown}");
        assert!(unknown.contains("`--repo`"), "{unknown}");
        let missing = fault(&["berth", "explain"]);
        assert!(
            missing.contains("<PLACEMENT>") && missing.contains("hint: usage: berth explain"),
            "{missing}"
        );
        assert_eq!(in_backquotes("it's 'a' and 'b'"), "it's `a` and `b`");
    }
}
