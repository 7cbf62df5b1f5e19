//! Two daemons that both publish and three members, through three Git servers with a wire before each; and people.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value as Json;

use crate::signing::Keys;
use crate::support::disk::Disk;
use crate::support::kube::{ControlPlane, Wanted};
use crate::support::ports::free_port;
use crate::support::random::Random;
use crate::support::remote::{Fleet, Harm, Https, Plain, Running, Server, Ssh, Wire};
use crate::support::signals::Signal;
use crate::support::wait::until;
use crate::support::{Ran, config_map, hermetic};

pub const DAEMONS: [&str; 2] = ["daemon-1", "daemon-2"];
pub const MEMBERS: [&str; 3] = ["a", "b", "c"];

/// The objects of a member: an identity that a new making changes, and the number that people gave it.
type Objects = BTreeMap<String, (String, u32)>;

/// One berth, over all its lives.
struct Process {
    port: u16,
    running: Option<Running>,
    /// What its earlier lives said.
    said: String,
}

pub struct World {
    pub fleet: Fleet,
    pub keys: Keys,
    pub random: Random,
    pub https: Https,
    pub ssh: Ssh,
    pub plain: Plain,
    /// One before each Git server: https, ssh, `git daemon`.
    pub wires: [Wire; 3],
    pub plane: ControlPlane,
    /// The wire to the API server of `a`.
    pub api: Wire,
    /// The small disks of `daemon-2` and `c`, where the system gives such.
    pub disks: Vec<Disk>,
    processes: BTreeMap<&'static str, Process>,
    edits: u32,
    /// The commit of a ref that was moved.
    newest: String,
    seen: BTreeMap<&'static str, Objects>,
}

/// Replaces a file whole.
pub fn put(path: &Path, content: impl AsRef<[u8]>) {
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, content).expect("a file");
    std::fs::rename(&fresh, path).expect("a move");
}

impl World {
    /// `None`, loudly, where the machine lacks what it needs.
    pub fn new(seed: u64) -> Option<World> {
        let keys = Keys::new()?;
        keys.make("stranger", &["-t", "ed25519", "-N", ""]);
        let fleet = Fleet::new();
        let (https, ssh, plain) =
            (Https::new(fleet.root())?, Ssh::new(fleet.root())?, Plain::new(fleet.root()));
        let plane = ControlPlane::start(Wanted::SERVER_ONLY)?;
        let kubeconfig = std::fs::read_to_string(plane.kubeconfig()).expect("a kubeconfig");
        let api = kubeconfig.split("https://127.0.0.1:").nth(1).expect("an address of this machine");
        let port = api.split(|letter: char| !letter.is_ascii_digit()).next().expect("a port").to_owned();
        let api = Wire::to(port.parse().expect("a port"));
        let over_wire = kubeconfig.replace(&format!(":{port}"), &format!(":{}", api.port));
        std::fs::write(fleet.root().join("kubeconfig"), over_wire).expect("a file");
        let wires = [https.port, ssh.port, plain.port].map(Wire::to);
        let known = fleet.root().join("known_hosts");
        let host = std::fs::read_to_string(&known).expect("a host");
        let more = host.replace(&format!("]:{} ", ssh.port), &format!("]:{} ", wires[1].port));
        std::fs::write(&known, format!("{host}{more}")).expect("a file");
        let copies = fleet.root().join("copies");
        let disks = ["daemon-2", "c"].map(|name| Disk::new(&copies.join(name)));
        let disks = disks.into_iter().flatten().collect();
        let process = |name| (name, Process { port: free_port(), running: None, said: String::new() });
        let processes = DAEMONS.into_iter().chain(MEMBERS).map(process).collect();
        let (edits, newest, seen) = (0, String::new(), BTreeMap::new());
        let random = Random::new(seed);
        let world = World {
            fleet,
            keys,
            random,
            https,
            ssh,
            plain,
            wires,
            plane,
            api,
            disks,
            processes,
            edits,
            newest,
            seen,
        };
        world.sign_with(DAEMONS[0], "berth");
        world.sign_with(DAEMONS[1], "berth");
        world.trust(&["berth"]);
        Some(world)
    }

    pub fn ports(&self) -> Vec<(&'static str, u16)> {
        self.processes.iter().map(|(name, process)| (*name, process.port)).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.fleet.root().join(name)
    }

    /// Puts this key into the file of a daemon's signing key.
    pub fn sign_with(&self, daemon: &str, key: &str) {
        put(&self.file(&format!("key-of-{daemon}")), std::fs::read(self.keys.path(key)).expect("a key"));
    }

    /// Breaks the file of a daemon's signing key.
    pub fn break_key(&self, daemon: &str) {
        put(&self.file(&format!("key-of-{daemon}")), "no key");
    }

    /// From now on everybody trusts these keys and no others.
    pub fn trust(&self, keys: &[&str]) {
        let keys: Vec<(&str, &str)> = keys.iter().map(|key| (*key, "")).collect();
        put(&self.file("trusted"), std::fs::read(self.keys.allow(&keys)).expect("a file"));
    }

