//! Whole runs of the binary over generated fleets, as rows with their targets: a full run beside `git fast-import` of
//! the identical tree; runs after edits, by new processes and a daemon, also of many clusters and in twice the fleet;
//! memory; and `kubectl kustomize` of single clusters, where there is a kubectl. `cargo bench --bench whole_run`.
//!
//! `cargo bench --bench whole_run -- CLUSTERS WORKLOADS EACH OVERRIDDEN` sets another size.

#![allow(clippy::print_stdout)]

mod allocator;
mod fleet;
mod kustomize;
mod rows;
mod size;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use berth_base::model::Timestamp;
use berth_hub::daemon::{self, Settings};
use fleet::{Dialect, Shape};
use rows::{Figure, Target};

/// The level both sides compress at.
const LEVEL: &str = "core.compression=1";

/// Edits in new processes.
const EDITS: usize = 7;

/// Passes of a daemon, which are short.
const PASSES: usize = 21;

/// Clusters that are built as overlays too.
const SAMPLES: usize = 5;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let shape = match numbers[..] {
        [clusters, workloads, each, overridden] => {
            Shape { clusters, workloads, each, overridden, dialect: Dialect::KubeFed }
        }
        _ => {
            let size = size::of(1000, 300);
            Shape { clusters: size, workloads: size, each: 100, overridden: 10, dialect: Dialect::KubeFed }
        }
    };
    let mut folder = tempfile::tempdir().expect("a folder");
    folder.disable_cleanup(std::env::var_os("BERTH_BENCH_KEEP").is_some());
    println!("in {}", folder.path().display());
    let of_shape = |name: &str, shape| Fleet::make(folder.path().join(name), shape);
    rows::heading();

    let fleet = of_shape("fleet.git", shape);
    let import = fleet.import(folder.path());
    rows::row("full run", fleet.full.time(), import.time(), "git fast-import", Target::AtMost(1.2));
    rows::row("its peak memory", fleet.full.memory(), Figure::Memory(500_000), "500 MB", Target::AtMost(1.0));
    beside_kustomize(shape, &fleet.repository, folder.path(), fleet.full);
    run_once(&fleet.repository);
    let full = fleet.full.time();
    let share = |name: &str, took: Took, target| {
        rows::row(name, took.time(), full, "full run", Target::AtMost(target));
    };
    share("nothing changed, new process", Took::median((0..3).map(|_| run_once(&fleet.repository))), 0.01);
    let cold = Took::median((0..EDITS).map(|_| {
        fleet.edit();
        run_once(&fleet.repository)
    }));
    rows::row("one workload edited, new process", cold.time(), full, "full run", Target::None);
    let warm = fleet.warm(Fleet::edit);
    share("one workload edited, daemon", warm, 0.005);
    let labelled = fleet.warm(|fleet| {
        fleet.put(|number| {
            let (path, text) = shape.cluster(number * 37 % shape.clusters);
            (path, text.replace("region: ", &format!("region: n{number}")))
        });
    });
    share("one cluster with another label", labelled, 0.01);
    let joined = fleet.warm(|fleet| fleet.put(|number| shape.cluster(shape.clusters + number)));
    share("one new cluster, daemon", joined, 0.01);
    let [rest, edited] = fleet.memory_at_rest();
    rows::row("daemon at rest", rest, Figure::Memory(300_000), "300 MB", Target::AtMost(1.0));
    rows::row("daemon after an edit", edited, Figure::Memory(300_000), "300 MB", Target::AtMost(1.0));

    // The same clusters in twice the fleet, and the same copies of fewer workloads.
    let twice = of_shape(
        "twice.git",
        Shape { clusters: 2 * shape.clusters, workloads: 2 * shape.workloads, ..shape },
    );
    run_once(&twice.repository);
    // In turns: the two are compared with each other, and a machine is not as fast at any time.
    let [mut once, mut both] = [&fleet, &twice].map(Fleet::daemon);
    let (once, both) =
        (0..PASSES).map(|_| (once.pass_after(Fleet::edit), both.pass_after(Fleet::edit))).unzip();
    let [once, both] = [once, both].map(|all: Vec<Took>| Took::median(all.into_iter()));
    rows::row("the same edit in twice the fleet", both.time(), once.time(), "once", Target::AtMost(1.2));
    let each = shape.clusters.min(10 * shape.each);
    let wide = of_shape("wide.git", Shape { workloads: shape.workloads * shape.each / each, each, ..shape });
    run_once(&wide.repository);
    let cold = Took::median((0..EDITS).map(|_| {
        wide.edit();
        run_once(&wide.repository)
    }));
    let name = |how: &str| format!("edit of {each} clusters, {how}");
    rows::row(&name("new process"), cold.time(), wide.full.time(), "full run", Target::None);
    let warm = wide.warm(Fleet::edit);
    rows::row(&name("daemon"), warm.time(), wide.full.time(), "full run", Target::None);
}

