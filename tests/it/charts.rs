//! Chart and bases of `deploy/`: the same objects as `berth install` makes, which an API server takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value as Json, json};

use crate::support::kube::{ControlPlane, Wanted};
use crate::support::programs::{made, skipped};
use crate::support::{Ran, hermetic, run};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const IMAGE: &str = concat!("registry.example.com/berth:", env!("CARGO_PKG_VERSION"));
const HTTPS: &str = "https://git.example.com/team/fleet.git";
const HOSTS: &str = "# two lines, \"quotes\" and {{ braces }}\ngit.example.com ssh-ed25519 AAAA\n";
const SIGNERS: &str = "berth@example.com namespaces=\"git\" ssh-ed25519 \
                       AAAAC3NzaC1lZDI1NTE5AAAAIGRsb2NrZWQtdXAta2V5LWZvci10ZXN0cy1vbmx5LTE=\n";

/// The kinds of the member's base: those of usual workloads, without Secrets and without what gives rights.
const KINDS: &str = "configmaps,cronjobs.batch,daemonsets.apps,deployments.apps,horizontalpodautoscalers.autoscaling,\
                     ingresses.networking.k8s.io,jobs.batch,namespaces,persistentvolumeclaims,\
                     poddisruptionbudgets.policy,serviceaccounts,services,statefulsets.apps";

fn deploy(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(part)
}

/// The folder of helm and kustomize, built once in a test run.
pub fn packagers() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(|| made(&["ready", "packagers"], "packagers")) {
        Ok(folder) => Some(folder),
        Err(why) => {
            skipped("helm and kustomize", why);
            None
        }
    }
}

fn helm(args: &[&str]) -> Option<Ran> {
    helm_at("", args)
}

/// The same for the cluster of a kubeconfig.
fn helm_at(kubeconfig: &str, args: &[&str]) -> Option<Ran> {
    let home = tempfile::tempdir().expect("a folder");
    let program = packagers()?.join("helm");
    let mut command = hermetic(program.to_str().expect("text"));
    Some(Ran::of(command.env("HOME", home.path()).env("KUBECONFIG", kubeconfig).args(args)))
}

/// `helm template` of the chart with these values.
fn template(namespace: &str, values: &Json) -> Option<Ran> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), values.to_string()).expect("a file");
    let (chart, values) = (deploy("helm/berth"), file.path().to_str().expect("text"));
    helm(&["template", "berth", chart.to_str().expect("text"), "-n", namespace, "-f", values])
}

fn kustomize(base: &str) -> Option<Ran> {
    let program = packagers()?.join("kustomize");
    Some(Ran::of(hermetic(program.to_str().expect("text")).arg("build").arg(deploy(base))))
}

/// The objects of a text, by kind, namespace and name, as a foreign reader reads them.
fn objects(yaml: &str) -> BTreeMap<String, Json> {
    use serde::Deserialize as _;
    let read = |document| Json::deserialize(document).expect("YAML");
    let objects = serde_yaml::Deserializer::from_str(yaml).map(read).filter(|object| !object.is_null());
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let id = |object: &Json| {
        let (kind, metadata) = (&object["kind"], &object["metadata"]);
        format!("{} {}/{}", text(kind), text(&metadata["namespace"]), text(&metadata["name"]))
    };
    objects.map(|object| (id(&object), object)).collect()
}

/// The flags of an installation, and the chart's values for the same.
struct Case {
    namespace: &'static str,
    flags: Vec<String>,
    values: Json,
}

fn case(namespace: &'static str, flags: &[&str], mut values: Json) -> Case {
    let given = |flag: &str| flags.contains(&flag);
    let mut all = vec!["install".to_owned()];
    all.extend(flags.iter().map(|flag| (*flag).to_owned()));
    all.extend(["--image", IMAGE, "--dir", "-", "--namespace", namespace].map(str::to_owned));
    values["image"] = json!({"repository": "registry.example.com/berth"});
    values["role"] = json!(flags[0]);
    if !given("--remote") {
        all.extend(["--remote", HTTPS].map(str::to_owned));
        values["remote"] = json!(HTTPS);
    }
    Case { namespace, flags: all, values }
}

