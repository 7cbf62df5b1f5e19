//! `berth review` in the environments of CI runs, with a recorder in place of the forge.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};

use crate::recorder::{Answer, Recorder};
use crate::support::workflow::{self, Action, Workflow};
use crate::support::{Ran, Repo, berth, cluster, config_map, hermetic, namespace, run};

const POLICY: &str = "apiVersion: berth.dev/v1alpha1
kind: PolicyTest
metadata: {name: everywhere}
spec: {for: workloads, match: {names: [web]}, message: web leaves a cluster, rule: workload.clusters.size() == 3}
";

const EVERYWHERE: &str = "{clusterSelector: {}}";

/// A published fleet at a forge, with a branch that a pull request wants to merge.
struct Proposal {
    repo: Repo,
    folder: tempfile::TempDir,
}

impl Proposal {
    /// Publishes a fleet and commits a change on a branch.
    fn new(files: &[(&str, &str)], change: impl FnOnce(&Repo)) -> Proposal {
        let repo = Repo::new();
        for name in ["a", "b", "c"] {
            repo.write(&format!("clusters/{name}.yaml"), cluster(name, &[("env", "prod")]));
        }
        repo.write("apps/shop.yaml", namespace("shop"));
        repo.write("apps/web.yaml", config_map("web", "one", EVERYWHERE));
        files.iter().for_each(|(path, text)| repo.write(path, text));
        repo.commit("start");
        repo.publish().expect(0);
        repo.git(&["checkout", "-q", "-b", "edit"]);
        change(&repo);
        let proposal = Proposal { repo, folder: tempfile::tempdir().expect("a folder") };
        proposal.commit("an edit");
        proposal
    }

    fn commit(&self, message: &str) {
        self.repo.commit(message);
    }

