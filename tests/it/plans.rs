//! Twelve pull requests on a fleet of 200 clusters, as text and as a comment. The snapshots stand in
//! `fixtures/plans`; `BERTH_UPDATE=1 cargo test --test it plans` writes them anew.

use std::fmt::Write as _;

use crate::support::{Repo, fixtures, run};

const REGIONS: [(&str, usize); 4] = [("east", 60), ("north", 60), ("south", 12), ("west", 68)];

/// A pull request: its name, the edit, and words that its plan must hold, the cause before all.
struct PullRequest {
    name: &'static str,
    edit: fn(&Repo),
    told: &'static [&'static str],
}

const PULL_REQUESTS: [PullRequest; 12] = [
    PullRequest {
        name: "label-typo",
        edit: |repo| repo.replace("clusters/south-07.yaml", "env: prod", "env: prd"),
        told: &["clusters/south-07.yaml:6:5: label env: prod → prd"],
    },
    PullRequest {
        name: "region-drained",
        edit: |repo| {
            for number in 1..=12 {
                let file = format!("clusters/south-{number:02}.yaml");
                repo.replace(&file, "spec: {}", "spec: {taints: [{key: drain, effect: NoSelect}]}");
            }
        },
        told: &["(12 edits: clusters/south-01.yaml:9:"],
    },
    PullRequest {
        name: "weight-changed",
        edit: |repo| repo.replace("apps/web-replicas.yaml", "south-01: {weight: 1}", "south-01: {weight: 3}"),
        told: &["apps/web-replicas.yaml:", "1 → 3", "replicas of shop/web"],
    },
    PullRequest {
        name: "new-region",
        edit: |repo| {
            for number in 1..=8 {
                repo.write(&format!("clusters/polar-{number:02}.yaml"), managed("polar", number));
            }
        },
        told: &["(8 edits: clusters/polar-01.yaml:"],
    },
    PullRequest {
        name: "image-bump",
        edit: |repo| repo.replace("apps/front.yaml", "shop/front:1.4", "shop/front:1.5"),
        told: &[
            "apps/front.yaml:",
            "shop/front:1.4 → registry.example.com/shop/front:1.5",
            "Deployment.apps shop/front in all 181 clusters of env=prod",
        ],
    },
    PullRequest {
        name: "override-conflict",
        edit: |repo| {
            let overrides = "  overrides:\n  - clusterName: south-01\n    clusterOverrides:\n    \
                             - {path: /spec/nothing/here, op: remove}\n";
            repo.append("apps/front.yaml", overrides);
        },
        told: &["apps/front.yaml:"],
    },
    PullRequest {
        name: "namespace-removed",
        edit: |repo| repo.remove("apps/namespace.yaml"),
        told: &["apps/namespace.yaml:", "Namespace shop goes with every object in it"],
    },
    PullRequest {
        name: "set-binding-removed",
        edit: |repo| repo.remove("pay/binding.yaml"),
        told: &["pay/binding.yaml:"],
    },
    PullRequest {
        name: "max-skew-tightened",
        edit: |repo| repo.replace("edge/placement.yaml", "maxSkew: 9", "maxSkew: 1"),
        told: &["edge/placement.yaml:", "maxSkew: 9 → 1"],
    },
    PullRequest {
        name: "toleration-with-a-deadline",
        edit: |repo| {
            repo.replace("pay/placement.yaml", "{key: old}", "{key: old, tolerationSeconds: 864000}");
        },
        told: &["later, by deadlines of this change", "leaves west-01, west-02, west-03 and west-04"],
    },
    PullRequest {
        name: "file-moved",
        edit: |repo| {
            repo.git(&["mv", "apps/web.yaml", "apps/shop.yaml"]);
        },
        told: &[
            "no changes",
            "document moved from apps/web.yaml to apps/shop.yaml: FederatedDeployment shop/web",
        ],
    },
    PullRequest {
        name: "bad-sed",
        edit: |repo| {
            for file in 0..12 {
                repo.replace(&format!("settings/{file:02}.yaml"), "https://", "http://");
            }
        },
        told: &[
            "(84 edits: settings/00.yaml:",
            "84 workloads in all 12 clusters of region=south (1008 objects)",
        ],
    },
];

impl Repo {
    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).expect("the file is there")
    }

    fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "no `{from}` in {path}");
        self.write(path, text.replace(from, to));
    }

    fn append(&self, path: &str, more: &str) {
        self.write(path, self.read(path) + more);
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.path().join(path)).expect("the file is there");
    }
}