fn cases(hosts: &str, signers: &str) -> Vec<Case> {
    let plain = ["member", "oslo", "--kinds", "configmaps,pods,deployments.apps,daemonsets.apps"];
    let member = |more: &[&'static str]| -> Vec<&'static str> { [&plain[..], more].concat() };
    let kinds = json!(["deployments.apps", "configmaps", "pods", "daemonsets.apps", "configmaps"]);
    let rbac = "roles.rbac.authorization.k8s.io,configmaps";
    let overrides = "configmap/one,secret/two,configmaps/a.example.com/b=true,secrets/x=y";
    vec![
        case("berth-hub", &["hub"], json!({})),
        case(
            "hubs",
            &[
                "hub",
                "--name",
                "two",
                "--remote",
                "ssh://git@git.example.com:2222/team/fleet.git",
                "--known-hosts",
                hosts,
                "--source",
                "refs/heads/release",
                "--fleet",
                "north",
                "--events",
                "--standby",
                "--signing-secret",
                "signing",
                "--image-pull-secret",
                "registry",
                "--allowed-signers",
                signers,
                "--memory-limit",
                "4Gi",
                "--cache-limit",
                "40Gi",
                "--egress-port",
                "3128",
                "--egress-port",
                "22",
            ],
            json!({"name": "two", "remote": "ssh://git@git.example.com:2222/team/fleet.git", "knownHosts": HOSTS,
                "source": "refs/heads/release", "fleet": "north", "events": true, "standby": true, "signingSecret": "signing",
                "imagePullSecret": "registry", "allowedSigners": SIGNERS, "memoryLimit": "4Gi", "cacheLimit": "40Gi",
                "egressPorts": [3128, 22]}),
        ),
        case(
            "berth-hub",
            &["hub", "--git-secret", "", "--env", "BERTH_USERNAME=yes", "--env", "BERTH_HEARTBEAT=6000000"],
            json!({"gitSecret": "", "env": {"BERTH_USERNAME": "yes", "BERTH_HEARTBEAT": 6_000_000}}),
        ),
        case("berth-hub", &["hub", "--standby"], json!({"standby": true})),
        case(
            "berth-hub",
            &[
                "hub",
                "--git-secret",
                "",
                "--webhook-secret",
                "hooks",
                "--notify-secret",
                "chat",
                "--status-secret",
                "members",
            ],
            json!({"gitSecret": "", "webhookSecret": "hooks", "notifySecret": "chat", "statusSecret": "members"}),
        ),
        case(
            "berth-hub",
            &[
                "hub",
                "--source-remote",
                "ssh://git@source.example.com:2200/team/fleet.git",
                "--source-secret",
                "source",
                "--known-hosts",
                hosts,
                "--otlp-endpoint",
                "https://otel.example.com:4318",
                "--otlp-headers-secret",
                "collector",
            ],
            json!({"sourceRemote": "ssh://git@source.example.com:2200/team/fleet.git", "sourceSecret": "source",
                "knownHosts": HOSTS, "otlpEndpoint": "https://otel.example.com:4318",
                "otlpHeadersSecret": "collector"}),
        ),
        case(
            "berth-hub",
            &["hub", "--source-remote", "https://a.example.com/b", "--source-secret", "source"],
            json!({"sourceRemote": "https://a.example.com/b", "sourceSecret": "source"}),
        ),
        case(
            "berth-system",
            &[
                &plain[..],
                &[
                    "--otlp-endpoint",
                    "http://otel.example.com",
                    "--remote",
                    "git@git.example.com:a.git",
                    "--known-hosts",
                    hosts,
                ],
            ]
            .concat(),
            json!({"cluster": "oslo", "kinds": kinds, "otlpEndpoint": "http://otel.example.com",
                "remote": "git@git.example.com:a.git", "knownHosts": HOSTS}),
        ),
        case("berth-system", &member(&[]), json!({"cluster": "oslo", "kinds": kinds})),
        case(
            "berth-system",
            &member(&[
                "--remote",
                "git@git.example.com:team/fleet.git",
                "--git-secret",
                "own",
                "--fleet",
                "north",
                "--overrides-from",
                overrides,
                "--no-network-policy",
            ]),
            json!({"cluster": "oslo", "kinds": kinds, "remote": "git@git.example.com:team/fleet.git",
                "gitSecret": "own", "fleet": "north", "networkPolicy": false,
                "overridesFrom": overrides.split(',').collect::<Vec<_>>()}),
        ),
        case(
            "berth-system",
            &member(&["--git-ca", "--tenant-service-account", "deployer"]),
            json!({"cluster": "oslo", "kinds": kinds, "gitCa": true, "tenantServiceAccount": "deployer"}),
        ),
        case(
            "berth-system",
            &["member", "a.b-c", "--kinds", rbac, "--allow-escalation", "--allowed-signers", signers],
            json!({"cluster": "a.b-c", "kinds": rbac.split(',').collect::<Vec<_>>(), "allowEscalation": true,
                "allowedSigners": SIGNERS}),
        ),
        case(
            "berth-hub",
            &[
                "hub",
                "--publish",
                "oci://registry.example.com:5000/fleet",
                "--registry-secret",
                "registry",
                "--registry-ca",
                "--artifact-signing-secret",
                "artifacts",
                "--publish-decisions",
                "kube",
                "--publish-profiles",
                "kube",
                "--profiles-namespace",
                "inventory",
            ],
            json!({"publish": "oci://registry.example.com:5000/fleet", "registrySecret": "registry", "registryCa": true,
                "artifactSigningSecret": "artifacts", "publishDecisions": "kube", "publishProfiles": "kube",
                "profilesNamespace": "inventory"}),
        ),
        case(
            "berth-hub",
            &[
                "hub",
                "--standby",
                "--publish-decisions",
                "kube",
                "--decision-kinds",
                "ocm",
                "--decisions-namespace",
                "argocd",
            ],
            json!({"standby": true, "publishDecisions": "kube", "decisionKinds": ["ocm"], "decisionsNamespace": "argocd"}),
        ),
        case(
            "berth-hub",
            &["hub", "--publish-decisions", "kube", "--decision-kinds", "sig"],
            json!({"publishDecisions": "kube", "decisionKinds": ["sig"]}),
        ),
        case(
            "berth-system",
            &member(&[
                "--remote",
                "oci://registry.internal/fleet",
                "--registry-http",
                "--status-post",
                "https://berth.example.com:8443/status",
                "--status-key-secret",
                "statuses",
                "--cluster-properties",
            ]),
            json!({"cluster": "oslo", "kinds": kinds, "remote": "oci://registry.internal/fleet", "registryHttp": true,
                "statusPost": "https://berth.example.com:8443/status", "statusKeySecret": "statuses",
                "clusterProperties": true}),
        ),
        case(
            "berth-system",
            &["member", "oslo", "--kinds", "deployments.apps,namespaces", "--applier", "flux"],
            json!({"cluster": "oslo", "kinds": ["deployments.apps", "namespaces"], "applier": "flux"}),
        ),
        case(
            "berth-system",
            &member(&[
                "--remote",
                "oci://registry.example.com/fleet",
                "--registry-secret",
                "registry",
                "--applier",
                "argocd",
                "--applier-object",
                "apps/oslo",
                "--cluster-properties",
            ]),
            json!({"cluster": "oslo", "kinds": kinds, "remote": "oci://registry.example.com/fleet",
                "registrySecret": "registry", "applier": "argocd", "applierObject": "apps/oslo",
                "clusterProperties": true}),
        ),
        case(
            "berth-system",
            &[
                "member",
                "oslo",
                "--cluster-role",
                "view",
                "--applier",
                "argocd",
                "--applier-kubeconfig-secret",
                "hub",
            ],
            json!({"cluster": "oslo", "clusterRole": "view", "applier": "argocd", "applierKubeconfigSecret": "hub"}),
        ),
        case(
            "berth-system",
            &[
                "member",
                "oslo",
                "--cluster-role",
                "system:aggregate-to-edit",
                "--remote",
                "https://git.example.com:8443/a",
            ],
            json!({"cluster": "oslo", "clusterRole": "system:aggregate-to-edit",
                "remote": "https://git.example.com:8443/a"}),
        ),
    ]
}

#[test]
#[ignore = "needs helm and kustomize"]
fn the_chart_gives_the_objects_that_install_gives() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("text").to_owned()
    };
    for case in cases(&file("hosts", HOSTS), &file("signers", SIGNERS)) {
        let flags: Vec<&str> = case.flags.iter().map(String::as_str).collect();
        let mut wanted = objects(&run(&flags).expect(0).out);
        // The release's namespace is Helm's to make.
        wanted.remove(&format!("Namespace /{}", case.namespace)).expect("a namespace");
        let Some(made) = template(case.namespace, &case.values) else { return };
        let made = objects(&made.expect(0).out);
        assert_eq!(made.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>(), "{flags:?}");
        for (id, object) in &wanted {
            assert_eq!(made[id], *object, "{id} of {flags:?}");
        }
    }
}

