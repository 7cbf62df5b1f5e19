//! Fleets for pictures and checks of the page: one of 60 placements and 40 clusters in which something of each kind is wrong,
//! a small one that is well, and that of the demo.

use std::path::{Path, PathBuf};

use super::removals::report;
use super::silence::START;
use super::{RENDERED, Repo, namespace, run, run_at, small_fleet};
use berth_base::model::Timestamp;

const CITIES: [(&str, &str); 10] = [
    ("gothenburg", "eu"),
    ("turin", "eu"),
    ("lyon", "eu"),
    ("porto", "eu"),
    ("kochi", "ap"),
    ("osaka", "ap"),
    ("perth", "ap"),
    ("boston", "us"),
    ("denver", "us"),
    ("quito", "us"),
];
const TIERS: [&str; 4] = ["prod", "prod", "staging", "dev"];
const NAMESPACES: [&str; 6] = ["billing", "edge", "login", "search", "shop", "stock"];
const APPS: [&str; 10] =
    ["api", "cache", "config", "cron", "gate", "jobs", "proxy", "queue", "web", "worker"];
/// The clusters of each placement; `region` and `tier` are labels.
const SELECTORS: [&str; 5] =
    ["{}", "{matchLabels: {tier: prod}}", "{matchLabels: {region: eu}}", "{matchLabels: {region: us}}", "{}"];

const WAVES: &str = "apiVersion: berth.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: waves, namespace: shop}
spec:
  workloads: [{kind: FederatedDeployment, name: web}, {kind: FederatedDeployment, name: api}]
  strategy: {rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 6, minSuccessTime: 10m}}}
";

const BAD_IMAGE: &str =
    "0 of 3 replicas are ready: ErrImagePull, registry.example.com/shop/web:2.0.0 not found";

/// A fleet and the moment at which its page is made.
pub struct PageFleet {
    pub repo: Repo,
    minute: u64,
}

impl PageFleet {
    /// 60 placements and 40 clusters: a rollout that a failure halted and one that goes on, a held removal, silent members, an
    /// object that somebody changed, and a history.
    pub fn busy() -> PageFleet {
        let repo = Repo::new();
        for (index, name) in clusters().iter().enumerate() {
            repo.write(&format!("clusters/{name}.yaml"), cluster(name, index));
        }
        for (index, namespace_name) in NAMESPACES.iter().enumerate() {
            repo.write(&format!("apps/{namespace_name}/namespace.yaml"), namespace(namespace_name));
            // A namespace is a placement too.
            for (at, app) in APPS.iter().enumerate().take(9) {
                let selector = SELECTORS[(index * 2 + at) % SELECTORS.len()];
                repo.write(&file(namespace_name, app), deployment(namespace_name, app, "1.0.0", selector));
            }
        }
        repo.write("policies/waves.yaml", WAVES);
        repo.commit("Begin with six teams");
        let mut fleet = PageFleet { repo, minute: 10 };
        fleet.publish(0);
        fleet.report_all();
        for (version, (namespace, app, subject)) in [
            ("billing", "api", "Invoices by mail"),
            ("search", "queue", "search: a larger queue"),
            ("login", "web", "Passkeys for everybody"),
            ("edge", "proxy", "edge/proxy 1.3"),
            ("stock", "cron", "Count the stock at night"),
        ]
        .into_iter()
        .enumerate()
        {
            fleet.edit(namespace, app, &format!("1.{}.0", version + 1), subject);
            fleet.publish(0);
        }
        fleet.report_all();
        fleet.go_wrong();
        fleet
    }

    /// Three clusters, all well.
    pub fn well() -> PageFleet {
        let mut fleet = PageFleet { repo: small_fleet(), minute: 10 };
        fleet.publish(0);
        fleet.minute += 1;
        ["a", "b", "c"].iter().for_each(|name| fleet.report(name, ""));
        fleet
    }

    /// The moment of the page, in milliseconds.
    pub fn milliseconds(&self) -> i64 {
        self.now().as_millisecond()
    }

    /// The release of `shop/web` fails in one cluster, that of `shop/api` goes on, and `billing/gate` would lose its clusters.
    fn go_wrong(&mut self) {
        self.edit("shop", "web", "2.0.0", "shop/web 2.0: the new basket");
        self.edit("shop", "api", "1.8.0", "shop/api 1.8");
        self.publish(0);
        let names = clusters();
        for (index, name) in names.iter().enumerate() {
            match index {
                0 => self.report(name, &problem("shop", "web", "unhealthy", BAD_IMAGE)),
                1 | 2 => self.report(name, ""),
                _ => {}
            }
        }
        self.publish(0);
        let typo = deployment("billing", "gate", "1.0.0", "{matchLabels: {teir: prod}}");
        self.repo.write(&file("billing", "gate"), typo);
        self.repo.commit("billing/gate to production alone");
        self.publish(5);
        self.minute += 10;
        for name in names.iter().filter(|name| !name.starts_with("kochi")) {
            let words = "spec.template.spec.containers[web].image was changed in the cluster";
            let more = match name.as_str() {
                "gothenburg-1" => problem("shop", "web", "unhealthy", BAD_IMAGE),
                "osaka-1" => problem("edge", "web", "drifted", words),
                "denver-2" => "  progressing: true\n".to_owned(),
                _ => String::new(),
            };
            self.report(name, &more);
        }
        self.minute += 1;
    }

