//! What objects go through: parts in files of their own, types that are switched off, what members keep,
//! and what is left behind when nobody wants it any more.

use std::collections::BTreeMap;

use crate::support::{RENDERED, Repo, cluster, namespace, run, small_fleet};

const COPY: &str = "clusters/a/shop/ConfigMap_web.yaml";

fn federated(kind: &str, annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: types.kubefed.io/v1beta1\nkind: Federated{kind}\n\
         metadata: {{name: web, namespace: shop, annotations: {{{annotations}}}}}\nspec:\n  \
         placement: {{clusterSelector: {{}}}}\n{spec}"
    )
}

fn own(kind: &str, name: &str, rest: &str) -> String {
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\n{rest}"
    )
}

/// A fleet whose config map names its template and its overrides.
fn apart() -> Repo {
    let repo = small_fleet();
    repo.write(
        "apps/web.yaml",
        federated("ConfigMap", "", "  templateRef: {name: base}\n  overridesRef: {name: tuning}\n"),
    );
    repo.write("teams/base.yaml", own("Template", "base", "template:\n  data: {value: one}\n"));
    repo.write(
        "teams/tuning.yaml",
        own(
            "OverrideList",
            "tuning",
            "overrides:\n- clusterName: b\n  clusterOverrides: [{path: /data/value, value: two}]\n",
        ),
    );
    repo.commit("apart");
    repo
}

fn copies(repo: &Repo) -> Vec<String> {
    let files = repo.files(RENDERED);
    let value = |cluster: &str| {
        let text = files.get(&COPY.replace("/a/", &format!("/{cluster}/"))).cloned().unwrap_or_default();
        text.lines().find_map(|line| line.trim().strip_prefix("value: ")).unwrap_or("-").to_owned()
    };
    ["a", "b", "c"].map(value).to_vec()
}

/// The `berth.dev/` annotations of one rendered object.
fn annotations(repo: &Repo, path: &str) -> BTreeMap<String, String> {
    let files = repo.files(RENDERED);
    let object: serde_json::Value = serde_yaml::from_str(&files[path]).expect("an object");
    let all = object["metadata"]["annotations"].as_object().expect("annotations");
    let own = |(name, value): (&String, &serde_json::Value)| {
        Some((name.strip_prefix("berth.dev/")?.to_owned(), value.as_str()?.to_owned()))
    };
    all.iter().filter_map(own).collect()
}

#[test]
fn template_and_overrides_may_stand_in_files_of_their_own() {
    let repo = apart();
    repo.publish().expect(0);
    assert_eq!(copies(&repo), ["one", "two", "one"]);
    repo.write("teams/base.yaml", own("Template", "base", "template:\n  data: {value: three}\n"));
    repo.commit("the template's team at work");
    repo.publish().expect(0);
    assert_eq!(copies(&repo), ["three", "two", "three"]);
}

#[test]
fn a_missing_part_is_an_error_with_a_suggestion_and_members_keep_what_they_have() {
    let repo = apart();
    repo.publish().expect(0);
    repo.git(&["mv", "teams/base.yaml", "teams/basis.yaml"]);
    repo.write("teams/basis.yaml", own("Template", "basse", "template:\n  data: {value: three}\n"));
    repo.commit("a slip");
    let ran = repo.publish().expect(1);
    assert!(ran.err.contains("apps/web.yaml:6:23"), "{}", ran.err);
    assert!(ran.err.contains("there is no Template `base` in the namespace `shop`"), "{}", ran.err);
    assert!(ran.err.contains("did you mean `basse`?"), "{}", ran.err);
    assert_eq!(copies(&repo), ["one", "two", "one"]);
    repo.write("teams/basis.yaml", own("Template", "base", "template:\n  data: {value: three}\n"));
    repo.commit("mended");
    repo.publish().expect(0);
    assert_eq!(copies(&repo), ["three", "two", "three"]);
}

#[test]
fn a_faulty_part_keeps_its_last_good_form() {
    let repo = apart();
    repo.publish().expect(0);
    for broken in [own("Template", "base", "tempalte: {}\n"), "}{".to_owned()] {
        repo.write("teams/base.yaml", broken);
        repo.commit("broken");
        let ran = repo.publish().expect(1);
        assert!(!ran.err.contains("there is no Template"), "{}", ran.err);
        assert_eq!(copies(&repo), ["one", "two", "one"]);
    }
}

#[test]
fn a_part_may_not_be_given_twice() {
    let repo = apart();
    repo.write(
        "apps/web.yaml",
        federated("ConfigMap", "", "  template: {data: {}}\n  templateRef: {name: base}\n"),
    );
    let ran = run(&["validate", repo.arg()]).expect(1);
    assert!(ran.err.contains("spec.templateRef and spec.template exclude each other"), "{}", ran.err);
    assert!(ran.err.contains("no Federated object of its namespace names this OverrideList"), "{}", ran.err);
}

