//! `berth demo`: the loop of the README, which ends with an accident that is held.

use std::path::Path;

use crate::support::{Ran, berth, hermetic, run};

#[test]
fn the_demo_ends_with_the_accident_held_and_every_copy_in_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("demo");
    let ran = run(&["demo", dir.to_str().expect("text")]).expect(0);
    let at = |words: &str| ran.out.find(words).unwrap_or_else(|| panic!("no `{words}`:\n{}", ran.out));
    // The plans are those of the command: causes with their places, and what they do.
    let cause = at("shop/web.yaml:23:9: spec.placement.clusterSelector.matchLabels");
    assert!(cause < at("Merged: berth publishes"), "{}", ran.out);
    let held = at("1 workload held");
    let climax = at("10. Merged all the same");
    assert!(at("8. An accident") < held && held < climax, "{}", ran.out);
    let after = &ran.out[climax..];
    assert!(
        after.contains("1 workload held for approval") && after.contains("Berth-Allow-Delete: "),
        "{after}"
    );
    for cluster in ["graz", "lisbon", "turin"] {
        let line = after.lines().find(|line| line.trim_start().starts_with(cluster)).expect("a sync");
        assert!(line.contains(" 0 removed"), "{line}");
        assert!(dir.join("members").join(cluster).join("shop/Deployment.apps_web.yaml").is_file());
    }
}

/// Makes the demo and returns the commands at its end: those that reject the accident and make an edit, and those that approve it.
fn last_commands(dir: &Path) -> [String; 2] {
    let ran = Ran::of(berth().arg("demo").arg(dir)).expect(0);
    let (_, lines) = ran.out.split_once("\n   # Reject the accident.\n").expect("commands");
    let (reject, approve) = lines
        .split_once("\n   # Or, instead of all that, approve the accident, and web leaves its clusters.\n")
        .expect("commands");
    [reject.to_owned(), approve.to_owned()]
}

/// Pastes commands into a shell, on a machine where Git knows nobody.
fn paste(commands: &str) -> Ran {
    let mut bash = hermetic("bash");
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        bash.env_remove(name);
    }
    Ran::of(bash.args(["-e", "-c", commands])).expect(0)
}

#[test]
fn the_last_commands_of_the_demo_reject_the_accident_and_edit_or_let_it_happen() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("demo");
    let web = |member: &str| dir.join("members").join(member).join("shop/Deployment.apps_web.yaml");
    let rejected = paste(&last_commands(&dir)[0]);
    assert!(rejected.out.contains("no changes\n"), "{}", rejected.out);
    assert!(["graz", "lisbon", "turin"].iter().all(|member| web(member).is_file()));
    assert!(std::fs::read_to_string(web("graz")).expect("the file").contains("web:1.6.0"));
    // A second demo takes the place of the first.
    paste(&last_commands(&dir)[1]);
    assert!(!["graz", "lisbon", "turin"].iter().any(|member| web(member).exists()));
}