#[test]
#[ignore = "needs helm and kustomize"]
fn the_bases_are_what_install_writes() {
    let update = std::env::var_os("BERTH_UPDATE").is_some();
    for (base, flags) in
        [("kustomize/hub", &["hub"][..]), ("kustomize/member", &["member", "oslo", "--kinds", KINDS])]
    {
        let common = ["--remote", HTTPS, "--image", IMAGE, "--dir"];
        let flags = [&["install"], flags, &common].concat();
        let folder = tempfile::tempdir().expect("a folder");
        run(&[&flags[..], &[folder.path().to_str().expect("text")]].concat()).expect(0);
        let names = std::fs::read_dir(folder.path()).expect("a folder");
        let mut names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        for name in &names {
            let (fresh, kept) = (folder.path().join(name), deploy(base).join(name));
            if update {
                std::fs::create_dir_all(deploy(base)).expect("a folder");
                std::fs::copy(&fresh, &kept).expect("a copy");
            }
            let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
            assert_eq!(
                read(&kept),
                read(&fresh),
                "{}: run `BERTH_UPDATE=1 cargo test charts`",
                kept.display()
            );
        }
        assert_eq!(std::fs::read_dir(deploy(base)).expect("a folder").count(), names.len(), "{base}");

        let Some(built) = kustomize(base) else { return };
        assert_eq!(
            objects(&built.expect(0).out),
            objects(&run(&[&flags[..], &["-"]].concat()).expect(0).out)
        );
    }
}

