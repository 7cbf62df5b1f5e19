//! Access rules through the binary: what plans refuse, what runs hold back, and every way round them that
//! docs/tenancy.md lists.

use crate::support::{RENDERED, Ran, Repo, config_map, run};

const RULES: &str = "apiVersion: berth.dev/v1alpha1
kind: AccessRule
metadata: {name: platform}
spec:
  folders: [clusters, platform]
  clusterSets: {admin: ['*']}
  namespaces: ['*']
  clusterKinds: ['*']
---
apiVersion: berth.dev/v1alpha1
kind: AccessRule
metadata: {name: team-a}
spec:
  folders: [teams/a]
  clusterSets: {bind: [blue]}
  namespaces: [shop]
  clusterKinds: [ClusterResourcePlacement]
---
apiVersion: berth.dev/v1alpha1
kind: AccessRule
metadata: {name: team-b}
spec:
  folders: [teams/b]
  clusterSets: {bind: [red]}
  namespaces: [bank]
---
apiVersion: berth.dev/v1alpha1
kind: AccessRule
metadata: {name: edge}
spec:
  folders: [edge]
  clusterSets: {join: [blue]}
";

fn managed(name: &str, set: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  name: {name}\n  \
         labels: {{cluster.open-cluster-management.io/clusterset: {set}}}\n"
    )
}

fn set(name: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {{name: {name}}}\n"
    )
}

fn binding(set: &str, namespace: &str) -> String {
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
         metadata: {{name: {set}, namespace: {namespace}}}\nspec: {{clusterSet: {set}}}\n"
    )
}

/// A namespace that goes where its folder may place.
fn namespace(name: &str) -> String {
    crate::support::namespace(name)
}

fn in_bank(text: &str) -> String {
    text.replace("namespace: shop", "namespace: bank")
}

fn web(value: &str) -> String {
    config_map("web", value, "{clusterSelector: {}}")
}

/// Two clusters in two sets, two teams, one rule each; published.
fn fleet() -> Repo {
    let repo = Repo::with(&[
        ("access/rules.yaml", RULES),
        ("clusters/turin.yaml", &managed("turin", "red")),
        ("edge/oslo.yaml", &managed("oslo", "blue")),
        ("platform/sets.yaml", &format!("{}---\n{}", set("blue"), set("red"))),
        ("platform/bindings.yaml", &binding("blue", "shop")),
        ("teams/a/shop.yaml", &namespace("shop")),
        ("teams/a/web.yaml", &web("one")),
        ("teams/b/bank.yaml", &namespace("bank")),
        ("teams/b/vault.yaml", &in_bank(&config_map("vault", "one", "{clusterSelector: {}}"))),
    ]);
    repo.publish().expect(0);
    repo
}

fn plan(repo: &Repo, base: &str, head: &str) -> Ran {
    run(&["plan", "--repo", repo.arg(), "--base", base, "--head", head])
}

fn rendered(repo: &Repo, path: &str) -> Option<String> {
    repo.files(RENDERED).remove(path)
}

#[track_caller]
fn has_value(repo: &Repo, path: &str, value: &str) {
    let text = rendered(repo, path).unwrap_or_else(|| panic!("no {path}"));
    assert!(text.contains(&format!("value: {value}")), "{path}: {text}");
}

#[track_caller]
fn proven(repo: &Repo) {
    run(&["verify", "--repo", repo.arg()]).expect(0);
}

const WEB: &str = "clusters/oslo/shop/ConfigMap_web.yaml";
const VAULT: &str = "clusters/turin/bank/ConfigMap_vault.yaml";

