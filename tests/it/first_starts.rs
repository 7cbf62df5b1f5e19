//! Starts and passes that are killed or run out of disk: whatever moment it was, the next start works
//! without a person.
//!
//! More of them, with a line that sums them up:
//!
//! ```text
//! BERTH_FIRST_STARTS=1000 cargo test --test it first_starts::broken -- --nocapture
//! ```

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::disk::{Disk, Room};
use crate::support::leftovers::{at_work, family, locks};
use crate::support::random::{Random, rounds};
use crate::support::remote::{Fleet, Plain, Running, Server};
use crate::support::signals::{self, Signal};
use crate::support::wait::{pause, until};
use crate::support::{RENDERED, Ran, Repo, berth, config_map, hermetic, small_fleet};

const CLUSTER_REF: &str = "refs/berth/clusters/a";

/// Every start is tried with each of these.
const SETUPS: [Setup; 4] = [
    Setup { member: false, remote: true },
    Setup { member: false, remote: false },
    Setup { member: true, remote: true },
    Setup { member: true, remote: false },
];

#[derive(Clone, Copy, Debug)]
struct Setup {
    member: bool,
    remote: bool,
}

impl Setup {
    fn name(self) -> String {
        let who = if self.member { "member" } else { "daemon" };
        format!("{who}, {}", if self.remote { "remote" } else { "local" })
    }
}

/// A server's repository with two source commits and the state of each, made once.
struct Prepared {
    folder: tempfile::TempDir,
    /// The ids of source, state and cluster ref, first and second.
    ids: [[String; 3]; 2],
}

impl Prepared {
    fn new() -> Prepared {
        let people = small_fleet();
        let folder = tempfile::tempdir().expect("a folder");
        let take = || {
            people.publish().expect(0);
            ["HEAD", RENDERED, CLUSTER_REF].map(|name| people.id(name))
        };
        let first = take();
        people.write("apps/web.yaml", config_map("web", "two", "{clusterSelector: {}}"));
        people.commit("two");
        let prepared = Prepared { ids: [first, take()], folder };
        for published in [false, true] {
            let bare = prepared.bare(published);
            Ran::of(hermetic("git").args(["init", "-q", "--bare", "-b", "main"]).arg(&bare)).expect(0);
            // What no ref leads to would not be there.
            for (index, [source, state, folder]) in prepared.ids.iter().enumerate() {
                let parts = [source, state, folder].map(|id| format!("{id}:refs/kept/{index}/{id}"));
                let parts = if published { &parts[..] } else { &parts[..1] };
                let args = [
                    &["fetch", "-q", people.arg()][..],
                    &parts.iter().map(String::as_str).collect::<Vec<_>>(),
                ];
                git(&bare, &args.concat());
            }
            git(&bare, &["pack-refs", "--all"]);
        }
        prepared
    }

    /// The repository with the states, or with the source alone.
    fn bare(&self, published: bool) -> PathBuf {
        self.folder.path().join(if published { "published.git" } else { "source.git" })
    }

    /// Moves the refs of a repository to the first or second source, and with `published` to its state.
    fn set(&self, repository: &Path, which: usize, published: bool) {
        let [source, state, folder] = &self.ids[which];
        git(repository, &["update-ref", "refs/heads/main", source]);
        if published {
            git(repository, &["update-ref", RENDERED, state]);
            git(repository, &["update-ref", CLUSTER_REF, folder]);
        }
    }
}

#[track_caller]
fn git(repository: &Path, args: &[&str]) -> String {
    let ran = Ran::of(hermetic("git").arg("--git-dir").arg(repository).args(args));
    assert_eq!(ran.code, 0, "git {args:?}\n{}", ran.err);
    ran.out.trim_end().to_owned()
}

/// One daemon or member with all its folders, new.
struct World<'p> {
    prepared: &'p Prepared,
    setup: Setup,
    folder: tempfile::TempDir,
    disk: Option<Disk>,
}