fn managed(region: &str, number: usize) -> String {
    let env = if number.is_multiple_of(10) { "stage" } else { "prod" };
    let ring = if number == 1 { "canary" } else { "main" };
    let taints = if region == "west" && number <= 4 {
        "{taints: [{key: old, effect: NoSelect, timeAdded: '2025-12-31T00:00:00Z'}]}"
    } else {
        "{}"
    };
    format!(
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  \
         name: {region}-{number:02}\n  labels:\n    env: {env}\n    region: {region}\n    ring: {ring}\nspec: {taints}\n"
    )
}

fn fleet() -> Repo {
    let repo = Repo::new();
    for (region, clusters) in REGIONS {
        for number in 1..=clusters {
            repo.write(&format!("clusters/{region}-{number:02}.yaml"), managed(region, number));
        }
    }
    let federated = |kind: &str, name: &str, template: &str, selector: &str| {
        format!(
            "apiVersion: types.kubefed.io/v1beta1\nkind: Federated{kind}\nmetadata: {{name: {name}, namespace: shop}}\n\
             spec:\n  placement: {{clusterSelector: {{matchLabels: {selector}}}}}\n  template:\n{template}"
        )
    };
    repo.write("apps/namespace.yaml", crate::support::namespace("shop"));
    let pods = |name: &str| {
        format!(
            "    spec:\n      replicas: 2\n      selector: {{matchLabels: {{app: {name}}}}}\n      template:\n        \
             metadata: {{labels: {{app: {name}}}}}\n        spec:\n          containers:\n          \
             - name: {name}\n            image: registry.example.com/shop/{name}:1.4\n"
        )
    };
    repo.write("apps/web.yaml", federated("Deployment", "web", &pods("web"), "{env: prod, region: south}"));
    repo.write("apps/front.yaml", federated("Deployment", "front", &pods("front"), "{env: prod}"));
    repo.write(
        "apps/stateful-sets.yaml",
        "apiVersion: core.kubefed.io/v1beta1\nkind: FederatedTypeConfig\n\
         metadata: {name: statefulsets.apps, namespace: kube-federation-system}\nspec:\n  \
         federatedType: {group: types.kubefed.io, kind: FederatedStatefulSet, pluralName: federatedstatefulsets, scope: Namespaced, version: v1beta1}\n  \
         propagation: Enabled\n  targetType: {group: apps, kind: StatefulSet, pluralName: statefulsets, scope: Namespaced, version: v1}\n",
    );
    repo.write("apps/db.yaml", federated("StatefulSet", "db", &pods("db"), "{env: prod, region: south}"));
    for name in ["cart", "mail", "search", "stock", "tax", "users"] {
        let data = format!("    data: {{name: {name}}}\n");
        repo.write(
            &format!("apps/{name}.yaml"),
            federated("ConfigMap", name, &data, "{env: prod, region: south}"),
        );
    }
    let weights = (1..=12).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "    south-{number:02}: {{weight: 1}}");
        text
    });
    repo.write(
        "apps/web-replicas.yaml",
        format!(
            "apiVersion: scheduling.kubefed.io/v1alpha1\nkind: ReplicaSchedulingPreference\n\
             metadata: {{name: web, namespace: shop}}\nspec:\n  targetKind: FederatedDeployment\n  totalReplicas: 60\n  \
             rebalance: true\n  intersectWithClusterSelector: true\n  clusters:\n{weights}"
        ),
    );
    repo.write("pay/namespace.yaml", crate::support::namespace("pay"));
    repo.write(
        "pay/binding.yaml",
        "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
         metadata: {name: global, namespace: pay}\nspec: {clusterSet: global}\n",
    );
    repo.write(
        "pay/placement.yaml",
        "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: pay, namespace: pay}\n\
         spec:\n  tolerations:\n  - {key: old}\n  predicates:\n  - requiredClusterSelector:\n      labelSelector:\n        \
         matchExpressions:\n        - {key: region, operator: In, values: [south, west]}\n",
    );
    repo.write(
        "pay/work.yaml",
        "apiVersion: work.open-cluster-management.io/v1alpha1\nkind: ManifestWorkReplicaSet\n\
         metadata: {name: pay, namespace: pay}\nspec:\n  placementRefs:\n  - {name: pay, rolloutStrategy: {type: All}}\n  \
         manifestWorkTemplate:\n    workload:\n      manifests:\n      - apiVersion: v1\n        kind: ConfigMap\n        \
         metadata: {name: pay, namespace: pay}\n        data: {currency: eur}\n",
    );
    repo.write(
        "edge/placement.yaml",
        "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {name: edge}\nspec:\n  \
         resourceSelectors:\n  - {group: '', version: v1, kind: Namespace, name: edge}\n  policy:\n    placementType: PickN\n    \
         numberOfClusters: 60\n    topologySpreadConstraints:\n    - {maxSkew: 9, topologyKey: region, whenUnsatisfiable: DoNotSchedule}\n",
    );
    repo.write(
        "edge/objects.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: edge}\n---\napiVersion: v1\nkind: ConfigMap\n\
         metadata: {name: cache, namespace: edge}\ndata: {size: 10Gi}\n",
    );
    for file in 0..12 {
        let documents: Vec<String> = (0..7)
            .map(|number| {
                let name = format!("settings-{:04}", file * 7 + number);
                let data = "    data: {url: 'https://api.example.com'}\n";
                federated("ConfigMap", &name, data, "{region: south}")
            })
            .collect();
        repo.write(&format!("settings/{file:02}.yaml"), documents.join("---\n"));
    }
    repo.commit("the fleet");
    repo
}