#[test]
fn a_folder_places_only_into_the_clusters_it_may_reach() {
    let repo = fleet();
    has_value(&repo, WEB, "one");
    has_value(&repo, VAULT, "one");
    assert_eq!(rendered(&repo, "clusters/turin/shop/ConfigMap_web.yaml"), None, "team a has no right on red");
    let why = run(&["explain", "web", "--repo", repo.arg(), "--cluster", "turin"]).expect(0);
    assert!(why.out.contains("the folder `teams/a` may not place there"), "{}", why.out);
    let named = config_map("web", "one", "{clusters: [{name: oslo}, {name: turin}]}");
    repo.write("teams/a/web.yaml", named);
    let found = run(&["validate", repo.arg()]).expect(1);
    assert!(
        found.err.contains("the folder `teams/a` may not place into the cluster `turin`"),
        "{}",
        found.err
    );
}

#[test]
fn a_right_that_is_taken_back_takes_nothing_away_and_lets_nothing_new_in() {
    let repo = fleet();
    repo.write("access/rules.yaml", RULES.replace("bind: [blue]", "bind: [green]"));
    repo.commit("team a loses blue");
    repo.publish().expect(0);
    repo.write("edge/bergen.yaml", managed("bergen", "blue"));
    repo.write("platform/green.yaml", set("green"));
    repo.write("clusters/faro.yaml", managed("faro", "green"));
    repo.commit("one more cluster of each");
    repo.publish().expect(0);
    has_value(&repo, WEB, "one");
    has_value(&repo, "clusters/faro/shop/ConfigMap_web.yaml", "one");
    assert_eq!(rendered(&repo, "clusters/bergen/shop/ConfigMap_web.yaml"), None);
    proven(&repo);
}

#[test]
fn a_policy_of_somebody_else_gives_no_more_reach() {
    let repo = fleet();
    repo.write(
        "platform/everywhere.yaml",
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {name: everywhere}\n\
         spec: {policy: {placementType: PickAll}}\n",
    );
    // A namespace that is everywhere, so that only the reach of team a's folder narrows.
    repo.git(&["rm", "-q", "teams/a/shop.yaml"]);
    repo.write("platform/shop.yaml", namespace("shop"));
    let follows = "{placementRef: {kind: ClusterResourcePlacement, name: everywhere}}";
    repo.write("teams/a/web.yaml", config_map("web", "two", follows));
    repo.commit("follow the platform's policy");
    let ran = repo.publish();
    assert!(!ran.err.contains("error:"), "{}", ran.err);
    has_value(&repo, WEB, "two");
    assert!(
        rendered(&repo, "clusters/turin/_cluster/Namespace_shop.yaml").is_some(),
        "the platform reaches it"
    );
    assert_eq!(rendered(&repo, "clusters/turin/shop/ConfigMap_web.yaml"), None, "team a has no right on red");
    proven(&repo);
}

#[test]
fn the_first_commit_goes_by_its_own_rules_and_says_so() {
    let repo = Repo::with(&[
        ("access/rules.yaml", RULES),
        ("teams/a/bank.yaml", &namespace("bank")),
        ("clusters/oslo.yaml", &managed("oslo", "blue")),
    ]);
    let first = repo.publish().expect(1);
    assert!(first.err.contains("there is no earlier commit with access rules"), "{}", first.err);
    assert!(
        first.err.contains("the folder `teams/a` may not place into the namespace `bank`"),
        "{}",
        first.err
    );
    assert_eq!(rendered(&repo, "clusters/oslo/_cluster/Namespace_bank.yaml"), None);
    proven(&repo);
}