impl<'p> World<'p> {
    fn new(prepared: &'p Prepared, setup: Setup, on_disk: bool) -> World<'p> {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = if on_disk { Disk::new(&folder.path().join("own")) } else { None };
        let world = World { prepared, setup, folder, disk };
        std::fs::create_dir_all(world.own()).expect("a folder");
        let copied =
            hermetic("cp").arg("-a").arg(prepared.bare(setup.member)).arg(world.repository()).status();
        assert!(copied.expect("cp runs").success());
        world.prepared.set(&world.repository(), 0, setup.member);
        world
    }

    /// The folder of what berth makes; the disk, if there is one.
    fn own(&self) -> PathBuf {
        self.folder.path().join("own")
    }

    /// The remote, or the repository that berth works in.
    fn repository(&self) -> PathBuf {
        if self.setup.remote { self.folder.path().join("fleet.git") } else { self.own().join("fleet.git") }
    }

    fn command(&self) -> Command {
        let mut command = berth();
        command.args([if self.setup.member { "sync" } else { "run" }, "--once", "--repo"]);
        if self.setup.remote {
            command.arg(self.own().join("copy")).arg("--remote").arg(self.repository());
        } else {
            command.arg(self.repository());
        }
        if self.setup.member {
            command.args(["--cluster", "a", "--target"]).arg(format!("dir:{}", self.target().display()));
        }
        command
    }

    /// Tells a world that is wedged from one that is merely slow: the locks in it, the processes at work in it,
    /// and the end of one more start once there are none.
    fn traces(&self) -> String {
        let (locks, at_work_now) = (locks(self.folder.path()), at_work(self.folder.path()));
        until("nobody is at work in the world", || at_work(self.folder.path()).is_empty());
        let last = Ran::of(&mut self.command());
        format!(
            "locks: {locks:?}\nat work: {at_work_now:?}\nat last it ended with {}: {}",
            last.code, last.err
        )
    }

    fn target(&self) -> PathBuf {
        self.own().join("target")
    }

    /// Why the daemon's branch or the member's folder is not what this source gives; `None` where it is.
    fn fault(&self, which: usize) -> Option<String> {
        if self.setup.member {
            let text = std::fs::read_to_string(self.target().join("shop/ConfigMap_web.yaml"));
            let text = text.unwrap_or_default();
            let wanted = ["value: one", "value: two"][which];
            return (!text.contains(wanted)).then_some(format!("the folder has no `{wanted}`: {text}"));
        }
        let state = git(&self.repository(), &["rev-parse", RENDERED]);
        let wanted = &self.prepared.ids[which][1];
        (state != *wanted).then_some(format!("the state is {state}, not {wanted}"))
    }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    KillAfter(Duration),
    /// The `git` that it started dies with it, as in a container that ends.
    KillAllAfter(Duration),
    FullDisk(Room),
}

#[derive(Default)]
struct Tally {
    killed: u64,
    full: u64,
    unharmed: u64,
    wedged: Vec<String>,
}

impl Tally {
    /// Breaks one start or pass and makes the next; the time that a start took which ended before it was killed.
    fn round(&mut self, world: &World<'_>, fault: Fault, which: usize) -> Option<Duration> {
        let begun = Instant::now();
        let broken = match fault {
            Fault::KillAfter(after) => kill_after(&mut world.command(), after, false),
            Fault::KillAllAfter(after) => kill_after(&mut world.command(), after, true),
            Fault::FullDisk(room) => {
                if let Some(disk) = &world.disk {
                    disk.leave(room);
                }
                let ran = Ran::of(&mut world.command());
                if let Some(disk) = &world.disk {
                    disk.leave(Room::Plenty);
                }
                ran
            }
        };
        let took = begun.elapsed();
        match (fault, broken.code) {
            (_, 0) => self.unharmed += 1,
            (Fault::KillAfter(_) | Fault::KillAllAfter(_), -1) => self.killed += 1,
            (Fault::FullDisk(_), 6) => self.full += 1,
            (_, code) => self.wedge(world, fault, format!("it ended with {code}: {}", broken.err)),
        }
        let next = Ran::of(&mut world.command());
        let fault_after = if next.code == 0 { world.fault(which) } else { None };
        if next.code != 0 || fault_after.is_some() {
            let (after, traces) = (fault_after.unwrap_or_default(), world.traces());
            let why = format!("the next ended with {}: {}{after}\n{traces}", next.code, next.err);
            self.wedge(world, fault, why);
        }
        (broken.code == 0 && !matches!(fault, Fault::FullDisk(_))).then_some(took)
    }

