//! `berth verify` over commits made from random edits and reports, and over what people do by hand.

use std::path::Path;

use crate::support::random::{Random, rounds};
use crate::support::removals::{GLOBAL_SET, feed};
use crate::support::{RENDERED, Ran, Repo, cluster, config_map, hermetic, namespace, run, small_fleet};

const NAMES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];

fn managed(name: &str, tier: u64, taint: bool) -> String {
    let taints = match taint {
        true => "  taints:\n  - {key: drain, effect: NoSelect, timeAdded: \"2026-01-01T00:03:00Z\"}\n",
        false => "",
    };
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  name: {name}\n  labels:\n    \
         tier: t{tier}\nspec:\n  hubAcceptsClient: true\n{taints}"
    )
}

/// A placement that reads labels, claims and scores of reports, and a toleration that runs out.
fn placement(count: u64, claim: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {{name: web, namespace: shop}}\nspec:\n  \
         numberOfClusters: {count}\n  predicates:\n  - requiredClusterSelector:\n      labelSelector: {{matchExpressions: [{{key: zone, \
         operator: NotIn, values: [z1]}}]}}\n      claimSelector: {{matchExpressions: [{{key: size, operator: NotIn, values: [{claim}]}}]}}\n  \
         tolerations:\n  - {{key: drain, operator: Exists, tolerationSeconds: 600}}\n  prioritizerPolicy:\n    mode: Additive\n    configurations:\n    \
         - {{weight: 2, scoreCoordinate: {{type: AddOn, addOn: {{resourceName: default, scoreName: free}}}}}}\n"
    )
}

fn work(value: u64) -> String {
    format!(
        "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\nmetadata: {{name: web, namespace: shop}}\n\
         spec:\n  placementRefs: [{{name: web}}]\n  manifestWorkTemplate:\n    workload:\n      manifests:\n      - apiVersion: v1\n        \
         kind: ConfigMap\n        metadata: {{name: web, namespace: shop}}\n        data: {{value: v{value}}}\n"
    )
}

fn fleet() -> Repo {
    let repo = Repo::new();
    for name in NAMES {
        repo.write(&format!("clusters/{name}.yaml"), managed(name, 0, false));
    }
    repo.write("clusters/k0.yaml", cluster("k0", &[("env", "prod")]));
    repo.write("sets.yaml", GLOBAL_SET);
    repo.write("apps/shop.yaml", namespace("shop"));
    repo.write("apps/placement.yaml", placement(3, "small"));
    repo.write("apps/work.yaml", work(0));
    repo.write("apps/map.yaml", config_map("map", "0", "{clusterSelector: {}}"));
    repo.commit("start");
    repo
}

/// What a member would report, straight onto its ref.
fn report(repo: &Repo, cluster: &str, text: &str) {
    let blob = feed(repo, &["hash-object", "-w", "--stdin"], text);
    let tree = feed(repo, &["mktree"], &format!("100644 blob {blob}\tstatus.yaml\n"));
    let commit = feed(repo, &["commit-tree", &tree, "-m", "status"], "");
    repo.git(&["update-ref", &format!("refs/berth/status/{cluster}"), &commit]);
}

fn random_status(random: &mut Random, name: &str, minute: u64) -> String {
    let (hour, minute) = (minute / 60, minute % 60);
    let until = match random.below(3) {
        0 => format!(", validUntil: \"2026-01-01T{hour:02}:{minute:02}:30Z\""),
        _ => String::new(),
    };
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {{name: {name}}}\n\
         reported: \"2026-01-01T{hour:02}:{minute:02}:20Z\"\nlabels: {{zone: z{}, unread: u{}}}\nclaims: {{size: {}, other: x}}\n\
         scores: [{{resource: default, name: free, value: {}{until}}}, {{resource: default, name: unread, value: 1}}]\n",
        random.below(3),
        random.below(9),
        random.pick(&["small", "large", "\"\\u00e9 012: yes\""]),
        random.below(201) as i64 - 100,
    )
}