#[test]
fn a_change_that_grants_itself_a_right_and_uses_it_fails_and_the_next_one_passes() {
    let repo = fleet();
    repo.git(&["checkout", "-q", "-b", "both"]);
    repo.write(
        "access/more.yaml",
        RULES.split("---\n").nth(1).expect("team a").replace("team-a", "more").replace("[shop]", "[bank]"),
    );
    repo.write("teams/a/spy.yaml", in_bank(&config_map("spy", "one", "{clusterSelector: {}}")));
    repo.commit("grant and use");
    let refused = plan(&repo, "main", "both").expect(1);
    assert!(
        refused.err.contains(
            "teams/a/spy.yaml:3:34: error: the folder `teams/a` may not place into the namespace `bank`"
        ),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("merge the access rules first: a rule applies only to later changes"),
        "{}",
        refused.err
    );
    run(&["validate", repo.arg(), "--base", "main"]).expect(1);
    // The grant alone, then its use.
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["checkout", "both", "--", "access/more.yaml"]);
    repo.commit("grant");
    plan(&repo, "main~1", "main").expect(0);
    repo.git(&["checkout", "-q", "-b", "use"]);
    repo.git(&["checkout", "both", "--", "teams/a/spy.yaml"]);
    repo.commit("use");
    let used = plan(&repo, "main", "use");
    assert!(!used.err.contains("error:"), "{}", used.err);
}

#[test]
fn what_a_run_refuses_keeps_its_last_good_form_and_the_others_go_on() {
    let repo = fleet();
    repo.write("access/rules.yaml", RULES.replace("namespaces: [shop]", "namespaces: [other]"));
    repo.commit("team a loses its namespace");
    repo.publish().expect(0);
    has_value(&repo, WEB, "one");
    repo.write("teams/a/web.yaml", web("two"));
    repo.write("teams/b/vault.yaml", in_bank(&config_map("vault", "two", "{clusterSelector: {}}")));
    repo.commit("both teams edit");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("the folder `teams/a` may not place into the namespace `shop`"), "{}", ran.err);
    has_value(&repo, WEB, "one");
    has_value(&repo, VAULT, "two");
    repo.publish().expect(1);
    has_value(&repo, WEB, "one");
    repo.write("access/rules.yaml", RULES);
    repo.commit("give it back");
    repo.publish().expect(1);
    has_value(&repo, WEB, "one");
    repo.commit("anything after it");
    repo.publish().expect(0);
    has_value(&repo, WEB, "two");
    proven(&repo);
}

#[test]
fn a_grant_counts_from_the_commit_after_it_and_not_from_a_second_look_at_its_own() {
    let repo = fleet();
    repo.write("access/rules.yaml", RULES.replace("namespaces: [shop]", "namespaces: [shop, extra]"));
    repo.write("teams/a/extra.yaml", namespace("extra"));
    repo.write("teams/a/web.yaml", web("two"));
    repo.commit("grant and use at once");
    let extra = "clusters/oslo/_cluster/Namespace_extra.yaml";
    for _ in 0..3 {
        repo.publish().expect(1);
        assert_eq!(rendered(&repo, extra), None);
        has_value(&repo, WEB, "two");
    }
    proven(&repo);
    repo.commit("anything after it");
    repo.publish().expect(0);
    assert!(rendered(&repo, extra).is_some());
    proven(&repo);
}

#[test]
fn a_kept_rule_file_gives_its_own_commit_no_right_either() {
    let repo = fleet();
    let more =
        RULES.split("---\n").nth(1).expect("team a").replace("team-a", "more").replace("[shop]", "[extra]");
    // The namespace is refused, so that the rest of the file is kept beside it.
    repo.write("access/more.yaml", format!("{more}---\n{}", namespace("sneak")));
    repo.write("teams/a/extra.yaml", namespace("extra"));
    repo.commit("grant and use at once, in a file with a fault");
    let extra = "clusters/oslo/_cluster/Namespace_extra.yaml";
    for _ in 0..3 {
        repo.publish().expect(1);
        assert_eq!(rendered(&repo, extra), None);
        run(&["validate", repo.arg()]).expect(1);
    }
    let against = run(&["validate", repo.arg(), "--base", "main~1"]).expect(1);
    assert!(against.err.contains("may not place into the namespace `extra`"), "{}", against.err);
    proven(&repo);
    repo.commit("anything after it");
    repo.publish().expect(1);
    assert!(rendered(&repo, extra).is_some(), "the grant counts now, whatever stands beside it");
    proven(&repo);
}