    fn wedge(&mut self, world: &World<'_>, fault: Fault, why: String) {
        let wedged = format!("{} after {fault:?}: {why}", world.setup.name());
        // A long run may be cut off before its end.
        eprintln!("WEDGED: {wedged}");
        self.wedged.push(wedged);
    }
}

/// Runs a command and kills it after a while, alone or with all that it started, if it has not ended by then: its
/// code is -1 if it was killed.
fn kill_after(command: &mut Command, after: Duration, with_helpers: bool) -> Ran {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("berth starts");
    let begun = Instant::now();
    let mut ended = false;
    while !ended && begun.elapsed() < after {
        pause(Duration::from_micros(100), "the moment of the kill comes closer");
        ended = child.try_wait().expect("its own child").is_some();
    }
    // Its own number is its own until it is waited for; those of the others as good as surely.
    let alive = match (ended, with_helpers) {
        (true, _) => Vec::new(),
        (false, true) => family(child.id()),
        (false, false) => vec![child.id()],
    };
    for process in alive {
        signals::send(Signal::KILL, process);
    }
    let status = child.wait().expect("it ends");
    assert!(status.signal().is_none_or(|signal| signal == 9), "{status}");
    Ran { code: status.code().unwrap_or(-1), out: String::new(), err: String::new() }
}

#[test]
fn broken_starts_and_passes_need_no_person() {
    let wanted = rounds("BERTH_FIRST_STARTS", 48);
    let prepared = Prepared::new();
    let mut random = Random::new(wanted);
    let mut all = Vec::new();
    for setup in SETUPS {
        let whole = World::new(&prepared, setup, false);
        let begun = Instant::now();
        Ran::of(&mut whole.command()).expect(0);
        // A start and a later pass are killed within these. The first may have been slow for no reason of its own.
        let mut spans = [begun.elapsed(); 2];
        let mut tally = Tally::default();
        // Each world has its first start broken, and a later pass.
        for round in 0..wanted.div_ceil(8) {
            let on_disk = round % 2 == 1;
            let world = World::new(&prepared, setup, on_disk);
            for which in [0, 1] {
                prepared.set(&world.repository(), which, setup.member);
                let span = u64::try_from(spans[which].as_micros()).expect("not that long");
                let fault = match (world.disk.is_some(), random.below(2)) {
                    (false, 0) => Fault::KillAfter(Duration::from_micros(random.below(span))),
                    (false, _) => Fault::KillAllAfter(Duration::from_micros(random.below(span))),
                    (true, 0) => Fault::FullDisk(Room::Files(random.below(60))),
                    (true, _) => Fault::FullDisk(Room::Blocks(random.below(40))),
                };
                if let Some(took) = tally.round(&world, fault, which) {
                    spans[which] = spans[which].min(took);
                }
            }
        }
        all.push((setup, tally));
    }
    let sum = |of: fn(&Tally) -> u64| all.iter().map(|(_, tally)| of(tally)).sum::<u64>();
    let (killed, full, unharmed) = (sum(|it| it.killed), sum(|it| it.full), sum(|it| it.unharmed));
    for (setup, tally) in &all {
        eprintln!(
            "{}: {} killed, {} on a full disk, {} ended before, {} wedged",
            setup.name(),
            tally.killed,
            tally.full,
            tally.unharmed,
            tally.wedged.len()
        );
    }
    let wedged: Vec<&str> = all.iter().flat_map(|(_, tally)| &tally.wedged).map(String::as_str).collect();
    eprintln!(
        "{} first starts and passes: {killed} killed, {full} on a full disk, {unharmed} ended before, {} wedged",
        killed + full + unharmed,
        wedged.len()
    );
    assert!(wedged.is_empty(), "{}", wedged.join("\n"));
    assert!(killed * 4 >= wanted, "only {killed} of {wanted} were killed");
}

/// Each case is what a start that was cut short can leave: files with their text; folders end in `/`.
#[test]
fn a_half_made_working_copy_is_completed() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    let url = &server.access()[1];
    let whole = format!("{url}\n");
    let half = &url[..9];
    let cases: [(&str, &[(&str, &str)]); 10] = [
        ("only the lock", &[("berth-lock", "")]),
        ("an unfinished marker", &[("berth-lock", ""), ("berth-new", half)]),
        ("an empty marker", &[("berth-lock", ""), ("berth-remote", "")]),
        ("half a marker", &[("berth-lock", ""), ("berth-remote", half)]),
        ("a marker and no more", &[("berth-lock", ""), ("berth-remote", &whole)]),
        ("a locked configuration", &[("berth-lock", ""), ("berth-remote", &whole), ("config.lock", "")]),
        (
            "an empty configuration",
            &[("berth-lock", ""), ("berth-remote", &whole), ("config", ""), ("objects/", "")],
        ),
        (
            "an empty HEAD",
            &[
                ("berth-lock", ""),
                ("berth-remote", &whole),
                ("HEAD", ""),
                ("HEAD.lock", "ref"),
                ("refs/", ""),
            ],
        ),
        (
            "half a marker of a repository",
            &[
                ("berth-lock", ""),
                ("berth-remote", ""),
                ("HEAD", "ref: refs/heads/main\n"),
                ("config", "[core]\n\tbare = true\n"),
                ("objects/pack/tmp_pack_1", "half"),
                ("refs/berth-local/rendered", "0123456789012345678901234567890123456789\n"),
            ],
        ),
        (
            "refs without a value and their locks",
            &[
                ("berth-lock", ""),
                ("berth-remote", &whole),
                ("refs/heads/main", ""),
                ("refs/heads/main.lock", ""),
                ("packed-refs.lock", ""),
                ("shallow.lock", ""),
                ("packed-refs.new", "half"),
                ("objects/info/commit-graph.lock", ""),
                ("objects/pack/.tmp-1-pack-1.pack", "half"),
            ],
        ),
    ];
    let lay = |folder: &Path, files: &[(&str, &str)]| {
        for (path, text) in files {
            let place = folder.join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            if path.ends_with('/') {
                std::fs::create_dir_all(&place).unwrap();
            } else {
                std::fs::write(&place, text).unwrap();
            }
        }
    };
    for (index, (what, files)) in cases.into_iter().enumerate() {
        let name = format!("case-{index}");
        let copy = fleet.root().join("copies").join(&name);
        lay(&copy, files);
        let ran = fleet.run_from(&name, &server, &[]);
        assert_eq!(ran.code, 0, "{what}: {}", ran.err);
        for (left, _) in files.iter().filter(|(path, _)| path.contains("tmp") || path.contains(".lock")) {
            assert!(!copy.join(left).exists(), "{what}: {left}");
        }
        assert!(!copy.join("packed-refs.new").exists(), "{what}");
        Ran::of(hermetic("git").arg("--git-dir").arg(&copy).args(["fsck", "--no-dangling"])).expect(0);
    }
    // A member's is the same.
    lay(&fleet.root().join("copies/a"), &[("berth-lock", "")]);
    fleet.sync_once("a", &server, &[]).expect(0);
    assert_eq!(fleet.value("a").as_deref(), Some("one"));
}