    /// Fetches all as the workflow files do, and checks the head out.
    fn clone(&self) -> PathBuf {
        let path = self.folder.path().join("clone");
        let _ = std::fs::remove_dir_all(&path);
        let arg = path.to_str().expect("text");
        self.repo.git(&["clone", "-q", self.repo.arg(), arg]);
        self.repo.git(&["-C", arg, "fetch", "-q", "origin", "+refs/berth/*:refs/berth/*"]);
        self.repo.git(&["-C", arg, "checkout", "-q", "--detach", "origin/edit"]);
        path
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn event(&self, head_repository: &str) -> PathBuf {
        let event = json!({"pull_request": {
            "number": 7,
            "html_url": "https://github.com/acme/fleet/pull/7",
            "base": {"ref": "main", "sha": self.repo.id("main"), "repo": {"full_name": "acme/fleet"}},
            "head": {"ref": "edit", "sha": self.repo.id("edit"), "repo": {"full_name": head_repository}},
        }});
        let path = self.file("event.json");
        std::fs::write(&path, event.to_string()).expect("a file");
        path
    }

    /// Reviews as a job of GitHub Actions.
    fn on_github(&self, forge: &Recorder, token: &str, args: &[&str]) -> Ran {
        let clone = self.clone();
        let mut command = berth();
        command
            .current_dir(clone)
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_EVENT_NAME", "pull_request")
            .env("GITHUB_EVENT_PATH", self.event("acme/fleet"))
            .env("GITHUB_API_URL", forge.url())
            .env("GITHUB_REPOSITORY", "acme/fleet")
            .env("GITHUB_STEP_SUMMARY", self.file("summary.md"))
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_RUN_ID", "42")
            .env("GITHUB_TOKEN", token);
        Ran::of(command.arg("review").args(args))
    }

    /// Reviews as a job of GitLab's merge request pipelines.
    fn on_gitlab(&self, forge: &Recorder, args: &[&str]) -> Ran {
        let clone = self.clone();
        let mut command = berth();
        command
            .current_dir(clone)
            .env("CI", "true")
            .env("GITLAB_CI", "true")
            .env("CI_API_V4_URL", forge.url())
            .env("CI_MERGE_REQUEST_PROJECT_ID", "36")
            .env("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "36")
            .env("CI_MERGE_REQUEST_IID", "7")
            .env("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")
            .env("CI_COMMIT_SHA", self.repo.id("edit"))
            .env("GITLAB_TOKEN", "s3cret");
        Ran::of(command.arg("review").args(args))
    }
}

/// A forge that keeps the comments of one pull request.
fn forge() -> (Recorder, Arc<Mutex<Vec<String>>>) {
    let comments = Arc::new(Mutex::new(Vec::<String>::new()));
    let kept = Arc::clone(&comments);
    let recorder = Recorder::start(move |request| {
        let mut kept = kept.lock().expect("a lock");
        let author = json!({"login": "berth[bot]"});
        let name = if request.line.contains("/projects/") { "author" } else { "user" };
        let sent = |id: usize, body: &str| json!({"id": id + 1, "body": body, name: author});
        let (method, path) = request.line.split_once(' ').expect("a request line");
        let body = request.body["body"].as_str().unwrap_or_default();
        let last = path.rsplit('/').next().expect("a path");
        match (method, path.split('?').next().expect("a path")) {
            ("POST", "/graphql") => Answer::new(200, &json!({"data": {"viewer": author}})),
            ("GET", "/user") => Answer::new(200, &author),
            ("GET", path) if path.ends_with("/comments") || path.ends_with("/notes") => {
                let all: Vec<Json> = kept.iter().enumerate().map(|(id, body)| sent(id, body)).collect();
                Answer::new(200, &json!(all))
            }
            ("POST", path) if path.ends_with("/comments") || path.ends_with("/notes") => {
                kept.push(body.to_owned());
                Answer::new(201, &sent(kept.len() - 1, body))
            }
            ("PATCH" | "PUT", _) => {
                let id = last.parse::<usize>().expect("a number") - 1;
                body.clone_into(&mut kept[id]);
                Answer::new(200, &sent(id, body))
            }
            ("POST", path) if path.contains("/statuses/") => Answer::new(201, &json!({})),
            _ => Answer::new(404, &json!({"message": "Not Found"})),
        }
    });
    (recorder, comments)
}

fn comments(kept: &Mutex<Vec<String>>) -> Vec<String> {
    kept.lock().expect("a lock").clone()
}

/// The commit statuses that were set, oldest first.
fn statuses(forge: &Recorder) -> Vec<Json> {
    let all = forge.requests().into_iter().filter(|request| request.line.contains("/statuses/"));
    all.map(|request| request.body).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Insists that no line of a log is taken for a command by a runner of GitHub, Gitea or Forgejo.
#[track_caller]
fn commands_nothing(log: &str) {
    for line in log.lines() {
        let is_own =
            ["error", "warning", "notice"].iter().any(|one| line.starts_with(&format!("::{one} file=")));
        assert!(is_own || !line.trim_start().starts_with("::"), "{line:?}\n{log}");
        assert!(is_own || !line.contains("##["), "{line:?}\n{log}");
        assert!(!line.contains('\x1b'), "{line:?}");
    }
}

#[test]
fn github_has_one_comment_a_status_and_annotations() {
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
    });
    let (forge, kept) = forge();
    let ran = proposal.on_github(&forge, "s3cret", &[]).expect(0);
    assert!(ran.err.contains("comment created"), "{}", ran.err);
    assert!(ran.out.contains("3 objects changed") || ran.out.contains("3 changed"), "{}", ran.out);
    commands_nothing(&ran.out);
    commands_nothing(&ran.err);
    let first = comments(&kept);
    assert_eq!(first.len(), 1);
    assert!(first[0].starts_with("<!-- berth review -->\n### berth: "), "{}", first[0]);
    assert!(first[0].contains("`#7` ("), "{}", first[0]);
    assert_eq!(
        read(&proposal.file("summary.md")).trim_end(),
        first[0].split_once('\n').expect("lines").1.trim_end()
    );

    // A fault takes the comment's place, and stands on its line.
    proposal.repo.write("apps/bad.yaml", config_map("bad", "x", "{clusterSelectr: {}}"));
    proposal.commit("a fault");
    let ran =
        proposal.on_github(&forge, "s3cret", &["--sarif", "../out.sarif", "--report", "../out.md"]).expect(1);
    assert!(ran.out.lines().any(|line| line.starts_with("::error file=apps/bad.yaml,line=")), "{}", ran.out);
    commands_nothing(&ran.out);
    let second = comments(&kept);
    assert_eq!(second.len(), 1);
    assert!(second[0].contains("apps/bad.yaml"), "{}", second[0]);
    assert!(second[0].ends_with(read(&proposal.file("out.md")).as_str()));
    assert_eq!(
        serde_json::from_str::<Json>(&read(&proposal.file("out.sarif"))).expect("JSON")["version"],
        "2.1.0"
    );

    let states: Vec<Json> = statuses(&forge).iter().map(|status| status["state"].clone()).collect();
    assert_eq!(states, ["success", "failure"]);
    let last = forge.requests().pop().expect("a request");
    assert_eq!(last.line, format!("POST /repos/acme/fleet/statuses/{}", proposal.repo.id("edit")));
    assert_eq!(last.body["context"], "berth");
    assert!(last.body["description"].as_str().expect("text").starts_with("1 error; "), "{}", last.body);
    assert!(!ran.out.contains("s3cret") && !ran.err.contains("s3cret"));
}

#[test]
fn a_preview_is_linked_where_the_daemon_makes_them() {
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
    });
    let (forge, kept) = forge();
    let link = "[Preview](https://github.com/acme/fleet/compare/berth/rendered...berth/preview/edit)";
    proposal.on_github(&forge, "s3cret", &["--previews"]).expect(0);
    assert!(comments(&kept)[0].contains(link), "{}", comments(&kept)[0]);
    proposal.on_github(&forge, "s3cret", &[]).expect(0);
    assert!(!comments(&kept)[0].contains("Preview"), "{}", comments(&kept)[0]);
}