/// A generated fleet with what its full run took.
struct Fleet {
    repository: PathBuf,
    shape: Shape,
    full: Took,
    /// The commits so far.
    number: Cell<usize>,
}

impl Fleet {
    fn make(repository: PathBuf, shape: Shape) -> Fleet {
        std::fs::create_dir(&repository).expect("a folder");
        shape.repository(&repository);
        let Shape { clusters, workloads, each, overridden, .. } = shape;
        let manifests = shape.manifests();
        println!(
            "{clusters} clusters, {workloads} workloads on {each} each, {overridden} % of the copies overridden: \
             {manifests} manifests"
        );
        let full = run_once(&repository);
        Fleet { repository, shape, full, number: Cell::new(0) }
    }

    /// `git fast-import` of the identical tree.
    fn import(&self, folder: &Path) -> Took {
        let file = folder.join("stream");
        std::fs::write(&file, stream_of(&self.repository)).expect("the stream is written");
        Took::median((0..3).map(|round| {
            let target = folder.join(format!("import-{round}.git"));
            std::fs::create_dir(&target).expect("a folder");
            fleet::git(&target, &["init", "-q", "--bare", "."]);
            let mut command = fleet::hermetic_git(&target);
            command.args(["-c", LEVEL, "fast-import", "--quiet"]);
            watch(command.stdin(std::fs::File::open(&file).expect("the stream is there")))
        }))
    }

    /// Commits one file.
    fn put(&self, file: impl Fn(usize) -> (String, String)) {
        self.number.set(self.number.get() + 1);
        fleet::commit(&self.repository, &[file(self.number.get())], self.number.get());
    }

    fn edit(&self) {
        self.put(|number| self.shape.workload(number * 37 % self.shape.workloads, number));
    }

    /// Passes of a daemon, each after a change.
    fn warm(&self, change: impl Fn(&Fleet)) -> Took {
        let mut daemon = self.daemon();
        Took::median((0..PASSES).map(|_| daemon.pass_after(&change)))
    }

    /// A daemon after its first pass, in a repository that is packed as a daemon does it now and then.
    fn daemon(&self) -> Daemon<'_> {
        run_once(&self.repository);
        let settings = Settings::of(self.repository.clone());
        let mut daemon = Daemon { fleet: self, settings, cache: daemon::Cache::default() };
        daemon.pass_after(|_| ());
        daemon
    }

    /// The memory of a daemon process that has nothing to do, and after one edit more.
    fn memory_at_rest(&self) -> [Figure; 2] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
        command.args(["run", "--repo"]).arg(&self.repository).stdout(Stdio::null()).stderr(Stdio::null());
        let mut daemon = command.spawn().expect("it starts");
        let process = daemon.id().to_string();
        let at_rest = || {
            wait_for_rest(&process);
            self.edit();
            wait_for_rest(&process);
            Figure::Memory(memory(&process, "VmRSS:"))
        };
        // The first edit lets it go on from its own last pass, as it does for the rest of its life.
        let figures = [at_rest(), at_rest()];
        daemon.kill().expect("it can be ended");
        daemon.wait().expect("it ends");
        figures
    }
}

/// A daemon in this process.
struct Daemon<'f> {
    fleet: &'f Fleet,
    settings: Settings,
    cache: daemon::Cache,
}

impl Daemon<'_> {
    fn pass_after(&mut self, change: impl Fn(&Fleet)) -> Took {
        change(self.fleet);
        let (start, before) = (Instant::now(), processor_time("self"));
        daemon::pass_with_cache(&self.settings, Timestamp::now(), &mut self.cache)
            .expect("the pass succeeds");
        let processor = processor_time("self").saturating_sub(before);
        Took { wall: start.elapsed(), processor, peak: 0 }
    }
}

/// Waits until a process has computed nothing for two seconds, at most ten minutes.
fn wait_for_rest(process: &str) {
    let computed = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The 14th and 15th fields, of all threads. The program's name before them may hold spaces.
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
        fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>()
    };
    let (mut last, mut still) = (computed(), 0);
    for _ in 0..6_000 {
        std::thread::sleep(Duration::from_millis(100));
        let now = computed();
        still = if now <= last + 1 { still + 1 } else { 0 };
        if still == 20 {
            return;
        }
        last = now;
    }
}