    /// Writes the page of a change: `shop/web` in another version, step by step, and `stock/jobs` in one region alone.
    pub fn change_page(&self, out: &Path) {
        self.repo.git(&["switch", "--quiet", "--create", "basket"]);
        self.repo.write(
            &file("shop", "web"),
            deployment("shop", "web", "2.0.1", SELECTORS[(4 * 2 + 8) % SELECTORS.len()]),
        );
        self.repo.write(
            &file("stock", "jobs"),
            deployment("stock", "jobs", "1.0.0", "{matchLabels: {region: us}}"),
        );
        self.repo.commit("The basket, mended; stock/jobs for America alone");
        let args =
            ["plan", "--repo", self.repo.arg(), "--source", "main", "--site", out.to_str().expect("text")];
        run_at(self.now(), &args).expect(0);
    }

    /// Publishes as the fleet `harbour`, which gives the page its name.
    fn publish(&mut self, code: i32) {
        self.minute += 4;
        let args = ["run", "--once", "--repo", self.repo.arg(), "--fleet", "harbour"];
        run_at(self.now(), &args).expect(code);
    }

    fn edit(&self, namespace: &str, app: &str, version: &str, subject: &str) {
        let (of, at) = (index_of(&NAMESPACES, namespace), index_of(&APPS, app));
        let selector = SELECTORS[(of * 2 + at) % SELECTORS.len()];
        self.repo.write(&file(namespace, app), deployment(namespace, app, version, selector));
        self.repo.commit(subject);
    }

    fn report_all(&mut self) {
        self.minute += 2;
        clusters().iter().for_each(|name| self.report(name, ""));
    }

    /// The member of a cluster applied its folder, with what else it says of that.
    fn report(&self, cluster: &str, more: &str) {
        let tree = self.repo.git(&["rev-parse", &format!("{RENDERED}:clusters/{cluster}")]);
        let number = self.repo.git(&["rev-list", "--count", RENDERED]);
        let applied = format!("applied:\n  sequence: {number}\n  tree: {tree}\n  objects: 40\n{more}");
        let due = Timestamp::from_second(self.now().as_second() + 300).expect("a moment");
        report(&self.repo, cluster, self.minute, &format!("nextDue: \"{due}\"\n{applied}"));
    }

    fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.minute * 60).expect("a time");
        Timestamp::from_second(START + seconds).expect("a moment")
    }

    /// Writes the page.
    pub fn page(&self, out: &Path) {
        let links =
            ["https://git.example.com/fleet/{commit}/{file}#L{line}", "https://git.example.com/c/{commit}"];
        let out = out.to_str().expect("text");
        let args = ["site", "--repo", self.repo.arg(), "--out", out];
        let more = ["--file-link", links[0], "--commit-link", links[1]];
        run_at(self.now(), &[&args[..], &more].concat()).expect(0);
    }
}

/// Writes the page of the demo's fleet.
pub fn demo(folder: &Path) -> PathBuf {
    let (dir, out) = (folder.join("demo"), folder.join("page"));
    let [dir, page] = [&dir, &out].map(|path| path.to_str().expect("text").to_owned());
    run(&["demo", &dir]).expect(0);
    run(&["site", "--repo", &format!("{dir}/fleet"), "--out", &page]).expect(0);
    out
}

fn index_of(words: &[&str], word: &str) -> usize {
    words.iter().position(|one| *one == word).expect("a known word")
}

fn clusters() -> Vec<String> {
    CITIES
        .iter()
        .flat_map(|(city, _)| (1..=TIERS.len()).map(move |number| format!("{city}-{number}")))
        .collect()
}

fn file(namespace: &str, app: &str) -> String {
    format!("apps/{namespace}/{app}.yaml")
}

fn cluster(name: &str, index: usize) -> String {
    let (region, tier) = (CITIES[index / TIERS.len()].1, TIERS[index % TIERS.len()]);
    format!(
        "apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata:\n  name: {name}\n  \
         namespace: kube-federation-system\n  labels: {{region: {region}, tier: {tier}}}\nspec:\n  \
         apiEndpoint: https://{name}.example.com\n  secretRef: {{name: {name}}}\n"
    )
}

fn deployment(namespace: &str, app: &str, version: &str, selector: &str) -> String {
    format!(
        "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedDeployment\nmetadata: {{name: {app}, namespace: {namespace}}}\n\
         spec:\n  template:\n    metadata: {{labels: {{app: {app}}}}}\n    spec:\n      replicas: 3\n      \
         selector: {{matchLabels: {{app: {app}}}}}\n      template:\n        metadata: {{labels: {{app: {app}}}}}\n        \
         spec:\n          containers:\n          - {{name: {app}, image: \"registry.example.com/{namespace}/{app}:{version}\"}}\n  \
         placement: {{clusterSelector: {selector}}}\n"
    )
}

fn problem(namespace: &str, app: &str, kind: &str, words: &str) -> String {
    format!(
        "  problems: [{{group: apps, kind: Deployment, namespace: {namespace}, name: {app}, problem: {kind}, message: \"{words}\"}}]\n"
    )
}
