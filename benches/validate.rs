//! `berth validate` over 100,000 files, plain objects and then all three dialects, beside two floors: reading and hashing
//! all files, and running the bare event parser over them. `cargo bench --bench validate`.
//!
//! `cargo bench --bench validate -- FILES CLUSTERS EACH` sets another size. Every figure is of a process of its own.

#![allow(clippy::print_stdout)]

mod fleet;
mod size;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use berth_base::source::{SourceTree, read_dir};
use berth_base::yaml::Limits;
use fleet::Size;
use saphyr_parser::Parser;

/// The processes that this bench runs beside berth, by their first argument.
const READ: &str = "read-and-hash";
const PARSE: &str = "parse";

/// Runs of each, of which the one with the median processor time counts.
const RUNS: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [what, folder] if what == READ => drop(black_box(files_in(Path::new(folder)))),
        [what, folder] if what == PARSE => parse(&files_in(Path::new(folder))),
        _ => {
            let numbers: Vec<usize> = arguments.iter().filter_map(|one| one.parse().ok()).collect();
            let [files, clusters, each] = numbers[..] else {
                let (files, clusters) = size::of((100_000, 3_000), (10_000, 300));
                return measure(files, clusters, 10);
            };
            measure(files, clusters, each);
        }
    }
}

fn measure(files: usize, clusters: usize, each: usize) {
    let plain = fleet::of_plain_objects(files, clusters);
    measure_one(&format!("{clusters} clusters, plain objects that nothing places"), plain);
    for size in [Size::Small, Size::Usual] {
        let fleet = fleet::of_all_dialects(files, clusters, each, size);
        measure_one(&format!("{clusters} clusters, {size:?} workloads on {each} each"), fleet);
    }
}

fn measure_one(name: &str, files: Vec<(String, String)>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (count, bytes) = (files.len(), files.iter().map(|(_, text)| text.len()).sum::<usize>());
    for (path, text) in files {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, &text).expect("a file");
    }
    println!("{count} files, {} MB, {name}", bytes / 1_000_000);
    let itself = std::env::current_exe().expect("this program");
    let program = |what: &str| {
        let mut command = Command::new(&itself);
        command.arg(what).arg(folder.path());
        command
    };
    let read = Took::median(|| program(READ));
    println!("read and hash      {}", read.shown());
    let parsed = Took::median(|| program(PARSE));
    println!("the event parser   {}", parsed.shown());
    let took = Took::median(|| {
        let berth = std::env::var_os("BERTH_BENCH_PROGRAM").map(PathBuf::from);
        let mut command = Command::new(berth.unwrap_or_else(|| env!("CARGO_BIN_EXE_berth").into()));
        command.arg("validate").arg(folder.path());
        command
    });
    println!(
        "berth validate     {}   {:.1} times the event parser by processor time, {:.1} times the files in memory",
        took.shown(),
        took.processor.as_secs_f64() / parsed.processor.as_secs_f64(),
        (took.peak << 10) as f64 / bytes as f64
    );
}

fn files_in(folder: &Path) -> SourceTree {
    read_dir(folder, &Limits::default()).expect("the folder can be read")
}

fn parse(tree: &SourceTree) {
    for file in tree.files.values() {
        let mut parser = Parser::new_from_str(std::str::from_utf8(&file.bytes).expect("text"));
        while let Some(event) = parser.next_event() {
            black_box(event.expect("sound YAML"));
        }
    }
}

/// The cost of a process.
#[derive(Clone, Copy, Default)]
struct Took {
    wall: Duration,
    /// Of all its threads.
    processor: Duration,
    /// In KiB.
    peak: u64,
}

impl Took {
    fn median(command: impl Fn() -> Command) -> Took {
        let mut all: Vec<Took> = (0..RUNS).map(|_| Took::of(&mut command())).collect();
        all.sort_by_key(|took| took.processor);
        all[RUNS / 2]
    }

    /// Runs a program to its end and looks at it meanwhile.
    fn of(command: &mut Command) -> Took {
        let start = Instant::now();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let id = child.id();
        let mut took = Took::default();
        while child.try_wait().expect("it can be waited for").is_none() {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            // The 14th and 15th fields, in hundredths of a second. The program's name before them may hold spaces.
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
            let ticks: u64 =
                fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
            took.processor = Duration::from_millis(10 * ticks).max(took.processor);
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let high = high.and_then(|rest| rest.trim().split(' ').next()?.parse().ok());
            took.peak = high.unwrap_or(0).max(took.peak);
            std::thread::sleep(Duration::from_millis(2));
        }
        took.wall = start.elapsed();
        took
    }

    fn shown(&self) -> String {
        format!(
            "{:>6.2?} on the wall, {:>6.2?} of processor, {:>5} MiB",
            self.wall,
            self.processor,
            self.peak >> 10
        )
    }
}
