//! `berth demo`: the loop of the README, which ends with an accident that is held.

use crate::support::{Ran, hermetic, run};

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
    // Its last lines lead to the end of an approval.
    let line = after.lines().find(|line| line.contains("--allow-empty -m")).expect("a command");
    let command = line.split("     ").next().expect("a command");
    Ran::of(hermetic("sh").args(["-c", command])).expect(0);
    for words in [" plan --diff ", " run --once ", " sync --once "] {
        let shown = after.lines().find(|line| line.contains(words)).expect("a command");
        let args: Vec<&str> = shown.split_whitespace().skip(1).collect();
        let ran = run(&args);
        assert!([0, 3].contains(&ran.code), "{ran:?}");
    }
    assert!(!dir.join("members/graz/shop/Deployment.apps_web.yaml").exists());
    // A second demo takes the place of the first.
    let again = run(&["demo", dir.to_str().expect("text")]).expect(0);
    assert!(again.err.contains("replacing the earlier demo"), "{}", again.err);
}
