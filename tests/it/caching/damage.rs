//! Harm that comes to the file that a process leaves for the next one, in many ways.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use berth_base::model::Timestamp;
use berth_hub::daemon::Settings;

use super::cases::with;
use super::edits::index;
use super::sides::{Said, Side, Sides};
use crate::support::random::Random;
use crate::support::{cluster, config_map, hermetic, namespace};

/// The number of ways.
pub const WAYS: usize = 100;

/// The files of earlier passes that are kept.
const MOST: usize = 100;

/// The most that a damaged file may make a process grow by, in KiB.
const GROWTH: u64 = 1 << 20;

const FILE: &str = "idle.json";

/// Harm to a file's bytes.
const TO_BYTES: [Harm; 10] = [
    Harm::FlipBit,
    Harm::FlipBits,
    Harm::SetByte,
    Harm::CutEnd,
    Harm::CutRange,
    Harm::Zeroes,
    Harm::Ones,
    Harm::SwapRanges,
    Harm::RepeatRange,
    Harm::Insert,
];

/// Harm to a file as a whole.
const TO_FILE: [Harm; 17] = [
    Harm::Missing,
    Harm::Empty,
    Harm::Folder,
    Harm::FullFolder,
    Harm::Unreadable,
    Harm::LinkToNothing,
    Harm::LinkToItself,
    Harm::LinkToFolder,
    Harm::LinkToEndless,
    Harm::LinkToFile,
    Harm::Pipe,
    Harm::Huge,
    Harm::NoFolder,
    Harm::FileForFolder,
    Harm::OfEarlierPass,
    Harm::OfOtherRepository,
    Harm::OfOtherRepository,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    FlipBit,
    FlipBits,
    SetByte,
    CutEnd,
    CutRange,
    Zeroes,
    Ones,
    SwapRanges,
    RepeatRange,
    Insert,
    Missing,
    Empty,
    Folder,
    FullFolder,
    Unreadable,
    LinkToNothing,
    LinkToItself,
    LinkToFolder,
    LinkToEndless,
    LinkToFile,
    Pipe,
    Huge,
    NoFolder,
    FileForFolder,
    OfEarlierPass,
    OfOtherRepository,
}

/// One way of harm to the file.
#[derive(Clone, Copy, Debug)]
pub struct Damage(Harm);

/// Damage that a process is about to find.
#[derive(Debug)]
pub struct Prepared(Damage);

impl Prepared {
    /// Lets the other side make the pass of the others, which came to this.
    pub fn strike(self, sides: &Sides, clock: Timestamp, said: &Said) {
        let (begun, side) = (largest_memory(), &sides.other);
        let found = side.process(clock);
        sides.assert_same(side, &found, said, &format!("{:?}", self.0));
        assert!(largest_memory() < begun + GROWTH, "{:?} takes memory", self.0);
    }
}

/// Files of earlier passes, of this repository and others.
#[derive(Debug)]
pub struct Stock(Vec<(PathBuf, Vec<u8>)>);

impl Stock {
    /// The files of another repository.
    pub fn new() -> Stock {
        let sides = Sides::new(&Settings::of(""));
        let clock = Timestamp::from_second(1_767_225_600).unwrap();
        sides.commit(&with(&[("clusters/k0.yaml", &cluster("k0", &[]))]), "start\n", clock);
        (0..2).for_each(|_| drop(sides.kept.process(clock)));
        let mut stock = Stock(Vec::new());
        stock.add(&sides.kept);
        stock
    }

    /// Adds the file that a side has now, and forgets the oldest of this repository.
    fn add(&mut self, side: &Side) {
        let bytes = fs::read(side.path().join("berth/cache").join(FILE));
        self.0.extend(bytes.ok().map(|bytes| (side.path().to_owned(), bytes)));
        if self.0.len() > MOST {
            self.0.remove(1);
        }
    }
}

impl Damage {
    pub fn way(number: usize) -> Damage {
        Damage(TO_FILE.get(number).copied().unwrap_or_else(|| TO_BYTES[number % TO_BYTES.len()]))
    }

    /// Gives the other side the file of the one that keeps it, with this harm.
    pub fn prepare(self, sides: &Sides, stock: &mut Stock, random: &mut Random) -> Prepared {
        Damage::forget(&sides.other);
        self.apply(&sides.other, &sides.kept, stock, random);
        Prepared(self)
    }

    fn apply(self, side: &Side, like: &Side, stock: &mut Stock, random: &mut Random) {
        let folder = side.path().join("berth/cache");
        fs::create_dir_all(&folder).unwrap();
        stock.add(like);
        let target = folder.join(FILE);
        let _ = fs::copy(like.path().join("berth/cache").join(FILE), &target);
        match TO_BYTES.contains(&self.0) {
            true => self.to_bytes(&target, random),
            false => self.to_file(&folder, &target, like, stock, random),
        }
    }

