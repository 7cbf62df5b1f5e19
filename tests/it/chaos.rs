//! A member that is killed at any moment of applying and pruning, at an API server that can not be relied
//! on: it always comes to its folder, leaves nothing behind, and touches nothing that is not its own.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::support::berth;
use crate::support::chaos::Chaos;
use crate::support::faults::{Fault, Faults};
use crate::support::member::{Member, annotated};
use crate::support::random::{Random, rounds};
use crate::support::wait::{pause, until};

const NAME: &str = "chaos";
const OTHER: &str = "chaos-other";
const GROUP: &str = "chaos.example.com";
const KINDS: &str = "configmaps,secrets,deployments.apps,services,serviceaccounts,roles.rbac.authorization.k8s.io,\
                     widgets.chaos.example.com";
/// Of a thousand requests, so many go wrong.
const PER_MILLE: u64 = 100;

/// Kind, namespace and name.
type Id = (String, String, String);

fn id_of(object: &Json) -> Id {
    let text = |at: &str| object.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
    (text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

fn of_workload(mut object: Json, workload: &str) -> Json {
    object["metadata"]["annotations"]["berth.dev/workload"] = json!(format!("F/x/{workload}"));
    object
}

fn object(api: &str, kind: &str, name: &str, rest: Json) -> Json {
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": NAME}});
    object.as_object_mut().expect("a mapping").extend(rest.as_object().expect("a mapping").clone());
    of_workload(object, "app")
}

fn definition() -> Json {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    of_workload(definition, "platform")
}

/// One of the forms an object may have, or none at all.
fn form(random: &mut Random, kind: &str, index: u64) -> Option<Json> {
    if random.below(10) < 3 {
        return None;
    }
    let name = format!("{kind}-{index}");
    let value = random.below(4);
    Some(match kind {
        "map" => {
            let mut data = json!({"key": value.to_string()});
            data[format!("extra-{}", random.below(3))] = json!("more");
            let mut map = object("v1", "ConfigMap", &name, json!({"data": data}));
            match random.below(8) {
                0 => map = annotated(map, "berth.dev/wave", "1"),
                1 => map = annotated(map, "berth.dev/prune", "first"),
                2 => map["metadata"]["namespace"] = json!(OTHER),
                3 => map["metadata"]["labels"] = json!({"value": value.to_string()}),
                _ => {}
            }
            map
        }
        "secret" => object(
            "v1",
            "Secret",
            &name,
            json!({"data": {"key": random.pick(&["YQ==", "Yg==", "Yw==", "ZA=="])}}),
        ),
        "web" => {
            // Without pods it is healthy as soon as its controller has seen it. Its selector never changes.
            let labels = json!({"app": name, "color": value.to_string()});
            let spec = json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": format!("example.com/web:{}", random.below(3))}]},
            }});
            annotated(
                object("apps/v1", "Deployment", &name, json!({"spec": spec})),
                "berth.dev/recreate",
                "allowed",
            )
        }
        "svc" => {
            let spec = json!({"type": "NodePort", "selector": {"app": value.to_string()},
                "ports": [{"name": "web", "port": 80, "protocol": "TCP"}]});
            let keeps = "/spec/clusterIP,/spec/clusterIPs,/spec/ports/*/nodePort";
            annotated(object("v1", "Service", &name, json!({"spec": spec})), "berth.dev/retain", keeps)
        }
        "robot" => object("v1", "ServiceAccount", &name, json!({"automountServiceAccountToken": value > 1})),
        "role" => {
            let verb = random.pick(&["get", "list", "watch"]);
            let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]);
            object("rbac.authorization.k8s.io/v1", "Role", &name, json!({"rules": rules}))
        }
        _ => object(&format!("{GROUP}/v1"), "Widget", &name, json!({"spec": {"size": value}})),
    })
}

const POOL: [(&str, u64); 7] =
    [("map", 12), ("secret", 3), ("web", 3), ("svc", 2), ("robot", 2), ("role", 2), ("widget", 3)];

fn folder(random: &mut Random) -> Vec<Json> {
    let mut objects = vec![definition(), taken()];
    for (kind, count) in POOL {
        objects.extend((0..count).filter_map(|index| form(random, kind, index)));
    }
    objects
}

/// Somebody else's object has this name, so that it is a conflict in every round.
fn taken() -> Json {
    of_workload(object("v1", "ConfigMap", "taken", json!({"data": {"key": "berth's"}})), "greedy")
}

/// What stands beside: the same kinds, a copied label, another applier's label.
fn make_foreign(member: &Member) {
    let map = |name: &str, namespace: &str, labels: Json| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "mine"},
            "metadata": {"name": name, "namespace": namespace, "labels": labels}})
    };
    let label = "applyset.kubernetes.io/part-of";
    let own = json!({label: member.set_id()});
    let mut web = member.deployment("beside", "example.com/web:1");
    web["spec"]["replicas"] = json!(0);
    web["metadata"]["annotations"] = json!({});
    let objects = [
        map("taken", NAME, json!({})),
        map("beside", NAME, json!({})),
        map("map-99", OTHER, json!({"some": "body"})),
        map("copied", NAME, own.clone()),
        map("copied", OTHER, own),
        map("theirs", NAME, json!({label: "applyset-of-somebody-else-v1"})),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "beside", "namespace": NAME}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "beside", "namespace": NAME},
            "spec": {"ports": [{"port": 80}]}}),
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": {"name": "beside", "namespace": NAME}}),
        web,
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    member.kubectl_apply(&list, &[]);
}

