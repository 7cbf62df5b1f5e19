//! The whole loop on real repositories: edit → rendered branch → member folder.

use crate::support::wait::until;
use crate::support::{RENDERED, Repo, berth, cluster, config_map, run, small_fleet};

#[test]
fn a_one_line_edit_changes_one_file_in_each_cluster_concerned() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let before = repo.id(RENDERED);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("say two");
    repo.publish().expect(0);
    assert_eq!(
        repo.changed(&before, RENDERED),
        [
            "clusters/a/shop/ConfigMap_web.yaml",
            "clusters/b/shop/ConfigMap_web.yaml",
            "clusters/c/shop/ConfigMap_web.yaml"
        ]
    );
    let stat = repo.git(&["diff", "--numstat", &before, RENDERED]);
    assert!(stat.lines().all(|line| line.starts_with("1\t1\t")), "only one line a file: {stat}");
}

#[test]
fn a_second_run_makes_no_commit() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let before = repo.id(RENDERED);
    repo.publish().expect(0);
    assert_eq!(repo.id(RENDERED), before);
    repo.commit("nothing");
    repo.publish().expect(0);
    assert_eq!(repo.id(RENDERED), before, "an empty source commit changes nothing either");
}

#[test]
fn the_same_inputs_in_two_clones_give_the_same_commit() {
    let ids: Vec<_> = (0..2)
        .map(|_| {
            let repo = small_fleet();
            repo.publish_at(repo.dated()).expect(0);
            repo.write("apps/web.yaml", config_map("web", "two", "{clusters: [{name: b}]}"));
            repo.commit("narrow");
            repo.publish_at(repo.dated()).expect(0);
            repo.id(RENDERED)
        })
        .collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_pure_file_move_plans_and_publishes_no_object_change() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let before = repo.id(RENDERED);
    repo.git(&["mv", "apps/web.yaml", "clusters/elsewhere.yaml"]);
    repo.commit("move");
    let plan = run(&["plan", "--repo", repo.arg(), "--fail-on", "any", "-o", "json"]).expect(0).json();
    assert_eq!(plan["counts"], serde_json::json!({"added": 0, "changed": 0, "removed": 0, "clusters": 0}));
    repo.publish().expect(0);
    let changed = if repo.id(RENDERED) == before { Vec::new() } else { repo.changed(&before, RENDERED) };
    assert!(changed.iter().all(|path| path.starts_with("decisions/")), "{changed:?}");
}

#[test]
fn a_file_that_becomes_unreadable_changes_no_cluster_and_its_fix_heals() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let before = repo.id(&format!("{RENDERED}:clusters"));
    let good = config_map("web", "one", "{clusterSelector: {}}");
    repo.write("apps/web.yaml", format!("{good}  broken: [\n"));
    repo.commit("break it");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("apps/web.yaml:"), "names the file and line: {}", ran.err);
    assert_eq!(repo.id(&format!("{RENDERED}:clusters")), before, "no cluster changed");
    assert_eq!(repo.files(RENDERED)["kept/apps/web.yaml"], good.trim_end());

    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("fix it");
    repo.publish().expect(0);
    let files = repo.files(RENDERED);
    assert!(files["clusters/a/shop/ConfigMap_web.yaml"].contains("two"));
    assert!(!files.keys().any(|path| path.starts_with("kept/")), "nothing is kept any more");
}

#[test]
fn an_unreadable_inventory_loses_no_cluster_even_when_a_policy_narrows() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write(
        "clusters/c.yaml",
        "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata: {name: c\n",
    );
    repo.write("apps/web.yaml", config_map("web", "one", "{clusters: [{name: a}]}"));
    repo.commit("break a cluster and narrow a placement");
    repo.publish().expect(1);
    let files = repo.files(RENDERED);
    for name in ["a", "b", "c"] {
        assert!(
            files.contains_key(&format!("clusters/{name}/shop/ConfigMap_web.yaml")),
            "{name} keeps its copy"
        );
    }
    repo.write("clusters/c.yaml", cluster("c", &[]));
    repo.commit("mend the cluster");
    repo.publish().expect(0);
    let files = repo.files(RENDERED);
    assert!(files.contains_key("clusters/a/shop/ConfigMap_web.yaml"));
    assert!(!files.contains_key("clusters/b/shop/ConfigMap_web.yaml"), "now the narrowing counts");
}