    /// Takes all files away, whatever they became.
    fn forget(side: &Side) {
        let folder = side.path().join("berth/cache");
        let _ = fs::remove_file(&folder);
        let _ = fs::remove_dir_all(&folder);
    }

    fn to_bytes(self, target: &Path, random: &mut Random) {
        let Ok(mut bytes) = fs::read(target) else { return };
        spoil(self.0, &mut bytes, random);
        fs::write(target, bytes).unwrap();
    }

    fn to_file(self, folder: &Path, target: &Path, like: &Side, stock: &Stock, random: &mut Random) {
        let bytes = fs::read(target).unwrap_or_default();
        let _ = fs::remove_file(target);
        match self.0 {
            Harm::Empty => fs::write(target, []).unwrap(),
            Harm::Folder => fs::create_dir(target).unwrap(),
            Harm::FullFolder => fs::create_dir_all(target.join("more")).unwrap(),
            Harm::Unreadable => {
                fs::write(target, bytes).unwrap();
                fs::set_permissions(target, fs::Permissions::from_mode(0o000)).unwrap();
            }
            Harm::LinkToNothing => symlink("absent", target).unwrap(),
            Harm::LinkToItself => symlink(target, target).unwrap(),
            Harm::LinkToFolder => symlink(folder, target).unwrap(),
            Harm::LinkToEndless => symlink("/dev/zero", target).unwrap(),
            Harm::LinkToFile => symlink(like.path().join("berth/cache").join(FILE), target).unwrap(),
            Harm::Pipe => assert!(hermetic("mkfifo").arg(target).status().unwrap().success()),
            Harm::Huge => {
                fs::write(target, bytes).unwrap();
                fs::OpenOptions::new().write(true).open(target).unwrap().set_len(1 << 40).unwrap();
            }
            Harm::NoFolder => fs::remove_dir_all(folder).unwrap(),
            Harm::FileForFolder => {
                fs::remove_dir_all(folder).unwrap();
                fs::write(folder, "a file").unwrap();
            }
            Harm::OfEarlierPass | Harm::OfOtherRepository => {
                let is_own = self.0 == Harm::OfEarlierPass;
                let fitting: Vec<_> =
                    stock.0.iter().filter(|(path, _)| (path == like.path()) == is_own).collect();
                if !fitting.is_empty() {
                    fs::write(target, &fitting[index(random, fitting.len())].1).unwrap();
                }
            }
            _ => {}
        }
    }
}

fn spoil(harm: Harm, bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let (one, other) = (range(bytes, random), range(bytes, random));
    let at = one.start;
    match harm {
        Harm::FlipBit => bytes[at] ^= 1 << random.below(8),
        Harm::FlipBits => {
            for _ in 0..8 {
                let at = index(random, bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
        }
        Harm::SetByte => bytes[at] = random.pick(&[0, 1, 2, 3, 5, 6, 0x7f, 0x80, 0xff]),
        Harm::CutEnd => {
            let ends = [0, 1, 31, 32, 33, 40, bytes.len() / 2, bytes.len() - 1, at, at];
            bytes.truncate(random.pick(&ends));
        }
        Harm::CutRange => drop(bytes.drain(one)),
        Harm::Zeroes => bytes[one].fill(0),
        Harm::Ones => bytes[one].fill(0xff),
        Harm::SwapRanges => {
            let length = one.len().min(other.len());
            for offset in 0..length {
                bytes.swap(one.start + offset, other.start + offset);
            }
        }
        Harm::RepeatRange => {
            let again = bytes[one].to_vec();
            bytes.splice(other.start..other.start, again);
        }
        Harm::Insert => {
            let new: Vec<u8> = (0..64).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
            bytes.splice(at..at, new);
        }
        _ => {}
    }
}

fn range(bytes: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let start = index(random, bytes.len());
    start..(start + 1 + index(random, 300)).min(bytes.len())
}

/// The most memory that this process ever had, in KiB; 0 where nobody tells.
fn largest_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or_default()
}

#[test]
fn no_way_of_damage_changes_a_commit() {
    let mut files = with(&[("apps/shop.yaml", &namespace("shop")), ("clusters/a.yaml", &cluster("a", &[]))]);
    let mut sides = Sides::new(&Settings::of(""));
    let (mut stock, mut random) = (Stock::new(), Random::new(1));
    for number in 0..WAYS {
        let value = (number / 2).to_string();
        files.insert("apps/web.yaml".to_owned(), config_map("web", &value, "{clusterSelector: {}}"));
        let clock = Timestamp::from_second(1_767_225_600 + 60 * i64::try_from(number).unwrap()).unwrap();
        sides.commit(&files, "edit\n", clock);
        let prepared = Damage::way(number).prepare(&sides, &mut stock, &mut random);
        let said = sides.pass(clock);
        prepared.strike(&sides, clock, &said);
    }
}