fn random_edit(random: &mut Random, repo: &Repo, minute: u64) {
    let name = random.pick(&NAMES);
    let n = random.below(1000);
    match random.below(11) {
        0 => repo.write(&format!("clusters/{name}.yaml"), managed(name, n % 3, n.is_multiple_of(4))),
        1 => repo.write(
            "apps/placement.yaml",
            placement(1 + n % 5, ["small", "large", "none"][random.below(3) as usize]),
        ),
        2 => repo.write("apps/work.yaml", work(n)),
        3 => repo.write("apps/work.yaml", format!("{}  broken: [\n", work(n))),
        4 => repo.write(&format!("clusters/{name}.yaml"), "apiVersion: v1\nkind: {\n"),
        5 => repo.write("apps/map.yaml", config_map("map", "x", "{clusterz: []}")),
        6 => repo.write(
            &format!("apps/map-{}.yaml", n % 4),
            config_map(&format!("map-{}", n % 4), &n.to_string(), "{clusterSelector: {}}"),
        ),
        7 => {
            let _ = std::fs::remove_file(repo.path().join(format!("apps/map-{}.yaml", n % 4)));
        }
        8 | 9 => report(repo, name, &random_status(random, name, minute)),
        _ => report(repo, name, "this is no status: ["),
    }
}

fn verify(repo: &Repo, args: &[&str]) -> Ran {
    run(&[&["verify", "--repo", repo.arg()], args].concat())
}

fn count_of(repo: &Repo) -> u64 {
    repo.git(&["rev-list", "--count", RENDERED]).parse().expect("a number")
}

/// `GIT_DIR`s of scratch repositories that were left behind by this process's children would be here.
fn is_clean(repo: &Repo, before: &str) {
    assert_eq!(repo.git(&["count-objects", "-v"]), before, "proving writes nothing");
    assert!(!Path::new(repo.arg()).join(".git/refs/heads/berth/rendered.lock").exists());
}

#[test]
fn commits_made_from_random_edits_and_reports_are_proven() {
    let wanted = rounds("BERTH_VERIFY_COMMITS", 20);
    let repo = fleet();
    let mut random = Random::new(11);
    assert!([0, 1].contains(&repo.publish().code));
    let mut step: u64 = 1;
    while count_of(&repo) < wanted {
        step += 1;
        assert!(step < wanted * 8, "edits hardly change anything");
        for _ in 0..=random.below(2) {
            random_edit(&mut random, &repo, step);
        }
        if random.below(4) > 0 {
            repo.commit(&format!("edit {step}"));
        }
        let ran = repo.publish();
        assert!([0, 1].contains(&ran.code), "{}\n{}", ran.out, ran.err);
    }
    let facts = repo.git(&["log", "--format=%h", RENDERED, "--", "facts"]);
    assert!(facts.lines().count() as u64 >= wanted / 5, "reports had a part in it: {facts}");
    let before = repo.git(&["count-objects", "-v"]);
    let ran = verify(&repo, &["-o", "json"]).expect(0);
    let commits = ran.json()["commits"].as_array().expect("a list").clone();
    assert_eq!(commits.len() as u64, count_of(&repo));
    for (index, commit) in commits.iter().enumerate() {
        assert_eq!(commit["verdict"], "ok", "{commit:#}");
        assert_eq!(commit["sequence"], index as u64 + 1);
    }
    is_clean(&repo, &before);

    // The statuses themselves are not needed, nor any other ref: a plain clone proves the same.
    let clone = Repo::new();
    clone.git(&["fetch", "-q", repo.arg(), "+refs/heads/*:refs/heads/*", "--update-head-ok"]);
    verify(&clone, &["berth/rendered"]).expect(0);
}

