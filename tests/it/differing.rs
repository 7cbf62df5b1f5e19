//! `berth diff`: what differs between two publications, named by number, commit or revision.

use crate::support::{RENDERED, Ran, Repo, cluster, config_map, run, small_fleet};

const EVERYWHERE: &str = "{clusterSelector: {}}";

/// A fleet with three publications: one map, then a second one, then another value of the first in all clusters.
fn published() -> Repo {
    let repo = small_fleet();
    repo.publish().expect(0);
    repo.write("apps/api.yaml", config_map("api", "one", "{clusters: [{name: a}]}"));
    repo.commit("add the api");
    repo.publish().expect(0);
    repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
    repo.commit("web says two");
    repo.publish().expect(0);
    repo
}

fn diff(repo: &Repo, more: &[&str]) -> Ran {
    run(&[&["diff", "--repo", repo.arg()], more].concat())
}

#[test]
fn publications_are_compared_by_number_commit_and_revision() {
    let repo = published();
    let first = repo.id("berth/rendered~2");
    let whole = diff(&repo, &["1..3"]).expect(0);
    assert!(whole.out.starts_with("3 objects changed and 1 added in 3 of 3 clusters\n"), "{}", whole.out);
    for words in [
        "apps/web.yaml:7:7: spec.template.data.value: one → two",
        "source commits\n  + ",
        ": web says two\n",
        ": add the api\n",
        "~ ConfigMap shop/web in all 3 clusters",
        "    data.value as edited",
        "+ FederatedConfigMap shop/api joins a (1 object)",
    ] {
        assert!(whole.out.contains(words), "no `{words}` in\n{}", whole.out);
    }
    assert!(whole.err.contains("number 1 (") && whole.err.contains(": web says two"), "{}", whole.err);
    for range in ["berth/rendered~2..berth/rendered", "1..", &format!("{first}..{RENDERED}")] {
        assert_eq!(diff(&repo, &[range]).expect(0).out, whole.out, "{range}");
    }
    // The newest, and the one before the newest.
    let last = diff(&repo, &[]).expect(0).out;
    assert!(last.starts_with("3 objects changed in 3 of 3 clusters\n"), "{last}");
    assert!(last.contains(": web says two") && !last.contains("add the api"), "{last}");
    assert!(diff(&repo, &["..2"]).expect(0).out.contains("add the api"));
    assert!(diff(&repo, &["2..2"]).expect(0).out.starts_with("no changes"));
    // The other way round, the commits are taken back.
    let back = diff(&repo, &["3..1"]).expect(0).out;
    assert!(
        back.contains("source commits\n  - ") && back.contains("- FederatedConfigMap shop/api leaves a"),
        "{back}"
    );
}

#[test]
fn one_cluster_is_compared_alone() {
    let repo = published();
    let of_b = diff(&repo, &["1..3", "--cluster", "b"]).expect(0).out;
    assert!(
        of_b.starts_with("1 object changed in 1 of 3 clusters\n") && !of_b.contains("shop/api"),
        "{of_b}"
    );
    let of_a = diff(&repo, &["1..3", "--cluster", "a"]).expect(0).out;
    assert!(of_a.starts_with("1 object changed and 1 added in 1 of 3 clusters\n"), "{of_a}");
    let unknown = diff(&repo, &["--cluster", "bb"]).expect(2);
    assert!(unknown.err.contains("no cluster `bb` in these states"), "{}", unknown.err);
}

#[test]
fn programs_and_comments_get_the_same() {
    let repo = published();
    let form = diff(&repo, &["1..3", "-o", "json"]).expect(0).json();
    assert_eq!((&form["from"]["sequence"], &form["to"]["sequence"]), (&1.into(), &3.into()));
    assert_eq!(form["to"]["source"], repo.id("main"));
    assert_eq!(form["counts"]["changed"], 3);
    assert_eq!(form["sections"][0]["how"], "alone");
    assert_eq!(form["commits"][0]["subject"], "web says two");
    let comment = diff(&repo, &["1..3", "-o", "markdown"]).expect(0).out;
    assert!(
        comment.starts_with("### berth: 3 objects changed and 1 added in 3 of 3 clusters\n"),
        "{comment}"
    );
    assert!(comment.contains("~ ConfigMap shop/web in all 3 clusters"), "{comment}");
}

#[test]
fn a_state_whose_source_is_missing_is_compared_by_names() {
    let repo = published();
    repo.write("clusters/d.yaml", cluster("d", &[]));
    repo.commit("d joins");
    repo.publish().expect(0);
    let elsewhere = Repo::new();
    elsewhere.git(&["fetch", "-q", repo.arg(), &format!("{RENDERED}:{RENDERED}")]);
    let text = diff(&elsewhere, &["3..4"]).expect(0);
    assert!(text.out.starts_with("2 objects added in 1 of 4 clusters\n"), "{}", text.out);
    assert!(text.out.contains("without a known cause"), "{}", text.out);
    assert!(text.err.contains("which is not in this clone"), "{}", text.err);
}

#[test]
fn what_is_no_publication_is_said() {
    let repo = published();
    for (range, words) in [
        ("1..9", "no publication has the number 9"),
        ("..1", "nothing was published before"),
        ("3", "`3` is not a range"),
        ("main~1..main", "is not a publication"),
    ] {
        let ran = diff(&repo, &[range]);
        assert!(ran.code != 0 && ran.err.contains(words), "{range}: {}", ran.err);
    }
}
