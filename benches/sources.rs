//! A chart on many clusters with few distinct values: a whole publication beside `helm template` once for each cluster, as
//! ApplicationSets render it. `cargo bench --bench sources`. Needs Go, for the renderer and helm, each built once.

#![allow(clippy::print_stdout)]

mod fleet;
mod rows;
mod size;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rows::{Figure, Target};

/// The distinct values.
const VARIANTS: usize = 10;
/// Each figure is the median of so many.
const TIMES: usize = 3;

const PLACEMENT: &str = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: shop}\n\
    spec:\n  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: shop}]\n  policy: {placementType: PickAll}\n---\n\
    apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n  labels: {app: {{ .Chart.Name }}}\n\
    spec:\n  replicas: {{ .Values.replicas }}\n  selector:\n    matchLabels: {app: {{ .Chart.Name }}}\n  template:\n    metadata:\n      \
    labels: {app: {{ .Chart.Name }}}\n    spec:\n      containers:\n        - name: web\n          image: \"{{ .Values.image }}:{{ .Values.tag }}\"\n\
    {{- with .Values.resources }}\n          resources:\n{{ toYaml . | indent 12 }}\n{{- end }}\n";

fn main() {
    let (Some(renderer), Some(helm)) = (made("renderer"), made("packagers")) else {
        println!("left out: the renderer and helm cannot be built here");
        return;
    };
    let clusters = size::of(1_000, 200);
    let folder = tempfile::tempdir().expect("a folder");
    let repository = folder.path().join("fleet.git");
    std::fs::create_dir(&repository).expect("a folder");
    fleet::git(&repository, &["init", "--quiet", "--bare", "--initial-branch", "main"]);
    let mut files = chart();
    files.push(("apps/placement.yaml".to_owned(), PLACEMENT.to_owned()));
    files.extend((0..clusters).map(cluster));
    files.push(source(0));
    fleet::commit(&repository, &files, 0);
    let peer = Peer { helm: helm.join("helm"), folder: folder.path().join("peer") };
    peer.prepare();
    println!("{clusters} clusters, {VARIANTS} distinct values, 5 objects each");
    rows::heading();
    let repo = repository.to_str().expect("text");
    let berth = || berth(&renderer, &["run", "--once", "--repo", repo]);
    let first = berth();
    let listed = fleet::git(&repository, &["ls-tree", "-r", "--name-only", "berth/rendered", "clusters/"]);
    let copies = String::from_utf8_lossy(&listed).lines().filter(|path| path.contains("shop")).count();
    assert_eq!(copies, clusters * 5, "the namespace and four objects of the chart");
    let whole = peer.template(clusters);
    rows::times("publish from nothing", first, whole, "helm template per cluster", Target::AtLeast(20.0));
    let (mut edited, mut idle) = (Vec::new(), Vec::new());
    for number in 1..=TIMES {
        fleet::commit(&repository, &[source(number)], number);
        edited.push(berth());
        idle.push(berth());
    }
    let some = peer.template(clusters / VARIANTS);
    rows::times("edit of one value", median(edited), some, "helm template per cluster of it", Target::None);
    rows::row("nothing changed", median(idle), first, "publish from nothing", Target::None);
}

/// The renderer, or the folder of helm. `None` where they cannot be built.
fn made(part: &str) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ready");
    let output = Command::new(script).arg(part).stderr(Stdio::inherit()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().into())
}

fn chart() -> Vec<(String, String)> {
    let simple = |kind: &str, rest: &str| {
        format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {{{{ .Release.Name }}}}\n{rest}")
    };
    let files = [
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n".to_owned()),
        (
            "values.yaml",
            "replicas: 1\nimage: registry.example.com/web\ntag: 1.0.0\nresources: {limits: {memory: 64Mi}}\n"
                .to_owned(),
        ),
        ("templates/deployment.yaml", DEPLOYMENT.to_owned()),
        (
            "templates/service.yaml",
            simple("Service", "spec:\n  ports: [{port: 80}]\n  selector: {app: web}\n"),
        ),
        ("templates/config.yaml", simple("ConfigMap", "data:\n  region: \"{{ .Values.region }}\"\n")),
        ("templates/account.yaml", simple("ServiceAccount", "")),
    ];
    files.into_iter().map(|(path, text)| (format!("charts/web/{path}"), text)).collect()
}

fn cluster(number: usize) -> (String, String) {
    let (name, group) = (format!("c{number:05}"), number % VARIANTS);
    let text = format!(
        "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {{name: {name}, labels: {{group: g{group}}}}}\n\
         spec: {{identity: {{kind: ServiceAccount, name: hub, namespace: fleet-system}}}}\n"
    );
    (format!("clusters/{name}.yaml"), text)
}

/// The source. An edit changes a value of its first variant.
fn source(edit: usize) -> (String, String) {
    let mut text = "apiVersion: berth.dev/v1alpha1\nkind: HelmSource\nmetadata: {name: web}\nspec:\n  path: charts/web\n  \
                    namespace: shop\n  kubeVersion: \"1.34\"\n  variants:\n"
        .to_owned();
    for variant in 0..VARIANTS {
        let replicas = if variant == 0 { 2 + edit } else { 2 };
        let _ = writeln!(
            text,
            "  - name: g{variant}\n    labelSelector: {{matchLabels: {{group: g{variant}}}}}\n    \
             values: {{region: r{variant}, replicas: {replicas}}}"
        );
    }
    ("apps/web.yaml".to_owned(), text)
}

/// Helm, with a chart in a folder.
struct Peer {
    helm: PathBuf,
    folder: PathBuf,
}

impl Peer {
    fn prepare(&self) {
        for (path, text) in chart() {
            let path = self.folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
    }

    /// Renders the chart so many times, one after another on as many threads as berth has.
    fn template(&self, count: usize) -> Figure {
        let start = Instant::now();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    for number in (thread..count).step_by(threads) {
                        let values = format!("region=r{}", number % VARIANTS);
                        let mut helm = Command::new(&self.helm);
                        helm.args([
                            "template",
                            "web",
                            "charts/web",
                            "-n",
                            "shop",
                            "--kube-version",
                            "1.34",
                            "--set",
                        ]);
                        let ran = helm.arg(values).current_dir(&self.folder).output().expect("helm starts");
                        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
                    }
                });
            }
        });
        Figure::Time(start.elapsed())
    }
}

/// Runs berth with the renderer, and measures its time on the wall.
fn berth(renderer: &Path, args: &[&str]) -> Figure {
    let start = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    let ran = command.args(args).env("BERTH_RENDERER", renderer).output().expect("it starts");
    let took = start.elapsed();
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    Figure::Time(took)
}

fn median(all: Vec<Figure>) -> Figure {
    let mut times: Vec<Duration> = all
        .into_iter()
        .map(|figure| match figure {
            Figure::Time(time) => time,
            Figure::Memory(_) => Duration::ZERO,
        })
        .collect();
    times.sort();
    Figure::Time(times[times.len() / 2])
}