/// Everything in the two namespaces.
fn look(member: &Member) -> BTreeMap<Id, Json> {
    let list: Json =
        serde_json::from_str(&member.kubectl(&["get", KINDS, "-A", "-o", "json"])).expect("JSON");
    let items = list["items"].as_array().expect("a list").iter();
    let ours = items.filter(|it| [NAME, OTHER].iter().any(|one| it["metadata"]["namespace"] == *one));
    ours.map(|item| (id_of(item), item.clone())).collect()
}

/// Versions of whatever berth is never asked for, and of what it may not have.
fn versions(all: &BTreeMap<Id, Json>, foreign: &BTreeSet<Id>) -> BTreeMap<Id, (Json, Json)> {
    let others = all.iter().filter(|(id, _)| foreign.contains(*id) || !is_of_pool(id));
    others
        .map(|(id, it)| {
            (id.clone(), (it["metadata"]["uid"].clone(), it["metadata"]["resourceVersion"].clone()))
        })
        .collect()
}

fn is_of_pool(id: &Id) -> bool {
    POOL.iter().any(|(kind, _)| id.2.starts_with(&format!("{kind}-")))
}

/// Whether whatever is wanted is there, and in `data` and `rules` nothing else.
fn holds(live: &Json, wanted: &Json) -> bool {
    match (live, wanted) {
        (Json::Object(live), Json::Object(wanted)) => wanted.iter().all(|(key, value)| {
            let own = live.get(key).unwrap_or(&Json::Null);
            if matches!(key.as_str(), "data" | "rules") { own == value } else { holds(own, value) }
        }),
        (Json::Array(live), Json::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| holds(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

fn command(member: &Member, kubeconfig: &str) -> Command {
    let mut command = berth();
    command.args([
        "sync",
        "--once",
        "--target",
        "kube",
        "--repo",
        member.repo.arg(),
        "--cluster",
        NAME,
        "--fleet",
        NAME,
    ]);
    command.args(["--health-timeout", "30", "--kubeconfig", kubeconfig]);
    command
}

/// What the member reports besides the conflict that is always there.
fn trouble(member: &Member) -> Vec<String> {
    let text = member.repo.git(&["cat-file", "-p", &format!("refs/berth/status/{NAME}:status.yaml")]);
    let status: Json = serde_yaml::from_str(&text).expect("YAML");
    let problems = status.pointer("/status/applied/problems").or_else(|| status.pointer("/applied/problems"));
    let all = problems.and_then(Json::as_array).cloned().unwrap_or_default();
    let lines = all.into_iter().map(|problem| problem.to_string());
    lines.filter(|line| !line.contains("taken")).collect()
}

#[test]
#[ignore = "needs Kubernetes"]
fn a_member_killed_at_any_moment_at_an_unreliable_server_comes_to_its_folder_and_touches_nothing_else() {
    let Some(member) = Member::new(NAME) else { return };
    let wanted = rounds("BERTH_CHAOS_ROUNDS", 8);
    let seed = rounds("BERTH_CHAOS_SEED", 7);
    let rate = rounds("BERTH_CHAOS_FAULTS", PER_MILLE);
    let mut random = Random::new(seed);
    member.kubectl(&["create", "namespace", OTHER]);
    let chaos = Chaos::before(&member.plane, seed);
    let kubeconfig = chaos.kubeconfig(member.repo.path());
    let kubeconfig = kubeconfig.to_str().expect("a text path");
    let allow = [format!("_cluster/CustomResourceDefinition.apiextensions.k8s.io_widgets.{GROUP}.yaml")];
    let allow: Vec<&str> = allow.iter().map(String::as_str).collect();

    member.publish(&[definition()]);
    member.sync(&[]).expect(0);
    make_foreign(&member);
    // Its controller writes to the deployment once.
    let settled =
        || member.get("deployment", "beside").is_some_and(|it| it["status"]["observedGeneration"] == 1);
    until("its controller is done", settled);
    let foreign: BTreeSet<Id> = look(&member).into_keys().collect();
    let before = versions(&look(&member), &foreign);

    let begun = Instant::now();
    member.publish(&folder(&mut random));
    member.sync_at(kubeconfig, &[]).expect(7);
    let longest = u64::try_from(begun.elapsed().as_micros()).expect("not that long");
    let (mut killed, mut halfway, mut attempts, mut most) = (0, 0, 0, 0);
    for round in 0..wanted {
        let objects = folder(&mut random);
        member.publish(&objects);
        chaos.rage(rate);
        let tree = member.repo.git(&["rev-parse", &format!("refs/berth/clusters/{NAME}^{{tree}}")]);
        for _ in 0..=random.below(2) {
            let shape = |all: &BTreeMap<Id, Json>| versions(all, &all.keys().cloned().collect());
            let earlier = shape(&look(&member));
            let mut child = command(&member, kubeconfig)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts");
            pause(Duration::from_micros(random.below(longest + longest / 4)), "the moment of the kill");
            child.kill().expect("killed, or ended before");
            let is_dead = child.wait().expect("it ends").signal() == Some(9);
            killed += u64::from(is_dead);
            let all = look(&member);
            halfway += u64::from(is_dead && shape(&all) != earlier);
            assert_eq!(versions(&all, &foreign), before, "round {round}, after a kill");
        }
        let mut said = Vec::new();
        let mut tries = 0;
        loop {
            tries += 1;
            let ran = crate::support::Ran::of(&mut command(&member, kubeconfig));
            let left = if matches!(ran.code, 0 | 7) { trouble(&member) } else { vec![ran.err.clone()] };
            said.push(format!("exit {}: {left:?}", ran.code));
            if ran.code == 7 && left.is_empty() {
                break;
            }
            assert!(tries < 10, "round {round} does not converge:\n{}", said.join("\n"));
        }
        attempts += tries;
        most = most.max(tries);
        is_right(&member, &objects, &foreign, &before, &format!("round {round}\n{}", said.join("\n")));
        let parent = member.kubectl(&[
            "get",
            "configmap",
            "berth-chaos",
            "-n",
            "berth-system",
            "-ojsonpath={.data.tree}",
        ]);
        assert_eq!(parent, tree, "round {round}");
    }
    chaos.rage(0);
    let ran = member.sync_at(kubeconfig, &[]).expect(7);
    assert!(ran.out.starts_with("0 writes, 0 removals"), "{}", ran.out);

    // And out again, all of it, with kills in between.
    chaos.rage(rate);
    member.publish_with(&[definition()], &allow);
    let mut tries = 0;
    while crate::support::Ran::of(&mut command(&member, kubeconfig)).code != 0 {
        tries += 1;
        assert!(tries < 10, "it does not come to an end");
    }
    is_right(&member, &[], &foreign, &before, "in the end");
    let (served, happened) = chaos.tally();
    eprintln!(
        "{wanted} rounds with seed {seed} in {:?}: {killed} kills, {halfway} of them half-way; converged after {attempts} \
         runs, {most} at most in a round; {served} requests, faults: {happened:?}; {} foreign objects unchanged",
        begun.elapsed(),
        before.len(),
    );
    assert!(wanted < 8 || (killed > wanted / 2 && halfway > 0), "{killed} kills, {halfway} half-way");
    let _ = member.plane.kubectl().args(["delete", "namespace", OTHER, "--wait=false"]).output();
    let _ =
        member.plane.kubectl().args(["delete", "crd", &format!("widgets.{GROUP}"), "--wait=false"]).output();
}

/// Exactly what is wanted is there, and whatever is not berth's is as it was.
#[track_caller]
fn is_right(
    member: &Member,
    objects: &[Json],
    foreign: &BTreeSet<Id>,
    before: &BTreeMap<Id, (Json, Json)>,
    when: &str,
) {
    let all = look(member);
    assert_eq!(versions(&all, foreign), *before, "{when}");
    let mut wanted: BTreeMap<Id, &Json> = objects.iter().map(|object| (id_of(object), object)).collect();
    wanted.retain(|id, _| is_of_pool(id) && !foreign.contains(id));
    let own: BTreeSet<&Id> = all.keys().filter(|id| is_of_pool(id) && !foreign.contains(*id)).collect();
    assert_eq!(own, wanted.keys().collect::<BTreeSet<_>>(), "{when}");
    let set = member.set_id();
    for (id, object) in wanted {
        let live = &all[&id];
        assert!(holds(live, object), "{when}\nwanted {object}\nlive {live}");
        assert_eq!(
            live["metadata"]["labels"]["applyset.kubernetes.io/part-of"],
            json!(set),
            "{when}: {id:?}"
        );
    }
}

#[test]
#[ignore = "needs Kubernetes"]
fn an_object_whose_making_was_not_heard_of_stays_berths_own_though_a_controller_came_first() {
    let Some(member) = Member::new("unheard") else { return };
    let faults = Faults::between(&member.plane, &[("/configmaps/web", Fault::Touched)]);
    let kubeconfig = faults.kubeconfig(member.repo.path());
    member.publish(&[member.config_map("web", "one")]);
    let ran = member.sync_at(kubeconfig.to_str().expect("a text path"), &[]).expect(0);
    assert!(ran.out.starts_with("1 write,"), "{}", ran.out);
    assert_eq!(faults.happened.lock().expect("it").len(), 1);
    let web = member.get("configmap", "web").expect("it");
    assert_eq!(web["metadata"]["finalizers"], json!(["example.com/controller"]));
    assert_eq!(web["metadata"]["labels"]["applyset.kubernetes.io/part-of"], json!(member.set_id()));
    assert!(member.sync(&[]).expect(0).out.starts_with("0 writes, 0 removals, 1 unchanged"));
    member.kubectl(&[
        "patch",
        "configmap",
        "web",
        "-n",
        "unheard",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);
}
