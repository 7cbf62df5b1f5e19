//! A pod without a kubelet: the command of a Deployment's container, with the variables, volumes and credentials that
//! the pod would have, as a process of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

use super::kube::ControlPlane;
use super::page::page;
use super::ports::free_port;
use super::{Ran, berth, hermetic};

/// A pod's folders, the kubelet's part.
pub struct Pod {
    folder: tempfile::TempDir,
    host: String,
    port: String,
    /// The port of this machine in place of the container's.
    probed: u16,
}

impl Pod {
    /// A pod with this token of its account.
    pub fn new(plane: &ControlPlane, token: &str) -> Pod {
        let folder = tempfile::tempdir().expect("a folder");
        let view = ask(plane, &["config", "view", "--raw", "--flatten", "-o", "json"]);
        let view: Json = serde_json::from_str(&view).expect("JSON");
        let cluster = &view["clusters"][0]["cluster"];
        let authority = cluster["certificate-authority-data"].as_str().expect("an authority");
        std::fs::write(folder.path().join("ca.crt"), decoded(authority)).expect("a file");
        let server = cluster["server"].as_str().expect("a server").trim_start_matches("https://").to_owned();
        let (host, port) = server.rsplit_once(':').expect("a port");
        let pod = Pod { folder, host: host.to_owned(), port: port.to_owned(), probed: free_port() };
        pod.set_token(token);
        pod
    }

    pub fn token(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    pub fn set_token(&self, token: &str) {
        std::fs::write(self.token(), token).expect("a file");
    }

    /// Gives a process the pod's account.
    pub fn set_credentials(&self, command: &mut Command) {
        command.env("KUBERNETES_SERVICE_HOST", &self.host).env("KUBERNETES_SERVICE_PORT", &self.port);
        command.env("BERTH_POD_CREDENTIALS", self.folder.path());
    }

    /// Reports whether a probe of the kubelet succeeds.
    pub fn answers(&self, path: &str) -> bool {
        page(&format!("127.0.0.1:{}", self.probed), path).starts_with("HTTP/1.1 200")
    }

    /// The command of a Deployment's container, as the API server has it: its arguments and variables, its mounted
    /// Secrets and ConfigMaps, and a token of its account if it gets one. Paths are below the pod's folder here.
    pub fn of_deployment(plane: &ControlPlane, namespace: &str, name: &str) -> (Pod, Command) {
        let deployment = ask(plane, &["get", "deployment", name, "-n", namespace, "-o", "json"]);
        let deployment: Json = serde_json::from_str(&deployment).expect("JSON");
        let spec = &deployment["spec"]["template"]["spec"];
        let account = spec["serviceAccountName"].as_str().expect("an account");
        let gets_token = spec["automountServiceAccountToken"] != false;
        let token = gets_token.then(|| ask(plane, &["create", "token", account, "-n", namespace]));
        let pod = Pod::new(plane, token.as_deref().unwrap_or_default().trim());
        let container = &spec["containers"][0];
        let mounts: Vec<(&str, PathBuf)> = list(&container["volumeMounts"])
            .iter()
            .map(|mount| {
                let volume = list(&spec["volumes"]).iter().find(|volume| volume["name"] == mount["name"]);
                let path = mount["mountPath"].as_str().expect("a path");
                let folder = pod.folder.path().join("root").join(path.trim_start_matches('/'));
                std::fs::create_dir_all(&folder).expect("a folder");
                fill(plane, namespace, volume.expect("a volume of this name"), &folder);
                (path, folder)
            })
            .collect();
        let mut command = berth();
        if gets_token {
            pod.set_credentials(&mut command);
        }
        command.args(list(&container["args"]).iter().map(|argument| argument.as_str().expect("text")));
        command.env("TMPDIR", pod.folder.path().join("root/tmp"));
        for variable in list(&container["env"]) {
            let (name, value) = (variable["name"].as_str(), variable["value"].as_str().unwrap_or_default());
            let below = mounts.iter().find(|(path, _)| Path::new(value).starts_with(path));
            let moved = match below {
                Some((path, folder)) => folder.join(Path::new(value).strip_prefix(path).expect("below it")),
                None if value.starts_with("0.0.0.0:") => PathBuf::from(format!("127.0.0.1:{}", pod.probed)),
                None if value == "/var/cache" => pod.folder.path().join("root/var/cache"),
                None => PathBuf::from(value),
            };
            command.env(name.expect("a name"), moved);
        }
        (pod, command)
    }
}

/// Fills a volume as the kubelet would.
fn fill(plane: &ControlPlane, namespace: &str, volume: &Json, folder: &Path) {
    let get = |kind: &str, name: &Json| -> Json {
        let name = name.as_str().expect("a name");
        serde_json::from_str(&ask(plane, &["get", kind, name, "-n", namespace, "-o", "json"])).expect("JSON")
    };
    let write = |data: &Json, read: &dyn Fn(&str) -> String| {
        for (file, value) in data.as_object().expect("data") {
            let path = folder.join(file);
            std::fs::write(&path, read(value.as_str().expect("text"))).expect("a file");
            Ran::of(hermetic("chmod").arg("600").arg(path)).expect(0);
        }
    };
    if let Some(secret) = volume.get("secret") {
        write(&get("secret", &secret["secretName"])["data"], &decoded);
    } else if let Some(map) = volume.get("configMap") {
        write(&get("configmap", &map["name"])["data"], &str::to_owned);
    }
}

fn decoded(base64: &str) -> String {
    Ran::of(hermetic("sh").args(["-c", "printf %s \"$1\" | base64 -d", "sh", base64])).expect(0).out
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[track_caller]
fn ask(plane: &ControlPlane, args: &[&str]) -> String {
    Ran::of(plane.kubectl().args(args)).expect(0).out
}
