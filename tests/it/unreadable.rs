//! What is read as one thing is never applied as another: hidden lists, ciphers, bombs of aliases, odd names,
//! and rollouts that somebody else decides.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use crate::support::remote::{Fleet, Plain};
use crate::support::{RENDERED, Repo, cluster, config_map, hermetic, namespace, run, small_fleet};

const HIDDEN: &str =
    "[{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: hidden}}]";

fn rendered(repo: &Repo) -> String {
    let out = tempfile::tempdir().expect("a folder");
    let folder = out.path().to_string_lossy().into_owned();
    run(&["render", "--repo", repo.arg(), "--out", &folder]).expect(1);
    let mut texts = String::new();
    let mut open = vec![out.path().to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => open.push(path),
                false => texts.push_str(&std::fs::read_to_string(path).expect("a file")),
            }
        }
    }
    texts
}

#[test]
fn an_override_that_hides_objects_in_a_list_is_refused() {
    let repo = small_fleet();
    let overrides = format!(
        "  overrides:\n  - clusterName: a\n    clusterOverrides: [{{op: add, path: /items, value: {HIDDEN}}}]\n"
    );
    repo.write("apps/web.yaml", format!("{}{overrides}", config_map("web", "one", "{clusterSelector: {}}")));
    let ran = run(&["validate", "--repo", repo.arg()]).expect(1);
    assert!(ran.err.contains("apps/web.yaml:10:"), "{}", ran.err);
    assert!(
        ran.err.contains("for cluster `a`: `kubectl apply` would apply the contents of its field `items`"),
        "{}",
        ran.err
    );
    assert!(!rendered(&repo).contains("hidden"));
}

fn work(manifest: &str) -> String {
    format!(
        "apiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {{name: w, namespace: a}}\n\
         spec: {{workload: {{manifests: [{manifest}]}}}}\n"
    )
}

#[test]
fn a_kind_that_ends_in_list_needs_a_definition() {
    let repo = small_fleet();
    repo.write("work.yaml", work("{apiVersion: example.com/v1, kind: AllowList, metadata: {name: x}}"));
    let ran = run(&["validate", "--repo", repo.arg()]).expect(1);
    assert!(ran.err.contains("`AllowList` is a list or an unknown kind"), "{}", ran.err);
    repo.write(
        "crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: allowlists.example.com}\n\
         spec: {group: example.com, names: {kind: AllowList, plural: allowlists}}\n",
    );
    run(&["validate", "--repo", repo.arg()]).expect(0);
    repo.write(
        "work.yaml",
        work("{apiVersion: example.com/v1, kind: AllowList, metadata: {name: x}, items: null}"),
    );
    run(&["validate", "--repo", repo.arg()]).expect(1);
}

#[test]
fn what_sops_encrypted_is_an_error_at_review() {
    let repo = small_fleet();
    let secret = config_map(
        "password",
        "ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:A==,type:str]",
        "{clusterSelector: {}}",
    );
    repo.write("apps/password.yaml", format!("{secret}sops: {{mac: x}}\n").replace("ConfigMap", "Secret"));
    let ran = run(&["validate", "--repo", repo.arg()]).expect(1);
    assert!(ran.err.contains("apps/password.yaml:"), "{}", ran.err);
    assert!(ran.err.contains("`data.value` is encrypted by SOPS"), "{}", ran.err);
    assert!(!rendered(&repo).contains("ENC["));
}

/// A file whose aliases repeat about 100,000 values.
fn bomb(name: &str) -> String {
    let mut text = String::from("x0: &x0 [a, a, a, a, a, a, a, a, a, a]\n");
    for level in 1..5 {
        let one = format!("*x{}", level - 1);
        let _ = writeln!(text, "x{level}: &x{level} [{}]", [one.as_str(); 10].join(", "));
    }
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\n{text}")
}

#[test]
fn many_small_bombs_share_one_budget_and_honest_files_are_read() {
    let repo = small_fleet();
    let anchors = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: honest, namespace: shop}\nlabels: &l {a: b}\nmore: *l\n";
    for index in 0..60 {
        repo.write(&format!("bombs/{index:02}.yaml"), bomb(&format!("bomb-{index}")));
    }
    repo.write("zz/honest.yaml", anchors);
    let ran = run(&["validate", "--repo", repo.arg()]).expect(1);
    assert!(!ran.err.contains("bombs/00.yaml:"), "{}", ran.err);
    assert!(ran.err.contains("bombs/59.yaml:"), "{}", ran.err);
    assert!(ran.err.contains("aliases repeat more values than berth reads"), "{}", ran.err);
    assert!(!ran.err.contains("honest"), "{}", ran.err);
}