#[test]
#[ignore = "needs helm and kustomize"]
fn an_api_server_takes_the_chart_and_the_bases_in_a_restricted_namespace() {
    if packagers().is_none() {
        return;
    }
    let Some(plane) = ControlPlane::start(Wanted::SERVER_ONLY) else { return };
    let kubectl = |args: &[&str]| Ran::of(plane.kubectl().args(args));
    let apply = |yaml: &str, namespace: &str| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), yaml).expect("a file");
        let path = file.path().to_str().expect("text");
        let ran =
            kubectl(&["apply", "--server-side", "--validate=strict", "-n", namespace, "-f", path]).expect(0);
        // The server names what a Deployment's pods would violate.
        assert!(!ran.err.contains("Warning"), "{}", ran.err);
    };
    let values = |more: Json| {
        let mut all = json!({"remote": "git@git.example.com:team/fleet.git", "knownHosts": HOSTS,
            "image": {"repository": "registry.example.com/berth"}});
        all.as_object_mut().expect("values").extend(more.as_object().expect("values").clone());
        all
    };
    for (namespace, values) in [
        ("charted-hub", values(json!({"role": "hub", "events": true, "nodeSelector": {"a": "b"}}))),
        (
            "charted",
            values(json!({"role": "member", "cluster": "oslo", "clusterRole": "edit",
            "tolerations": [{"key": "x", "operator": "Exists"}]})),
        ),
    ] {
        kubectl(&["create", "namespace", namespace]).expect(0);
        for level in ["enforce", "warn"] {
            kubectl(&[
                "label",
                "namespace",
                namespace,
                &format!("pod-security.kubernetes.io/{level}=restricted"),
            ])
            .expect(0);
        }
        apply(&template(namespace, &values).expect("helm").expect(0).out, namespace);
    }
    // A release of Helm's own, which it can replace and take away.
    let (chart, kubeconfig) = (deploy("helm/berth"), plane.kubeconfig().to_str().expect("text"));
    let release = |verb: &str, more: &[&str]| {
        let set =
            format!("remote={HTTPS},image.repository=registry.example.com/berth,role=member,fleet=released");
        let set = ["-n", "released", "--set", &set, "--set", "cluster=oslo,kinds={configmaps}"];
        let args = [&[verb, "berth", chart.to_str().expect("text")], &set[..], more].concat();
        helm_at(kubeconfig, &args).expect("helm").expect(0)
    };
    let ran = release("install", &["--create-namespace"]);
    assert!(
        ran.out.contains("kubectl create secret generic berth-git -n released --from-file=token=FILE"),
        "{}",
        ran.out
    );
    release("upgrade", &["--set", "networkPolicy=false"]);
    let left = kubectl(&["get", "networkpolicies,deployments", "-n", "released", "-o", "name"]).expect(0);
    assert_eq!(left.out, "deployment.apps/berth-released\n");
    helm_at(kubeconfig, &["uninstall", "berth", "-n", "released"]).expect("helm").expect(0);
    kubectl(&["get", "clusterrole", "berth-released"]).expect(1);

    apply(&kustomize("kustomize/hub").expect("kustomize").expect(0).out, "berth-hub");
    apply(&kustomize("kustomize/member").expect("kustomize").expect(0).out, "berth-system");
}

