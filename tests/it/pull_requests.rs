//! Ten pull requests on a real Gitea, each reviewed by the action of deploy/ci/gitea.yml: opened, updated, forced,
//! from a fork, hostile, merged. With `--nocapture` each one's comment is printed as it ended.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::gitea::{Gitea, User};
use crate::support::workflow::{self, Action, Workflow};
use crate::support::{Ran, Repo, cluster, config_map, namespace};

const EVERYWHERE: &str = "{clusterSelector: {}}";
const SOUTH: &str = "{clusterSelector: {matchLabels: {region: south}}}";

const POLICY: &str = "apiVersion: berth.dev/v1alpha1
kind: PolicyTest
metadata: {name: two-copies}
spec: {for: workloads, match: {names: [web]}, message: web has one copy, rule: workload.clusters.size() >= 2}
";

/// A published fleet on a forge.
struct Bed {
    gitea: Gitea,
    owner: User,
    stranger: User,
    repository: String,
    fork: String,
    repo: Repo,
    /// The rights of the review's own account, and of a run for a fork.
    token: String,
    reading: String,
    programs: tempfile::TempDir,
}

impl Bed {
    fn new(gitea: Gitea) -> Bed {
        let (owner, stranger) = (gitea.user("owner"), gitea.user("stranger"));
        let repository = gitea.repository(&owner, "fleet");
        let repo = Repo::new();
        for (name, region) in
            [("oslo", "north"), ("bergen", "north"), ("turin", "south"), ("rome", "south"), ("bari", "south")]
        {
            repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[("region", region)]));
        }
        repo.write("apps/shop.yaml", namespace("shop"));
        repo.write("apps/web.yaml", config_map("web", "one", SOUTH));
        repo.write("apps/api.yaml", config_map("api", "one", EVERYWHERE));
        repo.write("policy-tests/copies.yaml", POLICY);
        repo.commit("start");
        let token = gitea.token(&owner.name, &["write:issue", "write:repository", "read:user"]);
        let reading = gitea.token(&stranger.name, &["read:issue", "read:repository", "read:user"]);
        let programs = tempfile::tempdir().expect("a folder");
        workflow::toolchain(programs.path());
        let bed =
            Bed { gitea, owner, stranger, repository, fork: String::new(), repo, token, reading, programs };
        bed.publish();
        let fork = bed.gitea.fork(&bed.stranger, &bed.repository);
        Bed { fork, ..bed }
    }

    /// Publishes `main`, as the daemon does, and pushes all that it wrote.
    fn publish(&self) {
        self.repo.publish().expect(0);
        for refs in ["main", "refs/heads/berth/rendered", "+refs/berth/*:refs/berth/*"] {
            self.gitea.push(&self.owner, &self.repository, self.repo.path(), refs);
        }
    }

    /// Commits a change on a branch that begins at `main`, or goes on from itself, and pushes it.
    fn push(&self, branch: &str, from: &str, message: &str, change: impl FnOnce(&Repo)) {
        self.repo.git(&["checkout", "-q", "-B", branch, from]);
        change(&self.repo);
        self.repo.commit(message);
        let (user, repository) = match branch {
            "fork" => (&self.stranger, &self.fork),
            _ => (&self.owner, &self.repository),
        };
        self.gitea.push(user, repository, self.repo.path(), &format!("+HEAD:refs/heads/{branch}"));
        self.repo.git(&["checkout", "-q", "main"]);
    }

    fn open(&self, branch: &str, message: &str, change: impl FnOnce(&Repo)) -> u64 {
        self.push(branch, "main", message, change);
        match branch {
            "fork" => self.gitea.pull_request(&self.stranger, &self.repository, "stranger:fork"),
            _ => self.gitea.pull_request(&self.owner, &self.repository, branch),
        }
    }

    /// Runs the workflow for a pull request, as an Actions run of the forge would.
    fn review(&self, number: u64, token: &str, fleet: &str) -> Ran {
        let folder = tempfile::tempdir().expect("a folder");
        let event = folder.path().join("event.json");
        std::fs::write(&event, self.gitea.event(&self.repository, number)).expect("a file");
        let path = std::env::var("PATH").expect("a path");
        let path = format!("{}:{path}", self.programs.path().display());
        let variables = [
            ("PATH", path.as_str()),
            ("CI", "true"),
            ("GITEA_ACTIONS", "true"),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_EVENT_NAME", "pull_request"),
            ("GITHUB_EVENT_PATH", event.to_str().expect("text")),
            ("GITHUB_SERVER_URL", &self.gitea.url),
            ("GITHUB_API_URL", &self.gitea.api()),
            ("GITHUB_REPOSITORY", &self.repository),
        ];
        let of_fleet = [("BERTH_FLEET", fleet)];
        let named = if fleet.is_empty() { &of_fleet[..0] } else { &of_fleet[..] };
        let variables = [&variables[..], named].concat();
        let values = [
            ("github.token", token.to_owned()),
            ("inputs.token", token.to_owned()),
            ("inputs.arguments", String::new()),
            ("inputs.page", "false".to_owned()),
            ("github.event.pull_request.number", number.to_string()),
        ];
        let inputs = Workflow::read("gitea.yml").inputs().clone();
        assert_eq!(inputs.get("token").map(String::as_str), Some("${{ secrets.BERTH_FORGE_TOKEN }}"));
        Action::read().run(folder.path(), &variables, &values)
    }

    fn comments(&self, number: u64) -> Vec<String> {
        let all = self.gitea.comments(&self.repository, number);
        all.iter().map(|comment| comment["body"].as_str().expect("text").to_owned()).collect()
    }

    fn status(&self, number: u64) -> Option<String> {
        let path = format!("repos/{}/pulls/{number}", self.repository);
        let head = self.gitea.call(&self.owner.token, "GET", &path, None)["head"]["sha"].clone();
        let all = self.gitea.statuses(&self.repository, head.as_str().expect("an id"));
        all.iter()
            .find(|status| status["context"] == "berth")
            .map(|status| status["status"].as_str().expect("text").to_owned())
    }

    /// Reviews, and insists on the code, the status and the only comment, which has these texts.
    #[track_caller]
    fn expect(&self, number: u64, code: i32, status: &str, texts: &[&str]) {
        let ran = self.review(number, &self.token, "").expect(code);
        let comments = self.comments(number);
        assert_eq!(comments.len(), 1, "{comments:#?}\n{}", ran.err);
        for text in texts {
            assert!(comments[0].contains(text), "no {text:?} in\n{}", comments[0]);
        }
        assert_eq!(self.status(number).as_deref(), Some(status), "{}", comments[0]);
    }
}