#[test]
fn the_page_of_the_change_is_linked_where_the_run_keeps_it() {
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
    });
    let (forge, kept) = forge();
    let page = proposal.file("page");
    let link = "[Page](https://github.com/acme/fleet/actions/runs/42): ";
    proposal.on_github(&forge, "s3cret", &["--site", page.to_str().expect("text")]).expect(0);
    assert!(comments(&kept)[0].contains(link), "{}", comments(&kept)[0]);
    assert!(page.join("index.html").exists());
    proposal.on_github(&forge, "s3cret", &[]).expect(0);
    assert!(!comments(&kept)[0].contains("[Page]"), "{}", comments(&kept)[0]);
    // A folder with other files is left alone, and the verdict stands.
    std::fs::write(proposal.file("other.txt"), "").expect("a file");
    let other = proposal.folder.path().to_str().expect("text").to_owned();
    let ran = proposal.on_github(&forge, "s3cret", &["--site", &other]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("files that are not part of a page"), "{}", ran.err);
    assert!(comments(&kept)[0].contains("3 objects changed"), "{}", comments(&kept)[0]);
}

#[test]
fn gitlab_has_one_note_a_status_and_a_code_quality_report() {
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/shop.yaml", namespace("shop").replace(EVERYWHERE, "{clusters: [{name: a}]}"));
    });
    let (forge, kept) = forge();
    let args = ["--code-quality", "../quality.json", "--fleet", "north"];
    let ran = proposal.on_gitlab(&forge, &args).expect(5);
    assert!(!ran.out.contains("::"), "{}", ran.out);
    proposal.on_gitlab(&forge, &args).expect(5);
    let all = comments(&kept);
    assert_eq!(all.len(), 1);
    assert!(all[0].starts_with("<!-- berth review north -->\n"), "{}", all[0]);
    assert!(all[0].contains("Berth-Allow-Delete: "), "{}", all[0]);
    assert!(read(&proposal.file("quality.json")).starts_with('['));
    // It waits for an approval.
    let last = statuses(&forge).pop().expect("a status");
    assert_eq!((&last["state"], &last["name"]), (&json!("pending"), &json!("berth/north")));
    let lines = forge.lines();
    assert!(lines.iter().any(|line| line == "POST /projects/36/merge_requests/7/notes"), "{lines:?}");
}