/// A figure of a process's memory, in KiB, where the system tells.
fn memory(process: &str, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// A cluster's part of the full run beside its overlay's build. The latter starts a process for each
/// cluster, as its users do; what an overlay without anything takes is shown, so that it can be subtracted.
fn beside_kustomize(shape: Shape, repository: &Path, folder: &Path, full: Took) {
    let Some(kubectl) = kustomize::kubectl() else {
        println!("kubectl kustomize         NOT COMPARED: set BERTH_KUBECTL, or run `make control-plane`");
        return;
    };
    let empty = folder.join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    std::fs::write(empty.join("kustomization.yaml"), "namePrefix: x\n").expect("a file");
    let median = |mut all: Vec<Duration>| {
        all.sort();
        all[all.len() / 2]
    };
    let start = median((0..SAMPLES).map(|_| kustomize::start(&kubectl, &empty)).collect());
    let sampled = (0..SAMPLES).map(|sample| {
        let cluster = fleet::cluster_name(sample * shape.clusters / SAMPLES);
        kustomize::Overlay::write(repository, &cluster, &folder.join(format!("kustomize-{sample}")))
    });
    let sampled: Vec<kustomize::Overlay> = sampled.collect();
    let built = median(sampled.iter().map(|overlay| overlay.build(&kubectl)).collect());
    let clusters = u32::try_from(shape.clusters).expect("a number of clusters");
    let each = full.wall / clusters;
    let (objects, patched) = (sampled[0].objects(), sampled[0].patched);
    println!("kubectl kustomize: {objects} objects a cluster, {patched} patched, {start:.1?} for nothing");
    let [each, built, without] = [each, built, built.saturating_sub(start)].map(Figure::Time);
    rows::times("a cluster of the full run", each, built, "kubectl kustomize", Target::AtLeast(50.0));
    rows::times("the same", each, without, "without its start", Target::None);
}

/// What a run took.
#[derive(Clone, Copy)]
struct Took {
    wall: Duration,
    /// Of its main thread, where the system tells: on a busy machine the better measure.
    processor: Duration,
    /// In KiB, where the system tells.
    peak: u64,
}

impl Took {
    fn median(all: impl Iterator<Item = Took>) -> Took {
        let mut all: Vec<Took> = all.collect();
        all.sort_by_key(|took| if took.processor.is_zero() { took.wall } else { took.processor });
        all[all.len() / 2]
    }

    /// The processor's time, where the system tells.
    fn time(self) -> Figure {
        Figure::Time(if self.processor.is_zero() { self.wall } else { self.processor })
    }

    fn memory(self) -> Figure {
        Figure::Memory(self.peak)
    }
}

/// What a process's main thread has computed so far.
fn processor_time(process: &str) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default())
}

/// `berth run --once`.
fn run_once(repository: &Path) -> Took {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    watch(command.args(["run", "--once", "--repo"]).arg(repository))
}

/// Runs a program to its end and looks at it meanwhile.
fn watch(command: &mut Command) -> Took {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let id = child.id().to_string();
    let mut took = Took { wall: Duration::ZERO, processor: Duration::ZERO, peak: 0 };
    let ended = loop {
        took.processor = processor_time(&id).max(took.processor);
        took.peak = memory(&id, "VmHWM:").max(took.peak);
        if let Some(ended) = child.try_wait().expect("it can be waited for") {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    took.wall = start.elapsed();
    assert!(ended.success(), "{command:?}: {ended}");
    took
}

/// The rendered tree as a stream for `git fast-import`: each blob once, by mark.
fn stream_of(repository: &Path) -> Vec<u8> {
    let list = fleet::git(repository, &["ls-tree", "-r", "-z", "refs/heads/berth/rendered"]);
    let mut marks: BTreeMap<String, usize> = BTreeMap::new();
    let mut order = Vec::new();
    let mut files = Vec::new();
    for line in list.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let line = std::str::from_utf8(line).expect("paths are text");
        let (head, path) = line.split_once('\t').expect("a line of ls-tree");
        let id = head.split(' ').nth(2).expect("an id").to_owned();
        let next = marks.len() + 1;
        let mark = *marks.entry(id.clone()).or_insert_with(|| {
            order.push(id);
            next
        });
        files.push((mark, path.to_owned()));
    }
    let mut stream = Vec::new();
    let mut child = fleet::hermetic_git(repository)
        .args(["cat-file", "--batch", "--buffer"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git starts");
    let mut input = child.stdin.take().expect("a pipe");
    let ids = order.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(ids.as_bytes()).expect("git reads"));
    let mut output = Vec::new();
    child.stdout.take().expect("a pipe").read_to_end(&mut output).expect("git writes");
    writer.join().expect("all ids were written");
    child.wait().expect("git ends");
    let mut rest = &output[..];
    for mark in 1..=order.len() {
        let end = rest.iter().position(|byte| *byte == b'\n').expect("a header");
        let header = std::str::from_utf8(&rest[..end]).expect("a header is text");
        let size: usize = header.rsplit(' ').next().and_then(|size| size.parse().ok()).expect("a size");
        let body = &rest[end + 1..end + 1 + size];
        let _ = writeln!(stream, "blob\nmark :{mark}\ndata {size}");
        stream.extend_from_slice(body);
        stream.push(b'\n');
        rest = &rest[end + 2 + size..];
    }
    let _ = write!(
        stream,
        "commit refs/heads/rendered\ncommitter berth <berth@berth.dev> 1767225600 +0000\ndata 5\nstate\n"
    );
    for (mark, path) in files {
        let _ = writeln!(stream, "M 100644 :{mark} \"{path}\"");
    }
    stream
}
