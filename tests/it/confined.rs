//! `git` and its helpers within bounds: what they are made to do by others reaches nothing but the exchange's own
//! repositories, and takes no more than its share.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::support::programs::{skipped, write_script};
use crate::support::remote::{Fleet, Folder, Server, Ssh};
use crate::support::{RENDERED, Ran, berth};

/// Attempts at whatever no exchange needs. Each that succeeds is noted in the one folder that can be written.
const ATTEMPTS: &str = r#"
attempt() { name=$1; shift; "$@" > /dev/null 2>&1 < /dev/null && echo "$name" >> "$TMPDIR/did"; }
echo begun >> "$TMPDIR/did"
attempt wrote sh -c 'echo x > ELSEWHERE/written'
attempt removed rm -f ELSEWHERE/removed
attempt ran sh -c 'cp /bin/true "$TMPDIR/program" && "$TMPDIR/program"'
attempt connected bash -c ': > /dev/tcp/127.0.0.1/PORT'
attempt read cat ELSEWHERE/secret
"#;

const ALL: [&str; 6] = ["begun", "connected", "ran", "read", "removed", "wrote"];

/// A fleet beside a folder that is nobody's business, and a listener on a port that no remote has.
struct Prison {
    fleet: Fleet,
    listener: std::net::TcpListener,
}

impl Prison {
    /// `None` where the system offers no sandbox.
    fn new() -> Option<Prison> {
        let fleet = Fleet::new();
        let mut sure = berth();
        sure.args(["run", "--once", "--git-sandbox", "always", "--repo"])
            .arg(fleet.root().join("copies/sure"));
        sure.arg("--remote").arg(fleet.bare_path());
        let sure = Ran::of(&mut sure);
        if sure.code == 2 && sure.err.contains("offers no complete sandbox") {
            skipped("Landlock", "this kernel lacks it");
            return None;
        }
        sure.expect(0);
        std::fs::create_dir(fleet.root().join("elsewhere")).expect("a folder");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let prison = Prison { fleet, listener };
        prison.fill();
        Some(prison)
    }

    fn elsewhere(&self, name: &str) -> PathBuf {
        self.fleet.root().join("elsewhere").join(name)
    }

    /// The files that are nobody's business.
    fn others(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.elsewhere(".")).expect("a folder").flatten();
        let names: BTreeSet<_> = files.map(|file| file.file_name().into_string().expect("text")).collect();
        names.into_iter().collect()
    }

    fn fill(&self) {
        std::fs::write(self.elsewhere("removed"), "").expect("a file");
        std::fs::write(self.elsewhere("secret"), "s3cret").expect("a file");
    }

    fn attempts(&self) -> String {
        let port = self.listener.local_addr().expect("an address").port().to_string();
        let elsewhere = self.fleet.root().join("elsewhere");
        ATTEMPTS.replace("ELSEWHERE", elsewhere.to_str().expect("text")).replace("PORT", &port)
    }

    /// Programs that are found before the system's.
    fn stand_in(&self, name: &str, script: &str) -> String {
        let tools = self.fleet.root().join("tools");
        std::fs::create_dir_all(&tools).expect("a folder");
        let path = std::env::var("PATH").expect("a path");
        let real = format!("PATH='{path}'\n");
        write_script(&tools.join(name), &format!("{real}{script}"));
        format!("{}:{path}", tools.display())
    }

    fn run(&self, copy: &str, server: &dyn Server, path: &str, more: &[&str]) -> Ran {
        let mut command = berth();
        command.args(["run", "--once", "--repo"]).arg(self.copy(copy)).env("PATH", path);
        command.args(server.access()).args(more);
        Ran::of(&mut command)
    }

    fn copy(&self, copy: &str) -> PathBuf {
        self.fleet.root().join("copies").join(copy)
    }

    /// The attempts that succeeded while this copy was in use.
    fn did(&self, copy: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.copy(copy).join("did")).expect("the attempts were made");
        let did: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        did.into_iter().collect()
    }
}

#[test]
fn a_helper_that_is_taken_over_reaches_nothing_but_its_repository_and_its_remote() {
    let Some(prison) = Prison::new() else { return };
    let Some(server) = Ssh::new(prison.fleet.root()) else { return };
    let path = prison.stand_in("ssh", &format!("{}exec ssh \"$@\"", prison.attempts()));
    prison.run("bound", &server, &path, &[]).expect(0);
    assert_eq!(prison.did("bound"), ["begun"]);
    assert_eq!(prison.others(), ["removed", "secret"]);
    assert!(prison.fleet.has(RENDERED));
    // The attempts succeed where nothing is in the way.
    prison.run("free", &server, &path, &["--git-sandbox", "never"]).expect(0);
    assert_eq!(prison.did("free"), ALL);
    assert_eq!(prison.others(), ["secret", "written"]);
}

