//! The folders that the conformance fixtures render, applied to a real API server by the member, and by
//! `kubectl apply` alone: what was wanted is read back, field by field as far as berth owns them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::archive::{Archive, archives};
use crate::support::member::Member;
use crate::support::owned::{applied_part, pruned};
use crate::support::{Ran, Repo, berth, cluster, config_map, fixtures, namespace, run};
use berth_base::text::base64;

/// Fleets that are one case each.
const FLEETS: [&str; 4] = ["demo", "init", "kubefed-fleet", "kubefleet-azure"];
const SYSTEMS: [&str; 3] = ["kubefed-render", "kubefleet-render", "ocm-render"];

/// What the server fills in where nothing is said, and then counts as said.
const DEFAULTS: [(&str, &str); 2] = [("protocol", "\"TCP\""), ("replicas", "1")];

/// What a real server refuses of what the fixtures render: the object, and a part of its reason.
const REFUSED: [(&str, &str); 7] = [
    // Kubernetes dropped this version; the fixtures have what old clusters were given.
    ("Deployment.apps shop/web", "the cluster does not serve Deployment of apps/v1beta2"),
    ("Deployment.apps shop/till", "the cluster does not serve Deployment of apps/v1beta2"),
    // The group before had another strategy, whose parameters the server filled in.
    (
        "Deployment.apps shop/till",
        "the API server refuses it: Deployment.apps \"till\" is invalid: spec.strategy.rollingUpdate",
    ),
    // These jobs are about selectors alone, and have no containers.
    ("Job.batch shop/made", "the API server refuses it: Job.batch \"made\" is invalid"),
    ("Job.batch shop/manual", "the API server refuses it: Job.batch \"manual\" is invalid"),
    // This deployment is about its containers' arguments alone.
    ("Deployment.apps shop/d", "the API server refuses it: Deployment.apps \"d\" is invalid: [spec.selector"),
    // These keys are there to be escaped in a patch.
    ("ConfigMap shop/settings", "the API server refuses it: ConfigMap \"settings\" is invalid: [data["),
];

/// A cluster's files by their paths.
type Files = BTreeMap<String, Vec<u8>>;