fn without_label(repo: &Repo) {
    repo.write("clusters/turin.yaml", cluster("turin", &[("region", "suoth")]));
}

fn narrowed_namespace(repo: &Repo) {
    repo.write(
        "apps/shop.yaml",
        namespace("shop").replace(EVERYWHERE, "{clusters: [{name: oslo}, {name: turin}, {name: rome}]}"),
    );
}

fn hostile(repo: &Repo) {
    let value = "\\n````\\n@stranger ![x](http://evil.example/x.png) <img src=x> </details>\\n\\e[31m";
    repo.write("apps/api.yaml", config_map("api", value, EVERYWHERE));
    repo.write("`@stranger`\n::error::<b>.yaml", "apiVersion: v1\nkind: [@stranger\n");
}

#[test]
#[ignore = "needs Gitea"]
fn ten_pull_requests_have_one_comment_each_that_tells_their_last_commit() {
    let Some(gitea) = Gitea::start() else { return };
    let bed = Bed::new(gitea);
    let web = |value: &str, placement: &str| config_map("web", value, placement);

    let typo = bed.open("typo", "a label with a typo", without_label);
    let edit = bed.open("edit", "another value", |repo| repo.write("apps/web.yaml", web("two", SOUTH)));
    let joins = bed.open("joins", "palermo joins", |repo| {
        repo.write("clusters/palermo.yaml", cluster("palermo", &[("region", "south")]));
    });
    let held = bed.open("held", "the shop moves", narrowed_namespace);
    let broken = bed.open("broken", "a fault", |repo| {
        repo.write("apps/bad.yaml", config_map("bad", "x", "{clusterSelectr: {}}"));
    });
    let policy = bed.open("policy", "one copy", |repo| {
        repo.write("apps/web.yaml", web("one", "{clusters: [{name: turin}]}"));
    });
    let forked = bed.open("fork", "from outside", |repo| {
        repo.write("apps/api.yaml", config_map("api", "two", EVERYWHERE));
    });
    let conflict =
        bed.open("conflict", "a third value", |repo| repo.write("apps/web.yaml", web("three", SOUTH)));
    let forced = bed.open("forced", "first try", |repo| {
        repo.write("apps/new.yaml", config_map("new", "first", EVERYWHERE));
    });
    let evil = bed.open("evil", "`` @stranger <b> ::error::x", hostile);

    // Opened.
    bed.expect(typo, 0, "success", &["clusters/turin.yaml:", "suoth", "turin"]);
    bed.expect(edit, 0, "success", &["one → two", "3 objects changed"]);
    bed.expect(joins, 0, "success", &["palermo", "added"]);
    bed.expect(held, 5, "pending", &["held for approval", "Berth-Allow-Delete: "]);
    bed.expect(broken, 1, "failure", &["apps/bad.yaml:", "clusterSelectr"]);
    bed.expect(policy, 1, "failure", &["policy two-copies", "web has one copy"]);
    bed.expect(conflict, 0, "success", &["one → three"]);
    bed.expect(forced, 0, "success", &["ConfigMap shop/new"]);
    bed.expect(evil, 1, "failure", &["@stranger"]);
    // Printed only, for a run that may write nothing.
    let ran = bed.review(forked, &bed.reading, "").expect(0);
    assert!(
        ran.out.contains("5 objects changed") && ran.err.contains("no comment: the token has no right"),
        "{}",
        ran.err
    );
    assert_eq!((bed.comments(forked).len(), bed.status(forked)), (0, None));

    // Updated, approved, forced.
    let approval = bed.comments(held)[0]
        .lines()
        .find(|line| line.starts_with("Berth-Allow-Delete: "))
        .expect("a line")
        .to_owned();
    bed.push("held", "held", &format!("yes\n\n{approval}"), |_| {});
    bed.expect(held, 0, "success", &["removed", "its removals are approved by commit"]);
    bed.push("broken", "broken", "mended", |repo| {
        repo.write("apps/bad.yaml", config_map("bad", "x", EVERYWHERE));
    });
    bed.expect(broken, 0, "success", &["ConfigMap shop/bad"]);
    bed.push("forced", "main", "second try", |repo| {
        repo.write("apps/newer.yaml", config_map("newer", "second", EVERYWHERE));
    });
    bed.expect(forced, 0, "success", &["ConfigMap shop/newer"]);
    assert!(!bed.comments(forced)[0].contains("ConfigMap shop/new\n"), "{}", bed.comments(forced)[0]);
    bed.expect(forced, 0, "success", &["ConfigMap shop/newer"]);

    // Merged and published.
    let merge = format!("repos/{}/pulls/{edit}/merge", bed.repository);
    bed.gitea.call(&bed.owner.token, "POST", &merge, Some(&json!({"Do": "merge"})));
    bed.repo.git(&["pull", "-q", &bed.gitea.remote(&bed.owner, &bed.repository), "main"]);
    bed.publish();
    bed.expect(conflict, 1, "failure", &["no plan", "apps/web.yaml"]);
    bed.expect(typo, 0, "success", &["suoth", "merged into origin/main"]);
    // A second fleet of the repository has its own comment.
    bed.review(joins, &bed.token, "south").expect(0);
    assert_eq!(bed.comments(joins).len(), 2);

    // The text of strangers mentioned nobody.
    let noticed = bed.gitea.call(&bed.stranger.token, "GET", "notifications?all=true", None);
    let noticed: Vec<&str> = noticed
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["subject"]["title"].as_str())
        .collect();
    assert!(!noticed.contains(&"Merge evil"), "{noticed:?}");

    let all: BTreeMap<u64, &str> = [
        (typo, "label typo"),
        (edit, "another value, merged"),
        (joins, "a cluster joins, two fleets"),
        (held, "held, then approved"),
        (broken, "broken, then mended"),
        (policy, "policy test fails"),
        (forked, "from a fork"),
        (conflict, "conflict after a merge"),
        (forced, "forced"),
        (evil, "hostile"),
    ]
    .into();
    for (number, what) in all {
        let comments = bed.comments(number);
        let status = bed.status(number).unwrap_or_else(|| "none".to_owned());
        println!("\n=== #{number} {what}: comments: {}, status: {status}", comments.len());
        comments
            .iter()
            .for_each(|comment| println!("{}", comment.lines().take(40).collect::<Vec<_>>().join("\n")));
    }
}