#[test]
fn what_is_in_members_stays_as_it_is_while_a_type_is_switched_off() {
    let repo = small_fleet();
    repo.publish().expect(0);
    let config = |propagation: &str| {
        format!(
            "apiVersion: core.kubefed.io/v1beta1\nkind: FederatedTypeConfig\n\
             metadata: {{name: configmaps, namespace: kube-federation-system}}\nspec:\n  propagation: {propagation}\n  \
             targetType: {{version: v1, kind: ConfigMap, pluralName: configmaps, scope: Namespaced}}\n  \
             federatedType: {{group: types.kubefed.io, version: v1beta1, kind: FederatedConfigMap, pluralName: federatedconfigmaps, scope: Namespaced}}\n"
        )
    };
    repo.write("types.yaml", config("Disabled"));
    repo.write("apps/web.yaml", crate::support::config_map("web", "two", "{clusters: [{name: a}]}"));
    repo.commit("off, and changed all the same");
    repo.publish().expect(0);
    assert_eq!(copies(&repo), ["one", "one", "one"]);
    let off = repo.id(RENDERED);
    repo.publish().expect(0);
    assert_eq!(repo.id(RENDERED), off);
    repo.write("types.yaml", config("Enabled"));
    repo.commit("on again");
    repo.publish().expect(0);
    assert_eq!(copies(&repo), ["two", "-", "-"]);
}

#[test]
fn an_orphan_outlives_its_federated_object_in_members() {
    let repo = small_fleet();
    repo.write(
        "apps/web.yaml",
        federated("ConfigMap", "kubefed.io/orphan: 'true'", "  template: {data: {value: one}}\n"),
    );
    repo.write("apps/other.yaml", crate::support::config_map("other", "one", "{clusterSelector: {}}"));
    repo.commit("an orphan to be");
    repo.publish().expect(0);
    assert_eq!(annotations(&repo, COPY).get("orphan").map(String::as_str), Some("true"));
    let target = tempfile::tempdir().expect("a folder");
    repo.sync("a", target.path(), &[]).expect(0);
    repo.git(&["rm", "-q", "apps/web.yaml", "apps/other.yaml"]);
    repo.commit("gone");
    repo.publish_ungated().expect(0);
    let ran = repo.sync("a", target.path(), &[]).expect(0);
    assert!(ran.out.contains("let go") && ran.out.contains("1 removal"), "{}", ran.out);
    assert!(target.path().join("shop/ConfigMap_web.yaml").exists());
    assert!(!target.path().join("shop/ConfigMap_other.yaml").exists());
}

