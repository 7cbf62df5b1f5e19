//! Generated references are kept true: the page of the command line is what `--help` says.

use crate::support::{COMMANDS, run};

/// The commands with commands of their own.
const PARTS: [(&str, &[&str]); 4] = [
    ("rollout", &["list", "show", "next", "stages", "pause", "resume", "approve", "abort", "restart"]),
    ("install", &["hub", "member", "application-set"]),
    ("import", &["kubefed", "kubefleet", "ocm", "clusterprofiles"]),
    ("vendor", &["chart", "base", "update", "fetch", "check"]),
];

#[test]
fn the_command_line_page_is_what_help_says() {
    let mut page = String::from(
        "# The command line\n\nGenerated from `--help`; rewrite it with `BERTH_UPDATE=1 cargo test generated`.\n",
    );
    let mut add = |heading: &str, args: &[&str]| {
        let help = run(args).expect(0).out;
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        page.push_str(&format!("\n## {heading}\n\n```text\n{}\n```\n", help.join("\n").trim_end()));
    };
    add("berth", &["--help"]);
    for command in COMMANDS {
        add(&format!("berth {command}"), &[command, "--help"]);
        let parts = PARTS.iter().find(|(whole, _)| *whole == command).map_or(&[][..], |(_, parts)| parts);
        for part in parts {
            add(&format!("berth {command} {part}"), &[command, part, "--help"]);
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md");
    if std::env::var_os("BERTH_UPDATE").is_some() {
        std::fs::write(path, &page).expect("the page is written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "docs/cli.md is out of date: run `BERTH_UPDATE=1 cargo test generated`");
}

#[test]
fn manual_pages_and_completions_come_out() {
    let folder = tempfile::tempdir().expect("a folder");
    run(&["man", "--out", folder.path().to_str().expect("text")]).expect(0);
    assert!(folder.path().join("berth-decide.1").exists());
    assert!(run(&["man"]).expect(0).out.contains(".TH"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(run(&["completions", shell]).expect(0).out.contains("berth"), "{shell}");
    }
}