#[test]
fn without_a_right_all_is_printed_and_the_code_is_the_same() {
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/shop.yaml", namespace("shop").replace(EVERYWHERE, "{clusters: [{name: a}]}"));
    });
    let (forge, _) = forge();
    let with_token = proposal.on_github(&forge, "s3cret", &[]).expect(5);
    let asked = forge.lines().len();
    let without = proposal.on_github(&forge, "", &[]).expect(5);
    assert_eq!(forge.lines().len(), asked);
    assert_eq!(without.out, with_token.out);
    assert!(without.err.contains("posted no comment and no status: no token for github"), "{}", without.err);

    let refusing = Recorder::start(|_| Answer::new(403, &json!({"message": "Resource not accessible"})));
    let refused = proposal.on_github(&refusing, "s3cret", &[]).expect(5);
    assert_eq!(refused.out, with_token.out);
    for what in ["no comment: ", "no status: "] {
        let said = refused.err.lines().filter(|line| line.starts_with(what)).count();
        assert_eq!(said, 1, "{}", refused.err);
    }
}

#[test]
fn a_forge_that_fails_is_6_where_nothing_is_worse() {
    let fine = Proposal::new(&[], |repo| repo.write("clusters/d.yaml", cluster("d", &[])));
    let refusing = Recorder::start(|_| Answer::new(401, &json!({"message": "Bad credentials"})));
    let ran = fine.on_github(&refusing, "s3cret", &[]).expect(6);
    assert!(ran.err.contains("the comment is not written: github does not accept the token"), "{}", ran.err);
    fine.on_github(&refusing, "s3cret", &["--no-comment", "--no-status"]).expect(0);
    let held =
        Proposal::new(&[], |repo| repo.write("apps/web.yaml", config_map("web", "one", "{clusters: []}")));
    held.on_github(&refusing, "s3cret", &[]).expect(5);
}

#[test]
fn a_run_for_an_older_commit_leaves_the_comment_to_the_newer() {
    let proposal = Proposal::new(&[], |repo| repo.write("clusters/d.yaml", cluster("d", &[])));
    let later = Recorder::start(|request| match request.line.as_str() {
        "GET /repos/acme/fleet/pulls/7" => Answer::new(200, &json!({"head": {"sha": "1".repeat(40)}})),
        _ => Answer::new(201, &json!({})),
    });
    let ran = proposal.on_github(&later, "s3cret", &[]).expect(0);
    assert!(ran.err.contains("no comment: the pull request has a later commit"), "{}", ran.err);
    let status = format!("POST /repos/acme/fleet/statuses/{}", proposal.repo.id("edit"));
    assert_eq!(later.lines(), ["GET /repos/acme/fleet/pulls/7", &status]);
}

#[test]
fn a_change_without_a_plan_says_so_in_the_comment() {
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
    });
    let (forge, kept) = forge();
    proposal.on_github(&forge, "s3cret", &[]).expect(0);
    proposal.repo.git(&["checkout", "-q", "main"]);
    proposal.repo.write("apps/web.yaml", config_map("web", "three", EVERYWHERE));
    proposal.commit("another edit");
    proposal.repo.git(&["checkout", "-q", "edit"]);
    let ran = proposal.on_github(&forge, "s3cret", &[]).expect(1);
    assert!(ran.err.contains("conflicts in 1 file"), "{}", ran.err);
    let all = comments(&kept);
    assert_eq!(all.len(), 1);
    assert!(all[0].contains("### berth: no plan") && all[0].contains("apps/web.yaml"), "{}", all[0]);
    assert_eq!(statuses(&forge).pop().expect("a status")["state"], "failure");
}

#[test]
fn a_shallow_clone_is_told_what_to_fetch() {
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
    });
    let clone = proposal.file("shallow");
    let arg = clone.to_str().expect("text");
    let url = format!("file://{}", proposal.repo.arg());
    proposal.repo.git(&["clone", "-q", "--depth=1", "--branch", "edit", &url, arg]);
    let (forge, kept) = forge();
    let review = |head: &str| {
        let mut command = berth();
        command.current_dir(&clone).env("GITHUB_TOKEN", "s3cret");
        let named =
            ["--forge", "github", "--api", forge.url(), "--repository", "acme/fleet", "--pull-request", "7"];
        Ran::of(command.arg("review").args(named).args(["--base", "origin/main", "--head", head]))
    };
    let ran = review("HEAD").expect(6);
    assert!(ran.err.contains("git fetch --unshallow origin"), "{}", ran.err);
    assert!(comments(&kept)[0].contains("git fetch --unshallow origin"));
    proposal.repo.git(&[
        "-C",
        arg,
        "fetch",
        "-q",
        "--unshallow",
        "origin",
        "+refs/heads/*:refs/remotes/origin/*",
        "+refs/berth/*:refs/berth/*",
    ]);
    review("HEAD").expect(0);
    assert_eq!(comments(&kept).len(), 1);
    assert_eq!(statuses(&forge).pop().expect("a status")["state"], "success");
}

