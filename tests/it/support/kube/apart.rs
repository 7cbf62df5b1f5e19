//! Runs a control plane from the separate programs of `KUBEBUILDER_ASSETS`, each under a shell that
//! ends it when the shell's standard input closes, so that none outlives the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::super::hermetic;
use super::super::ports::free_port;
use super::super::wait::until;
use super::together::wait;
use super::{Wanted, audit_log};

/// Runs `"$@"`, ends it at the end of input, and waits until it is gone.
const GUARD: &str = r#""$@" </dev/null & program=$!; cat >/dev/null; kill "$program"; wait "$program"; true"#;

/// In the order they were started.
#[derive(Debug)]
pub struct Processes(Vec<Child>);

/// Starts etcd, the API server and, where wanted, the controllers; waits until they can be used.
pub fn start(folder: &Path, data: &Path, wanted: Wanted) -> (Processes, PathBuf) {
    let kubeconfig = data.join("kubeconfig");
    let pki = data.join("pki");
    std::fs::create_dir_all(&pki).expect("a folder");
    let [client, peer, api] = [(); 3].map(|()| free_port());
    let at = |path: &Path| path.to_str().expect("a text path").to_owned();
    let write = |name: &str, text: &str| {
        let path = data.join(name);
        std::fs::write(&path, text).expect("a file");
        at(&path)
    };
    let mut processes = Processes(Vec::new());

    let etcd = data.join("etcd");
    let [client, peer] = [client, peer].map(|port| format!("http://127.0.0.1:{port}"));
    processes.run(
        data,
        &folder.join("etcd"),
        &[
            ("--data-dir", &at(&etcd)),
            ("--listen-client-urls", &client),
            ("--advertise-client-urls", &client),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &format!("default={peer}")),
            // Has etcd make a key, which is as good as any to sign tokens with.
            ("--peer-auto-tls", "true"),
            ("--unsafe-no-fsync", "true"),
        ],
    );
    let tokens = etcd.join("fixtures/peer/key.pem");
    until("etcd has made a key", || tokens.is_file());

    let admin = write("tokens.csv", "test-admin,admin,admin,system:masters\n");
    let mut arguments = vec![
        ("--etcd-servers", client),
        ("--bind-address", "127.0.0.1".to_owned()),
        ("--secure-port", api.to_string()),
        ("--cert-dir", at(&pki)),
        ("--endpoint-reconciler-type", "none".to_owned()),
        ("--service-cluster-ip-range", "10.0.0.0/24".to_owned()),
        ("--service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("--service-account-key-file", at(&tokens)),
        ("--service-account-signing-key-file", at(&tokens)),
        ("--token-auth-file", admin),
        ("--authorization-mode", "RBAC".to_owned()),
        ("--allow-privileged", "true".to_owned()),
    ];
    if wanted.audit {
        let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
                      - {level: None, users: [\"system:apiserver\"]}\n- level: Metadata\n";
        arguments.push(("--audit-policy-file", write("audit-policy.yaml", policy)));
        arguments.push(("--audit-log-path", at(&audit_log(data))));
    }
    let arguments: Vec<_> = arguments.iter().map(|(flag, value)| (*flag, value.as_str())).collect();
    processes.run(data, &folder.join("kube-apiserver"), &arguments);
    write(
        "kubeconfig",
        &format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n\
             clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{api}', certificate-authority: '{}'}}}}]\n\
             users: [{{name: test, user: {{token: test-admin}}}}]\n",
            at(&pki.join("apiserver.crt"))
        ),
    );
    let answers = |args: &[&str]| {
        hermetic(&at(&folder.join("kubectl")))
            .env("HOME", data)
            .env("KUBECONFIG", &kubeconfig)
            .args(args)
            .output()
            .expect("kubectl runs")
            .status
            .success()
    };
    until("the API server is ready", || answers(&["get", "--raw", "/readyz"]));
    until("there is a namespace", || answers(&["get", "namespace", "default"]));

    if wanted.controllers {
        processes.run(
            data,
            &folder.join("kube-controller-manager"),
            &[
                ("--kubeconfig", &at(&kubeconfig)),
                ("--leader-elect", "false"),
                ("--secure-port", "0"),
                ("--kube-api-qps", "1000"),
                ("--kube-api-burst", "2000"),
                ("--service-account-private-key-file", &at(&tokens)),
            ],
        );
        until("there is a service account", || answers(&["get", "serviceaccount", "default"]));
    }
    (processes, kubeconfig)
}

impl Processes {
    fn run(&mut self, data: &Path, program: &Path, arguments: &[(&str, &str)]) {
        let name = program.file_name().expect("a name").to_string_lossy();
        let log = File::create(data.join(format!("{name}.log"))).expect("a file");
        let child = hermetic("sh")
            .args(["-c", GUARD, "sh"])
            .arg(program)
            .args(arguments.iter().map(|(flag, value)| format!("{flag}={value}")))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log)
            .spawn()
            .expect("sh starts");
        self.0.push(child);
    }

    /// Ends them in the opposite order and waits for each.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        for mut child in std::mem::take(&mut self.0).into_iter().rev() {
            drop(child.stdin.take());
            let _ = wait(&mut child);
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end();
    }
}