/// A commit of a tree with one more entry, named by these bytes, which no checkout would write.
fn commit_raw(repo: &Repo, name: &[u8], text: &str) -> String {
    let store = |kind: &str, bytes: &[u8]| {
        let mut git = hermetic("git")
            .current_dir(repo.path())
            .args(["hash-object", "-t", kind, "-w", "--stdin", "--literally"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git");
        git.stdin.take().expect("a pipe").write_all(bytes).expect("bytes");
        String::from_utf8(git.wait_with_output().expect("an id").stdout).expect("text").trim().to_owned()
    };
    let blob = store("blob", text.as_bytes());
    let raw = |id: &str| -> Vec<u8> {
        (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).expect("hex")).collect()
    };
    let mut tree = Vec::new();
    for line in repo.git(&["ls-tree", "HEAD"]).lines() {
        let (head, entry) = line.split_once('\t').expect("an entry");
        let parts: Vec<&str> = head.split(' ').collect();
        tree.extend(format!("{} {entry}\0", parts[0].trim_start_matches('0')).bytes());
        tree.extend(raw(parts[2]));
    }
    tree.extend(b"100644 ");
    tree.extend(name);
    tree.push(0);
    tree.extend(raw(&blob));
    let tree = store("tree", &tree);
    let commit = repo.git(&["commit-tree", &tree, "-p", "HEAD", "-m", "raw \u{202e}txet"]);
    repo.git(&["update-ref", "refs/heads/main", &commit]);
    commit
}

#[test]
fn entries_that_no_checkout_would_write_are_named_and_not_read() {
    for (name, shown) in [
        (&b"z/../evil.yaml"[..], "z\\u{2f}..\\u{2f}evil.yaml: error: the name holds a slash"),
        (
            "zz\u{202e}lmay.yaml".as_bytes(),
            "zz\\u{202e}lmay.yaml: error: the name holds invisible characters",
        ),
    ] {
        let repo = small_fleet();
        commit_raw(&repo, name, &config_map("evil", "one", "{clusterSelector: {}}"));
        let ran = run(&["validate", "--repo", repo.arg(), "--rev", "main"]).expect(1);
        assert!(ran.err.contains(shown), "{}", ran.err);
        let ran = run(&["decide", "--repo", repo.arg(), "--rev", "main"]);
        assert!(!ran.out.contains("shop/evil"), "{}", ran.out);
        let ran = repo.publish();
        let message = repo.git(&["log", "-1", "--format=%B", RENDERED]);
        for text in [&ran.err, &ran.out, &message] {
            assert!(!text.contains('\u{202e}'), "{text}");
        }
    }
}

#[test]
fn a_name_with_characters_that_do_not_show_is_an_error() {
    let repo = small_fleet();
    repo.write("apps/odd.yaml", config_map("we\u{202e}b", "one", "{clusterSelector: {}}"));
    let ran = run(&["validate", "--repo", repo.arg()]).expect(1);
    assert!(ran.err.contains("apps/odd.yaml:3:"), "{}", ran.err);
    assert!(!ran.err.contains('\u{202e}'), "{}", ran.err);
}

fn members(names: &[(&str, &str)]) -> String {
    let one = |(name, tier): &(&str, &str)| {
        format!(
            "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\n\
             metadata: {{name: {name}, labels: {{tier: {tier}}}}}\nspec: {{identity: {{kind: ServiceAccount, name: x}}}}\n"
        )
    };
    names.iter().map(one).collect::<Vec<_>>().join("---\n")
}

fn placement(strategy: &str, tier: &str) -> String {
    format!(
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {{name: web}}\n\
         spec:\n  resourceSelectors: [{{group: '', version: v1, kind: Namespace, name: shop}}]\n  \
         policy: {{placementType: PickAll, affinity: {{clusterAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
         {{clusterSelectorTerms: [{{labelSelector: {{matchLabels: {{tier: {tier}}}}}}}]}}}}}}}}\n  strategy: {{type: {strategy}}}\n"
    )
}

fn objects(value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---\napiVersion: v1\nkind: ConfigMap\n\
         metadata: {{name: settings, namespace: shop}}\ndata: {{value: {value}}}\n"
    )
}