#[test]
fn outside_ci_nothing_is_written_anywhere() {
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
    });
    let review = ["review", "--repo", proposal.repo.arg(), "--base", "main"];
    let ran = run(&review).expect(0);
    let plan = run(&["plan", "--repo", proposal.repo.arg(), "--base", "main"]).expect(0);
    assert_eq!(ran.out, plan.out);
    run(&[&review[..], &["--fail-on", "changes"]].concat()).expect(3);
    let ran = run(&[&review[..], &["--pull-request", "7"]].concat()).expect(2);
    assert!(ran.err.contains("--forge"), "{}", ran.err);
}

#[test]
fn a_hostile_head_changes_not_how_it_is_judged() {
    let rules = "apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {name: apps}\n\
                 spec: {folders: [apps], clusterSets: {bind: ['*']}, namespaces: [shop], clusterKinds: ['*']}\n---\n\
                 apiVersion: berth.dev/v1alpha1\nkind: AccessRule\nmetadata: {name: clusters}\n\
                 spec: {folders: [clusters, policy-tests], clusterSets: {admin: ['*']}, clusterKinds: ['*']}\n";
    let files = [("access/rules.yaml", rules), ("policy-tests/everywhere.yaml", POLICY)];
    let proposal = Proposal::new(&files, |repo| {
        // Every rule goes, in the same change that breaks them, and reading becomes lax.
        repo.git(&["rm", "-q", "-r", "access", "policy-tests"]);
        repo.write("apps/web.yaml", config_map("web", "one", "{clusters: [{name: a}]}"));
        repo.write("apps/bank.yaml", namespace("bank"));
        repo.write(
            "berth.yaml",
            "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {unknownFields: warning}\n",
        );
    });
    let (forge, kept) = forge();
    let ran = proposal.on_github(&forge, "s3cret", &[]).expect(1);
    let all = comments(&kept);
    assert!(all[0].contains("policy everywhere: ") && all[0].contains("web leaves a cluster"), "{}", all[0]);
    assert!(ran.err.contains("apps/bank.yaml:"), "{}", ran.err);
    assert!(
        ran.err.contains("berth.yaml:1:1: warning: the change edits the fleet's settings"),
        "{}",
        ran.err
    );
    assert_eq!(statuses(&forge)[0]["state"], "failure");
}

