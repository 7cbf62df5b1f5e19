//! The member on a real API server, beside `kubectl apply --server-side` and the floor, one server-side apply of each
//! object, 16 at a time, in one run: first sync, nothing changed, one edited, one drifted, memory.
//! Run as a test, it brings a member to ten objects. `cargo bench --bench member`; `-- 10000` for as many ConfigMaps besides, `-- 10000 kubectl` with kubectl too.

#![allow(clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used, clippy::panic, dead_code)]

#[path = "../tests/archive/mod.rs"]
mod archive;
mod size;
#[allow(unused_imports)]
#[path = "../tests/it/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use berth_base::model::ObjectId;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value as Json, json};
use support::Ran;
use support::kube::{ControlPlane, Wanted};
use support::member::Member;
use tokio::sync::Semaphore;

/// As many requests at once as berth makes.
const AT_ONCE: usize = 16;

/// The number of turns of the floor and of berth. The best of each counts: other work on the machine only adds.
const ROUNDS: usize = 4;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let many: Option<usize> = args.iter().find_map(|arg| arg.parse().ok());
    let wanted = Wanted { audit: true, controllers: false };
    let Some(plane) = ControlPlane::start(wanted).map(Arc::new) else {
        println!("SKIPPED: there is no control plane");
        return;
    };
    let full = size::of((500, Duration::from_secs(30)), (100, Duration::from_secs(2)));
    let (half, quiet) = if is_measured() { full } else { (5, Duration::ZERO) };
    println!("## {half} ConfigMaps, {half} Deployments");
    let mixed = |namespace: &str| {
        let maps = (0..half).map(|number| config_map(namespace, number, "one"));
        maps.chain((0..half).map(|number| deployment(namespace, number))).collect::<Vec<Json>>()
    };
    compare(&plane, "mixed", &mixed, true, quiet);
    if let Some(many) = many {
        println!("## {many} ConfigMaps");
        let maps =
            |namespace: &str| (0..many).map(|it| config_map(namespace, it, "one")).collect::<Vec<Json>>();
        compare(&plane, "many", &maps, args.iter().any(|arg| arg == "kubectl"), quiet);
    }
}

/// Whether it is run to be measured, and not as a test.
fn is_measured() -> bool {
    std::env::args().any(|arg| arg == "--bench")
}

fn config_map(namespace: &str, number: usize, value: &str) -> Json {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("map-{number:05}"), "namespace": namespace,
            "labels": {"app": "bench"}, "annotations": {"berth.dev/workload": "F/x/app"}},
        "data": {"key": value, "text": "some text of a usual length, ".repeat(8)}})
}

fn deployment(namespace: &str, number: usize) -> Json {
    let name = format!("web-{number:05}");
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name},
            "annotations": {"berth.dev/workload": "F/x/app"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{
                "name": "main", "image": "example.com/web:1", "ports": [{"containerPort": 8080}],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}}})
}

/// Processor time of all processes that this one has waited for, and its own.
fn processor_time() -> (Duration, Duration) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<u64> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    let ticks = |at: usize| Duration::from_millis(10 * fields.get(at).copied().unwrap_or(0));
    (ticks(11) + ticks(12), ticks(13) + ticks(14))
}

struct Taken {
    wall: Duration,
    processor: Duration,
}

fn timed(work: impl FnOnce()) -> Taken {
    let (own, children) = processor_time();
    let begun = Instant::now();
    work();
    let wall = begun.elapsed();
    let (own_after, children_after) = processor_time();
    Taken { wall, processor: (children_after - children) + (own_after - own) }
}

fn show(what: &str, taken: &Taken) {
    println!(
        "{what:<44} {:>8.2} s wall, {:>6.2} s processor",
        taken.wall.as_secs_f64(),
        taken.processor.as_secs_f64()
    );
}