#[test]
fn rules_that_can_not_be_looked_up_are_an_error_and_no_freedom() {
    let repo = fleet();
    repo.write("teams/a/web.yaml", web("two"));
    repo.commit("edit");
    repo.publish().expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let clone = folder.path().join("clone");
    let path = clone.to_str().expect("a path");
    let url = format!("file://{}", repo.arg());
    repo.git(&["clone", "-q", "--depth", "1", &url, path]);
    let everything = format!("+{RENDERED}:{RENDERED}");
    repo.git(&["-C", path, "fetch", "-q", "origin", &everything]);
    let processed = "+refs/berth/processed:refs/berth/processed";
    let all = ["plan", "--repo", path];
    // The rules of the last commit are those of the one before it, which is not here.
    let refused = run(&all).expect(6);
    assert!(
        refused.err.contains("which holds the current access rules, is not in this repository"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("git fetch --unshallow"), "{}", refused.err);
    let proof = run(&["verify", "--repo", path]).expect(6);
    assert!(
        proof.out.contains("rules' commit") || proof.err.contains("rules' commit"),
        "{} {}",
        proof.out,
        proof.err
    );
    repo.git(&["-C", path, "fetch", "-q", "--unshallow", "origin", processed]);
    run(&all).expect(0);
    run(&["verify", "--repo", path]).expect(0);
}

#[test]
fn an_edit_that_lacks_a_right_says_so_and_what_it_would_do() {
    let repo = fleet();
    repo.write("clusters/turin.yaml", managed("turin", "red").replace(": red}", ": red, env: prod}"));
    let flags = config_map("flags", "one", "{clusterSelector: {matchLabels: {env: prod}}}");
    repo.write("platform/flags.yaml", flags);
    repo.commit("flags where it counts");
    repo.publish();
    repo.write("access/rules.yaml", RULES.replace("folders: [clusters, platform]", "folders: [platform]"));
    repo.commit("nobody may change clusters");
    repo.publish();
    let ran = run(&["label", "turin", "env=dev", "--overwrite", "--repo", repo.arg()]).expect(0);
    assert!(
        ran.err
            .contains("warning: the folder `clusters` may not describe the cluster `turin` of the set `red`"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("removes 1 object in 1 cluster"), "{}", ran.err);
}

#[test]
fn moving_a_cluster_between_sets_needs_the_right_on_both() {
    let repo = fleet();
    repo.git(&["checkout", "-q", "-b", "move"]);
    repo.write("edge/oslo.yaml", managed("oslo", "red"));
    repo.commit("move oslo");
    let refused = plan(&repo, "main", "move").expect(1);
    assert!(
        refused.err.contains(
            "edge/oslo.yaml:5:59: error: the folder `edge` may not put the cluster `oslo` into the set `red`"
        ),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("grant it `clusterSets: {join: [red]}`; it has the rights of edge"),
        "{}",
        refused.err
    );
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "move"]);
    repo.publish().expect(1);
    has_value(&repo, WEB, "one");
    // In the hands of a folder with both rights it moves.
    repo.git(&["rm", "-q", "edge/oslo.yaml"]);
    repo.write("clusters/oslo.yaml", managed("oslo", "red"));
    repo.commit("the platform moves oslo");
    let ran = repo.publish();
    assert!(!ran.err.contains("may not put"), "{}", ran.err);
    proven(&repo);
}

#[test]
fn a_cluster_whose_folder_may_not_let_it_go_stays() {
    let repo = fleet();
    repo.write("access/rules.yaml", RULES.replace("join: [blue]", "join: [green]"));
    repo.commit("edge loses blue");
    repo.publish().expect(0);
    repo.git(&["rm", "-q", "edge/oslo.yaml"]);
    repo.commit("take oslo out");
    for _ in 0..2 {
        let ran = repo.publish().expect(1);
        assert!(
            ran.err.contains("edge/oslo.yaml: error: the folder `edge` may not take the cluster `oslo` out of the set `blue`"),
            "{}",
            ran.err
        );
        has_value(&repo, WEB, "one");
    }
    proven(&repo);
}

