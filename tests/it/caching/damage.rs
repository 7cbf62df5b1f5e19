//! Harm that comes to the files that a process leaves for the next one: each of 200 ways.

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
pub const WAYS: usize = 200;

/// The files of earlier passes that are kept.
const MOST: usize = 100;

/// The most that a damaged file may make a process grow by, in KiB.
const GROWTH: u64 = 1 << 20;

const FILES: [&str; 2] = ["last", "idle"];

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
const TO_FILE: [Harm; 20] = [
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
    Harm::OfEarlierPass,
    Harm::OfOtherRepository,
    Harm::OfOtherRepository,
    Harm::OfOtherFile,
    Harm::OtherBuild,
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
    OfOtherFile,
    OtherBuild,
}

/// One way of harm to one file.
#[derive(Clone, Copy, Debug)]
pub struct Damage {
    harm: Harm,
    file: &'static str,
    /// The checksum is made to fit again, so that the file is forged.
    resealed: bool,
}

/// Damage that a process is about to find.
#[derive(Debug)]
pub struct Prepared {
    damage: Damage,
    copy: Option<Side>,
}

impl Prepared {
    /// Lets the other side make the pass of the others, who said this. A process that finds forged bytes ends all the
    /// same.
    pub fn strike(self, sides: &Sides, clock: Timestamp, said: &Said) {
        let (begun, side) = (largest_memory(), &sides.other);
        if let Some(copy) = &self.copy {
            let _ = copy.process_misled(clock);
        }
        let found = side.process(clock);
        sides.assert_same(side, &found, said, &format!("{:?}", self.damage));
        assert!(largest_memory() < begun + GROWTH, "{:?} takes memory", self.damage);
    }
}

/// Files of earlier passes, of this repository and others.
#[derive(Debug)]
pub struct Stock(Vec<(PathBuf, &'static str, Vec<u8>)>);

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

    /// Adds the files that a side has now, and forgets the oldest of a repository.
    fn add(&mut self, side: &Side) {
        for file in FILES {
            let bytes = fs::read(side.path().join("berth/cache").join(file));
            self.0.extend(bytes.ok().map(|bytes| (side.path().to_owned(), file, bytes)));
        }
        if self.0.len() > MOST {
            self.0.remove(FILES.len());
        }
    }
}

impl Damage {
    pub fn way(number: usize) -> Damage {
        let (file, rest) = (FILES[number % 2], number / 2);
        match TO_FILE.get(rest) {
            Some(harm) => Damage { harm: *harm, file, resealed: *harm == Harm::OtherBuild },
            None => {
                let rest = rest - TO_FILE.len();
                Damage { harm: TO_BYTES[rest % 10], file, resealed: (rest / 10) % 2 == 1 }
            }
        }
    }

    /// Gives the other side the files of the one that keeps them, with this harm. Forged bytes may say anything: a copy
    /// of the side gets them.
    pub fn prepare(self, sides: &Sides, stock: &mut Stock, random: &mut Random) -> Prepared {
        let side = &sides.other;
        Damage::forget(side);
        let copy = (self.resealed && self.harm != Harm::OtherBuild).then(|| copy_of(side));
        self.apply(copy.as_ref().unwrap_or(side), &sides.kept, stock, random);
        Prepared { damage: self, copy }
    }

    fn apply(self, side: &Side, like: &Side, stock: &mut Stock, random: &mut Random) {
        let folder = side.path().join("berth/cache");
        fs::create_dir_all(&folder).unwrap();
        stock.add(like);
        for file in FILES {
            let _ = fs::copy(like.path().join("berth/cache").join(file), folder.join(file));
        }
        let target = folder.join(self.file);
        match TO_BYTES.contains(&self.harm) {
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
        let Ok(mut bytes) = fs::read(target) else {
            return;
        };
        let sealed = if self.resealed { SEAL.min(bytes.len()) } else { 0 };
        let mut body = bytes.split_off(sealed);
        spoil(self.harm, &mut body, random);
        if self.resealed {
            bytes = seal(&body);
        }
        bytes.extend(body);
        fs::write(target, bytes).unwrap();
    }

    fn to_file(self, folder: &Path, target: &Path, like: &Side, stock: &Stock, random: &mut Random) {
        let bytes = fs::read(target).unwrap_or_default();
        let _ = fs::remove_file(target);
        match self.harm {
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
            Harm::LinkToFile => symlink(like.path().join("berth/cache").join(self.file), target).unwrap(),
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
            Harm::OfEarlierPass | Harm::OfOtherRepository | Harm::OfOtherFile => {
                let own = matches!(self.harm, Harm::OfEarlierPass | Harm::OfOtherFile);
                let swapped = matches!(self.harm, Harm::OfOtherFile);
                let fits = |(path, file, _): &&(PathBuf, &str, _)| {
                    (path == like.path()) == own && (*file == self.file) != swapped
                };
                let fitting: Vec<_> = stock.0.iter().filter(fits).collect();
                if !fitting.is_empty() {
                    fs::write(target, &fitting[index(random, fitting.len())].2).unwrap();
                }
            }
            Harm::OtherBuild => {
                let mut body = bytes.get(SEAL..).unwrap_or_default().to_vec();
                // The text's number and length stand before it.
                if let Some(byte) = body.get_mut(2) {
                    *byte ^= 1;
                }
                fs::write(target, [seal(&body), body].concat()).unwrap();
            }
            _ => {}
        }
    }
}

/// The length of the checksum and the length before a file's body.
const SEAL: usize = 12;

fn seal(body: &[u8]) -> Vec<u8> {
    [&crc32fast::hash(body).to_le_bytes()[..], &(body.len() as u64).to_le_bytes()].concat()
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

/// A side of its own, that is as another one is now.
fn copy_of(side: &Side) -> Side {
    let copy = Side::beside(side, &side.settings);
    for (name, commit) in side.refs() {
        copy.point(&name, Some(commit));
    }
    let from = side.path().join("berth");
    if from.exists() {
        let copied = hermetic("cp").arg("-a").arg(from).arg(copy.path()).status();
        assert!(copied.unwrap().success());
    }
    copy
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