#[test]
fn a_hook_of_a_remote_of_this_machine_writes_to_the_repositories_only() {
    let Some(prison) = Prison::new() else { return };
    let server = Folder::of(&prison.fleet);
    let path = std::env::var("PATH").expect("a path");
    let attempts = prison.attempts();
    let marked = prison.fleet.bare_path().join("marked");
    let edited = |value: &str, more: &[&str]| {
        prison.fleet.hook("post-receive", "exit 0");
        prison.fleet.edit(value);
        prison.fleet.hook("post-receive", &format!("{attempts}: > {}", marked.display()));
        prison.fill();
        prison.run(value, &server, &path, more).expect(0);
        prison.did(value)
    };
    // It may read, having nobody to tell.
    assert_eq!(edited("bound", &[]), ["begun", "read"]);
    assert_eq!(prison.others(), ["removed", "secret"]);
    assert!(marked.exists(), "a hook may write where it belongs");
    assert_eq!(edited("free", &["--git-sandbox", "never"]), ALL);
}

#[test]
fn a_helper_that_takes_memory_without_end_is_stopped() {
    let Some(prison) = Prison::new() else { return };
    let Some(server) = Ssh::new(prison.fleet.root()) else { return };
    let path = prison.stand_in("ssh", "tail /dev/zero");
    for sandbox in ["auto", "never"] {
        let more = ["--git-memory", "100", "--git-sandbox", sandbox];
        let stopped = prison.run("run", &server, &path, &more).expect(6);
        assert!(stopped.err.contains("was stopped by its limits"), "{}", stopped.err);
        assert!(stopped.err.contains("--git-memory"), "{}", stopped.err);
    }
    let path = prison.stand_in("ssh", "exec ssh \"$@\"");
    prison.run("run", &server, &path, &["--git-memory", "100"]).expect(0);
}

#[test]
fn every_helper_is_limited_from_its_start_on() {
    let Some(prison) = Prison::new() else { return };
    let server = Folder::of(&prison.fleet);
    let helpers =
        "for helper in 1 2 3 4 5 6 7 8; do cat /proc/self/limits >> \"$TMPDIR/limits\" & done; wait";
    let path = prison.stand_in("git", &format!("[ -d \"$TMPDIR\" ] && {{ {helpers}; }}\nexec git \"$@\""));
    for copy in (0..20).map(|number| number.to_string()) {
        prison.run(&copy, &server, &path, &["--git-memory", "100"]).expect(0);
        let limits = std::fs::read_to_string(prison.copy(&copy).join("limits")).expect("helpers ran");
        let limits: BTreeSet<&str> =
            limits.lines().filter(|line| line.starts_with("Max data size")).collect();
        let words: Vec<&str> = limits.iter().flat_map(|line| line.split_whitespace()).collect();
        assert_eq!(words, ["Max", "data", "size", "104857600", "104857600", "bytes"], "{limits:?}");
    }
}

#[test]
fn without_git_a_remote_cannot_be_used() {
    let fleet = Fleet::new();
    let mut command = berth();
    command.args(["run", "--once", "--repo"]).arg(fleet.root().join("copies/none"));
    command.args(Folder::of(&fleet).access()).env("PATH", fleet.root());
    let refused = Ran::of(&mut command).expect(6);
    assert!(refused.err.contains("`git` cannot be used: there is no such program"), "{}", refused.err);
    assert!(refused.err.contains("install Git 2.31 or newer"), "{}", refused.err);
}

#[test]
fn a_server_that_sends_without_end_fills_no_disk() {
    let fleet = Fleet::new();
    let mut state = 1_u32;
    let noise: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from(state >> 24).expect("a byte") % 26)
    })
    .take(3 << 20)
    .collect();
    fleet.people.write("docs/noise.txt", noise);
    fleet.people.commit("noise");
    fleet.push();
    let server = Folder::of(&fleet);
    let stopped = fleet.run_once(&server, &["--git-largest-file", "1"]).expect(6);
    assert!(stopped.err.contains("was stopped by its limits"), "{}", stopped.err);
    assert!(stopped.err.contains("--git-largest-file"), "{}", stopped.err);
    let packs = std::fs::read_dir(fleet.root().join("copies/run/objects/pack")).expect("a folder");
    assert_eq!(packs.count(), 0, "what was begun is gone");
    fleet.run_once(&server, &[]).expect(0);
}