#[test]
fn an_external_rollout_holds_content_and_removals_until_somebody_lets_them_out() {
    let repo = Repo::with(&[
        ("members.yaml", &members(&[("a", "prod"), ("b", "prod")])),
        ("objects.yaml", &objects("one")),
        ("web.yaml", &placement("RollingUpdate", "prod")),
    ]);
    repo.publish().expect(0);
    let settings = |cluster: &str| {
        repo.files(RENDERED).remove(&format!("clusters/{cluster}/shop/ConfigMap_settings.yaml"))
    };
    assert!(settings("a").is_some_and(|text| text.contains("value: one")));

    repo.write("web.yaml", placement("External", "prod"));
    repo.write("objects.yaml", objects("two"));
    repo.write("members.yaml", members(&[("a", "prod"), ("b", "prod"), ("c", "prod")]));
    repo.commit("a change of what is rolled out by somebody else");
    let ran = repo.publish();
    assert!(
        ran.err.contains("rolls out only by staged update runs") && ran.err.contains("none can proceed"),
        "{}",
        ran.err
    );
    for _ in 0..2 {
        assert!(settings("a").is_some_and(|text| text.contains("value: one")));
        assert!(settings("b").is_some_and(|text| text.contains("value: one")));
        assert_eq!(settings("c"), None);
        // A second pass over the same inputs changes nothing.
        let before = repo.id(RENDERED);
        repo.publish();
        assert_eq!(repo.id(RENDERED), before);
    }

    // Another policy picks only `c`. That all others lose it is held before anybody rolls it out.
    repo.write("members.yaml", members(&[("a", "prod"), ("b", "prod"), ("c", "canary")]));
    repo.write("web.yaml", placement("External", "canary"));
    repo.commit("another policy");
    let line = repo.publish().expect(5).approval();
    // Once it is permitted, nothing goes from where it is until it is rolled out.
    repo.commit(&format!("it may leave them\n\n{line}"));
    repo.publish().expect(0);
    let files = repo.files(RENDERED);
    let decision = files.iter().find(|(path, _)| path.starts_with("decisions/")).expect("a decision").1;
    assert!(decision.contains("leaving: true\n  names:\n  - a\n  - b"), "{decision}");
    assert!(decision.contains("pending: true"), "{decision}");
    assert!(settings("a").is_some() && settings("b").is_some());
    assert_eq!(settings("c"), None);

    // Rolled out by berth again: what is picked has it, the others lose it.
    repo.write("web.yaml", placement("RollingUpdate", "canary"));
    repo.commit("berth rolls it out");
    repo.publish_ungated().expect(0);
    assert!(settings("c").is_some_and(|text| text.contains("value: two")));
    assert_eq!((settings("a"), settings("b")), (None, None));
}

#[test]
fn an_external_rollout_begins_with_nothing() {
    let repo = Repo::with(&[
        ("members.yaml", &members(&[("a", "prod")])),
        ("objects.yaml", &objects("one")),
        ("web.yaml", &placement("External", "prod")),
    ]);
    repo.publish();
    let files = repo.files(RENDERED);
    assert!(!files.keys().any(|path| path.starts_with("clusters/")), "{files:?}");
}