#[test]
fn one_faulty_workload_does_not_stop_the_others() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterz: []}"));
    repo.write("apps/api.yaml", config_map("api", "new", "{clusterSelector: {}}"));
    repo.commit("a slip beside a new workload");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("apps/web.yaml:") && ran.err.contains("did you mean"), "{}", ran.err);
    let files = repo.files(RENDERED);
    assert!(
        files["clusters/a/shop/ConfigMap_web.yaml"].contains("one"),
        "the faulty one keeps its last good form"
    );
    assert!(files["clusters/a/shop/ConfigMap_api.yaml"].contains("new"));
}

#[test]
fn members_apply_their_folder_and_prune_what_left_it() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let target = tempfile::tempdir().expect("a folder");
    repo.sync("a", target.path(), &[]).expect(0);
    let file = target.path().join("shop/ConfigMap_web.yaml");
    assert!(std::fs::read_to_string(&file).expect("applied").contains("one"));

    repo.write("apps/web.yaml", config_map("web", "one", "{clusters: [{name: b}]}"));
    repo.commit("only b");
    repo.publish().expect(0);
    let dry = repo.sync("a", target.path(), &["--dry-run"]).expect(0);
    assert!(dry.out.contains("ConfigMap"), "{}", dry.out);
    assert!(file.exists(), "a dry run changes nothing");
    repo.sync("a", target.path(), &[]).expect(0);
    assert!(!file.exists());
}

#[test]
fn an_unknown_cluster_is_an_error_and_deletes_nothing() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let target = tempfile::tempdir().expect("a folder");
    repo.sync("a", target.path(), &[]).expect(0);
    let ran = repo.sync("nowhere", target.path(), &[]);
    assert_ne!(ran.code, 0);
    assert!(target.path().join("shop/ConfigMap_web.yaml").exists());
}

#[test]
fn a_member_report_reaches_the_fleet_report() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let target = tempfile::tempdir().expect("a folder");
    repo.sync("a", target.path(), &[]).expect(0);
    let before = repo.id(RENDERED);
    repo.publish().expect(0);
    assert_eq!(repo.id(RENDERED), before, "a report changes no decision");
    let report = repo.files("refs/berth/report");
    assert!(report["clusters/a.json"].contains("in sync"), "{report:?}");
    assert!(report["report.json"].contains("\"in sync\": 1"), "{report:?}");
    let web = &report["workloads/shop/FederatedConfigMap.types.kubefed.io_web.json"];
    assert!(web.contains("\"inSync\": 1"), "{web}");
    let status = run(&["status", "--repo", repo.arg()]).expect(0);
    assert!(status.out.contains("in sync"), "{}", status.out);
}

#[test]
fn status_tells_of_a_file_that_somebody_deleted_on_the_rendered_branch() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let (published, source) = (repo.id(RENDERED), repo.git(&["symbolic-ref", "--short", "HEAD"]));
    repo.git(&["checkout", "-q", "berth/rendered"]);
    repo.git(&["rm", "-q", "clusters/a/shop/ConfigMap_web.yaml"]);
    repo.commit("tidy up");
    repo.git(&["checkout", "-q", &source]);
    let told = "clusters/a/shop/ConfigMap_web.yaml: warning: this was removed by hand; the next publication restores it";
    let status = run(&["status", "--repo", repo.arg()]).expect(0);
    assert!(status.err.contains(told), "{}", status.err);
    repo.publish().expect(0);
    assert_eq!(repo.changed(&published, RENDERED), Vec::<String>::new());
    let status = run(&["status", "--repo", repo.arg()]).expect(0);
    assert!(!status.err.contains("by hand"), "{}", status.err);
}

#[test]
fn an_empty_repository_is_told_what_to_do() {
    let repo = Repo::new();
    let ran = repo.publish();
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("commit"), "{}", ran.err);
}

/// The objects that every cluster has, after a run that may find errors.
fn everything(repo: &Repo) -> Vec<String> {
    let ran = repo.publish();
    assert!(ran.code == 0 || ran.code == 1, "exit {}: {}", ran.code, ran.err);
    repo.files(RENDERED).into_keys().filter(|path| path.starts_with("clusters/")).collect()
}

const BROKEN: &str = "spec: [\n";

