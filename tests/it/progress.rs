//! Long work says how far it is where somebody looks, and nowhere else.

use crate::support::programs::write_script;
use crate::support::{Ran, Repo, hermetic, small_fleet};

/// A fleet at a remote that takes its time for each answer.
struct Slow {
    repo: Repo,
    folder: tempfile::TempDir,
}

impl Slow {
    fn new() -> Slow {
        let slow = Slow { repo: small_fleet(), folder: tempfile::tempdir().unwrap() };
        let git = slow.folder.path().join("git");
        let path = std::env::var("PATH").unwrap();
        write_script(&git, &format!("sleep 0.6\nPATH='{path}' exec git \"$@\""));
        slow
    }

    /// Runs `run --once` in a terminal. Returns what the terminal got.
    fn run(&self, flags: &str, variables: &[(&str, &str)]) -> String {
        let binary = binary();
        let copy = self.folder.path().join("copy");
        let berth = format!(
            "'{binary}' run --once --color never --remote '{}' --repo '{}'",
            self.repo.arg(),
            copy.display()
        );
        let path = format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        let mut script = hermetic("script");
        script.args(["-qec", &format!("{berth} {flags}"), "/dev/null"]);
        script.env("PATH", path).env("TERM", "xterm").env("SHELL", "/bin/sh");
        Ran::of(script.envs(variables.iter().copied())).expect(0).out
    }
}

fn binary() -> String {
    std::env::var("BERTH_TEST_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_berth").to_owned())
}

/// Reports whether a command can be run in a terminal. BSD's `script` has other flags.
fn has_script() -> bool {
    let has = Ran::of(hermetic("sh").args(["-c", "script --version"])).out.contains("util-linux");
    assert!(has || std::env::var_os("CI").is_none(), "there is no `script` of util-linux");
    if !has {
        eprintln!("NOT TESTED: there is no `script` of util-linux");
    }
    has
}

#[test]
fn a_plan_that_is_longer_than_the_screen_is_shown_in_the_pager() {
    if !has_script() {
        return;
    }
    let repo = small_fleet();
    let plan = |rows: u8, pager: &str| {
        let command =
            format!("stty rows {rows} cols 80; '{}' plan --color never --repo '{}'", binary(), repo.arg());
        let mut script = hermetic("script");
        script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").env("SHELL", "/bin/sh");
        Ran::of(script.env("BERTH_PAGER", pager)).expect(0).out
    };
    let upper_case = "tr a-z A-Z";
    assert!(plan(4, upper_case).contains("OBJECTS ADDED IN 3 OF 3 CLUSTERS"), "{}", plan(4, upper_case));
    for (rows, pager) in [(200, upper_case), (4, ""), (4, "no-such-pager-here")] {
        let shown = plan(rows, pager);
        assert!(shown.contains("objects added in 3 of 3 clusters"), "{rows} {pager}: {shown}");
    }
}

#[test]
fn long_work_is_shown_on_a_terminal_and_cleared_before_anything_is_printed() {
    if !has_script() {
        return;
    }
    let slow = Slow::new();
    let shown = slow.run("", &[]);
    assert!(shown.contains("fetching, "), "{shown:?}");
    let first = shown.find("read commit").unwrap_or_else(|| panic!("{shown:?}"));
    let (work, results) = shown.split_at(first);
    assert!(work.ends_with("\r\x1b[2K") && !results.contains('\x1b'), "{shown:?}");
    assert!(results.contains("nothing to publish") || results.contains("published"), "{shown:?}");
    for (flags, variables) in [("--quiet", &[][..]), ("", &[("CI", "true")][..])] {
        let shown = slow.run(flags, variables);
        assert!(!shown.contains("fetching"), "{flags} {variables:?}: {shown:?}");
    }
}