#[test]
fn a_hostile_head_injects_nothing() {
    let proposal = Proposal::new(&[], |repo| {
        let bad = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\nmetadata: {name: x, namespace: shop}\n\
                   spec: {template: {}, placement: {clusterSelector: {}}, \"@team </details> [a](http://x) `` ::error::x \\e[31m\": 1}\n";
        for name in [
            "::error::gone.yaml",
            "  ::set-output name=x::y.yaml",
            "##[error]x.yaml",
            "a\n::error::b.yaml",
            "`@team`.yaml",
        ] {
            repo.write(name, bad);
        }
        let text = config_map("web", "\\n::error::two\\n````\\n@team\\n</details>", EVERYWHERE);
        repo.write("apps/web.yaml", text);
    });
    proposal.commit("::error::subject `` @team <b>");
    let (forge, kept) = forge();
    let ran = proposal.on_github(&forge, "s3cret", &["-v"]).expect(1);
    commands_nothing(&ran.out);
    commands_nothing(&ran.err);
    assert!(ran.err.contains("error::gone.yaml"), "{}", ran.err);
    assert!(ran.out.lines().any(|line| line.starts_with("::error file=")), "{}", ran.out);
    let comment = comments(&kept).remove(0);
    for word in ["@team", "</details> [a]", "::error::subject"] {
        assert!(comment.contains(word), "{comment}");
    }
    let outside = outside_code(&comment);
    for word in ["@team", "http://x", "::error", "<b>"] {
        assert!(!outside.contains(word), "{word}\n{outside}\n---\n{comment}");
    }
}

/// The repository as a forge has it, below `acme/fleet.git`, with the head's ref of the forge, and a folder with the
/// program.
fn at_forge(proposal: &Proposal, head: &str) -> (String, String) {
    let remote = proposal.file("acme/fleet.git");
    let arg = remote.to_str().expect("text");
    proposal.repo.git(&["clone", "-q", "--mirror", proposal.repo.arg(), arg]);
    proposal.repo.git(&["-C", arg, "update-ref", head, &proposal.repo.id("edit")]);
    proposal.repo.git(&["-C", arg, "update-ref", "-d", "refs/heads/edit"]);
    std::fs::create_dir(proposal.file("bin")).expect("a folder");
    workflow::toolchain(&proposal.file("bin"));
    let path = format!("{}:{}", proposal.file("bin").display(), std::env::var("PATH").expect("a path"));
    (format!("file://{}", proposal.folder.path().display()), path)
}

#[test]
fn the_workflows_of_github_fetch_all_that_a_review_needs() {
    for (name, rights, n_comments) in [
        ("github.yml", &["contents: read", "pull-requests: write", "statuses: write"][..], 1),
        ("github-forks.yml", &["contents: read"], 0),
    ] {
        let proposal = Proposal::new(&[], |repo| {
            repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
        });
        let (server, path) = at_forge(&proposal, "refs/pull/7/head");
        let (forge, kept) = forge();
        let (event, summary) = (proposal.event("acme/fleet"), proposal.file("summary.md"));
        let variables = [
            ("PATH", path.as_str()),
            ("CI", "true"),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_EVENT_NAME", "pull_request"),
            ("GITHUB_EVENT_PATH", event.to_str().expect("text")),
            ("GITHUB_STEP_SUMMARY", summary.to_str().expect("text")),
            ("GITHUB_SERVER_URL", &server),
            ("GITHUB_API_URL", forge.url()),
            ("GITHUB_REPOSITORY", "acme/fleet"),
        ];
        let workflow = Workflow::read(name);
        let given: Vec<String> =
            workflow.permissions.iter().map(|(name, right)| format!("{name}: {right}")).collect();
        assert_eq!(given, rights);
        let values = [
            ("github.token", "s3cret".to_owned()),
            ("inputs.token", "s3cret".to_owned()),
            ("inputs.page", "true".to_owned()),
            ("inputs.arguments", workflow.inputs().get("arguments").cloned().unwrap_or_default()),
            ("github.event.pull_request.number", "7".to_owned()),
        ];
        let jobs = proposal.file("job");
        std::fs::create_dir(&jobs).expect("a folder");
        let ran = Action::read().run(&jobs, &variables, &values).expect(0);
        assert!(ran.out.contains("3 objects changed"), "{}", ran.out);
        assert!(jobs.join("temp/berth-page/index.html").exists(), "{}", ran.err);
        assert_eq!((comments(&kept).len(), statuses(&forge).len()), (n_comments, n_comments));
        assert!(read(&summary).contains("3 objects changed"));
    }
}

#[test]
fn the_job_of_gitlab_fetches_all_that_a_review_needs() {
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
    });
    let (server, path) = at_forge(&proposal, "refs/merge-requests/7/head");
    let (forge, kept) = forge();
    let sources = Repo::with(&[("Cargo.toml", "[workspace]\n")]);
    let text = read(&workflow::path("gitlab-ci.yml"))
        .replace("$[[ inputs.sources ]]", &format!("file://{}", sources.path().display()))
        .replace("$[[ inputs.commit ]]", &sources.id("main"));
    let (_, text) = text.split_once("\n---\n").expect("a head");
    let job = &serde_yaml::from_str::<Json>(text).expect("YAML")["berth"];
    let lines =
        ["before_script", "script"].map(|name| job[name].as_array().expect("a list").clone()).concat();
    let lines = lines.iter().map(|line| line.as_str().expect("text"));
    let script: Vec<&str> = lines.filter(|line| !line.starts_with("apt-get ")).collect();
    let variable = |name: &str| job["variables"][name].as_str().expect("text").to_owned();
    let jobs = proposal.file("job");
    std::fs::create_dir(&jobs).expect("a folder");
    let mut command = hermetic("bash");
    command
        .current_dir(&jobs)
        .args(["-e", "-c", &script.join("\n")])
        .env("PATH", path)
        .env("CI", "true")
        .env("GITLAB_CI", "true")
        .env("CI_API_V4_URL", forge.url())
        .env("CI_JOB_TOKEN", "job")
        .env("CI_MERGE_REQUEST_PROJECT_ID", "36")
        .env("CI_MERGE_REQUEST_PROJECT_URL", format!("{server}/acme/fleet"))
        .env("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "37")
        .env("CI_MERGE_REQUEST_IID", "7")
        .env("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")
        .env("CI_COMMIT_SHA", proposal.repo.id("edit"))
        .env("BERTH_SOURCES", variable("BERTH_SOURCES"))
        .env("BERTH_COMMIT", variable("BERTH_COMMIT"))
        .env("BERTH_FORGE_TOKEN", "s3cret");
    Ran::of(&mut command).expect(0);
    assert_eq!(comments(&kept).len(), 1);
    assert!(read(&jobs.join("berth.json")).starts_with('['));
}

