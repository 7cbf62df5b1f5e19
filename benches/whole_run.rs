//! Whole runs of the binary over a generated fleet, beside `git fast-import` of the identical tree:
//! a full run, runs after one workload was edited, cold and warm, after one cluster got another label or joined; and
//! `kubectl kustomize` of single clusters, where there is a kubectl. `cargo bench --bench whole_run`.
//!
//! `cargo bench --bench whole_run -- CLUSTERS WORKLOADS EACH OVERRIDDEN` sets another size.

#![allow(clippy::print_stdout)]

mod fleet;
mod kustomize;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use berth_base::model::Timestamp;
use berth_hub::daemon::{self, Settings};
use fleet::{Dialect, Shape};

/// The level both sides compress at.
const LEVEL: &str = "core.compression=1";

const EDITS: usize = 7;

/// Clusters that are built as overlays too.
const SAMPLES: usize = 5;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let shape = match numbers[..] {
        [clusters, workloads, each, overridden] => {
            Shape { clusters, workloads, each, overridden, dialect: Dialect::KubeFed }
        }
        _ => Shape { clusters: 1000, workloads: 1000, each: 100, overridden: 10, dialect: Dialect::KubeFed },
    };
    let mut folder = tempfile::tempdir().expect("a folder");
    folder.disable_cleanup(std::env::var_os("BERTH_BENCH_KEEP").is_some());
    println!("in {}", folder.path().display());
    let repository = folder.path().join("fleet.git");
    std::fs::create_dir(&repository).expect("a folder");
    shape.repository(&repository);
    println!(
        "{} clusters, {} workloads on {} each, {} % of the copies overridden: {} manifests",
        shape.clusters,
        shape.workloads,
        shape.each,
        shape.overridden,
        shape.manifests()
    );

    let full = run_once(&repository);
    println!("full run                  {}   peak {} MiB", full.shown(), full.peak >> 10);

    let stream = stream_of(&repository);
    let file = folder.path().join("stream");
    std::fs::write(&file, &stream).expect("the stream is written");
    let import = Took::median((0..3).map(|round| {
        let target = folder.path().join(format!("import-{round}.git"));
        std::fs::create_dir(&target).expect("a folder");
        fleet::git(&target, &["init", "-q", "--bare", "."]);
        let mut command = fleet::hermetic_git(&target);
        command.args(["-c", LEVEL, "fast-import", "--quiet"]);
        watch(command.stdin(std::fs::File::open(&file).expect("the stream is there")))
    }));
    println!(
        "git fast-import           {}   the full run takes {:.2} times that, {:.2} by processor time",
        import.shown(),
        ratio(full.wall, import.wall),
        ratio(full.processor, import.processor)
    );

    beside_kustomize(shape, &repository, folder.path(), full);

    let number = Cell::new(0);
    let put = |file: &dyn Fn(usize) -> (String, String)| {
        number.set(number.get() + 1);
        fleet::commit(&repository, &[file(number.get())], number.get());
    };
    let edit = || put(&|number| shape.workload(number * 37 % shape.workloads, number));
    run_once(&repository);
    let unchanged = Took::median((0..3).map(|_| run_once(&repository)));
    println!("nothing changed, cold     {}   {}", unchanged.shown(), unchanged.of(full));
    let cold = Took::median((0..EDITS).map(|_| {
        edit();
        run_once(&repository)
    }));
    println!("one edit, cold process    {}   {}", cold.shown(), cold.of(full));

    let settings = Settings::of(repository.clone());
    let mut cache = daemon::Cache::default();
    let mut pass = || {
        let (start, before) = (Instant::now(), processor_time("self"));
        daemon::pass_with_cache(&settings, Timestamp::now(), &mut cache).expect("the pass succeeds");
        Took { wall: start.elapsed(), processor: processor_time("self").saturating_sub(before), peak: 0 }
    };
    pass();
    let warm = Took::median((0..EDITS).map(|_| {
        edit();
        pass()
    }));
    println!("one edit, warm daemon     {}   {}", warm.shown(), warm.of(full));
    let labelled = Took::median((0..EDITS).map(|_| {
        put(&|number| {
            let (path, text) = shape.cluster(number * 37 % shape.clusters);
            (path, text.replace("region: ", &format!("region: n{number}")))
        });
        pass()
    }));
    println!("one label, warm daemon    {}   {}", labelled.shown(), labelled.of(full));
    let joined = Took::median((0..EDITS).map(|_| {
        put(&|number| shape.cluster(shape.clusters + number));
        pass()
    }));
    println!("one new cluster, daemon   {}   {}", joined.shown(), joined.of(full));
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
    println!(
        "kubectl kustomize         {built:>8.1?} a cluster ({} objects, {} patched), {:.1?} of it for nothing; \
         the full run {each:.2?} a cluster: {:.0} times faster, {:.0} times without the start",
        sampled[0].objects(),
        sampled[0].patched,
        start,
        ratio(built, each),
        ratio(built.saturating_sub(start), each)
    );
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

    fn shown(&self) -> String {
        format!("{:>8.1?} (processor {:>8.1?})", self.wall, self.processor)
    }

    fn of(&self, full: Took) -> String {
        format!(
            "{:.2} % of the full run, {:.2} % by processor time",
            100.0 * ratio(self.wall, full.wall),
            100.0 * ratio(self.processor, full.processor)
        )
    }
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
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
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let high = high.and_then(|rest| rest.trim().split(' ').next()?.parse().ok());
        took.peak = high.unwrap_or(0).max(took.peak);
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