#[test]
fn a_hand_edit_is_caught_even_with_everything_else_left_as_it_was() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
    repo.commit("two");
    repo.publish().expect(0);
    let ran = verify(&repo, &[]).expect(0);
    assert_eq!(ran.out.lines().filter(|line| line.starts_with("ok ")).count(), 2, "{}", ran.out);

    // The last commit is replaced by one with another object in it, and the same message, author and dates.
    let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
    let date = repo.git(&["log", "-1", "--format=%cd", "--date=raw", RENDERED]);
    repo.git(&["checkout", "-q", "-b", "forged", "berth/rendered"]);
    let path = "clusters/b/shop/ConfigMap_web.yaml";
    let text = std::fs::read_to_string(repo.path().join(path)).expect("it is there");
    repo.write(path, text.replace("two", "mine"));
    repo.git(&["add", "-A"]);
    let amended = Ran::of(
        hermetic("git")
            .current_dir(repo.path())
            .envs([("GIT_AUTHOR_DATE", &date), ("GIT_COMMITTER_DATE", &date)])
            .envs([("GIT_COMMITTER_NAME", "berth"), ("GIT_COMMITTER_EMAIL", "berth@berth.dev")])
            .args(["commit", "-q", "--amend", "-m", &message]),
    );
    amended.expect(0);
    let ran = verify(&repo, &["forged"]).expect(3);
    assert!(ran.out.contains("differs ") && ran.out.contains(path), "{}", ran.out);
    assert!(ran.err.contains("1 commit proven, 1 differs"), "{}", ran.err);
    verify(&repo, &["forged~1"]).expect(0);

    // Only a word of the message.
    repo.git(&["checkout", "-q", "-B", "forged", "berth/rendered"]);
    repo.git(&["commit", "-q", "--amend", "-m", &message.replacen("web changed", "nothing changed", 1)]);
    let ran = verify(&repo, &["main..forged"]);
    assert_eq!(ran.code, 2, "the source is not before it: {}", ran.err);
    let ran = verify(&repo, &["forged~1..forged", "-o", "json"]).expect(3);
    assert!(ran.out.contains("line 1 of the message"), "{}", ran.out);
}

#[test]
fn commits_of_other_hands_are_named_and_what_follows_them_is_proven() {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.git(&["checkout", "-q", "berth/rendered"]);
    repo.write("README.md", "notes\n");
    repo.commit("a note");
    let ran = verify(&repo, &[]).expect(0);
    assert!(ran.out.contains("foreign ") && ran.out.contains("changes none of berth's files"), "{}", ran.out);

    repo.write("clusters/a/shop/ConfigMap_extra.yaml", "kind: ConfigMap\n");
    repo.commit("smuggled");
    repo.git(&["checkout", "-q", "main"]);
    repo.publish().expect(0);
    let ran = verify(&repo, &[]).expect(3);
    let words: Vec<_> = ran.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(words.iter().filter(|word| **word == "foreign").count(), 2, "{}", ran.out);
    assert_eq!(words.iter().filter(|word| **word == "ok").count(), 2, "{}", ran.out);
    assert!(ran.out.contains("clusters/a/shop/ConfigMap_extra.yaml"), "{}", ran.out);
}

#[test]
fn a_source_commit_that_is_not_here_is_told_from_a_failed_proof() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let clone = Repo::new();
    clone.git(&["fetch", "-q", repo.arg(), &format!("{RENDERED}:{RENDERED}")]);
    let ran = verify(&clone, &["berth/rendered"]).expect(6);
    assert!(ran.out.contains("missing ") && ran.out.contains("source commit"), "{}", ran.out);
}

#[test]
fn limits_looser_than_berths_own_are_named_though_the_commit_before_has_the_same() {
    let repo = small_fleet();
    // The first commit asks no gate.
    for value in ["one", "two", "three"] {
        repo.write("apps/web.yaml", config_map("web", value, "{clusterSelector: {}}"));
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", value]);
        repo.publish_ungated().expect(0);
    }
    let ran = run(&["verify", "--repo", repo.arg()]).expect(0);
    assert_eq!(
        ran.out.matches("which are looser than berth's own, `clusters=50%/2").count(),
        2,
        "{}",
        ran.out
    );
    for meant in ["any", &berth_engine::gate::Limits::default().to_string()] {
        let ran = run(&["verify", "--expect-gate", meant, "--repo", repo.arg()]);
        assert_eq!(ran.code, if meant == "any" { 0 } else { 3 });
        assert!(!ran.out.contains("berth's own"), "{}", ran.out);
    }
}
