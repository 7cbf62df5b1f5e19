//! Previews: for each branch under review, a branch that shows what merging it would publish.

use crate::support::remote::{Fleet, Folder, Running};
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, config_map};

const FIX: &str = "refs/heads/berth/preview/fix";

/// A fleet with one publication, and a branch `fix` that changes the value of all clusters.
fn fleet() -> (Fleet, Folder) {
    let fleet = Fleet::new();
    let server = Folder::of(&fleet);
    fleet.run_once(&server, &[]).expect(0);
    branch(&fleet, "fix", &config_map("web", "fixed", "{clusterSelector: {}}"), "refs/heads/fix");
    (fleet, server)
}

/// Pushes a branch of the source with this workload.
fn branch(fleet: &Fleet, name: &str, web: &str, to: &str) {
    fleet.people.git(&["checkout", "-q", "-B", name, "main"]);
    fleet.people.write("apps/web.yaml", web);
    fleet.people.commit(&format!("{name}: another value"));
    push(fleet, &format!("+HEAD:{to}"));
    fleet.people.git(&["checkout", "-q", "main"]);
}

fn push(fleet: &Fleet, refspec: &str) {
    fleet.people.git(&["push", "-q", &fleet.bare_path().display().to_string(), refspec]);
}

fn previews(fleet: &Fleet) -> Vec<String> {
    let refs = fleet.bare(&["for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/berth/preview/"]);
    refs.lines().map(str::to_owned).collect()
}

fn preview(fleet: &Fleet, server: &Folder, more: &[&str]) -> Ran {
    fleet.run_once(server, &[&["--preview", "*"], more].concat())
}

#[test]
fn a_preview_shows_what_a_merge_would_publish_and_goes_with_its_branch() {
    let (fleet, server) = fleet();
    let ran = preview(&fleet, &server, &[]).expect(0);
    assert!(ran.out.contains("previewed fix on berth/preview/fix ("), "{}", ran.out);
    let changed = fleet.bare(&["diff", "--name-only", &format!("{RENDERED}...{FIX}"), "--", "clusters"]);
    let copies = ["a", "b", "c"].map(|cluster| format!("clusters/{cluster}/shop/ConfigMap_web.yaml"));
    assert_eq!(changed.lines().collect::<Vec<_>>(), copies);
    let message = fleet.bare(&["log", "-1", "--format=%B", FIX]);
    assert!(message.starts_with("Preview of fix ("), "{message}");
    assert!(message.contains("FederatedConfigMap shop/web: 3 changed in 3 clusters"), "{message}");
    assert!(!message.contains("Berth-"), "a preview has no trailers of a publication: {message}");
    // It equals what the merge publishes, once that is merged; then there is nothing to preview.
    let ran = preview(&fleet, &server, &[]).expect(0);
    assert!(!ran.out.contains("preview"), "{}", ran.out);
    fleet.people.git(&["merge", "-q", "--no-ff", "-m", "merge", "fix"]);
    fleet.push();
    let tree = fleet.bare(&["rev-parse", &format!("{FIX}:clusters")]);
    let ran = preview(&fleet, &server, &[]).expect(0);
    assert!(ran.out.contains("removed the preview berth/preview/fix"), "{}", ran.out);
    assert_eq!(fleet.bare(&["rev-parse", &format!("{RENDERED}:clusters")]), tree);
    assert_eq!(previews(&fleet), Vec::<String>::new());
}

#[test]
fn a_preview_begins_with_todays_source_and_says_why_there_is_no_state_to_show() {
    let (fleet, server) = fleet();
    let other = config_map("other", "new", "{clusters: [{name: a}]}");
    fleet.people.write("apps/other.yaml", &other);
    fleet.people.commit("another workload");
    fleet.push();
    preview(&fleet, &server, &[]).expect(0);
    let here = |name: &str| fleet.has(&format!("{FIX}:clusters/a/shop/ConfigMap_{name}.yaml"));
    assert!(here("web") && here("other"), "the preview has the source's newer commits as well");
    fleet.edit("two");
    branch(&fleet, "gone", "not: [closed", "refs/heads/gone");
    preview(&fleet, &server, &[]).expect(0);
    let message =
        |name: &str| fleet.bare(&["log", "-1", "--format=%B", &format!("refs/heads/berth/preview/{name}")]);
    let conflict = message("fix");
    assert!(conflict.contains("The merge has conflicts in apps/web.yaml"), "{conflict}");
    assert_eq!(fleet.bare(&["diff", "--name-only", RENDERED, FIX]), "", "nothing else is known");
    let faulty = message("gone");
    assert!(faulty.contains("1 error") && faulty.contains("- apps/web.yaml:"), "{faulty}");
}

