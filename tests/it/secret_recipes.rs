//! The objects of docs/neighbours.md whose Secrets a controller makes in the cluster: they pass as they are.

use serde_json::{Value as Json, json};

use crate::support::member::Member;
use crate::support::{Repo, fleet_member, run};

const PAGE: &str = include_str!("../../docs/neighbours.md");

const PLACEMENT: &str = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\n\
     metadata: {name: web}\nspec:\n  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]\n  \
     policy: {placementType: PickAll}\n";

/// The kind, its name in files, and the definition's plural.
const KINDS: [(&str, &str, &str); 2] = [
    ("ExternalSecret", "external-secrets.io", "externalsecrets"),
    ("SealedSecret", "bitnami.com", "sealedsecrets"),
];

/// The blocks of the page.
fn blocks() -> [&'static str; 2] {
    let (_, part) = PAGE.split_once("## Secrets that a controller opens").expect("the part");
    let blocks: Vec<&str> =
        part.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    blocks.try_into().expect("two blocks")
}

/// A fleet of one cluster in production and another one, which follows the page.
fn people() -> Repo {
    let repo = Repo::new();
    for (name, env) in [("oslo", "test"), ("turin", "prod")] {
        repo.write(&format!("clusters/{name}.yaml"), fleet_member(name, env));
    }
    repo.write("apps/shop.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
    repo.write("apps/web.yaml", PLACEMENT);
    for (block, (kind, ..)) in blocks().into_iter().zip(KINDS) {
        repo.write(&format!("apps/{kind}.yaml"), block);
    }
    repo.commit("begin");
    repo
}

/// The file of an object in a cluster's folder.
fn file(repo: &Repo, cluster: &str, (kind, group, _): (&str, &str, &str)) -> String {
    let name = if kind == "SealedSecret" { "token" } else { "login" };
    repo.git(&["show", &format!("berth/rendered:clusters/{cluster}/shop/{kind}.{group}_{name}.yaml")])
}

fn object(text: &str) -> Json {
    serde_yaml::from_str(text).expect("YAML")
}

/// The object as the page has it.
fn written(index: usize) -> Json {
    object(blocks()[index].split("---\n").next().expect("a document"))
}

#[test]
fn objects_that_a_controller_opens_pass_as_they_are_but_for_overrides() {
    let repo = people();
    run(&["validate", "--repo", repo.arg()]).expect(0);
    run(&["run", "--once", "--repo", repo.arg()]).expect(0);
    for (index, kind) in KINDS.into_iter().enumerate() {
        assert_eq!(object(&file(&repo, "oslo", kind))["spec"], written(index)["spec"], "{kind:?}");
    }
    assert_eq!(object(&file(&repo, "turin", KINDS[0]))["spec"], written(0)["spec"]);
    let sealed = object(&file(&repo, "turin", KINDS[1]));
    assert_eq!(sealed["spec"], json!({"encryptedData": {"token": "AgA8w9xRkq0ZbS5pM2nTn1yC7hUeVd4L"}}));
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_member_leaves_the_secret_to_its_controller() {
    let Some(member) = Member::new("opened") else { return };
    let repo = people();
    run(&["run", "--once", "--repo", repo.arg()]).expect(0);
    for (kind, group, plural) in KINDS {
        let version = object(&file(&repo, "oslo", (kind, group, plural)))["apiVersion"].clone();
        let version =
            version.as_str().and_then(|version| version.split('/').nth(1)).expect("a version").to_owned();
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                "versions": [{"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
        });
        member.kubectl_apply(&definition, &[]);
        member.kubectl(&["wait", "--for=condition=Established", &format!("crd/{plural}.{group}")]);
    }
    // The member's namespace has the name of its test.
    let objects: Vec<Json> = KINDS
        .into_iter()
        .map(|kind| {
            let mut object = object(&file(&repo, "oslo", kind));
            object["metadata"]["namespace"] = json!("opened");
            object
        })
        .collect();
    member.publish(&objects);
    member.sync(&[]).expect(0);
    for (index, (_, group, plural)) in KINDS.into_iter().enumerate() {
        let name = written(index)["metadata"]["name"].as_str().expect("a name").to_owned();
        let live = member.get(&format!("{plural}.{group}"), &name).expect("it is applied");
        assert_eq!(live["spec"], written(index)["spec"]);
    }
    member.kubectl(&["create", "secret", "generic", "login", "-n", "opened", "--from-literal=password=open"]);
    member.sync(&[]).expect(0);
    member.publish(&[member.config_map("web", "one")]);
    member.sync(&[]).expect(0);
    assert_eq!(member.get("externalsecrets.external-secrets.io", "login"), None);
    assert!(member.get("secret", "login").is_some(), "the controller's Secret stays");
    for (_, group, plural) in KINDS {
        member.kubectl(&["delete", "crd", &format!("{plural}.{group}")]);
    }
}