#[test]
fn an_unparsable_file_keeps_only_what_its_folder_may_hold() {
    let rule = |team: &str, space: &str| {
        format!(
            "apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {{name: {team}}}\nspec:\n  folders: [{team}]\n  \
             clusterSets: {{bind: ['*']}}\n  namespaces: [{space}]\n"
        )
    };
    let platform = "apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {name: platform}\nspec:\n  \
         folders: [clusters, platform]\n  clusterSets: {admin: ['*']}\n  namespaces: ['*']\n  clusterKinds: ['*']\n";
    let in_bank = |text: String| text.replace("namespace: shop", "namespace: bank");
    let rules = [platform, &rule("a", "shop"), &rule("b", "bank")].join("---\n");
    let repo = Repo::with(&[
        ("access/rules.yaml", &rules),
        ("clusters/oslo.yaml", &cluster("oslo", &[])),
        ("platform/spaces.yaml", &format!("{}---\n{}", namespace("shop"), namespace("bank"))),
        ("a/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
        ("a/more.yaml", &config_map("more", "one", "{clusterSelector: {}}")),
        ("b/till.yaml", &in_bank(config_map("till", "one", "{clusterSelector: {}}"))),
        ("b/keep.yaml", &in_bank(config_map("keep", "one", "{clusterSelector: {}}"))),
    ]);
    repo.publish().expect(0);
    let till = "clusters/oslo/bank/ConfigMap_till.yaml";
    assert!(repo.files(RENDERED).contains_key(till));

    repo.write("a/web.yaml", "kind: [unclosed\n");
    for gone in ["b/till.yaml", "a/more.yaml"] {
        std::fs::remove_file(repo.path().join(gone)).expect("a file");
    }
    repo.commit("team a breaks a file while team b deletes one");
    repo.publish_ungated();
    let files = repo.files(RENDERED);
    assert!(!files.contains_key(till), "{:?}", files.keys());
    // Its own may have moved into the file that can not be read.
    assert!(files.contains_key("clusters/oslo/shop/ConfigMap_more.yaml"));
    assert!(files.contains_key("clusters/oslo/shop/ConfigMap_web.yaml"));
}

/// Points a ref to something that is no commit.
fn garble(repo: &Repo, name: &str) {
    let blob = repo.git(&["rev-parse", "HEAD:apps/web.yaml"]);
    repo.git(&["update-ref", name, &blob]);
}

#[test]
fn refs_that_are_no_commits_or_stand_in_the_way_are_put_right_by_the_next_pass() {
    let repo = small_fleet();
    repo.publish().expect(0);
    // The record of a pass over an unchanged source.
    repo.publish().expect(0);
    let good = repo.git(&["for-each-ref", "refs/berth"]);
    for name in ["refs/berth/processed", "refs/berth/report", "refs/berth/clusters/b"] {
        garble(&repo, name);
        repo.publish().expect(0);
        assert_eq!(repo.git(&["for-each-ref", "refs/berth"]), good, "{name}");
        repo.git(&["update-ref", "-d", name]);
        repo.git(&["update-ref", &format!("{name}/x"), "main"]);
        repo.publish().expect(0);
        assert_eq!(repo.git(&["for-each-ref", "refs/berth"]), good, "{name}/x");
    }
    for name in good.lines().filter_map(|line| line.split_once("refs/berth/clusters/")) {
        repo.git(&["update-ref", "-d", &format!("refs/berth/clusters/{}", name.1)]);
    }
    repo.git(&["update-ref", "refs/berth/clusters", "main"]);
    repo.publish().expect(0);
    assert_eq!(repo.git(&["for-each-ref", "refs/berth"]), good);
    repo.write("clusters/d.yaml", cluster("d", &[]));
    repo.git(&["update-ref", "refs/berth/clusters/d/x/y", "main"]);
    repo.commit("another cluster");
    repo.publish().expect(0);
    assert!(!repo.id("refs/berth/clusters/d").is_empty());
}

#[test]
fn refs_that_stand_in_the_way_at_a_remote_are_put_right_by_the_next_pass() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    fleet.run_once(&server, &[]).expect(0);
    let names = || fleet.bare(&["for-each-ref", "--format=%(refname)", "refs/berth"]);
    let good = names();
    let first = good.lines().find(|name| name.contains("/clusters/")).expect("a cluster").to_owned();
    for name in ["refs/berth/processed", "refs/berth/report", &first] {
        fleet.bare(&["update-ref", "-d", name]);
        fleet.bare(&["update-ref", &format!("{name}/x"), "refs/heads/main"]);
        fleet.run_once(&server, &[]).expect(0);
        assert_eq!(names(), good, "{name}");
    }
}

#[test]
fn a_file_that_is_removed_while_another_is_broken_keeps_its_name_and_its_commit() {
    let repo = small_fleet();
    let cart = config_map("cart", "one", "{clusterSelector: {}}");
    repo.write("apps/cart.yaml", &cart);
    repo.commit("cart");
    repo.publish().expect(0);
    repo.write("apps/cart.yaml", format!("{cart}  bad: [\n"));
    repo.commit("break cart");
    repo.publish().expect(1);
    std::fs::remove_file(repo.path().join("apps/web.yaml")).unwrap();
    repo.commit("remove web");
    let removed = repo.id("main")[..12].to_owned();
    let told = repo.publish().expect(1).err;
    let why = "apps/web.yaml: warning: was removed, and its objects may be in `apps/cart.yaml`, which cannot be read";
    assert!(told.contains(why), "{told}");
    repo.publish().expect(1);
    repo.write("apps/cart.yaml", &cart);
    repo.commit("mend cart");
    let plan = || run(&["plan", "--repo", repo.arg()]).expect(0).out;
    let first = plan();
    assert!(first.contains("apps/web.yaml:1:1: document removed: FederatedConfigMap shop/web"), "{first}");
    let held = repo.publish().expect(5).out;
    assert!(held.contains("FederatedConfigMap shop/web (was in apps/web.yaml)"), "{held}");
    let later = plan();
    assert!(later.contains(&format!("apps/web.yaml: {removed}: remove web")), "{later}");
    run(&["verify", "--repo", repo.arg()]).expect(0);
}