fn compare(
    plane: &Arc<ControlPlane>,
    name: &str,
    objects: &dyn Fn(&str) -> Vec<Json>,
    with_kubectl: bool,
    quiet: Duration,
) {
    let kubectl = with_kubectl.then(|| {
        let other = Member::of(plane.clone(), &format!("{name}-kubectl"));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects(&other.name)});
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), list.to_string()).unwrap();
        let taken = timed(|| {
            let args = ["apply", "--server-side", "-f", file.path().to_str().unwrap()];
            Ran::of(plane.kubectl().args(args)).expect(0);
        });
        show("kubectl apply --server-side", &taken);
        taken
    });
    let (mut floor, mut first) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let other = Member::of(plane.clone(), &format!("{name}-floor-{round}"));
        let bare = objects(&other.name);
        let taken = timed(|| apply_each(plane, bare));
        show("floor: one server-side apply each", &taken);
        floor.push(taken);
        let member = Member::of(plane.clone(), &format!("{name}-berth-{round}"));
        member.publish(&objects(&member.name));
        let taken = timed(|| drop(member.sync(&["--health-timeout", "0"])));
        show("berth sync --once, first time", &taken);
        first.push(taken);
        if round + 1 == ROUNDS {
            let taken = timed(|| drop(member.sync(&["--health-timeout", "0"])));
            show("berth sync --once, nothing changed", &taken);
            keep(&member, objects(&member.name), quiet);
        }
    }
    let least = |all: &[Taken]| all.iter().map(|it| it.wall).min().unwrap_or_default().as_secs_f64();
    let work = |all: &[Taken]| all.iter().map(|it| it.processor).min().unwrap_or_default().as_secs_f64();
    println!("berth / floor, wall: {:.2} (target: at most 1.4)", least(&first) / least(&floor));
    println!("berth / floor, processor: {:.2}", work(&first) / work(&floor));
    if let Some(kubectl) = kubectl {
        let wall = kubectl.wall.as_secs_f64();
        println!("kubectl / berth, wall: {:.1} (target: at least 3)", wall / least(&first));
        println!("kubectl / floor, wall: {:.1}", wall / least(&floor));
        println!("kubectl / berth, processor: {:.1}", kubectl.processor.as_secs_f64() / work(&first));
    }
}

/// Applies each object once, so many at a time, and nothing else.
fn apply_each(plane: &ControlPlane, objects: Vec<Json>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = plane.client().await;
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let mut tasks = tokio::task::JoinSet::new();
        for object in objects {
            let permit = permits.clone().acquire_owned().await.unwrap();
            let client = client.clone();
            tasks.spawn(async move {
                apply(client, object).await;
                drop(permit);
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
}

async fn apply(client: Client, object: Json) {
    let id = ObjectId::of(&object).unwrap();
    let plural = format!("{}s", id.kind.to_lowercase());
    let version = object["apiVersion"].as_str().unwrap().to_owned();
    let resource = ApiResource {
        group: id.group.to_string(),
        version: version.rsplit('/').next().unwrap().to_owned(),
        api_version: version,
        kind: id.kind.to_string(),
        plural,
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client, &id.namespace, &resource);
    api.patch(&id.name, &PatchParams::apply("bare"), &Patch::Apply(object)).await.expect("it is applied");
}

/// A member that keeps running: memory, requests while nothing happens, one edit, one drift.
fn keep(member: &Member, mut objects: Vec<Json>, quiet: Duration) {
    let running = member.keep_in_sync(&["--health-timeout", "0"]);
    let said = "sequence: 1\n".to_owned();
    running.until(&said, || member.status().contains(&said).then_some(()));
    let before = running.until_quiet();
    println!(
        "memory, {} objects, at rest: {} (target: 50 MiB of 10,000)",
        objects.len(),
        memory(running.id())
    );
    let begun = Instant::now();
    running.until("the end of the quiet time", || (begun.elapsed() >= quiet).then_some(()));
    let idle = member.requests().split_off(before.len());
    println!("requests in {} s in which nothing happens: {idle:?}", quiet.as_secs());
    let at = format!("configmap/{}", objects[0]["metadata"]["name"].as_str().unwrap());
    let value = || {
        let args = ["get", &at, "-n", &member.name, "-ojsonpath={.data.key}"];
        member.kubectl(&args)
    };
    let before = running.until_quiet().len();
    objects[0]["data"]["key"] = json!("two");
    member.publish(&objects);
    let begun = Instant::now();
    running.until("the edit", || (value() == "two").then_some(()));
    println!(
        "one edited: there after {:.2} s (it looks at its ref each second)",
        begun.elapsed().as_secs_f64()
    );
    println!("one edited: {:?}", running.until_quiet().split_off(before));
    println!("memory after an edit: {} (target: 60 MiB of 10,000)", memory(running.id()));
    let before = running.until_quiet().len();
    member.patch_as(
        "kubectl-edit",
        "configmap",
        &at["configmap/".len()..],
        &json!({"data": {"key": "hand"}}),
    );
    let begun = Instant::now();
    running.until("the correction", || (value() == "two").then_some(()));
    println!("one drifted: put right after {:.2} s", begun.elapsed().as_secs_f64());
    println!("one drifted: {:?}", running.until_quiet().split_off(before));
}

/// The resident memory of a process, now and at most.
fn memory(process: u32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mebibytes = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|it| it.parse::<f64>().ok()).unwrap_or_default() / 1024.0
    };
    format!("{:.1} MiB, at most {:.1} MiB", mebibytes("VmRSS"), mebibytes("VmHWM"))
}