fn files_below(root: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name =
                    path.strip_prefix(root).expect("below it").to_str().expect("a text path").to_owned();
                found.insert(name, std::fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// Every cluster's folder of a fleet, as `berth render` gives it. Some cases have a cluster that fails.
fn rendered(fleet: &Path, now: Option<&str>) -> Vec<Files> {
    let out = tempfile::tempdir().expect("a folder");
    let mut args = vec![
        "render",
        "--repo",
        fleet.to_str().expect("a text path"),
        "--out",
        out.path().to_str().expect("a text path"),
    ];
    args.extend(now.into_iter().flat_map(|now| ["--now", now]));
    run(&args);
    let clusters = std::fs::read_dir(out.path().join("clusters")).into_iter().flatten();
    let mut clusters: Vec<PathBuf> = clusters.map(|entry| entry.expect("an entry").path()).collect();
    clusters.sort();
    clusters.iter().map(|cluster| files_below(cluster)).filter(|files| !files.is_empty()).collect()
}

/// All folders of the fixtures, as few as they fit into: those whose objects differ are apart.
fn groups() -> (usize, Vec<Files>) {
    let mut folders = Vec::new();
    for fleet in FLEETS {
        folders.extend(rendered(&fixtures(fleet), None));
    }
    for system in SYSTEMS {
        for path in archives(&fixtures(system)) {
            let case = Archive::read(&path);
            let folder = tempfile::tempdir().expect("a folder");
            case.unpack(folder.path());
            folders.extend(rendered(&folder.path().join("fleet"), case.says("now")));
        }
    }
    let count = folders.len();
    let mut groups: Vec<Files> = Vec::new();
    for folder in folders {
        let fits =
            |group: &Files| folder.iter().all(|(path, bytes)| group.get(path).is_none_or(|own| own == bytes));
        match groups.iter_mut().find(|group| fits(group)) {
            Some(group) => group.extend(folder),
            None => groups.push(folder),
        }
    }
    (count, groups)
}

/// A definition for a kind that Kubernetes does not have, with anything in it.
fn open_definition(group: &str, kind: &str, versions: &[&str]) -> Json {
    let plural = format!("{}s", kind.to_lowercase());
    let version = |(index, name): (usize, &&str)| {
        json!({"name": name, "served": true, "storage": index == 0, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": versions.iter().enumerate().map(version).collect::<Vec<_>>(),
        },
    })
}

/// The objects of a folder as the server has them.
fn live(member: &Member, files: &Files) -> Vec<Json> {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, bytes) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
    let path = folder.path().to_str().expect("a text path");
    let args = ["get", "-R", "-f", path, "-o", "json", "--show-managed-fields", "--ignore-not-found"];
    let got: Json = Ran::of(member.plane.kubectl().args(args)).json();
    got["items"].as_array().cloned().unwrap_or_else(|| vec![got])
}

type Id = (String, String, String, String);

fn id_of(object: &Json) -> Id {
    let text = |at: &str| object.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
    let group = text("/apiVersion").split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
    (group, text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// As berth says it.
fn shown((group, kind, namespace, name): &Id) -> String {
    let kind = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
    let place = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
    format!("{kind} {place}")
}

/// What berth asks for in an object, but for its marks.
fn wanted_part(object: &Json) -> Json {
    let mut object = object.clone();
    for key in ["apiVersion", "kind", "status"] {
        object.as_object_mut().expect("an object").remove(key);
    }
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.retain(|key, _| ["labels", "annotations", "finalizers", "ownerReferences"].contains(&&**key));
    if let Some(texts) = object.as_object_mut().expect("an object").remove("stringData") {
        for (key, text) in texts.as_object().expect("a mapping") {
            object["data"][key] = json!(base64::encode(text.as_str().expect("a text").as_bytes()));
        }
    }
    comparable(&object)
}

/// Without what a server leaves out as well: nothing, and what it would fill in.
fn comparable(object: &Json) -> Json {
    fn without(object: &mut Json) {
        match object {
            Json::Object(map) => {
                map.retain(|key, value| {
                    let is_default = DEFAULTS.iter().any(|(name, default)| {
                        name == key && *value == serde_json::from_str::<Json>(default).expect("JSON")
                    });
                    !is_default && *value != json!(false) && *value != json!("")
                });
                map.values_mut().for_each(without);
            }
            Json::Array(items) => items.iter_mut().for_each(without),
            _ => {}
        }
    }
    let mut object = object.clone();
    without(&mut object);
    pruned(&object)
}

/// Takes out what the object leaves to the member and the member has.
fn without_retained(mut wanted: Json, object: &Json, owned: Option<&Json>) -> Json {
    let retained = object.pointer("/metadata/annotations/berth.dev~1retain").and_then(Json::as_str);
    for pointer in retained.into_iter().flat_map(|list| list.split(',')) {
        let Some((parent, key)) = pointer.rsplit_once('/') else { continue };
        let is_scalar = wanted.pointer(pointer).is_some_and(|value| !value.is_object() && !value.is_array());
        if is_scalar && owned.is_some_and(|owned| owned.pointer(pointer).is_none()) {
            wanted.pointer_mut(parent).and_then(Json::as_object_mut).expect("its parent").remove(key);
        }
    }
    wanted
}

fn owned_part(object: &Json, manager: &str) -> Option<Json> {
    let mut part = applied_part(object, manager)?;
    for (key, name) in [("labels", "applyset.kubernetes.io/part-of"), ("annotations", "berth.dev/applied")] {
        part["metadata"][key].as_object_mut()?.remove(name)?;
    }
    Some(comparable(&part))
}

#[test]
#[ignore = "needs Kubernetes"]
fn what_the_fixtures_render_is_read_back_from_a_real_server_field_by_field() {
    let Some(member) = Member::new("folders") else { return };
    member.kubectl_apply(&open_definition("stock.example.org", "Widget", &["v1", "v1beta1"]), &[]);
    member.kubectl(&["wait", "--for=condition=Established", "crd/widgets.stock.example.org"]);
    let begun = std::time::Instant::now();
    let (count, groups) = groups();
    let mut wrong = Vec::new();
    let (mut compared, mut refused) = (0, 0);
    for (index, files) in groups.iter().enumerate() {
        let list: Vec<(String, Vec<u8>)> =
            files.iter().map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
        member.publish_files(&list, &[]);
        let ran = member.sync(&["--health-timeout", "0"]);
        let expected = |line: &str| {
            // Nothing runs pods; namespaces of the group before stay without an approval.
            line.contains("not healthy in time")
                || line.contains("no longer wanted, but kept")
                || REFUSED.iter().any(|(object, reason)| line.contains(object) && line.contains(reason))
        };
        wrong.extend(
            ran.err.lines().filter(|line| !expected(line)).map(|line| format!("group {index}: {line}")),
        );
        let is_refused = |bytes: &[u8]| {
            let object: Json = serde_yaml::from_slice(bytes).expect("YAML");
            let said = |(name, reason): &(&str, &str)| {
                *name == shown(&id_of(&object)) && ran.err.contains(&format!("{name}: {reason}"))
            };
            REFUSED.iter().any(said)
        };
        let mut files = files.clone();
        files.retain(|_, bytes| !is_refused(bytes));
        refused += list.len() - files.len();
        let found: BTreeMap<Id, Json> =
            live(&member, &files).into_iter().map(|object| (id_of(&object), object)).collect();
        for bytes in files.values() {
            let object: Json = serde_yaml::from_slice(bytes).expect("YAML");
            let id = id_of(&object);
            let owned = found.get(&id).and_then(|live| owned_part(live, "berth/folders"));
            compared += 1;
            let wanted = without_retained(wanted_part(&object), &object, owned.as_ref());
            if owned.as_ref() != Some(&wanted) {
                wrong.push(format!("group {index}: {id:?}\n  wanted {wanted}\n  owned  {owned:?}"));
            }
        }
        let again = member.sync(&["--health-timeout", "0"]);
        if !again.out.starts_with("0 writes, 0 removals") {
            wrong.push(format!("group {index}, again: {}", again.out));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    eprintln!(
        "{count} folders in {} groups, {compared} objects read back, {refused} refused, in {:?}",
        groups.len(),
        begun.elapsed()
    );
    member.publish(&[]);
    member.sync(&["--allow-risky-prune", "--health-timeout", "0"]);
    let left = ["get", "configmaps,secrets,services,deployments,clusterroles", "-A", "-o", "name", "-l"];
    let label = format!("applyset.kubernetes.io/part-of={}", member.set_id());
    assert_eq!(member.kubectl(&[&left[..], &[&label]].concat()), "");
    let _ =
        member.plane.kubectl().args(["delete", "crd", "widgets.stock.example.org", "--wait=false"]).output();
}

#[test]
#[ignore = "needs Kubernetes"]
fn kubectl_alone_applies_a_folder_as_well_and_prunes_nothing() {
    let Some(member) = Member::new("plainly") else { return };
    let fleet = Repo::new();
    fleet.write("clusters/oslo.yaml", cluster("oslo", &[]));
    fleet.write("apps/namespace.yaml", namespace("plainly"));
    for name in ["one", "two"] {
        let map = config_map(name, "hello", "{clusterSelector: {}}");
        fleet.write(&format!("apps/{name}.yaml"), map.replace("namespace: shop", "namespace: plainly"));
    }
    fleet.commit("start");
    let folder = || {
        fleet.publish_ungated().expect(0);
        let out = tempfile::tempdir().expect("a folder");
        for path in fleet.git(&["ls-tree", "-r", "--name-only", "refs/berth/clusters/oslo"]).lines() {
            let file = out.path().join(path);
            std::fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            std::fs::write(file, fleet.git(&["show", &format!("refs/berth/clusters/oslo:{path}")]))
                .expect("a file");
        }
        out
    };
    let apply = |folder: &Path| {
        member.kubectl(&["apply", "-R", "--server-side", "-f", folder.to_str().expect("a text path")])
    };
    let first = folder();
    let said = apply(first.path());
    assert_eq!(said.lines().count(), 3, "{said}");
    for name in ["one", "two"] {
        let map = member.get("configmap", name).expect("it is there");
        assert_eq!(map["data"]["value"], "hello");
        assert_eq!(map["metadata"]["labels"]["applyset.kubernetes.io/part-of"], Json::Null);
    }
    assert_eq!(apply(first.path()).matches("serverside-applied").count(), 3);
    // What the folder no longer has stays: nobody prunes.
    std::fs::remove_file(fleet.path().join("apps/two.yaml")).expect("it is there");
    fleet.commit("without two");
    let second = folder();
    assert_eq!(apply(second.path()).lines().count(), 2);
    assert!(member.get("configmap", "two").is_some());
    // The member takes over what stands there, and from then on it counts as its own.
    let mut sync = berth();
    sync.args([
        "sync",
        "--once",
        "--target",
        "kube",
        "--fleet",
        "plainly",
        "--cluster",
        "oslo",
        "--repo",
        fleet.arg(),
    ]);
    let ran = Ran::of(sync.arg("--kubeconfig").arg(member.plane.kubeconfig())).expect(0);
    assert!(ran.out.contains("take over  ConfigMap plainly/one"), "{}{}", ran.out, ran.err);
    let one = member.get("configmap", "one").expect("it is there");
    let berths = owned_part(&one, "berth/plainly").expect("it is berth's");
    assert_eq!(berths["data"]["value"], "hello");
}
