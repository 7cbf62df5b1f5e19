//! The artifacts of a release: two builds are equal, their bills are complete, the image and the package run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value as Json;

use crate::support::contained::{Image, USER, hex};
use crate::support::programs::{made, skipped};
use crate::support::remote::{Fleet, Https, PASSWORD, Ssh};
use crate::support::{RENDERED, Ran, hermetic};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const TARGETS: [(&str, &str); 2] =
    [("amd64", "x86_64-unknown-linux-musl"), ("arm64", "aarch64-unknown-linux-musl")];

/// A file of the first of two builds, which are made once in a test run.
fn artifact(name: &str) -> Option<PathBuf> {
    Some(release()?.join("one").join(name))
}

fn release() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(|| made(&["release/ready"], "release")) {
        Ok(folder) => Some(folder),
        Err(why) => {
            skipped("a release", why);
            None
        }
    }
}

fn image() -> Option<Image> {
    Some(Image::unpacked(&artifact(&format!("berth-{VERSION}-image.tar"))?))
}

fn json(name: &str) -> Option<Json> {
    let content = std::fs::read(artifact(name)?).expect("a file");
    Some(serde_json::from_slice(&content).expect("JSON"))
}

fn tarball() -> Option<tempfile::TempDir> {
    let archive = artifact(&format!("berth-{VERSION}-linux-amd64.tar.gz"))?;
    let folder = tempfile::tempdir().expect("a folder");
    Ran::of(hermetic("tar").arg("-xf").arg(archive).arg("-C").arg(folder.path())).expect(0);
    Some(folder)
}

fn package() -> Option<tempfile::TempDir> {
    let archive = artifact(&format!("berth_{VERSION}_amd64.deb"))?;
    let folder = tempfile::tempdir().expect("a folder");
    Ran::of(hermetic("dpkg-deb").arg("-x").arg(archive).arg(folder.path())).expect(0);
    Some(folder)
}

#[test]
#[ignore = "needs a release"]
fn two_builds_in_two_folders_are_equal() {
    let Some(folder) = release() else { return };
    let sums =
        ["one", "two"].map(|build| std::fs::read_to_string(folder.join(build).join("SHA256SUMS")).unwrap());
    assert_eq!(sums[0], sums[1]);
    let mut names: BTreeSet<String> = BTreeSet::from(["SHA256SUMS".to_owned()]);
    for line in sums[0].lines() {
        let (digest, name) = line.split_once("  ").unwrap();
        assert_eq!(hex(&std::fs::read(folder.join("one").join(name)).unwrap()), digest, "{name}");
        names.insert(name.to_owned());
    }
    let there = std::fs::read_dir(folder.join("one")).unwrap();
    let there: BTreeSet<String> = there.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(there, names);
}

/// The crates of a bill, as `name version`.
fn crates(bill: &Json) -> BTreeSet<String> {
    let components = bill["components"].as_array().expect("components");
    let text = |one: &Json, field: &str| one[field].as_str().expect("text").to_owned();
    let crates = components.iter().filter(|one| text(one, "purl").starts_with("pkg:cargo/"));
    crates.map(|one| format!("{} {}", text(one, "name"), text(one, "version"))).collect()
}

#[test]
#[ignore = "needs a release"]
fn the_bills_list_the_crates_of_cargo_tree() {
    for (arch, target) in TARGETS {
        bills_list_the_crates_of_cargo_tree(arch, target);
    }
}

