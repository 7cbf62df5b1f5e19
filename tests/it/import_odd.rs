//! Imports from hosts, and into folders, in which something is wrong: what cannot be done safely is not done.

use std::path::Path;

use serde_json::json;

use crate::support::fake_host::{FakeHost, federated, settings, small_host, type_config};
use crate::support::kubefed::SYSTEM;
use crate::support::{Ran, Repo, berth};

fn import(host: &FakeHost, repo: &Repo, more: &[&str]) -> Ran {
    import_with(&host.kubeconfig(""), repo, more)
}

fn import_with(kubeconfig: &Path, repo: &Repo, more: &[&str]) -> Ran {
    let mut command = berth();
    command.args(["import", "kubefed", "--out", repo.arg(), "--repo", repo.arg(), "--kubeconfig"]);
    Ran::of(command.arg(kubeconfig).args(more))
}

/// No file but those that were there, and no ref.
#[track_caller]
fn nothing_was_written(repo: &Repo, there: &[&str]) {
    let mut found: Vec<String> = std::fs::read_dir(repo.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name != ".git")
        .collect();
    found.sort();
    assert_eq!(found, there);
    assert_eq!(repo.git(&["for-each-ref"]), "");
}

#[test]
fn nothing_is_written_through_a_symbolic_link() {
    let host = FakeHost::serving(small_host());
    let outside = tempfile::tempdir().expect("a folder");
    for link in ["namespaces", "clusters"] {
        let repo = Repo::new();
        std::os::unix::fs::symlink(outside.path(), repo.path().join(link)).expect("a link");
        let ran = import(&host, &repo, &[]).expect(2);
        assert!(ran.err.contains(&format!("{link} is a symbolic link")), "{}", ran.err);
        nothing_was_written(&repo, &[link]);
        assert_eq!(std::fs::read_dir(outside.path()).expect("a folder").count(), 0);
    }
    // One on the way to the folder itself.
    let repo = Repo::new();
    std::os::unix::fs::symlink(outside.path(), repo.path().join("link")).expect("a link");
    let out = repo.path().join("link/new");
    let mut command = berth();
    command.args(["import", "kubefed", "--repo", repo.arg(), "--out"]).arg(out).arg("--kubeconfig");
    let ran = Ran::of(command.arg(host.kubeconfig(""))).expect(2);
    assert!(ran.err.contains("is not in the repository"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(outside.path()).expect("a folder").count(), 0);
    // A link that leads nowhere yet, in the place of a file.
    let repo = Repo::new();
    let target = outside.path().join("new.yaml");
    std::fs::create_dir(repo.path().join("clusters")).expect("a folder");
    std::os::unix::fs::symlink(&target, repo.path().join("clusters/a.yaml")).expect("a link");
    import(&host, &repo, &[]).expect(2);
    assert!(!target.exists());
    nothing_was_written(&repo, &["clusters"]);
}

#[test]
fn what_cannot_be_read_is_not_taken_for_missing() {
    let host = FakeHost::serving(small_host());
    // A folder in the place of a file, a file in the place of a folder: neither can be read as what it should be.
    let repo = Repo::new();
    std::fs::create_dir_all(repo.path().join("clusters/b.yaml")).expect("a folder");
    let ran = import(&host, &repo, &[]).expect(2);
    assert!(
        ran.err.contains("clusters/b.yaml is not a file") && ran.err.contains("nothing was written"),
        "{}",
        ran.err
    );
    nothing_was_written(&repo, &["clusters"]);
    assert!(!repo.path().join("clusters/a.yaml").exists());
    let repo = Repo::new();
    repo.write("namespaces", "a file");
    let ran = import(&host, &repo, &[]).expect(6);
    assert!(ran.err.contains("nothing was written"), "{}", ran.err);
    nothing_was_written(&repo, &["namespaces"]);
}

#[test]
fn credentials_in_an_address_are_shown_and_committed_nowhere() {
    let host = FakeHost::serving(small_host());
    let repo = Repo::new();
    let kubeconfig = host.kubeconfig("bob:hunter2@");
    let ran = import_with(&kubeconfig, &repo, &[]).expect(0);
    let message = repo.git(&["log", "-1", "--format=%B", "berth/rendered"]);
    assert!(message.contains(&format!("Berth-Import: kubefed {}", host.url(""))), "{message}");
    let json = import_with(&kubeconfig, &Repo::new(), &["-o", "json"]).expect(0);
    assert_eq!(json.json()["server"], host.url(""));
    let refused = import_with(&kubeconfig, &Repo::new(), &["--namespace", "elsewhere"]).expect(2);
    for text in [&ran.out, &ran.err, &message, &json.out, &json.err, &refused.err] {
        assert!(!text.contains("bob") && !text.contains("hunter2"), "{text}");
    }
    // A server that is out of reach, and a proxy that berth does not go through.
    let text = std::fs::read_to_string(&kubeconfig).expect("a kubeconfig");
    let gone = text.replace(&host.url("bob:hunter2@"), "http://bob:hunter2@127.0.0.1:1");
    let proxied = text.replace("{server:", "{proxy-url: \"http://bob:hunter2@127.0.0.1:1\", server:");
    for (text, said) in
        [(gone, "http://127.0.0.1:1 cannot be reached"), (proxied, "the proxy http://127.0.0.1:1")]
    {
        std::fs::write(&kubeconfig, text).expect("a file");
        let ran = import_with(&kubeconfig, &Repo::new(), &[]).expect(6);
        assert!(ran.err.contains(said) && !ran.err.contains("hunter2"), "{}", ran.err);
    }
}

#[test]
fn a_faulty_kubeconfig_is_not_quoted() {
    let repo = Repo::new();
    for user in ["\"eyJSECRET\"", "{token: eyJSECRET", "{exec: {env: eyJSECRET}}"] {
        let text = format!("apiVersion: v1\nkind: Config\nusers:\n- {{name: u, user: {user}}}\n");
        repo.write(".kubeconfig", text);
        let ran = import_with(&repo.path().join(".kubeconfig"), &repo, &[]).expect(6);
        assert!(ran.err.contains("cannot be used") && ran.err.contains("line "), "{}", ran.err);
        assert!(!ran.err.contains("SECRET"), "{}", ran.err);
    }
}

#[test]
fn what_a_login_program_prints_stays_unsaid() {
    let host = FakeHost::serving(small_host());
    let kubeconfig = host.kubeconfig("");
    let text = std::fs::read_to_string(&kubeconfig).expect("a kubeconfig");
    for script in ["echo SECRET; exit 3", "echo '{token: [SECRET'"] {
        let exec = format!(
            "user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: [-c, \"{script}\"]}}}}"
        );
        std::fs::write(&kubeconfig, text.replace("user: {}", &exec)).expect("a file");
        let ran = import_with(&kubeconfig, &Repo::new(), &[]).expect(6);
        assert!(ran.err.contains("the login program") && !ran.err.contains("SECRET"), "{}", ran.err);
    }
}

#[test]
fn a_namespace_without_a_control_plane_is_an_error_that_names_the_right_one() {
    let host = FakeHost::serving(small_host());
    let repo = Repo::new();
    let ran = import(&host, &repo, &["--namespace", "kubefed"]).expect(2);
    assert!(ran.err.contains("there is no KubeFed in the namespace `kubefed`"), "{}", ran.err);
    assert!(ran.err.contains(&format!("it is in `{SYSTEM}`")), "{}", ran.err);
    let odd = import(&host, &repo, &["--namespace", "../secrets"]).expect(2);
    assert!(odd.err.contains("`../secrets` is not a namespace's name"), "{}", odd.err);
    nothing_was_written(&repo, &[]);
}

#[test]
fn a_branch_is_never_begun_with_nothing() {
    let mut lists = small_host();
    lists.insert("federatednamespaces", Vec::new());
    lists.insert("federatedconfigmaps", Vec::new());
    let repo = Repo::new();
    let ran = import(&FakeHost::serving(lists), &repo, &[]).expect(0);
    assert!(ran.err.contains("no first commit was written"), "{}", ran.err);
    assert_eq!(repo.git(&["for-each-ref"]), "");
    assert!(repo.path().join("clusters/a.yaml").exists());
}

#[test]
fn the_scope_is_that_of_the_settings_that_count() {
    let mut lists = small_host();
    lists.entry("kubefedconfigs").or_default().insert(0, settings("default", "Namespaced"));
    let repo = Repo::new();
    import(&FakeHost::serving(lists), &repo, &[]).expect(0);
    assert!(repo.path().join("namespaces/shop/federatedconfigmap/settings.yaml").exists());
}

#[test]
fn a_type_config_asks_for_nothing_but_its_type() {
    let mut lists = small_host();
    let mut config = type_config("Foo", "foos", "x.example.com");
    for (key, value) in [("group", "../api"), ("version", "v1"), ("pluralName", "secrets")] {
        config["spec"]["federatedType"][key] = json!(value);
    }
    lists.entry("federatedtypeconfigs").or_default().push(config);
    lists.insert(
        "secrets",
        vec![json!({"metadata": {"name": "token", "namespace": "kube-system"}, "data": {"t": "UkVBTA=="}})],
    );
    let host = FakeHost::serving(lists);
    let repo = Repo::new();
    let ran = import(&host, &repo, &[]).expect(1);
    let said = "no FederatedFoo was imported: the federatedType of the type config `foos.x.example.com` is invalid: `../api` is not an API group";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert!(host.asked().iter().all(|path| !path.ends_with("/secrets")), "{:?}", host.asked());
    assert!(repo.path().join("namespaces/shop/federatedconfigmap/settings.yaml").exists());
}

#[test]
fn secrets_are_known_by_what_they_are_and_counted_as_they_are_written() {
    let secret = |name: &str| federated("Secret", name, json!({"data": {"key": "c2VjcmV0"}}));
    let mut leaving = secret("leaving");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut lists = small_host();
    lists.insert("federatedsecrets", vec![secret("one"), secret("two"), leaving]);
    // A config that says that they are something else.
    for config in lists.get_mut("federatedtypeconfigs").expect("some") {
        if config["metadata"]["name"] == "secrets" {
            config["metadata"]["name"] = json!("boats.example.com");
            config["spec"]["targetType"] = json!({"group": "example.com", "version": "v1", "kind": "Boat", "pluralName": "boats", "scope": "Namespaced"});
            config["spec"]["federatedType"]["kind"] = json!("FederatedBoat");
        }
    }
    let host = FakeHost::serving(lists);
    let folder = "namespaces/shop/federatedsecret";
    let repo = Repo::new();
    let ran = import(&host, &repo, &[]);
    assert!(ran.err.contains("THE DATA OF 2 SECRETS WAS WRITTEN INTO FILES"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(repo.path().join(folder)).expect("a folder").count(), 2);
    let without = Repo::new();
    let ran = import(&host, &without, &["--no-secrets"]);
    assert!(ran.err.contains("was imported (--no-secrets)"), "{}", ran.err);
    assert!(!without.path().join(folder).exists());
}

#[test]
fn a_host_without_preferences_is_not_told_of_a_type_config() {
    let mut lists = small_host();
    lists.remove("replicaschedulingpreferences");
    let ran = import(&FakeHost::serving(lists), &Repo::new(), &[]).expect(0);
    let said =
        "does not serve replicaschedulingpreferences.scheduling.kubefed.io, so there are no preferences";
    assert!(ran.err.contains(said) && !ran.err.contains("type config"), "{}", ran.err);
}