#[test]
#[ignore = "needs helm and kustomize"]
fn helm_finds_no_fault_in_the_chart_and_refuses_values_that_cannot_work() {
    let chart = deploy("helm/berth");
    let lint = |more: &[&str]| helm(&[&["lint", "--strict", chart.to_str().expect("text")], more].concat());
    let Some(ran) = lint(&[]) else { return };
    assert!(ran.expect(0).out.contains("0 chart(s) failed"));
    let set = format!("role=member,cluster=oslo,clusterRole=edit,remote={HTTPS},image.repository=a/b");
    lint(&["-n", "berth-system", "--set", &set]).expect("helm").expect(0);

    let right = || json!({"remote": HTTPS, "image": {"repository": "registry.example.com/berth"}});
    template("berth-hub", &right()).expect("helm").expect(0);
    let mut cases = vec![
        ("remote", json!(""), "remote: give the address"),
        ("remote", json!("http://git.example.com/a"), "/remote"),
        ("remote", json!("git://git.example.com/a"), "/remote"),
        ("remote", json!("ext::sh -c x"), "/remote"),
        ("remote", json!("/srv/fleet.git"), "/remote"),
        ("remote", json!("https://bob:hunter2@git.example.com/a"), "/remote"),
        ("remote", json!("https://git.example.com/$(BERTH_TOKEN)"), "/remote"),
        ("image", json!({}), "image.repository: name an image"),
        ("image", json!({"repository": "a b"}), "/image/repository"),
        ("role", json!("both"), "/role"),
        ("role", json!("member"), "cluster: name the member's cluster"),
        ("kinds", json!(["configmaps"]), "kinds: it has no effect with the role hub"),
        ("knownHosts", json!(HOSTS), "knownHosts: it is for ssh"),
        ("gitSecret", json!("a/b"), "/gitSecret"),
        ("name", json!("a\nb: c"), "/name"),
        ("memoryLimit", json!("1 GB"), "/memoryLimit"),
        ("egressPorts", json!([0]), "/egressPorts/0"),
        ("env", json!({"BERTH_TOKEN": "hunter2"}), "env: BERTH_TOKEN is a credential"),
        (
            "env",
            json!({"OTEL_EXPORTER_OTLP_HEADERS": "hunter2"}),
            "env: OTEL_EXPORTER_OTLP_HEADERS is a credential",
        ),
        ("otlpEndpoint", json!("otel.example.com:4318"), "/otlpEndpoint"),
        ("otlpEndpoint", json!("https://bob:hunter2@otel.example.com"), "/otlpEndpoint"),
        ("otlpHeadersSecret", json!("collector"), "otlpHeadersSecret: otlpEndpoint needs https"),
        ("sourceSecret", json!("source"), "sourceSecret: it has no effect without sourceRemote"),
        ("sourceRemote", json!("git@git.example.com:a.git"), "knownHosts: give the host of sourceRemote"),
        ("env", json!({"BERTH_PROXY": "http://bob:hunter2@proxy"}), "/env"),
        ("env", json!({"BERTH_REMOTE": "x"}), "env: other values set BERTH_REMOTE already"),
        ("replicas", json!(2), "replicas"),
        (
            "remote",
            json!("oci://registry.example.com/fleet"),
            "remote: a registry cannot be the remote of a hub",
        ),
        ("publish", json!("https://registry.example.com/fleet"), "/publish"),
        ("registrySecret", json!("registry"), "no registry is named"),
        ("publishDecisions", json!("kube:other"), "/publishDecisions"),
        ("decisionsNamespace", json!("argocd"), "without publishDecisions"),
        ("applier", json!("flux"), "applier: it has no effect with the role hub"),
    ];
    cases.push(("source", json!("a b"), "/source"));
    for (name, value, said) in cases {
        let mut values = right();
        values[name] = value;
        let ran = template("berth-hub", &values).expect("helm").expect(1);
        assert!(ran.err.contains(said), "{name}: {said}\n{}", ran.err);
    }
    let ran = template("kube-system", &right()).expect("helm").expect(1);
    assert!(ran.err.contains("install into one for berth alone"), "{}", ran.err);
}

