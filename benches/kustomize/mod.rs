//! `kubectl kustomize` of single clusters, beside a whole run: what a cluster's folder costs where every
//! cluster is an overlay with a base and patches.
//!
//! The overlays are made from the rendered folders, and what kustomize makes of them is compared with
//! those folders: both sides give the same objects.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::fleet;

const RENDERED: &str = "refs/heads/berth/rendered";

/// What copies have where no override changes them: see the generator.
const USUAL: &str = "replicas: 3\n";

/// `BERTH_KUBECTL`, else the newest one that the tests' control plane was built with, else the system's.
pub fn kubectl() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("BERTH_KUBECTL") {
        return Some(given.into());
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let built = std::fs::read_dir(home.join(".cache/berth/control-plane")).into_iter().flatten();
    let built = built.filter_map(|entry| Some(entry.ok()?.path().join("kubectl")));
    let newest = built.filter(|path| path.is_file()).max_by_key(|path| path.metadata().ok()?.modified().ok());
    let runs = |program: &PathBuf| {
        Command::new(program).args(["version", "--client"]).output().is_ok_and(|done| done.status.success())
    };
    newest.or(Some("kubectl".into())).filter(runs)
}

/// One cluster's overlay, and the objects it must give.
#[derive(Debug)]
pub struct Overlay {
    folder: PathBuf,
    wanted: Vec<Json>,
    /// How many of its objects a patch changes.
    pub patched: usize,
}

impl Overlay {
    /// Writes the overlay of a cluster that is rendered in the repository.
    pub fn write(repository: &Path, cluster: &str, folder: &Path) -> Overlay {
        let prefix = format!("{RENDERED}:clusters/{cluster}");
        let names = fleet::git(repository, &["ls-tree", "-r", "-z", "--name-only", &prefix]);
        let (base, overlay) = (folder.join("base"), folder.join("overlay"));
        for made in [&base, &overlay] {
            std::fs::create_dir_all(made).expect("a folder");
        }
        let (mut resources, mut patches) = ("resources:\n".to_owned(), String::new());
        let (mut wanted, mut patched) = (Vec::new(), 0);
        let names = String::from_utf8(names).expect("paths are text");
        for (number, name) in names.split('\0').filter(|name| !name.is_empty()).enumerate() {
            let text = fleet::git(repository, &["cat-file", "blob", &format!("{prefix}/{name}")]);
            let text = String::from_utf8(text).expect("manifests are text");
            let object: Json = serde_yaml::from_str(&text).expect("a manifest");
            if let Some(replicas) = object.pointer("/spec/replicas").filter(|replicas| **replicas != 3) {
                let at = |path: &str| object.pointer(path).and_then(Json::as_str).expect("a text").to_owned();
                let (kind, name, namespace) = (at("/kind"), at("/metadata/name"), at("/metadata/namespace"));
                let _ = write!(
                    patches,
                    "- target: {{kind: {kind}, name: {name}, namespace: {namespace}}}\n  patch: |-\n    \
                     - op: replace\n      path: /spec/replicas\n      value: {replicas}\n"
                );
                patched += 1;
                let usual = text.replacen(&format!("replicas: {replicas}\n"), USUAL, 1);
                std::fs::write(base.join(format!("{number}.yaml")), usual).expect("a file");
            } else {
                std::fs::write(base.join(format!("{number}.yaml")), text).expect("a file");
            }
            let _ = writeln!(resources, "- {number}.yaml");
            wanted.push(object);
        }
        std::fs::write(base.join("kustomization.yaml"), resources).expect("a file");
        let patches = if patches.is_empty() { patches } else { format!("patches:\n{patches}") };
        std::fs::write(overlay.join("kustomization.yaml"), format!("resources: [../base]\n{patches}"))
            .expect("a file");
        Overlay { folder: overlay, wanted: sorted(wanted), patched }
    }

    pub fn objects(&self) -> usize {
        self.wanted.len()
    }

    /// How long kustomize takes for it.
    pub fn build(&self, kubectl: &Path) -> Duration {
        let (took, done) = kustomize(kubectl, &self.folder);
        assert!(done.status.success(), "kubectl kustomize: {}", String::from_utf8_lossy(&done.stderr));
        let given = String::from_utf8(done.stdout).expect("text");
        let given = given.split("\n---\n").map(|one| serde_yaml::from_str(one).expect("a manifest"));
        assert!(sorted(given.collect()) == self.wanted, "kustomize gives other objects than berth");
        took
    }
}

/// How long kustomize takes for a folder that gives nothing.
pub fn start(kubectl: &Path, empty: &Path) -> Duration {
    kustomize(kubectl, empty).0
}

fn kustomize(kubectl: &Path, folder: &Path) -> (Duration, Output) {
    let start = Instant::now();
    let done = Command::new(kubectl).arg("kustomize").arg(folder).output().expect("kubectl starts");
    (start.elapsed(), done)
}

fn sorted(mut objects: Vec<Json>) -> Vec<Json> {
    objects.sort_by_key(ToString::to_string);
    objects
}