#[test]
fn a_file_that_is_renamed_and_broken_at_once_loses_nothing() {
    for file in ["apps/web.yaml", "apps/shop.yaml", "clusters/b.yaml"] {
        let repo = small_fleet();
        let before = everything(&repo);
        repo.git(&["mv", file, "elsewhere.yaml"]);
        let text = std::fs::read_to_string(repo.path().join("elsewhere.yaml")).expect("the file");
        repo.write("elsewhere.yaml", text.replace("spec:\n", BROKEN));
        repo.commit("rename and break");
        assert_eq!(everything(&repo), before, "{file}");
        // Renamed again while broken.
        repo.git(&["mv", "elsewhere.yaml", "again.yaml"]);
        repo.commit("rename again");
        assert_eq!(everything(&repo), before, "{file}, renamed twice");
        repo.write("again.yaml", text);
        repo.commit("mend");
        repo.publish().expect(0);
        assert_eq!(everything(&repo), before, "{file}, mended");
        assert!(!repo.files(RENDERED).keys().any(|path| path.starts_with("kept/")));
    }
}

#[test]
fn a_document_that_moves_into_a_file_that_breaks_stays() {
    let repo = small_fleet();
    repo.write("apps/two.yaml", config_map("second", "x", "{clusterSelector: {}}"));
    repo.commit("two");
    let before = everything(&repo);
    let web = config_map("web", "one", "{clusterSelector: {}}");
    let second = config_map("second", "x", "{clusterSelector: {}}").replace("spec:\n", BROKEN);
    repo.write("apps/web.yaml", format!("{web}---\n{second}"));
    repo.git(&["rm", "-q", "apps/two.yaml"]);
    repo.commit("move and break");
    assert_eq!(everything(&repo), before);
}

#[test]
fn a_slip_in_a_kind_removes_nothing() {
    let repo = small_fleet();
    let before = everything(&repo);
    let text =
        config_map("web", "one", "{clusterSelector: {}}").replace("FederatedConfigMap", "FederatedConfigMao");
    repo.write("apps/web.yaml", text);
    repo.commit("slip");
    assert_eq!(everything(&repo), before);
}

#[test]
fn a_broken_file_in_a_shallow_clone_loses_nothing() {
    let repo = small_fleet();
    let before = everything(&repo);
    repo.write("apps/web.yaml", BROKEN);
    repo.commit("break");
    repo.write("apps/other.yaml", config_map("other", "x", "{clusters: []}"));
    repo.commit("and more");
    let clone = tempfile::tempdir().expect("a folder");
    let path = clone.path().join("clone");
    let (url, path) = (format!("file://{}", repo.arg()), path.to_str().expect("text"));
    repo.git(&["clone", "-q", "--depth", "1", &url, path]);
    repo.git(&[
        "-C",
        path,
        "fetch",
        "-q",
        "--depth",
        "1",
        "origin",
        "+refs/heads/berth/*:refs/heads/berth/*",
    ]);
    // A shallow clone can not show that its source comes after the one that was published.
    run(&["run", "--once", "--allow-rewind", "--repo", path]).expect(1);
    let after = repo.git(&["-C", path, "ls-tree", "-r", "--name-only", RENDERED, "clusters"]);
    assert_eq!(after.lines().collect::<Vec<_>>(), before);
}

#[test]
fn a_first_run_over_a_broken_file_needs_no_second_commit() {
    let repo = small_fleet();
    repo.write(
        "apps/broken.yaml",
        format!("{}---\nspec: [\n", config_map("new", "x", "{clusterSelector: {}}")),
    );
    repo.commit("broken from the start");
    repo.publish().expect(1);
    let first = repo.id(RENDERED);
    repo.publish().expect(1);
    assert_eq!(repo.id(RENDERED), first);
}

#[cfg(unix)]
#[test]
fn a_folder_that_becomes_a_link_loses_nothing() {
    let repo = small_fleet();
    let before = everything(&repo);
    repo.git(&["mv", "apps", "moved"]);
    repo.git(&["rm", "-rq", "--cached", "moved"]);
    std::fs::rename(repo.path().join("moved"), repo.path().join(".hidden")).expect("renamed");
    std::os::unix::fs::symlink(".hidden", repo.path().join("apps")).expect("a link");
    repo.commit("link");
    assert_eq!(everything(&repo), before);
}

#[test]
fn a_watched_status_is_shown_again_when_something_is_published() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let shown = folder.path().join("shown");
    let file = std::fs::File::create(&shown).expect("a file");
    let mut watching = berth();
    watching.args(["status", "--watch", "--repo", repo.arg()]).stdout(file);
    let mut child = watching.stderr(std::process::Stdio::null()).spawn().expect("berth starts");
    let holds = |words: &str| std::fs::read_to_string(&shown).is_ok_and(|text| text.contains(words));
    until("the first state is shown", || holds("number 1"));
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("another text");
    repo.publish().expect(0);
    until("the second state is shown", || holds("number 2"));
    child.kill().expect("it still runs");
    child.wait().expect("it ends");
}