#[test]
fn what_would_be_held_stays_in_the_preview_and_its_message_says_so() {
    let (fleet, server) = fleet();
    branch(&fleet, "fewer", &config_map("web", "one", "{clusters: []}"), "refs/heads/fewer");
    preview(&fleet, &server, &[]).expect(0);
    let fewer = "refs/heads/berth/preview/fewer";
    let message = fleet.bare(&["log", "-1", "--format=%B", fewer]);
    assert!(message.contains("held for approval: 1 workload"), "{message}");
    assert!(message.contains("removes ConfigMap shop/web in a, b, c"), "{message}");
    assert!(fleet.has(&format!("{fewer}:clusters/c/shop/ConfigMap_web.yaml")));
}

#[test]
fn refs_outside_the_branches_get_a_preview_only_by_their_full_names() {
    let (fleet, server) = fleet();
    let strange = config_map("web", "strange", "{clusterSelector: {}}");
    branch(&fleet, "theirs", &strange, "refs/pull/7/head");
    fleet.people.git(&["branch", "-q", "-D", "theirs"]);
    preview(&fleet, &server, &[]).expect(0);
    assert_eq!(previews(&fleet), ["fix"]);
    fleet.run_once(&server, &["--preview", "f*,refs/pull/*/head"]).expect(0);
    assert_eq!(previews(&fleet), ["fix", "pull/7/head"]);
    fleet.run_once(&server, &["--preview", "none", "--preview", "refs/pull/*/head"]).expect(0);
    assert_eq!(previews(&fleet), ["pull/7/head"], "what no pattern fits goes");
    fleet.run_once(&server, &["--preview", "*,refs/pull/*/head", "--most-previews", "1"]).expect(0);
    assert_eq!(previews(&fleet).len(), 1);
}

#[test]
fn a_forged_preview_is_made_again_and_a_preview_is_never_taken_for_a_state() {
    let (fleet, server) = fleet();
    preview(&fleet, &server, &[]).expect(0);
    let made = fleet.bare(&["rev-parse", FIX]);
    let rendered = fleet.bare(&["rev-parse", RENDERED]);
    let forged =
        fleet.bare(&["commit-tree", "-m", "all is well", "-p", &rendered, &format!("{rendered}^{{tree}}")]);
    fleet.bare(&["update-ref", FIX, &forged]);
    preview(&fleet, &server, &[]).expect(0);
    assert_eq!(fleet.bare(&["rev-parse", FIX]), made);
    // Somebody who may push moves the rendered branch to what nobody merged.
    fleet.bare(&["update-ref", RENDERED, &made]);
    let ran = preview(&fleet, &server, &[]).expect(0);
    assert!(ran.err.contains("was not made by berth; its changes are undone"), "{}", ran.err);
    let back = fleet.bare(&["diff", "--name-only", &rendered, RENDERED]);
    assert_eq!(back, "", "the state is the one from before");
    let member = fleet.bare(&["show", "refs/berth/clusters/a:shop/ConfigMap_web.yaml"]);
    assert!(member.contains("value: one"), "no member gets it: {member}");
}

#[test]
fn a_daemon_follows_branches_and_a_refused_preview_stops_no_publication() {
    let (fleet, server) = fleet();
    let daemon = Running::daemon(&fleet, &server, &["--preview", "*"]);
    let value = |of: &str| fleet.bare(&["show", &format!("{of}:clusters/a/shop/ConfigMap_web.yaml")]);
    until("a branch has a preview", || fleet.has(FIX) && value(FIX).contains("fixed"));
    branch(&fleet, "fix", &config_map("web", "fixed again", "{clusterSelector: {}}"), "refs/heads/fix");
    until("the preview follows its branch", || value(FIX).contains("fixed again"));
    fleet.hook("update", "case $1 in refs/heads/berth/preview/*) exit 1;; esac");
    fleet.edit("two");
    until("an edit is published", || value(RENDERED).contains("two"));
    daemon.wait_for(&["the previews could not be brought up to date"]);
    std::fs::remove_file(fleet.bare_path().join("hooks/update")).unwrap();
    fleet.bare(&["update-ref", "-d", "refs/heads/fix"]);
    until("the preview goes with its branch", || previews(&fleet).is_empty());
    let (code, log) = daemon.stop();
    assert_eq!(code, 0, "{log}");
}
