//! A cluster is picked again while its member still has the copies that it lost.

use crate::support::removals::report;
use crate::support::rollouts::Rollouts;
use crate::support::{RENDERED, Repo, cluster, config_map, namespace};

const CLUSTERS: [&str; 4] = ["a", "b", "c", "d"];
const RECORD: &str = "releases/shop/FederatedConfigMap.types.kubefed.io_web.yaml";
const BUDGET: &str = "apiVersion: berth.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: web, namespace: shop}
spec:
  strategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}
";

fn web(value: &str) -> String {
    config_map("web", value, "{clusterSelector: {matchLabels: {web: \"yes\"}}}")
}

fn placed(name: &str) -> String {
    cluster(name, &[("web", "yes")])
}

/// Four clusters with a proven release, of which the last one lost its copy just now.
fn removed() -> Rollouts {
    let repo = Repo::with(&[
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/web.yaml", &web("one")),
        ("policy.yaml", BUDGET),
    ]);
    for name in CLUSTERS {
        repo.write(&format!("clusters/{name}.yaml"), placed(name));
    }
    repo.commit("four clusters");
    let rollouts = Rollouts::of(repo);
    rollouts.succeed(&CLUSTERS);
    rollouts.publish();
    rollouts.edit(&[("apps/web.yaml", &web("two"))]);
    for name in CLUSTERS {
        rollouts.succeed(&[name]);
        rollouts.publish();
    }
    assert_eq!(rollouts.values(&CLUSTERS, "web"), "a=two b=two c=two d=two");
    rollouts.succeed(&CLUSTERS);
    rollouts.edit(&[("clusters/d.yaml", &cluster("d", &[]))]);
    assert_eq!(rollouts.values(&CLUSTERS, "web"), "a=two b=two c=two d=-");
    rollouts
}

fn record(rollouts: &Rollouts) -> String {
    rollouts.repo.files(RENDERED)[RECORD].clone()
}

#[test]
fn nobody_goes_on_before_the_member_says_that_its_copy_is_gone() {
    let rollouts = removed();
    assert!(record(&rollouts).contains("removing:"), "{}", record(&rollouts));
    let after_removal = rollouts.repo.id(RENDERED);
    rollouts.publish();
    assert_eq!(rollouts.repo.id(RENDERED), after_removal, "a pass without news makes no commit");

    rollouts.edit(&[("clusters/d.yaml", &placed("d")), ("apps/web.yaml", &web("three"))]);
    let waits = "a=two b=two c=two d=-";
    assert_eq!(rollouts.values(&CLUSTERS, "web"), waits);
    let shown = rollouts.order(&["show", "web"]).expect(0).out;
    assert!(shown.contains("waiting for the removal of earlier copies in: d"), "{shown}");
    // The member has the folder without the copy, and its object is still there, or one of those it does not name.
    let object = "{kind: ConfigMap, namespace: shop, name: web}";
    for unfinished in [format!("  removing: [{object}]\n"), "  moreRemoving: 1\n".to_owned()] {
        rollouts.say("d", &unfinished);
        rollouts.publish();
        assert_eq!(rollouts.values(&CLUSTERS, "web"), waits, "{unfinished}");
    }
    rollouts.say("d", "  removing: [{kind: ConfigMap, namespace: shop, name: other}]\n");
    rollouts.publish();
    assert_eq!(rollouts.values(&CLUSTERS, "web"), "a=two b=two c=two d=two");
    assert!(!record(&rollouts).contains("removing:"), "{}", record(&rollouts));
    assert!(
        rollouts.message().contains("removals finished or no longer awaited: d"),
        "{}",
        rollouts.message()
    );
    for _ in 0..3 {
        for name in CLUSTERS {
            rollouts.succeed(&[name]);
            rollouts.publish();
        }
    }
    assert_eq!(rollouts.values(&CLUSTERS, "web"), "a=three b=three c=three d=three");
    rollouts.verify();
}

#[test]
fn a_report_on_the_folder_that_still_has_the_copy_ends_nothing() {
    let rollouts = removed();
    let before = rollouts.repo.git(&["rev-parse", &format!("{RENDERED}~1:clusters/d")]);
    rollouts.edit(&[("clusters/d.yaml", &placed("d"))]);
    rollouts.wait(1);
    report(&rollouts.repo, "d", 200, &format!("applied:\n  sequence: 1\n  tree: {before}\n  objects: 2\n"));
    rollouts.publish();
    assert_eq!(rollouts.values(&CLUSTERS, "web"), "a=two b=two c=two d=-");
    rollouts.wait(200);
    rollouts.succeed(&["d"]);
    rollouts.publish();
    assert_eq!(rollouts.values(&CLUSTERS, "web"), "a=two b=two c=two d=two");
    rollouts.verify();
}

#[test]
fn a_member_that_left_the_fleet_is_not_waited_for() {
    let rollouts = removed();
    rollouts.repo.git(&["rm", "-q", "clusters/d.yaml"]);
    rollouts.repo.commit("d is gone");
    rollouts.repo.publish_ungated().expect(0);
    assert!(!record(&rollouts).contains("removing:"), "{}", record(&rollouts));
    rollouts.edit(&[("apps/web.yaml", &web("three"))]);
    assert_eq!(rollouts.values(&["a", "b", "c"], "web"), "a=three b=two c=two");
}