#[test]
fn a_folder_of_somebody_else_is_never_touched() {
    let fleet = Fleet::new();
    let server = Plain::new(fleet.root());
    let foreign: [&[(&str, &str)]; 5] = [
        &[("notes.txt", "mine")],
        &[("berth-lock", ""), ("notes.txt", "mine")],
        &[("berth-lock", ""), ("berth-remote", ""), ("notes.txt", "mine")],
        &[("berth-remote", ""), ("HEAD", "ref: refs/heads/main\n")],
        &[("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n\tbare = true\n"), ("config.lock", "")],
    ];
    for (index, files) in foreign.into_iter().enumerate() {
        let name = format!("foreign-{index}");
        let copy = fleet.root().join("copies").join(&name);
        std::fs::create_dir_all(&copy).unwrap();
        for (path, text) in files {
            std::fs::write(copy.join(path), text).unwrap();
        }
        let ran = fleet.run_from(&name, &server, &[]).expect(2);
        assert!(ran.err.contains("is not a working copy that berth made"), "{}", ran.err);
        assert_eq!(std::fs::read_dir(&copy).unwrap().count(), files.len(), "{name}");
        for (path, text) in files {
            assert_eq!(std::fs::read_to_string(copy.join(path)).unwrap(), *text);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_git_that_outlives_its_berth_is_ended_by_the_next_start() {
    let fleet = Fleet::new();
    let mut server = Plain::new(fleet.root());
    server.stop();
    let mut silent = None;
    until("the port is free again", || {
        silent = std::net::TcpListener::bind(("127.0.0.1", server.port)).ok();
        silent.is_some()
    });
    let silent = silent.unwrap();
    let mut command = berth();
    command.args(["run", "--once", "--repo"]).arg(fleet.root().join("copies/run"));
    let mut child = command.args(server.access()).stderr(Stdio::null()).spawn().unwrap();
    let (held, _) = silent.accept().unwrap();
    drop(silent);
    // Beside a berth that lives, there is no other.
    let beside = fleet.run_once(&server, &[]).expect(2);
    assert!(beside.err.contains("another berth process uses it"), "{}", beside.err);
    child.kill().unwrap();
    child.wait().unwrap();
    server.start();
    fleet.run_once(&server, &[]).expect(0);
    // The connection ended with the orphan.
    held.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let read = std::io::copy(&mut &held, &mut std::io::sink());
    assert!(read.is_ok_and(|_| true));
}

#[test]
fn a_running_daemon_goes_on_once_its_full_disk_has_room_again() {
    let fleet = Fleet::new();
    let Some(disk) = Disk::new(&fleet.root().join("copies")) else { return };
    let server = Plain::new(fleet.root());
    let daemon = Running::daemon(&fleet, &server, &[]);
    until("the daemon published", || fleet.has(RENDERED));
    for (value, room) in [("two", Room::Files(1)), ("three", Room::Blocks(1))] {
        let before = fleet.bare(&["rev-parse", RENDERED]);
        let warned = daemon.log().matches("No space left on device").count();
        disk.leave(room);
        fleet.edit(value);
        until("the daemon says why", || daemon.log().matches("No space left on device").count() > warned);
        assert_eq!(fleet.bare(&["rev-parse", RENDERED]), before);
        disk.leave(Room::Plenty);
        until("the daemon goes on", || fleet.bare(&["rev-parse", RENDERED]) != before);
    }
    assert_eq!(daemon.stop().0, 0);
    fleet.bare(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_running_member_reports_again_once_its_full_disk_has_room_again() {
    let fleet = Fleet::new();
    let Some(disk) = Disk::new(&fleet.root().join("copies")) else { return };
    let server = Plain::new(fleet.root());
    fleet.run_once(&server, &[]).expect(0);
    let member = Running::member(&fleet, "a", &server, &["--heartbeat", "1"]);
    let status = "refs/berth/status/a";
    until("the member reported", || fleet.has(status));
    disk.leave(Room::Blocks(0));
    member.wait_for(&["the status could not be reported", "No space left on device"]);
    let before = fleet.bare(&["rev-parse", status]);
    disk.leave(Room::Plenty);
    until("the member reports again", || fleet.bare(&["rev-parse", status]) != before);
    assert_eq!(member.stop().0, 0);
}

#[test]
fn an_exchange_without_room_says_so_and_leaves_none_of_it_behind() {
    let fleet = Fleet::new();
    // More objects than git unpacks one by one, and more bytes than there is room for.
    let mut random = Random::new(7);
    for file in 0..150 {
        let text: String = (0..4_000).map(|_| char::from(b'!' + random.below(90) as u8)).collect();
        fleet.people.write(&format!("notes/{file}.txt"), text);
    }
    fleet.people.commit("notes");
    fleet.push();
    let Some(disk) = Disk::new(&fleet.root().join("copies")) else { return };
    let server = Plain::new(fleet.root());
    disk.leave(Room::Blocks(60));
    let ran = fleet.run_once(&server, &[]).expect(6);
    assert!(
        ran.err.contains("the working copy cannot be used") && ran.err.contains("No space"),
        "{}",
        ran.err
    );
    let left: Vec<String> = std::fs::read_dir(fleet.root().join("copies/run/objects/pack"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left, Vec::<String>::new());
    disk.leave(Room::Plenty);
    fleet.run_once(&server, &[]).expect(0);
}

#[test]
fn scratch_folders_of_killed_proofs_do_not_pile_up() {
    let repo: Repo = small_fleet();
    repo.publish().expect(0);
    let base = tempfile::tempdir().expect("a folder");
    let left = base.path().join("berth-scratch-1-0");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("berth-lock"), "").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(600);
    std::fs::File::open(&left).unwrap().set_modified(old).unwrap();
    let mut verify = berth();
    verify.env("TMPDIR", base.path()).args(["verify", "--repo", repo.arg()]);
    Ran::of(&mut verify).expect(0);
    assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0);
}