    pub fn start(&mut self, name: &'static str) {
        let key = self.file(&format!("key-of-{name}"));
        let (trusted, port) = (self.file("trusted"), self.processes[name].port.to_string());
        let text = |path: &Path| path.to_str().expect("a text path").to_owned();
        let mut more = ["--metrics", &port, "--allowed-signers", &text(&trusted)].map(str::to_owned).to_vec();
        more.extend(["--git-stall-timeout", "5", "--git-timeout", "20"].map(str::to_owned));
        let (server, wire): (&dyn Server, &Wire) = match name {
            "daemon-1" | "a" => (&self.https, &self.wires[0]),
            "daemon-2" | "b" => (&self.ssh, &self.wires[1]),
            _ => (&self.plain, &self.wires[2]),
        };
        let server = wire.server(server);
        let is_daemon = DAEMONS.contains(&name);
        if is_daemon {
            more.extend(["--signing-key".to_owned(), text(&key)]);
        } else {
            more.extend(["--heartbeat", "5"].map(str::to_owned));
        }
        if name == "a" {
            more.extend(["--kubeconfig".to_owned(), text(&self.file("kubeconfig"))]);
        }
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let running = match name {
            "a" => Running::member_of("kube", &self.fleet, name, &server, &more),
            _ if is_daemon => Running::daemon_in(name, "1", &self.fleet, &server, &more),
            _ => Running::member(&self.fleet, name, &server, &more),
        };
        self.processes.get_mut(name).expect("a process").running = Some(running);
    }

    /// Ends a process with a signal, if it runs.
    pub fn end(&mut self, name: &str, signal: Signal) {
        let process = self.processes.get_mut(name).expect("a process");
        let Some(running) = process.running.take() else { return };
        let (code, said) = match signal {
            Signal::TERM => running.stop(),
            signal => {
                running.signal(signal);
                (0, running.log())
            }
        };
        assert_eq!(code, 0, "{name} ends with {code}:\n{said}");
        process.said.push_str(&said);
    }

    pub fn signal(&self, name: &str, signal: Signal) {
        self.processes[name].running.as_ref().expect("it runs").signal(signal);
    }

    /// Ends a process, and starts it again.
    pub fn again(&mut self, name: &'static str, signal: Signal) {
        self.end(name, signal);
        self.start(name);
    }

    /// All that a process said in its lives.
    pub fn log(&self, name: &str) -> String {
        let process = &self.processes[name];
        process.said.clone() + &process.running.as_ref().map(Running::log).unwrap_or_default()
    }

    pub fn harm(&self, harm: Option<Harm>) {
        self.wires.iter().for_each(|wire| wire.harm(harm));
    }

    /// Changes what every cluster has, and adds an object at every fifth time.
    pub fn edit(&mut self) {
        self.edits += 1;
        let (number, everywhere) = (self.edits, "{clusterSelector: {}}");
        let people = &self.fleet.people;
        people.write("apps/web.yaml", config_map("web", &number.to_string(), everywhere));
        if number.is_multiple_of(5) {
            let name = format!("edit-{number}");
            people.write(&format!("apps/{name}.yaml"), config_map(&name, &number.to_string(), everywhere));
        }
        people.commit(&format!("edit {number}"));
        self.fleet.push();
    }

    pub fn edits(&self) -> u32 {
        self.edits
    }

    /// The objects that each cluster should have in the end.
    pub fn wanted(&self) -> BTreeMap<String, u32> {
        let numbers = (1..=self.edits).filter(|number| number.is_multiple_of(5));
        let mut wanted: BTreeMap<String, u32> =
            numbers.map(|number| (format!("edit-{number}"), number)).collect();
        wanted.insert("web".to_owned(), self.edits);
        wanted
    }

    /// The objects that a member has now; nothing where its cluster cannot be asked.
    fn objects(&self, member: &str) -> Option<Objects> {
        if member == "a" {
            let args =
                ["get", "configmaps", "-n", "shop", "-l", "applyset.kubernetes.io/part-of", "-o", "json"];
            let ran = Ran::of(self.plane.kubectl().args(args));
            let list: Json = (ran.code == 0).then(|| ran.json())?;
            let item = |item: &Json| {
                let text = |at: &str| item.pointer(at)?.as_str().map(str::to_owned);
                Some((text("/metadata/name")?, (text("/metadata/uid")?, text("/data/value")?.parse().ok()?)))
            };
            return list["items"].as_array()?.iter().map(item).collect();
        }
        let files = std::fs::read_dir(self.fleet.target(member).join("shop")).ok()?.flatten();
        let object = |file: std::fs::DirEntry| {
            let name = file.file_name().into_string().ok()?;
            let name = name.strip_prefix("ConfigMap_")?.strip_suffix(".yaml")?.to_owned();
            let text = std::fs::read_to_string(file.path()).ok()?;
            let value = text.lines().find_map(|line| line.trim().strip_prefix("value: "))?;
            Some((name, (String::new(), value.trim_matches(['"', '\'']).parse().ok()?)))
        };
        Some(files.filter_map(object).collect())
    }