/// A value of values.yaml: its path, its default, and the comment above it.
struct ChartValue {
    path: String,
    default: String,
    about: String,
}

/// Reads the lines of values.yaml, in which each value has a comment of one line.
fn chart_values() -> Vec<ChartValue> {
    let text = std::fs::read_to_string(deploy("helm/berth/values.yaml")).expect("a file");
    let (mut parent, mut about, mut values) = (String::new(), None, Vec::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (inner, inside) = (line.trim(), line.starts_with(' '));
        if let Some(comment) = inner.strip_prefix("# ") {
            about = Some(comment.to_owned());
            continue;
        }
        let (name, default) = inner.split_once(':').expect("a value");
        if default.is_empty() {
            parent = format!("{name}.");
            continue;
        }
        let path = if inside { format!("{parent}{name}") } else { name.to_owned() };
        let about = about.take().unwrap_or_else(|| panic!("no comment above {path}"));
        values.push(ChartValue { path, default: default.trim().to_owned(), about });
    }
    values
}

#[test]
fn each_value_has_a_comment_a_row_and_a_schema() {
    let values = chart_values();
    let row = |value: &ChartValue| format!("| `{}` | `{}` | {} |\n", value.path, value.default, value.about);
    let table: String = values.iter().map(row).collect();
    let path = deploy("helm/berth/README.md");
    let page = std::fs::read_to_string(&path).expect("a page");
    let head = "| value | default | meaning |\n| --- | --- | --- |\n";
    let (before, rest) = page.split_once(head).expect("the table");
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let wanted = format!("{before}{head}{table}\n{after}");
    if std::env::var_os("BERTH_UPDATE").is_some() {
        std::fs::write(&path, &wanted).expect("a page");
    }
    let page = std::fs::read_to_string(&path).expect("a page");
    assert!(page == wanted, "{} is out of date: run `BERTH_UPDATE=1 cargo test charts`", path.display());

    let schema = std::fs::read_to_string(deploy("helm/berth/values.schema.json")).expect("a schema");
    let schema: Json = serde_json::from_str(&schema).expect("JSON");
    let mut described: Vec<String> = Vec::new();
    for (name, one) in schema["properties"].as_object().expect("properties") {
        match one.get("properties").and_then(Json::as_object) {
            Some(inner) => described.extend(inner.keys().map(|inner| format!("{name}.{inner}"))),
            // Helm sets it for charts of charts.
            None if name == "global" => {}
            None => described.push(name.clone()),
        }
    }
    let mut named: Vec<String> = values.into_iter().map(|value| value.path).collect();
    described.sort();
    named.sort();
    assert_eq!(described, named);
}

#[test]
fn the_charts_version_is_that_of_the_binary() {
    let chart = std::fs::read_to_string(deploy("helm/berth/Chart.yaml")).expect("a file");
    let chart: Json = serde_yaml::from_str(&chart).expect("YAML");
    assert_eq!((&chart["version"], &chart["appVersion"]), (&json!(VERSION), &json!(VERSION)));
}