fn bills_list_the_crates_of_cargo_tree(arch: &str, target: &str) {
    let Some(program) = json(&format!("berth-{VERSION}-linux-{arch}.cdx.json")) else { return };
    let Some(image) = json(&format!("berth-{VERSION}-image-{arch}.cdx.json")) else { return };
    let mut tree = std::process::Command::new(env!("CARGO"));
    tree.current_dir(env!("CARGO_MANIFEST_DIR"));
    tree.args(["tree", "--locked", "--package", "berth", "--target", target]);
    let tree =
        Ran::of(tree.args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"])).expect(0);
    let expected: BTreeSet<String> = tree
        .out
        .lines()
        .filter_map(|line| line.split_once(" v"))
        .map(|(name, version)| format!("{name} {}", version.split(' ').next().unwrap_or_default()))
        .filter(|one| *one != format!("berth {VERSION}"))
        .collect();
    assert!(expected.len() > 100, "{expected:?}");
    for bill in [&program, &image] {
        assert_eq!(crates(bill), expected);
        assert_eq!(bill["metadata"]["component"]["purl"], format!("pkg:cargo/berth@{VERSION}"));
    }
    // Crates of others have the checksum of Cargo.lock and terms, and each is somebody's need.
    let lock = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    let needs: BTreeSet<&str> = program["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["dependsOn"].as_array().unwrap())
        .filter_map(Json::as_str)
        .collect();
    let components = program["components"].as_array().unwrap();
    let is_crate = |one: &&Json| one["purl"].as_str().unwrap().starts_with("pkg:cargo/");
    for component in components.iter().filter(is_crate) {
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        assert!(needs.contains(component["bom-ref"].as_str().unwrap()), "{component}");
        match component["hashes"][0]["content"].as_str() {
            Some(checksum) => assert!(lock.contains(checksum), "{component}"),
            None => assert!(component["name"].as_str().unwrap().starts_with("berth-"), "{component}"),
        }
    }
    // The renderer has the modules of its go.sum.
    let sums = include_str!("../../src/sources/renderer/go.sum");
    let modules: Vec<&Json> = components.iter().filter(|one| !is_crate(one)).collect();
    assert!(modules.len() > 50, "{}", modules.len());
    for module in modules {
        assert!(needs.contains(module["bom-ref"].as_str().unwrap()) || module["name"] == "berth-renderer");
        let text = |field: &str| module[field].as_str().unwrap();
        if let Some(sum) = module["properties"][0]["value"].as_str() {
            assert!(sums.contains(&format!("{} {} {sum}\n", text("name"), text("version"))), "{module}");
        }
    }
    // The image has packages of Debian beside them, and says so to scanners.
    let Some(unpacked) = self::image() else { return };
    let there = std::fs::read_dir(unpacked.path("root/var/lib/dpkg/status.d")).unwrap().count();
    assert_eq!(image["components"].as_array().unwrap().len(), components.len() + there);
    assert!(there > 10);
}

#[test]
#[ignore = "needs a release"]
fn the_provenance_names_each_file_and_what_it_was_made_of() {
    let Some(statement) = json(&format!("berth-{VERSION}.provenance.json")) else { return };
    let sums = std::fs::read_to_string(artifact("SHA256SUMS").unwrap()).unwrap();
    let mut subjects = BTreeSet::new();
    let mut images = Vec::new();
    for subject in statement["subject"].as_array().unwrap() {
        let (name, digest) =
            (subject["name"].as_str().unwrap(), subject["digest"]["sha256"].as_str().unwrap());
        match name.strip_prefix("image ") {
            Some(_) => images.push(digest.to_owned()),
            None => drop(subjects.insert(format!("{digest}  {name}"))),
        }
    }
    let listed = sums.lines().filter(|line| !line.ends_with(".provenance.json"));
    assert_eq!(subjects, listed.map(str::to_owned).collect());
    // The image's digest is the one that a registry has it under.
    let index = std::fs::read(image().unwrap().path("layout/index.json")).unwrap();
    let index: Json = serde_json::from_slice(&index).unwrap();
    assert_eq!(images, [index["manifests"][0]["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap()]);
    let build = &statement["predicate"]["buildDefinition"];
    let commit = build["resolvedDependencies"][0]["digest"]["gitCommit"].as_str().unwrap();
    let head =
        Ran::of(hermetic("git").args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"])).expect(0);
    assert_eq!(commit.trim_end_matches("-changed"), head.out.trim());
    assert_eq!(build["externalParameters"]["version"], VERSION);
}

#[test]
#[ignore = "needs a release"]
fn a_signature_counts_for_these_files_and_this_key() {
    let Some(release) = artifact("") else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    Ran::of(hermetic("cp").arg("-r").arg(release).arg(at("files"))).expect(0);
    for key in ["key", "other"] {
        Ran::of(hermetic("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)])).expect(0);
    }
    let public = std::fs::read_to_string(at("key.pub")).unwrap();
    std::fs::write(at("signers"), format!("release namespaces=\"berth-release\" {public}")).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/release/sign");
    let sign = |key: &str, more: &[&str]| {
        Ran::of(hermetic(script.to_str().unwrap()).args([&*at("files"), &*at(key)]).args(more))
    };
    sign("key", &[&at("signers")]).expect(0);
    let verify = || {
        let check = "ssh-keygen -Y verify -f \"$1/signers\" -I release -n berth-release -s SHA256SUMS.sig < SHA256SUMS && sha256sum --check --quiet SHA256SUMS";
        Ran::of(hermetic("sh").current_dir(at("files")).args(["-c", check, "sh"]).arg(folder.path()))
    };
    verify().expect(0);
    let deb = format!("{}/berth_{VERSION}_amd64.deb", at("files"));
    let content = std::fs::read(&deb).unwrap();
    std::fs::write(&deb, &content[1..]).unwrap();
    assert_ne!(verify().code, 0);
    std::fs::write(&deb, &content).unwrap();
    let sums = std::fs::read_to_string(at("files/SHA256SUMS")).unwrap();
    std::fs::write(at("files/SHA256SUMS"), sums.replacen('0', "1", 1)).unwrap();
    assert_ne!(verify().code, 0);
    std::fs::write(at("files/SHA256SUMS"), sums).unwrap();
    // A key that people do not check with signs nothing, and leaves nothing that looks signed.
    let refused = sign("other", &[&at("signers")]).expect(1);
    assert!(refused.err.contains("does not have this key for releases"), "{}", refused.err);
    assert!(!folder.path().join("files/SHA256SUMS.sig").exists());
}

#[test]
#[ignore = "needs a release"]
fn the_archive_and_the_package_bring_a_static_program_and_its_pages() {
    let Some(archive) = tarball() else { return };
    let Some(package) = package() else { return };
    let below = archive.path().join(format!("berth-{VERSION}-linux-amd64"));
    for (folder, share) in [(below, "share"), (package.path().join("usr"), "share")] {
        let program = folder.join("bin/berth");
        assert_eq!(
            Ran::of(hermetic(program.to_str().unwrap()).arg("--version")).expect(0).out,
            format!("berth {VERSION}\n")
        );
        let renderer = folder.join("bin/berth-renderer");
        for program in [&program, &renderer] {
            let headers = Ran::of(hermetic("readelf").args(["-lW"]).arg(program)).expect(0).out;
            assert!(!headers.contains("INTERP") && !headers.contains("DYNAMIC"), "{headers}");
        }
        let identity = Ran::of(hermetic(renderer.to_str().unwrap()).arg("--version")).expect(0).out;
        assert!(identity.contains("helm v4"), "{identity}");
        for path in [
            "bash-completion/completions/berth",
            "fish/vendor_completions.d/berth.fish",
            "zsh/vendor-completions/_berth",
        ] {
            let script = std::fs::read_to_string(folder.join(share).join(path)).unwrap();
            assert!(script.contains("berth"), "{path}");
        }
        let pages = std::fs::read_dir(folder.join(share).join("man/man1")).unwrap().count();
        assert!(pages > 30, "{pages}");
    }
    // The program holds no path of the machine that built it.
    let program = std::fs::read(package.path().join("usr/bin/berth")).unwrap();
    let home = std::env::var("HOME").unwrap_or_default();
    let clones = release().unwrap().display().to_string();
    for path in [&*home, &*clones].into_iter().filter(|path| path.len() > 1) {
        assert!(!program.windows(path.len() + 1).any(|one| one == format!("{path}/").as_bytes()), "{path}");
    }
}

#[test]
#[ignore = "needs a release"]
fn the_package_is_as_debian_wants_it() {
    let Some(deb) = artifact(&format!("berth_{VERSION}_amd64.deb")) else { return };
    let Some(package) = package() else { return };
    let fields = Ran::of(hermetic("dpkg-deb").arg("-f").arg(&deb)).expect(0).out;
    for field in [
        "Package: berth\n",
        &format!("Version: {VERSION}\n"),
        "Architecture: amd64\n",
        "Depends: ca-certificates, git (>= 1:2.31)\n",
    ] {
        assert!(fields.contains(field), "{fields}");
    }
    // Everything belongs to root, and nobody else may write it.
    let listed = Ran::of(hermetic("dpkg-deb").arg("-c").arg(&deb)).expect(0).out;
    for line in listed.lines() {
        let right = ["-rwxr-xr-x root/root", "-rw-r--r-- root/root", "drwxr-xr-x root/root"];
        assert!(right.iter().any(|right| line.starts_with(right)), "{line}");
    }
    let control = tempfile::tempdir().unwrap();
    Ran::of(hermetic("dpkg-deb").arg("-e").arg(&deb).arg(control.path())).expect(0);
    let sums = control.path().join("md5sums");
    Ran::of(
        hermetic("md5sum").current_dir(package.path()).args(["--check", "--strict", "--quiet"]).arg(&sums),
    )
    .expect(0);
    for unit in ["berth-run.service", "berth-sync@.service"] {
        let unit = std::fs::read_to_string(package.path().join("usr/lib/systemd/system").join(unit)).unwrap();
        assert!(unit.contains("ExecStart=/usr/bin/berth ") && !unit.contains("/usr/local"), "{unit}");
    }
    // dpkg unpacks it beside nothing else; what it depends on is elsewhere.
    if rustix::process::geteuid().is_root() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("var/lib/dpkg/status"), "").unwrap();
        let mut dpkg = hermetic("dpkg");
        dpkg.arg("--root")
            .arg(root.path())
            .args(["--force-depends", "--force-not-root", "--install"])
            .arg(&deb);
        dpkg.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        Ran::of(&mut dpkg).expect(0);
        let status = Ran::of(hermetic("dpkg-query").arg("--admindir").arg(at("var/lib/dpkg")).args([
            "-W",
            "-f",
            "${Status}",
        ]))
        .expect(0);
        assert_eq!(status.out, "install ok installed");
    }
}

#[test]
#[ignore = "needs a release"]
fn the_image_holds_nothing_that_its_user_could_change() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let Some(image) = image() else { return };
    let config = &image.config["config"];
    assert_eq!(config["User"], format!("{USER}:{USER}"));
    assert_eq!(config["Entrypoint"], serde_json::json!(["/usr/local/bin/berth"]));
    let is_root = rustix::process::geteuid().is_root();
    let mut folders = vec![image.path("root")];
    let mut programs = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = path.symlink_metadata().unwrap();
            let shown = path.strip_prefix(image.path("root")).unwrap().display().to_string();
            if about.is_symlink() {
                assert!(path.exists(), "{shown} leads nowhere");
                continue;
            }
            let mode = about.permissions().mode() & 0o7777;
            let own = ["var/cache/berth", "tmp"].contains(&&*shown);
            assert!(own || mode & 0o7022 == 0, "{shown}: {mode:o}");
            assert!(own || !is_root || about.uid() == 0, "{shown}: {}", about.uid());
            if about.is_dir() {
                folders.push(path);
            } else if mode & 0o111 != 0 && !shown.contains(".so") {
                programs.insert(shown);
            }
        }
    }
    let expected = [
        "usr/bin/dash",
        "usr/bin/git",
        "usr/bin/ssh",
        "usr/lib/git-core/git-remote-http",
        "usr/local/bin/berth",
        "usr/local/bin/berth-renderer",
    ];
    assert_eq!(programs, expected.map(str::to_owned).into());
}

/// Runs a pass and a member's round in the image, against a Git server.
fn works(image: &Image, fleet: &Fleet, access: &[String]) {
    let run = |args: &[&str]| {
        let mut command = image.command("/usr/local/bin/berth")?;
        command.args(args).args(access);
        Some(Ran::of(&mut command))
    };
    let Some(ran) = run(&["run", "--once"]) else { return };
    ran.expect(0);
    assert!(fleet.has(RENDERED));
    run(&["sync", "--once", "--cluster", "a", "--target", "dir:/var/cache/berth/target"]).unwrap().expect(0);
    assert!(image.path("cache/target/shop/ConfigMap_web.yaml").exists());
    assert!(fleet.has("refs/berth/status/a"));
    fleet.bare(&["fsck", "--strict", "--no-dangling"]);
    // The same user in the same place can write nowhere else.
    let mut shell = image.command("/bin/sh").unwrap();
    let refused = Ran::of(
        shell.args(["-c", "echo > /usr/local/bin/berth || echo > /var/lib/new || echo > /etc/passwd"]),
    );
    assert_ne!(refused.code, 0);
    assert!(
        refused.err.contains("Read-only file system") || refused.err.contains("Permission denied"),
        "{}",
        refused.err
    );
    let mut version = image.command("/usr/local/bin/berth").unwrap();
    assert_eq!(Ran::of(version.arg("--version")).expect(0).out, format!("berth {VERSION}\n"));
}

#[test]
#[ignore = "needs a release"]
fn the_image_works_with_a_git_server_over_https() {
    let Some(image) = image() else { return };
    let fleet = Fleet::new();
    let Some(server) = Https::new(fleet.root()) else { return };
    let authority = image.secret("ca.crt", &fleet.root().join("cert.pem"));
    std::fs::write(fleet.root().join("token"), PASSWORD).unwrap();
    let token = image.secret("token", &fleet.root().join("token"));
    let url = server.url();
    let flags = ["--remote", &url, "--username", "ann", "--ca-file", &authority, "--token-file", &token];
    works(&image, &fleet, &flags.map(str::to_owned));
}

#[test]
#[ignore = "needs a release"]
fn the_image_works_with_a_git_server_over_ssh() {
    let Some(image) = image() else { return };
    let fleet = Fleet::new();
    let Some(server) = Ssh::new(fleet.root()) else { return };
    let key = image.secret("key", &fleet.root().join("user_key"));
    let hosts = image.secret("known_hosts", &fleet.root().join("known_hosts"));
    let url = server.url();
    works(&image, &fleet, &["--remote", &url, "--ssh-key", &key, "--known-hosts", &hosts].map(str::to_owned));
}
