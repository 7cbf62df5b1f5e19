//! `berth vendor`: charts and bases of others come into the repository with a lock, and nothing else does.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::charts::packagers;
use crate::support::registry::Registry;
use crate::support::{Ran, Repo, berth, hermetic, small_fleet};

/// A repository of charts on this machine: a server of the files in a folder.
struct Charts {
    folder: tempfile::TempDir,
    port: u16,
    /// The lines of all requests.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Charts {
    fn serve() -> Charts {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (root, asked) = (folder.path().to_owned(), Arc::new(Mutex::new(Vec::new())));
        let lines = asked.clone();
        std::thread::spawn(move || {
            listener.incoming().flatten().for_each(|stream| answer(&stream, &root, &lines));
        });
        Charts { folder, port, asked }
    }

    fn address(&self, chart: &str) -> String {
        format!("http://127.0.0.1:{}/{chart}", self.port)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Makes the archive of a version of the chart `web`, and returns its digest.
    fn package(&self, version: &str, colour: &str) -> String {
        self.write("web/Chart.yaml", format!("apiVersion: v2\nname: web\nversion: {version}\n"));
        self.write("web/values.yaml", format!("colour: {colour}\n"));
        self.write("web/templates/config.yaml", super::sources::CONFIG);
        self.pack(&format!("web-{version}.tgz"), &["web"])
    }

    fn pack(&self, archive: &str, arguments: &[&str]) -> String {
        let mut tar = hermetic("tar");
        Ran::of(tar.current_dir(self.folder.path()).args(["-czPf", archive]).args(arguments)).expect(0);
        let sum = Ran::of(hermetic("sha256sum").arg(self.path(archive))).expect(0).out;
        sum.split(' ').next().expect("a digest").to_owned()
    }

    /// Writes the index of these versions, each with the digest that it names.
    fn index(&self, versions: &[(&str, &str)]) {
        let entry = |(version, digest): &(&str, &str)| {
            format!("  - {{version: {version}, urls: [web-{version}.tgz], digest: \"{digest}\"}}\n")
        };
        let entries: String = versions.iter().map(entry).collect();
        self.write("index.yaml", format!("apiVersion: v1\nentries:\n  web:\n{entries}"));
    }
}

/// Answers a request for a file. A client of Git is asked for its login.
fn answer(mut stream: &TcpStream, root: &Path, asked: &Mutex<Vec<String>>) {
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let Some(first) = lines.first().cloned() else { return };
    asked.lock().expect("no one panicked").extend(lines);
    let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let (status, body) = match std::fs::read(root.join(path)) {
        _ if path.contains("info/refs") => {
            ("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"", Vec::new())
        }
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let _ =
        write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(&body);
}

fn vendor(repo: &Repo, arguments: &[&str]) -> Ran {
    Ran::of(berth().current_dir(repo.path()).arg("vendor").args(arguments))
}

fn read(repo: &Repo, path: &str) -> String {
    std::fs::read_to_string(repo.path().join(path)).unwrap_or_default()
}

#[test]
fn a_chart_comes_with_its_lock_and_goes_to_other_versions() {
    let (charts, repo) = (Charts::serve(), small_fleet());
    let [old, new, next] =
        ["1.9.0", "1.10.0", "2.0.0-rc.1"].map(|version| charts.package(version, &format!("of-{version}")));
    charts.index(&[("1.9.0", &old), ("1.10.0", &new), ("2.0.0-rc.1", &next)]);
    let web = charts.address("web");
    let ran = vendor(&repo, &["chart", "charts/web", &web]).expect(0);
    assert_eq!(
        ran.out,
        format!("charts/web: {web} 1.10.0 (sha256:{new})\nnext: commit, and look at `berth plan`\n")
    );
    assert_eq!(read(&repo, "charts/web/values.yaml"), "colour: of-1.10.0\n");
    let lock = read(&repo, "vendor.lock");
    for line in [format!("  chart: {web}"), "  version: 1.10.0".to_owned(), format!("  digest: sha256:{new}")]
    {
        assert!(lock.contains(&line), "{lock}");
    }
    repo.commit("the chart");
    assert!(lock.contains(&format!("  tree: {}", repo.id("HEAD:charts/web"))), "{lock}");
    assert_eq!(
        vendor(&repo, &["check", "--online"]).expect(0).out,
        "1 vendored folder: as vendor.lock says\n"
    );
    assert!(vendor(&repo, &["update", "charts/web"]).expect(0).out.contains("nothing changed"));

    vendor(&repo, &["update", "charts/web", "1.9.0"]).expect(0);
    assert_eq!(read(&repo, "charts/web/values.yaml"), "colour: of-1.9.0\n");
    let ran = vendor(&repo, &["update", "charts/web", "1.8.0"]).expect(2);
    assert!(
        ran.err.contains("has no version 1.8.0") && ran.err.contains("the newest is 1.10.0"),
        "{}",
        ran.err
    );
    let ran = vendor(&repo, &["update", "charts/wbe"]).expect(2);
    assert!(ran.err.contains("did you mean `charts/web`?"), "{}", ran.err);
}

#[test]
fn a_version_that_a_bot_edited_is_fetched() {
    let (charts, repo) = (Charts::serve(), small_fleet());
    let (old, new) = (charts.package("1.0.0", "red"), charts.package("1.1.0", "blue"));
    charts.index(&[("1.0.0", &old), ("1.1.0", &new)]);
    vendor(&repo, &["chart", "charts/web", &charts.address("web"), "1.0.0"]).expect(0);
    repo.write("vendor.lock", read(&repo, "vendor.lock").replace("version: 1.0.0", "version: 1.1.0"));
    repo.commit("a bot's edit");
    let plan = Ran::of(berth().current_dir(repo.path()).arg("plan")).expect(0);
    assert!(plan.err.contains("`charts/web` has version 1.0.0 and not yet"), "{}", plan.err);
    vendor(&repo, &["check"]).expect(1);
    vendor(&repo, &["fetch"]).expect(0);
    assert_eq!(read(&repo, "charts/web/values.yaml"), "colour: blue\n");
    vendor(&repo, &["check", "--online"]).expect(0);
}

#[test]
fn edits_by_hand_are_named_and_not_overwritten_by_an_update() {
    let (charts, repo) = (Charts::serve(), small_fleet());
    let digest = charts.package("1.0.0", "red");
    charts.index(&[("1.0.0", &digest)]);
    vendor(&repo, &["chart", "charts/web", &charts.address("web")]).expect(0);
    repo.write("charts/web/values.yaml", "colour: mine\n");
    let ran = vendor(&repo, &["check"]).expect(1);
    assert!(ran.err.contains("vendor.lock: warning: `charts/web` does not have the files of"), "{}", ran.err);
    let ran = vendor(&repo, &["update", "charts/web"]).expect(2);
    assert!(ran.err.contains("`charts/web` was edited since it was vendored"), "{}", ran.err);
    let ran = vendor(&repo, &["fetch"]).expect(2);
    assert!(ran.err.contains("`charts/web` has edits that no commit has"), "{}", ran.err);
    repo.commit("an edit");
    let plan = Ran::of(berth().current_dir(repo.path()).arg("plan")).expect(0);
    assert!(plan.err.contains("somebody edited them, or the lock"), "{}", plan.err);
    vendor(&repo, &["fetch"]).expect(0);
    assert_eq!(read(&repo, "charts/web/values.yaml"), "colour: red\n");
    // Files that nobody vendored stay too.
    repo.write("charts/own/values.yaml", "a: b\n");
    let ran = vendor(&repo, &["chart", "charts/own", &charts.address("web")]).expect(2);
    assert!(ran.err.contains("has files that nobody vendored"), "{}", ran.err);
    assert_eq!(read(&repo, "charts/own/values.yaml"), "a: b\n");
}

#[test]
fn a_version_that_its_server_replaced_is_refused() {
    let (charts, repo) = (Charts::serve(), small_fleet());
    let digest = charts.package("1.0.0", "red");
    charts.index(&[("1.0.0", &digest)]);
    vendor(&repo, &["chart", "charts/web", &charts.address("web")]).expect(0);
    repo.commit("the chart");
    let replaced = charts.package("1.0.0", "evil");
    let ran = vendor(&repo, &["fetch"]).expect(6);
    assert!(ran.err.contains("is another one than its index says"), "{}", ran.err);
    charts.index(&[("1.0.0", &replaced)]);
    std::fs::remove_dir_all(repo.path().join("charts/web")).expect("a folder");
    vendor(&repo, &["fetch"]).expect(1);
    repo.git(&["checkout", "-q", "--", "charts"]);
    for arguments in [&["fetch"][..], &["check", "--online"]] {
        let ran = vendor(&repo, arguments).expect(1);
        assert!(
            ran.err.contains(&format!("has sha256:{replaced} now, and the lock sha256:{digest}")),
            "{}",
            ran.err
        );
        assert_eq!(read(&repo, "charts/web/values.yaml"), "colour: red\n");
    }
    vendor(&repo, &["update", "charts/web", "1.0.0"]).expect(0);
    assert_eq!(read(&repo, "charts/web/values.yaml"), "colour: evil\n");
}

#[test]
fn an_archive_writes_nothing_but_the_files_of_its_chart() {
    let (charts, repo) = (Charts::serve(), small_fleet());
    let before = repo.git(&["status", "--porcelain"]);
    let archive = "web-1.0.0.tgz";
    let chart = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
    charts.write("web/Chart.yaml", chart);
    charts.write("outside", "x\n");
    charts.write("web/.git/hooks/post-checkout", "#!/bin/sh\n");
    std::os::unix::fs::symlink("/etc/passwd", charts.path("web/link")).expect("a link");
    let cases: [(&[&str], &str); 7] = [
        (&["web/Chart.yaml", "web/link"], "neither a file nor a folder"),
        (&["web/Chart.yaml", "web/../outside"], "leads elsewhere"),
        (&["web/Chart.yaml", "--transform", "s,outside,/tmp/berth-outside,", "outside"], "leads elsewhere"),
        (&["web/Chart.yaml", "web/.git/hooks/post-checkout"], "has a name that leads elsewhere"),
        (&["web/Chart.yaml", "outside"], "must have one folder"),
        (&["web/.git/hooks/post-checkout"], "it has no Chart.yaml"),
        (&["--transform", "s,web,../web,", "web/Chart.yaml"], "leads elsewhere"),
    ];
    for (arguments, words) in cases {
        let digest = charts.pack(archive, arguments);
        charts.index(&[("1.0.0", &digest)]);
        let ran = vendor(&repo, &["chart", "charts/web", &charts.address("web")]).expect(6);
        assert!(ran.err.contains(words), "{arguments:?}: {}", ran.err);
        assert_eq!(repo.git(&["status", "--porcelain"]), before, "{arguments:?}");
    }
    // Long paths are in extensions of the headers.
    let long = format!("web/templates/{}/{}.yaml", "a".repeat(90), "b".repeat(90));
    charts.write(&long, "a: b\n");
    for format in ["pax", "gnu"] {
        let digest = charts.pack(archive, &["--format", format, "web/Chart.yaml", &long]);
        charts.index(&[("1.0.0", &digest)]);
        let folder = format!("charts/{format}");
        vendor(&repo, &["chart", &folder, &charts.address("web")]).expect(0);
        assert_eq!(read(&repo, &long.replacen("web", &folder, 1)), "a: b\n", "{format}");
    }
    charts.write("web/Chart.yaml", chart.replace("1.0.0", "3.0.0"));
    let digest = charts.pack(archive, &["web/Chart.yaml"]);
    charts.index(&[("1.0.0", &digest)]);
    let ran = vendor(&repo, &["chart", "charts/web", &charts.address("web")]).expect(6);
    assert!(ran.err.contains("its Chart.yaml is that of web 3.0.0"), "{}", ran.err);
    for folder in ["../web", "/tmp/web", ".git/web", "a//b", ""] {
        vendor(&repo, &["chart", folder, &charts.address("web")]).expect(2);
    }
    let away = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(away.path(), repo.path().join("away")).expect("a link");
    charts.write("web/Chart.yaml", chart);
    let digest = charts.pack(archive, &["web/Chart.yaml"]);
    charts.index(&[("1.0.0", &digest)]);
    repo.write("README.md", "precious\n");
    std::os::unix::fs::symlink(".git", repo.path().join("inside")).expect("a link");
    for folder in ["README.md", "README.md/web", "inside/objects"] {
        vendor(&repo, &["chart", folder, &charts.address("web")]).expect(2);
        assert_eq!(read(&repo, "README.md"), "precious\n");
    }
    for folder in ["away", "away/web", "away/more/web"] {
        let ran = vendor(&repo, &["chart", folder, &charts.address("web")]).expect(2);
        assert!(ran.err.contains("behind a link") || folder == "away", "{}", ran.err);
        assert_eq!(std::fs::read_dir(away.path()).expect("a folder").count(), 0, "{folder}");
    }
}

#[test]
fn a_base_is_a_folder_of_another_repository() {
    let repo = small_fleet();
    let other = Repo::with(&[
        ("deploy/base/kustomization.yaml", "resources: [config.yaml]\n"),
        ("deploy/base/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: site}\n"),
        ("README.md", "other\n"),
    ]);
    other.git(&["tag", "v1"]);
    let first = other.id("HEAD");
    let address = format!("file://{}", other.path().display());
    let base = ["base", "bases/site", &*address, "v1", "--path", "deploy/base"];
    let ran = vendor(&repo, &base).expect(0);
    assert!(ran.out.contains(&format!("deploy/base of {address} at v1 ({first})")), "{}", ran.out);
    assert_eq!(read(&repo, "bases/site/kustomization.yaml"), "resources: [config.yaml]\n");
    assert!(!repo.path().join("bases/site/README.md").exists());
    repo.commit("the base");
    assert!(vendor(&repo, &["check", "--online"]).expect(1).err.contains("is on this machine"));
    let online = ["check", "--online", "--local"];
    vendor(&repo, &online).expect(0);
    other.write("deploy/base/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n");
    other.commit("next");
    let branch = other.git(&["branch", "--show-current"]);
    vendor(&repo, &["update", "bases/site", branch.trim(), "--local"]).expect(0);
    assert!(read(&repo, "bases/site/config.yaml").contains("name: other"));
    assert!(read(&repo, "vendor.lock").contains(&format!("commit: {}", other.id("HEAD"))));
    vendor(&repo, &["update", "bases/site", &first, "--local"]).expect(0);
    assert!(read(&repo, "bases/site/config.yaml").contains("name: site"));
    let ran = vendor(&repo, &["update", "bases/site", "v2", "--local"]).expect(2);
    assert!(
        ran.err.contains("has no branch or tag `v2`") && ran.err.contains("did you mean `v1`?"),
        "{}",
        ran.err
    );
    // A moved tag, and a commit that its branch does not have.
    vendor(&repo, &["update", "bases/site", "v1", "--local"]).expect(0);
    repo.commit("v1");
    other.git(&["tag", "-f", "v1", "HEAD"]);
    for arguments in [&online[..], &["fetch", "--local"]] {
        let ran = vendor(&repo, arguments);
        assert!(ran.code != 0 && ran.err.contains("the tag v1 of"), "{}", ran.err);
    }
    assert!(read(&repo, "bases/site/config.yaml").contains("name: site"));
    vendor(&repo, &["update", "bases/site", branch.trim(), "--local"]).expect(0);
    let stranger = other.git(&["commit-tree", "-m", "stranger", "HEAD^{tree}"]);
    let lock = read(&repo, "vendor.lock");
    repo.write("vendor.lock", lock.replace(&other.id("HEAD"), stranger.trim()));
    let ran = vendor(&repo, &online).expect(1);
    assert!(
        ran.err.contains(&format!("{} is no commit of {}", stranger.trim(), branch.trim())),
        "{}",
        ran.err
    );
    repo.write("vendor.lock", lock);
    repo.commit("the branch");
    std::os::unix::fs::symlink("/etc/passwd", other.path().join("deploy/base/link")).expect("a link");
    other.commit("a link");
    let ran = vendor(&repo, &["update", "bases/site", branch.trim(), "--local"]).expect(6);
    assert!(ran.err.contains("`link` is a link or a submodule"), "{}", ran.err);
    assert!(read(&repo, "bases/site/config.yaml").contains("name: other"));
}

#[test]
fn the_token_of_the_fleets_remote_goes_to_nobody_else() {
    let (charts, repo) = (Charts::serve(), small_fleet());
    let address = charts.address("other.git");
    let mut command = berth();
    command.env("BERTH_TOKEN", "s3cret").env("BERTH_ALLOW_PLAIN", "true").current_dir(repo.path());
    Ran::of(command.args(["vendor", "base", "bases/other", &address, "main"])).expect(6);
    let asked = charts.asked.lock().expect("no one panicked").join("\n");
    assert!(asked.contains("/other.git/info/refs") && !asked.contains("Authorization"), "{asked}");
    let ran = vendor(&repo, &["base", "bases/other", "https://user:s3cret@git.example.com/x.git", "main"])
        .expect(2);
    assert!(ran.err.contains("the address has a password") && !ran.err.contains("s3cret"), "{}", ran.err);
}

#[test]
#[ignore = "needs the registry and helm"]
fn a_chart_that_helm_pushed_comes_from_a_registry() {
    let (Some(registry), Some(packagers)) = (Registry::start(), packagers()) else { return };
    let (charts, repo) = (Charts::serve(), small_fleet());
    let helm = |arguments: &[&str]| {
        let mut helm = hermetic(packagers.join("helm").to_str().expect("text"));
        helm.current_dir(charts.folder.path()).env("HOME", charts.folder.path()).args(arguments);
        Ran::of(&mut helm).expect(0)
    };
    for (version, colour) in [("1.0.0", "red"), ("1.1.0+build.7", "blue")] {
        charts.package(version, colour);
        helm(&["package", "web"]);
        let archive = format!("web-{version}.tgz");
        helm(&["push", &archive, &format!("oci://{}/charts", registry.host()), "--plain-http"]);
    }
    let address = format!("oci://{}/charts/web", registry.host());
    vendor(&repo, &["chart", "charts/web", &address]).expect(0);
    assert_eq!(read(&repo, "charts/web/values.yaml"), "colour: blue\n");
    assert!(read(&repo, "vendor.lock").contains("version: 1.1.0+build.7"));
    vendor(&repo, &["update", "charts/web", "1.0.0"]).expect(0);
    assert_eq!(read(&repo, "charts/web/values.yaml"), "colour: red\n");
    vendor(&repo, &["check", "--online"]).expect(0);
    vendor(&repo, &["update", "charts/web", "1.0.0/../../../web"]).expect(2);
    let ran = vendor(&repo, &["chart", "charts/wbe", &address.replace("/web", "/wbe")]).expect(6);
    assert!(ran.err.contains("has no version"), "{}", ran.err);
}