#[test]
fn delete_options_are_checked_and_carried() {
    let repo = small_fleet();
    let with = |options: &str| {
        federated("ConfigMap", &format!("kubefed.io/deleteoption: '{options}'"), "  template: {}\n")
    };
    repo.write("apps/web.yaml", with(r#"{"propagationPolicy": "Foreground", "gracePeriodSeconds": 30}"#));
    repo.commit("options");
    repo.publish().expect(0);
    assert_eq!(
        annotations(&repo, COPY)["delete-options"],
        r#"{"gracePeriodSeconds":30,"propagationPolicy":"Foreground"}"#
    );
    for (options, part) in [
        ("soon", "must be DeleteOptions as JSON"),
        (r#"{"gracePeriodSecond": 3}"#, "did you mean `gracePeriodSeconds`?"),
        (r#"{"gracePeriodSeconds": -3}"#, "must be a whole number from 0"),
        (r#"{"propagationPolicy": "Later"}"#, "must be one of Background, Foreground, Orphan"),
    ] {
        repo.write("apps/web.yaml", with(options));
        let ran = run(&["validate", repo.arg()]).expect(1);
        assert!(ran.err.contains(part) && ran.err.contains("apps/web.yaml:3:"), "{options}: {}", ran.err);
    }
}

#[test]
fn what_members_keep_is_listed_on_each_copy() {
    let always = "/metadata/annotations,/metadata/finalizers";
    let repo = Repo::with(&[
        ("clusters/a.yaml", &cluster("a", &[])),
        ("clusters/b.yaml", &cluster("b", &[])),
        ("apps/shop.yaml", &namespace("shop")),
        ("apps/service.yaml", &federated("Service", "", "  template: {spec: {ports: [{port: 80}]}}\n")),
        ("apps/account.yaml", &federated("ServiceAccount", "", "  template: {}\n")),
        (
            "apps/replicas.yaml",
            &federated(
                "Deployment",
                "",
                "  template: {spec: {replicas: 2}}\n  retainReplicas: true\n  overrides:\n  - clusterName: b\n    clusterOverrides: [{path: /spec/replicas, value: 4}]\n",
            ),
        ),
        (
            "apps/listed.yaml",
            &federated("ReplicaSet", "", "  template: {spec: {replicas: 2}}\n  retainReplicas: [b]\n"),
        ),
    ]);
    repo.publish().expect(0);
    let kept = |cluster: &str, object: &str| {
        annotations(&repo, &format!("clusters/{cluster}/shop/{object}_web.yaml"))["retain"].clone()
    };
    let service = "/spec/clusterIP,/spec/clusterIPs,/spec/healthCheckNodePort,/spec/ports/*/nodePort";
    assert_eq!(kept("a", "Service"), format!("{always},{service}"));
    assert_eq!(kept("a", "ServiceAccount"), format!("{always},/secrets"));
    assert_eq!(kept("a", "Deployment.apps"), format!("{always},/spec/replicas"));
    assert_eq!(kept("b", "Deployment.apps"), always, "an override sets it there");
    assert_eq!(kept("a", "ReplicaSet.apps"), always);
    assert_eq!(kept("b", "ReplicaSet.apps"), format!("{always},/spec/replicas"));
}

#[test]
fn a_placement_that_only_reports_differences_is_rendered_so_that_no_member_writes_it() {
    let plain = |env: &str| {
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: plain, labels: {{env: {env}}}}}\n")
    };
    let placement = |strategy: &str| {
        format!(
            "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {{name: plain}}\nspec:\n  \
             resourceSelectors: [{{group: '', version: v1, kind: Namespace, name: plain}}]\n{strategy}"
        )
    };
    let report_only = placement("  strategy: {applyStrategy: {type: ReportDiff}}\n");
    let member = "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {name: m}\n\
                  spec: {identity: {kind: ServiceAccount, name: m, namespace: fleet-system}}\n";
    let repo = Repo::with(&[("m.yaml", member), ("ns.yaml", &plain("old")), ("crp.yaml", &placement(""))]);
    let folder = tempfile::tempdir().expect("a folder");
    repo.publish().expect(0);
    repo.sync("m", folder.path(), &[]).expect(0);
    let there =
        || std::fs::read_to_string(folder.path().join("_cluster/Namespace_plain.yaml")).expect("it is there");
    assert!(there().contains("env: old"));
    repo.write("ns.yaml", plain("new"));
    repo.write("crp.yaml", &report_only);
    repo.commit("only report");
    repo.publish().expect(0);
    let rendered = repo.files(RENDERED)["clusters/m/_cluster/Namespace_plain.yaml"].clone();
    assert!(rendered.contains("berth.dev/apply: report-diff"), "{rendered}");
    let ran = repo.sync("m", folder.path(), &[]).expect(0);
    assert!(ran.err.contains("Namespace plain: FoundDiff: "), "{}", ran.err);
    assert!(there().contains("env: old"));
    repo.write("crp.yaml", placement(""));
    repo.commit("for real");
    repo.publish().expect(0);
    repo.sync("m", folder.path(), &[]).expect(0);
    assert!(there().contains("env: new"));
}

#[test]
fn a_placement_that_selects_what_is_forbidden_changes_nothing_of_what_is_placed() {
    let member = "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {name: m}\n\
                  spec: {identity: {kind: ServiceAccount, name: m, namespace: fleet-system}}\n";
    let namespace = |name: &str| {
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{team: web}}}}\n")
    };
    let settings = |text: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: s, namespace: shop}}\ndata: {{text: {text}}}\n"
        )
    };
    let placement = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: web}\n\
                     spec:\n  resourceSelectors:\n  - {group: '', version: v1, kind: Namespace, labelSelector: {matchLabels: {team: web}}}\n";
    let repo = Repo::with(&[
        ("m.yaml", member),
        ("ns.yaml", &namespace("shop")),
        ("s.yaml", &settings("old")),
        ("crp.yaml", placement),
    ]);
    repo.publish().expect(0);
    let rendered = |repo: &Repo| {
        let files = repo.files(RENDERED).into_iter();
        files.filter(|(path, _)| path.starts_with("clusters/")).collect::<Vec<_>>()
    };
    let before = rendered(&repo);
    assert_eq!(before.len(), 2);
    repo.write("other.yaml", namespace("fleet-shop"));
    repo.write("s.yaml", settings("new"));
    repo.commit("a label that matches a reserved namespace");
    repo.publish().expect(0);
    assert_eq!(rendered(&repo), before);
    repo.write("other.yaml", namespace("fleet-shop").replace("team: web", "team: other"));
    repo.commit("without that label");
    repo.publish().expect(0);
    assert!(rendered(&repo).iter().any(|(_, text)| text.contains("new")));
}
