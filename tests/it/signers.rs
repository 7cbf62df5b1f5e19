//! Keys that berth does not have: an agent of SSH, and a program, sign for the daemon.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::signing::{Keys, REF, publish, sync};
use crate::support::page::page;
use crate::support::programs::write_script;
use crate::support::remote::{Fleet, Folder, Running};
use crate::support::wait::until;
use crate::support::{RENDERED, Ran, Repo, berth, hermetic, small_fleet};

/// `ssh-agent`, which ends with the test.
pub struct Agent {
    process: Child,
    pub socket: PathBuf,
}

impl Agent {
    pub fn start(folder: &Path) -> Agent {
        let socket = folder.join("agent.sock");
        let mut command = hermetic("ssh-agent");
        command.arg("-D").arg("-a").arg(&socket).stdout(Stdio::null());
        let process = command.spawn().expect("ssh-agent starts");
        until("the agent listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        Agent { process, socket }
    }

    pub fn add(&self, arguments: &[&str]) {
        Ran::of(hermetic("ssh-add").env("SSH_AUTH_SOCK", &self.socket).arg("-q").args(arguments)).expect(0);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `berth run --once` with a public key and somebody who has the private one.
fn publish_by(repo: &Repo, public: &Path, holder: &[&str]) -> Ran {
    let mut command = berth();
    command.args(["run", "--once", "--repo", repo.arg(), "--signing-key"]).arg(public).args(holder);
    Ran::of(command.env("BERTH_TOKEN", "s3cret"))
}

#[test]
fn an_agent_signs_the_same_commits_as_its_key_would() {
    let Some(keys) = Keys::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (fleet, public) = (small_fleet(), keys.path("berth.pub"));
    let agent = Agent::start(folder.path());
    let socket = agent.socket.clone();
    let holder = ["--signing-agent", socket.to_str().unwrap(), "--signer-timeout", "20"];
    // Without the key.
    let ran = publish_by(&fleet, &public, &holder).expect(6);
    assert!(ran.err.contains("is not signed by the key SHA256:"), "{}", ran.err);
    assert!(ran.err.contains("refuses, or does not have the key"), "{}", ran.err);
    assert_eq!(fleet.git(&["for-each-ref", "refs/berth", RENDERED]), "", "nothing is published unsigned");
    agent.add(&[keys.path("berth").to_str().unwrap()]);
    publish_by(&fleet, &public, &holder).expect(0);
    let at_a_remote = Fleet::of(small_fleet());
    let signing = [&["--signing-key", public.to_str().unwrap()], &holder[..]].concat();
    at_a_remote.run_once(&Folder::of(&at_a_remote), &signing).expect(0);
    let same = small_fleet();
    publish(&same, Some(&keys.path("berth"))).expect(0);
    assert_eq!(fleet.id(REF), same.id(REF));
    sync(&fleet, &folder.path().join("a"), &keys.allow(&[("berth", "")])).expect(0);
    // The agent goes away.
    let published = fleet.id(RENDERED);
    fleet.write("apps/web.yaml", crate::support::config_map("web", "two", "{clusterSelector: {}}"));
    fleet.commit("two");
    agent.add(&["-D"]);
    publish_by(&fleet, &public, &holder).expect(6);
    drop(agent);
    let ran = publish_by(&fleet, &public, &holder).expect(6);
    assert!(ran.err.contains("the agent at"), "{}", ran.err);
    assert_eq!(fleet.id(RENDERED), published);
}

/// A key in the form of OpenSSL, which stands for that of a KMS, and a program that signs with it.
struct Kms {
    folder: tempfile::TempDir,
}

impl Kms {
    fn new() -> Kms {
        let kms = Kms { folder: tempfile::tempdir().unwrap() };
        let openssl = |arguments: &[&str]| {
            Ran::of(hermetic("openssl").current_dir(kms.folder.path()).args(arguments)).expect(0)
        };
        openssl(&["genpkey", "-algorithm", "ed25519", "-out", "key.pem"]);
        openssl(&["pkey", "-in", "key.pem", "-pubout", "-outform", "DER", "-out", "key.der"]);
        let der = std::fs::read(kms.path("key.der")).unwrap();
        let point = &der[der.len() - 32..];
        let text = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
        let wire = [text(b"ssh-ed25519"), text(point)].concat();
        let line = format!("ssh-ed25519 {} kms\n", berth_base::text::base64::encode(&wire));
        std::fs::write(kms.path("key.pub"), &line).unwrap();
        std::fs::write(kms.path("allowed"), format!("kms@example.com {line}")).unwrap();
        kms.script("openssl pkeyutl -sign -rawin -inkey \"$here/key.pem\" -in \"$here/asked\"");
        kms
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the program. Before these lines it keeps its input, its environment and its own process's number.
    fn script(&self, lines: &str) {
        let text = format!(
            "here={}\ncat > \"$here/asked\"\nenv > \"$here/env\"\n{lines}",
            self.folder.path().display()
        );
        write_script(&self.path("sign"), &text);
    }

    fn flags(&self) -> [String; 4] {
        let path = |name| self.path(name).display().to_string();
        ["--signing-key", &path("key.pub"), "--signer-command", &path("sign")].map(str::to_owned)
    }

    fn publish(&self, repo: &Repo, timeout: &str) -> Ran {
        let [_, key, flag, program] = self.flags();
        publish_by(repo, Path::new(&key), &[&flag, &program, "--signer-timeout", timeout])
    }
}

/// The lines of a program that does not end in time.
const SLEEPS: &str = "sleep 600";

/// A time limit in seconds that a busy machine does not reach.
const PATIENT: &str = "120";

#[test]
fn a_program_signs_and_its_refusal_publishes_nothing() {
    let Some(_) = Keys::new() else { return };
    let (kms, fleet) = (Kms::new(), small_fleet());
    let target = tempfile::tempdir().unwrap();
    for (lines, why) in [
        ("echo 'the key is disabled' >&2; exit 1", "refuses (exit status: 1): the key is disabled"),
        (SLEEPS, "did not end within 2 seconds"),
        ("echo nothing", "gave no signature of 64 bytes"),
        ("head -c 64 /dev/zero", "is not a signature by the key"),
        ("head -c 300000000 /dev/zero", "wrote more than a signature"),
    ] {
        kms.script(lines);
        let ran = kms.publish(&fleet, if lines == SLEEPS { "2" } else { PATIENT }).expect(6);
        assert!(ran.err.contains(why), "{lines}: {}", ran.err);
        assert_eq!(fleet.git(&["for-each-ref", "refs/berth", RENDERED]), "", "{lines}");
    }
    std::fs::remove_file(kms.path("sign")).unwrap();
    assert!(kms.publish(&fleet, PATIENT).expect(6).err.contains("does not run"));
    for form in ["", " | base64 -w0"] {
        kms.script(&format!(
            "openssl pkeyutl -sign -rawin -inkey \"$here/key.pem\" -in \"$here/asked\"{form}"
        ));
        kms.publish(&fleet, PATIENT).expect(0);
        sync(&fleet, &target.path().join("a"), &kms.path("allowed")).expect(0);
        fleet.write("apps/web.yaml", crate::support::config_map("web", form, "{clusterSelector: {}}"));
        fleet.commit("another");
    }
    // No credential of berth is the program's to see, and it never sees the commit itself.
    let env = std::fs::read_to_string(kms.path("env")).unwrap();
    assert!(env.contains("BERTH_SIGNING_PUBLIC_KEY=ssh-ed25519 ") && !env.contains("s3cret"), "{env}");
    assert!(std::fs::read(kms.path("asked")).unwrap().starts_with(b"SSHSIG"));
    // A private key, or one of another kind, is not the key of a program.
    let ran = publish_by(&fleet, &kms.path("key.pem"), &["--signer-command", "/bin/true"]).expect(2);
    assert!(ran.err.contains("not an OpenSSH public key") && !ran.err.contains("PRIVATE"), "{}", ran.err);
}

#[test]
fn a_daemon_waits_for_its_signer_and_goes_on() {
    let Some(_) = Keys::new() else { return };
    let (kms, fleet) = (Kms::new(), Fleet::new());
    let flags = kms.flags();
    let more: Vec<&str> = flags.iter().map(String::as_str).chain(["--metrics", "0"]).collect();
    let daemon = Running::daemon(&fleet, &Folder::of(&fleet), &more);
    daemon.wait_for(&["\"pass done\""]);
    let address = daemon.address("serving /metrics");
    let works = std::fs::read_to_string(kms.path("sign")).unwrap();
    kms.script("exit 1");
    let published = fleet.bare(&["rev-parse", RENDERED]);
    fleet.edit("two");
    let failure = "berth_run_failures_total{reason=\"signer\"} 0";
    until("passes fail", || !page(&address, "/metrics").contains(failure));
    daemon.wait_for(&["pass failed", "is not signed by the key"]);
    assert_eq!(fleet.bare(&["rev-parse", RENDERED]), published);
    std::fs::write(kms.path("sign"), works).unwrap();
    until("the daemon goes on", || fleet.bare(&["rev-parse", RENDERED]) != published);
    let (code, _) = daemon.stop();
    assert_eq!(code, 0);
    let verify = |file: PathBuf, name: &str| {
        let mut git: Command = hermetic("git");
        let file = format!("gpg.ssh.allowedSignersFile={}", file.display());
        Ran::of(git.arg("--git-dir").arg(fleet.bare_path()).args(["-c", &file, "verify-commit", name])).code
    };
    for name in [RENDERED, "refs/berth/processed", REF] {
        assert_eq!(verify(kms.path("allowed"), name), 0, "{name}");
    }
}