#[test]
fn a_file_that_moves_to_a_folder_without_the_right_changes_nothing() {
    let repo = fleet();
    repo.git(&["mv", "teams/a/web.yaml", "teams/b/web.yaml"]);
    repo.write("teams/b/web.yaml", web("two"));
    repo.commit("move web");
    repo.publish().expect(1);
    has_value(&repo, WEB, "one");
}

#[test]
fn an_object_under_anothers_name_does_not_take_its_place() {
    let repo = fleet();
    repo.write("aaa/web.yaml", web("stolen"));
    repo.commit("shadow web");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("the folder `aaa` may not place into the namespace `shop`"), "{}", ran.err);
    assert!(!ran.err.contains("contradicting descriptions"), "{}", ran.err);
    has_value(&repo, WEB, "one");
    repo.write("teams/a/web.yaml", web("two"));
    repo.commit("the owner goes on");
    repo.publish().expect(1);
    has_value(&repo, WEB, "two");
    proven(&repo);
}

#[test]
fn a_placement_can_not_carry_the_objects_of_another_team() {
    let repo = fleet();
    let crp = |namespace: &str| {
        format!(
            "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {{name: all}}\n\
             spec:\n  resourceSelectors: [{{group: '', version: v1, kind: Namespace, name: {namespace}}}]\n"
        )
    };
    let plain = |namespace: &str| {
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n---\napiVersion: v1\nkind: ConfigMap\n\
             metadata: {{name: plain, namespace: {namespace}}}\ndata: {{value: one}}\n"
        )
    };
    repo.write("teams/b/plain.yaml", plain("bank"));
    repo.write("teams/a/all.yaml", crp("bank"));
    repo.commit("team a selects team b's namespace");
    let ran = repo.publish().expect(1);
    assert!(
        ran.err.contains(
            "teams/a/all.yaml:1:1: error: the folder `teams/a` may not place into the namespace `bank`"
        ),
        "{}",
        ran.err
    );
    assert_eq!(rendered(&repo, "clusters/oslo/bank/ConfigMap_plain.yaml"), None);
    // The other way round: an object of team b in the namespace that team a selects.
    repo.write("teams/b/plain.yaml", plain("shop"));
    repo.write("teams/a/all.yaml", crp("shop"));
    repo.commit("team b writes into team a's namespace");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("the folder `teams/b` may not place into the namespace `shop`"), "{}", ran.err);
    assert_eq!(rendered(&repo, "clusters/oslo/shop/ConfigMap_plain.yaml"), None);
    proven(&repo);
}

#[test]
fn a_binding_without_the_right_binds_nothing() {
    let repo = fleet();
    repo.write("teams/a/binding.yaml", binding("red", "shop"));
    repo.write(
        "teams/a/placement.yaml",
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: p, namespace: shop}\nspec: {}\n",
    );
    repo.commit("bind red");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("the folder `teams/a` may not bind the cluster set `red`"), "{}", ran.err);
    let decision = rendered(&repo, "decisions/shop/Placement.cluster.open-cluster-management.io_p.yaml");
    let decision = decision.expect("a decision");
    assert!(decision.contains("oslo") && !decision.contains("turin"), "{decision}");
}

#[test]
fn the_settings_can_not_leave_the_rules_out_and_rules_elsewhere_are_an_error() {
    let repo = fleet();
    repo.write(
        "berth.yaml",
        "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nmetadata: {name: f}\nspec: {exclude: [access]}\n",
    );
    let rule = RULES.split("---\n").nth(1).expect("a rule").replace("name: team-a", "name: more");
    repo.write("teams/a/rule.yaml", rule.replace("[shop]", "['*']"));
    repo.write("teams/a/spy.yaml", in_bank(&web("one")));
    repo.commit("leave the rules out");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("an AccessRule has an effect only in a file under `access/`"), "{}", ran.err);
    repo.commit("and go on");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("the folder `teams/a` may not place into the namespace `bank`"), "{}", ran.err);
}