/// The snapshot of a form, compared or written.
fn snapshot(name: &str, shown: &str, wrong: &mut Vec<String>) {
    let path = fixtures("plans").join(name);
    if std::env::var_os("BERTH_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(&path, shown).expect("the snapshot can be written");
    } else if std::fs::read_to_string(&path).ok().as_deref() != Some(shown) {
        wrong.push(format!("{name} differs:\n{shown}"));
    }
}

/// Lines that say the same twice.
fn repeated(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.len() > 20).collect();
    let twice = lines.iter().enumerate().filter(|(index, line)| lines[..*index].contains(*line));
    twice.map(|(_, line)| *line).collect()
}

#[test]
fn twelve_pull_requests_read_as_their_causes_and_consequences() {
    let repo = fleet();
    repo.publish().expect(0);
    let mut wrong = Vec::new();
    for request in &PULL_REQUESTS {
        repo.git(&["checkout", "-q", "-b", request.name, "main"]);
        (request.edit)(&repo);
        repo.commit(request.name);
        let plan = |form: &str| {
            let args = ["plan", "--repo", repo.arg(), "--now", "2026-01-01T00:30:00Z", "-o", form];
            let ran = run(&args);
            assert!(ran.code <= 1, "{}: {}{}", request.name, ran.out, ran.err);
            // A source commit has another id in each run, a published one in each version of berth.
            let ids = [("HEAD", "0123456789ab"), ("berth/rendered", "ba9876543210")]
                .map(|(of, shown)| (repo.id(of), shown));
            let named =
                |text: String| ids.iter().fold(text, |text, (id, shown)| text.replace(&id[..12], shown));
            [ran.err, ran.out].map(named)
        };
        let ([faults, text], [_, markdown]) = (plan("text"), plan("markdown"));
        let is_too_wide = |line: &str| line.chars().count() > 80 && line.trim().contains(' ');
        if text.lines().any(is_too_wide) {
            wrong.push(format!("{}: wider than 80 columns:\n{text}", request.name));
        }
        let text = faults + &text;
        for told in request.told {
            let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if !joined.contains(told) && !markdown.contains(told) {
                wrong.push(format!("{}: no `{told}` in\n{text}", request.name));
            }
        }
        for line in repeated(&text) {
            wrong.push(format!("{}: said twice: {line}\n{text}", request.name));
        }
        // The schema judges it.
        plan("json");
        assert!(markdown.len() < 60_000, "{}: {} bytes", request.name, markdown.len());
        snapshot(&format!("{}.txt", request.name), &text, &mut wrong);
        snapshot(&format!("{}.md", request.name), &markdown, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Text that would forge a line, a block, a mention, a link, a command of a runner or of a terminal.
const HOSTILE: &str =
    "x`@all`</code></details>[a](https://evil.example)\u{1b}[2J\n::error::forged\r\n```\n# big|cell|\u{202e}";

#[test]
fn hostile_text_forges_nothing_in_any_form() {
    let quoted = serde_json::Value::from(HOSTILE).to_string();
    let repo = Repo::with(&[
        ("clusters/a-01.yaml", &managed("a", 1)),
        ("clusters/b-02.yaml", &managed("b", 2)),
        ("apps/shop.yaml", &crate::support::namespace("shop")),
        ("apps/web.yaml", &crate::support::config_map("web", "one", "{clusterSelector: {}}")),
    ]);
    repo.publish().expect(0);
    let value = format!("data:\n      value: {quoted}\n      {quoted}: {quoted}");
    repo.replace("apps/web.yaml", "data:\n      value: \"one\"", &value);
    let label = format!("env: {quoted}");
    repo.replace("clusters/b-02.yaml", "env: prod", &label);
    repo.write("apps/@all `x`.yaml", "kind: [");
    repo.commit(HOSTILE);
    for form in ["text", "json", "yaml", "markdown", "sarif", "annotations", "code-quality"] {
        let ran = run(&["plan", "--repo", repo.arg(), "-o", form]);
        assert!(ran.code <= 1, "{form}: {}{}", ran.out, ran.err);
        for shown in [&ran.out, &ran.err] {
            let is_forged = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!shown.contains(is_forged), "{form}: {shown}");
            let forged =
                shown.lines().find(|line| line.starts_with("::error::") || line.starts_with("# big"));
            assert!(forged.is_none() && !shown.contains("\n```\n# big"), "{form}: {shown}");
        }
        if form == "markdown" {
            // Outside of code there is nothing of a stranger's.
            let mut outside = String::new();
            let mut fence: Option<String> = None;
            for line in ran.out.lines() {
                let ticks: String = line.chars().take_while(|c| *c == '`').collect();
                match &fence {
                    Some(open) if ticks == *open && line == ticks => fence = None,
                    Some(_) => {}
                    None if ticks.len() >= 3 && !line[ticks.len()..].contains('`') => fence = Some(ticks),
                    None if ticks.is_empty() => outside.push_str(line),
                    None => assert!(line.trim_end_matches("<br>").ends_with(&ticks), "one span: {line}"),
                }
            }
            assert!(fence.is_none() && !outside.contains("evil") && !outside.contains("@all"), "{outside}");
        }
    }
}

#[test]
fn a_plan_of_several_branches_is_in_the_schema_too() {
    let repo = crate::support::small_fleet();
    repo.publish().expect(0);
    for (branch, cluster) in [("one", "a"), ("two", "b")] {
        repo.git(&["checkout", "-q", "-b", branch, "main"]);
        let text = repo
            .read("apps/web.yaml")
            .replace("{clusterSelector: {}}", &format!("{{clusters: [{{name: {cluster}}}]}}"));
        repo.write(&format!("apps/{branch}.yaml"), text.replace("name: web", &format!("name: {branch}")));
        if branch == "two" {
            repo.remove("apps/web.yaml");
        }
        repo.commit(branch);
    }
    repo.git(&["checkout", "-q", "one"]);
    let plan = run(&["plan", "--repo", repo.arg(), "--with", "two", "-o", "json"]).json();
    assert!(plan["together"]["branches"].as_array().is_some_and(|all| all.len() == 2), "{plan}");
}

#[test]
fn faults_of_the_change_are_told_from_those_that_were_there() {
    let eviction = |name: &str| {
        format!(
            "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacementEviction\n\
             metadata: {{name: {name}}}\nspec: {{placementName: web, clusterName: a}}\n"
        )
    };
    let repo = crate::support::small_fleet();
    repo.write("old.yaml", eviction("old"));
    repo.commit("an eviction");
    repo.publish().expect(0);
    repo.git(&["checkout", "-q", "-b", "change"]);
    // Lines move with what stands above them.
    repo.write("old.yaml", format!("# Ours.\n{}", eviction("old")));
    repo.write("new.yaml", eviction("new"));
    repo.commit("another one");
    let plan = |more: &[&str]| run(&[&["plan", "--repo", repo.arg()], more].concat()).expect(0);
    let text = plan(&[]);
    assert!(text.err.contains("new.yaml:1:1: warning") && !text.err.contains("old.yaml"), "{}", text.err);
    assert!(text.err.contains("were there before this change: 1; `-v` shows them"), "{}", text.err);
    assert!(plan(&["-v"]).err.contains("old.yaml:2:1: warning"));
    let comment = plan(&["-o", "markdown"]).out;
    let (above, below) = comment.split_once("were there before this change: 1").expect("a fold");
    assert!(above.contains("new.yaml:1:1") && !above.contains("old.yaml:2:1"), "{comment}");
    assert!(below.contains("old.yaml:2:1"), "{comment}");
    let json = plan(&["-o", "json"]).json();
    let all = json["diagnostics"].as_array().expect("a list");
    let new = |file: &str| all.iter().find(|one| one["file"] == file).map(|one| one["new"].clone());
    assert_eq!((new("new.yaml"), new("old.yaml")), (Some(true.into()), Some(false.into())));
    let annotations = plan(&["-o", "annotations"]).out;
    assert!(annotations.contains("file=new.yaml") && !annotations.contains("file=old.yaml"), "{annotations}");
    run(&["plan", "--repo", repo.arg(), "--fail-on", "warnings"]).expect(1);
}