    /// The objects of a member, of which none was lost, made anew or put back to an earlier form since the last look.
    pub fn look(&mut self, member: &'static str) -> BTreeMap<String, u32> {
        let Some(now) = self.objects(member) else { return BTreeMap::new() };
        for (name, (identity, number)) in self.seen.get(member).into_iter().flatten() {
            match now.get(name) {
                None => panic!("{member} lost {name}"),
                Some((same, later)) => {
                    assert_eq!(same, identity, "{member}: {name} was made anew");
                    assert!(later >= number, "{member}: {name} went from {number} back to {later}");
                }
            }
        }
        let numbers = now.iter().map(|(name, (_, number))| (name.clone(), *number)).collect();
        self.seen.insert(member, now);
        numbers
    }

    /// Looks at all members; whether all have exactly what people want.
    pub fn all_have_all(&mut self) -> bool {
        let wanted = self.wanted();
        MEMBERS.into_iter().filter(|member| self.look(member) == wanted).count() == MEMBERS.len()
    }

    /// The seconds until one more edit has come to all members.
    pub fn seconds_to_all(&mut self) -> f64 {
        self.edit();
        let begun = Instant::now();
        until("all members have all edits", || self.all_have_all());
        begun.elapsed().as_secs_f64()
    }

    /// Moves a ref to a commit without any file, as somebody does who may push but has no key.
    pub fn forge(&self, name: &str, parents: &[&str]) {
        let message = self.fleet.bare(&["log", "-1", "--format=%B", name]);
        let message = message.lines().map(|line| match line.strip_prefix("Berth-Seq: ") {
            Some(number) => format!("Berth-Seq: {}\n", number.parse::<u32>().expect("a number") + 1000),
            None => format!("{line}\n"),
        });
        let mut git = hermetic("git");
        git.arg("--git-dir").arg(self.fleet.bare_path()).args(["-c", "gpg.format=ssh", "-c"]);
        git.arg(format!("user.signingKey={}", self.keys.path("stranger").display()));
        let tree = self.fleet.bare(&["mktree", "--missing"]);
        git.args(["commit-tree", "-S", "-m", &message.collect::<String>(), &tree]);
        git.args(parents.iter().flat_map(|parent| ["-p", *parent]));
        let forged = Ran::of(&mut git).expect(0).out;
        self.fleet.bare(&["update-ref", name, forged.trim()]);
    }

    /// Keeps the server's repository as it is now, beside it.
    pub fn keep_a_backup(&self) {
        let (from, to) = (self.fleet.bare_path(), self.file("backup"));
        // A push may take its own files away meanwhile.
        until("the copy is whole", || {
            let _ = std::fs::remove_dir_all(&to);
            std::fs::create_dir_all(&to).expect("a folder");
            Ran::of(hermetic("cp").arg("-r").arg(&from).arg(&to)).code == 0
        });
    }

    /// Moves a ref back by some commits, and remembers where it was.
    pub fn put_back(&mut self, name: &str, commits: u32) {
        until("nobody moves the ref meanwhile", || {
            let newest = self.fleet.bare(&["rev-parse", name]);
            let older = self.fleet.bare(&["rev-parse", &format!("{newest}~{commits}")]);
            let mut git = hermetic("git");
            git.arg("--git-dir").arg(self.fleet.bare_path()).args(["update-ref", name, &older, &newest]);
            let is_moved = Ran::of(&mut git).code == 0;
            self.newest = newest;
            is_moved
        });
    }

    /// Puts a ref where it was before.
    pub fn restore(&self, name: &str) {
        self.fleet.bare(&["update-ref", name, &self.newest]);
    }

    /// Takes every second file of objects from a working copy, as a bad disk does.
    pub fn damage(&self, name: &str) {
        let objects = self.fleet.root().join("copies").join(name).join("objects");
        let ran = Ran::of(hermetic("find").arg(objects).args(["-type", "f"])).expect(0);
        for file in ran.out.lines().step_by(2) {
            std::fs::remove_file(file).expect("removed");
        }
    }

    pub fn people_write(&self, path: &str, text: &str) {
        self.fleet.people.write(path, text);
        self.fleet.people.commit(path);
        self.fleet.push();
    }

    pub fn people_remove(&self, path: &str) {
        self.fleet.people.git(&["rm", "-q", "-r", "--", path]);
        self.fleet.people.commit("removed");
        self.fleet.push();
    }

    /// Removes all objects but one.
    pub fn people_remove_most(&mut self) {
        self.newest = self.fleet.people.git(&["rev-parse", "HEAD"]).trim().to_owned();
        self.people_remove("apps/edit-*");
    }

    /// Brings back all that was removed.
    pub fn people_bring_back(&mut self) {
        self.fleet.people.git(&["checkout", "-q", &self.newest, "--", "apps/edit-*"]);
        self.fleet.people.commit("brought back");
        self.fleet.push();
    }
}