#[test]
fn a_broken_rule_file_keeps_the_rules_it_had() {
    let repo = fleet();
    repo.write("access/rules.yaml", RULES.replace("kind: AccessRule", "kind: [AccessRule"));
    repo.commit("break the rules");
    repo.publish().expect(1);
    repo.write("teams/a/spy.yaml", in_bank(&web("one")));
    repo.write("teams/a/web.yaml", web("two"));
    repo.commit("use the moment");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("the folder `teams/a` may not place into the namespace `bank`"), "{}", ran.err);
    has_value(&repo, WEB, "two");
}

#[test]
fn taking_all_rules_away_is_told_before_it_counts() {
    let repo = fleet();
    repo.git(&["checkout", "-q", "-b", "open"]);
    repo.git(&["rm", "-q", "-r", "access"]);
    repo.commit("no more rules");
    let told = plan(&repo, "main", "open").expect(0);
    assert!(told.err.contains("warning: no access rule is left"), "{}", told.err);
}

#[test]
fn the_roles_of_the_documentation_are_grants_for_folders() {
    let repo = fleet();
    repo.write(
        "access/roles.yaml",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: clusterrole1}\nrules:\n\
         - apiGroups: [cluster.open-cluster-management.io]\n  resources: [managedclustersets/join]\n  \
         resourceNames: [red]\n  verbs: [create]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: edge-joins}\n\
         roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: clusterrole1}\n\
         subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: edge-team}]\n",
    );
    repo.write(
        "access/rules.yaml",
        RULES.replace("folders: [edge]", "folders: [edge]\n  subjects: [{kind: Group, name: edge-team}]"),
    );
    repo.commit("a hub's roles");
    repo.publish().expect(0);
    repo.write("edge/oslo.yaml", managed("oslo", "red"));
    repo.commit("move oslo");
    let ran = repo.publish();
    assert!(!ran.err.contains("may not put"), "{}", ran.err);
    repo.write("teams/a/roles.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\nrules: [{resources: [managedclustersets/bind]}]\n");
    let told = run(&["validate", repo.arg()]).expect(1);
    assert!(told.err.contains("as an access rule it counts only under `access/`"), "{}", told.err);
}

#[test]
fn an_override_that_moves_an_object_to_another_api_group_needs_the_right_on_it() {
    let repo = fleet();
    repo.write(
        "access/rules.yaml",
        RULES.replace(
            "namespaces: [shop]",
            "namespaces: [shop]\n  kinds: [Namespace, ConfigMap, Ingress.networking.k8s.io]",
        ),
    );
    let ingress = |overrides: &str| {
        format!(
            "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedIngress\nmetadata: {{name: web, namespace: shop}}\n\
             spec:\n  template: {{spec: {{}}}}\n  placement: {{clusters: [{{name: oslo}}]}}\n{overrides}"
        )
    };
    repo.write("teams/a/ingress.yaml", ingress(""));
    repo.commit("rules about kinds");
    repo.publish().expect(0);
    let moved = "  overrides:\n  - clusterName: oslo\n    clusterOverrides: [{path: /apiVersion, value: extensions/v1beta1}]\n";
    repo.write("teams/a/ingress.yaml", ingress(moved));
    let ran = run(&["validate", repo.arg()]).expect(1);
    assert!(ran.err.contains("the folder `teams/a` may not place"), "{}", ran.err);
    repo.commit("to another group");
    repo.publish();
    assert!(rendered(&repo, "clusters/oslo/shop/Ingress.networking.k8s.io_web.yaml").is_some());
    assert_eq!(rendered(&repo, "clusters/oslo/shop/Ingress.extensions_web.yaml"), None);
}