#[test]
fn the_page_names_the_workflow_files_and_its_commands_work() {
    let page = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pull-requests.md"));
    for name in ["github.yml", "github-forks.yml", "gitlab-ci.yml", "gitea.yml"] {
        assert!(page.contains(&format!("../deploy/ci/{name}")), "{name}");
    }
    let proposal = Proposal::new(&[], |repo| {
        repo.write("apps/web.yaml", config_map("web", "two", EVERYWHERE));
    });
    let clone = proposal.clone();
    let arg = clone.to_str().expect("text");
    for (branch, from) in [("main", "origin/main"), ("my-change", "origin/edit")] {
        proposal.repo.git(&["-C", arg, "branch", "-f", branch, from]);
    }
    let commands: Vec<&str> = page.lines().filter(|line| line.starts_with("berth review")).collect();
    assert_eq!(commands.len(), 3);
    for command in commands {
        let command = command.split(" #").next().expect("text");
        let words = command.split_whitespace().skip(1);
        let ran = Ran::of(berth().current_dir(&clone).args(words)).expect(0);
        assert!(ran.out.contains("3 objects changed"), "{}", ran.out);
    }
    assert!(clone.join("quality.json").exists() && clone.join("review.sarif").exists());
}

/// Markdown without its blocks and spans of code, in which a forge makes neither links nor mentions.
fn outside_code(markdown: &str) -> String {
    let mut outside = String::new();
    let mut fence: Option<usize> = None;
    for line in markdown.lines() {
        let ticks = line.chars().take_while(|c| *c == '`').count();
        match fence {
            Some(length) if ticks >= length && line.len() == ticks => fence = None,
            Some(_) => {}
            None if ticks >= 3 && !line[ticks..].contains('`') => fence = Some(ticks),
            None => outside.push_str(&without_spans(line)),
        }
        outside.push('\n');
    }
    assert_eq!(fence, None, "an open block\n{markdown}");
    outside
}

fn without_spans(line: &str) -> String {
    let Some(start) = line.find('`') else { return line.to_owned() };
    let (before, rest) = line.split_at(start);
    let delimiter = &rest[..rest.len() - rest.trim_start_matches('`').len()];
    let inner = &rest[delimiter.len()..];
    // A span ends at a run of as many backticks.
    let end = inner.match_indices(delimiter).map(|(at, _)| at).find(|at| {
        let (left, right) = (&inner[..*at], &inner[at + delimiter.len()..]);
        !left.ends_with('`') && !right.starts_with('`')
    });
    match end {
        Some(at) => format!("{before}{}", without_spans(&inner[at + delimiter.len()..])),
        None => line.to_owned(),
    }
}
