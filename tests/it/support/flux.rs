//! Flux for tests: its source-controller and kustomize-controller against a test's control plane, on free ports of the
//! loopback address. They stop when the value is dropped or the test process dies.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value as Json;

use super::kube::ControlPlane;
use super::ports::free_port;
use super::{Ran, hermetic, programs};

/// Running controllers.
#[derive(Debug)]
pub struct Flux {
    controllers: Vec<Child>,
    data: tempfile::TempDir,
}

impl Flux {
    /// Returns the folder of the controllers. Without the means for them, says so loudly and gives nothing, and the test
    /// returns; under `CI=true` the test fails.
    pub fn made() -> Option<PathBuf> {
        let made = programs::made(&["ready", "flux"], "flux");
        made.map_err(|why| programs::skipped("Flux", &why)).ok()
    }

    /// Starts the controllers of a folder with their kinds.
    pub fn start(folder: &Path, plane: &ControlPlane) -> Flux {
        let kubectl = |args: &[&str]| Ran::of(plane.kubectl().args(args));
        let definitions =
            std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        for path in definitions.filter(|path| path.extension().is_some_and(|end| end == "yaml")) {
            let path = path.to_str().expect("a text path");
            kubectl(&["apply", "--server-side", "-f", path]).expect(0);
        }
        // A definition without any condition yet ends the wait with an error.
        let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"];
        super::wait::until("Flux's kinds", || kubectl(&wait).code == 0);
        kubectl(&["create", "namespace", "flux-system"]).expect(0);

        let mut flux = Flux { controllers: Vec::new(), data: tempfile::tempdir().expect("a folder") };
        let storage = flux.data.path().join("artifacts");
        std::fs::create_dir(&storage).expect("a folder");
        let address = format!("127.0.0.1:{}", free_port());
        flux.run(
            &folder.join("source-controller"),
            plane,
            &[
                "--storage-path",
                storage.to_str().expect("text"),
                "--storage-addr",
                &address,
                "--storage-adv-addr",
                &address,
            ],
        );
        flux.run(&folder.join("kustomize-controller"), plane, &["--requeue-dependency=2s"]);
        flux
    }

    fn run(&mut self, program: &Path, plane: &ControlPlane, more: &[&str]) {
        let name = program.file_name().and_then(|name| name.to_str()).expect("a name");
        let log = std::fs::File::create(self.data.path().join(format!("{name}.log"))).expect("a file");
        // Ends when its standard input closes, so that it never outlives the test.
        let mut command = hermetic("sh");
        command.args(["-c", "\"$@\" & read -r _; kill $!; wait $!", "sh"]).arg(program);
        command.args([
            "--health-addr=127.0.0.1:0",
            "--metrics-addr=0",
            "--log-level=debug",
            "--watch-all-namespaces",
        ]);
        command.args(more).env("KUBECONFIG", plane.kubeconfig()).env("RUNTIME_NAMESPACE", "flux-system");
        // Flux builds in a folder of its own below it.
        command.env("TMPDIR", self.data.path()).env("HOME", self.data.path());
        command.stdin(Stdio::piped()).stdout(log.try_clone().expect("a file")).stderr(log);
        self.controllers.push(command.spawn().expect("a controller starts"));
    }

    /// The last lines of both logs.
    pub fn log(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.data.path().join(name)).unwrap_or_default();
        let both = [read("source-controller.log"), read("kustomize-controller.log")];
        both.iter()
            .map(|log| log.lines().rev().take(15).collect::<Vec<_>>().join("\n"))
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    /// Waits until an object of Flux says something, and shows the log where it does not.
    #[track_caller]
    pub fn until(&self, plane: &ControlPlane, kind: &str, name: &str, holds: impl Fn(&Json) -> bool) -> Json {
        let read = || {
            let ran = Ran::of(plane.kubectl().args(["get", kind, name, "-n", "flux-system", "-o", "json"]));
            (ran.code == 0).then(|| ran.json())
        };
        let seen = super::wait::seen_in_time(|| read().filter(|object| holds(object)));
        seen.unwrap_or_else(|| {
            panic!("{kind} {name}: {:#?}\n{}", read().map(|it| it["status"].clone()), self.log())
        })
    }
}

impl Drop for Flux {
    fn drop(&mut self) {
        for controller in &mut self.controllers {
            drop(controller.stdin.take());
            let _ = controller.wait();
        }
    }
}

/// The status of a condition of an object.
pub fn condition<'a>(object: &'a Json, name: &str) -> Option<&'a Json> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}
