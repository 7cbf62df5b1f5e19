//! Repositories that see the same commits at the same moments, with passes that begin from different memories.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use berth_base::model::{ContentId, Map, Timestamp};
use berth_engine::plan::Plan;
use berth_git::shared_refs::{STATUS_FILE, statuses};
use berth_git::{CommitId, Entry, EntryKind, Identity, Repo, TreeId, Writer};
use berth_hub::daemon::{
    Cache, Once, PassError, PassOutcome, PassResult, Settings, pass_once, pass_with_cache,
};
use berth_hub::publish::{CurrentState, read_current_at};
use berth_hub::verify::{Expected, Verifier};

use super::edits::{Files, LINK, SUBMODULE};
use crate::support::hermetic;

pub const MAIN: &str = "refs/heads/main";

/// A file without bytes.
const EMPTY: ContentId = ContentId([
    0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43, 0x4b, 0x8b, 0x29, 0xae, 0x77, 0x5a, 0xd8, 0xc2, 0xe4,
    0x8c, 0x53, 0x91,
]);

/// The time after which a pass counts as hanging.
const HANGING: Duration = Duration::from_secs(120);

/// A repository with one daemon's worth of settings.
#[derive(Debug)]
pub struct Side {
    _folder: tempfile::TempDir,
    pub settings: Settings,
}

impl Side {
    pub fn new() -> Side {
        let folder = tempfile::tempdir().unwrap();
        for part in ["objects/info", "refs"] {
            std::fs::create_dir_all(folder.path().join(part)).unwrap();
        }
        std::fs::write(folder.path().join("HEAD"), format!("ref: {MAIN}\n")).unwrap();
        let config = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";
        std::fs::write(folder.path().join("config"), config).unwrap();
        let settings = Settings::of(folder.path());
        Side { _folder: folder, settings }
    }

    /// A repository that reads the objects of another one as well.
    pub fn beside(other: &Side, settings: &Settings) -> Side {
        let side = Side::new();
        let lent = format!("{}\n", other.path().join("objects").display());
        std::fs::write(side.path().join("objects/info/alternates"), lent).unwrap();
        Side { settings: Settings { repo: side.settings.repo, ..settings.clone() }, ..side }
    }

    pub fn path(&self) -> &Path {
        &self.settings.repo
    }

    pub fn repo(&self) -> Repo {
        Repo::open(self.path()).unwrap()
    }

    pub fn refs(&self) -> Map<String, CommitId> {
        self.repo().list_refs("refs/").unwrap()
    }

    /// Moves a ref, or deletes it.
    pub fn point(&self, name: &str, to: Option<CommitId>) {
        let repo = self.repo();
        match (repo.read_ref(name).unwrap(), to) {
            (old, Some(to)) if old != Some(to) => repo.move_ref(name, old, to).unwrap(),
            (Some(old), None) => repo.delete_ref(name, old).unwrap(),
            _ => {}
        }
    }

    /// Commits these files on top of a commit. No ref moves.
    pub fn commit(&self, files: &Files, parent: Option<CommitId>, message: &str, at: Timestamp) -> CommitId {
        let repo = self.repo();
        let mut writer = Writer::new(&repo).unwrap();
        let mut entry = |text: &String| {
            let id = writer.blob(text.as_bytes()).unwrap();
            match text.as_str() {
                LINK => EntryKind::Other { mode: 0o120_000, id: id.0 },
                SUBMODULE => EntryKind::Other { mode: 0o160_000, id: id.0 },
                _ => EntryKind::File(id),
            }
        };
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), Some(entry(text)))).collect();
        let tree = writer.edited(TreeId::EMPTY, files).unwrap();
        let parents: Vec<CommitId> = parent.into_iter().collect();
        let commit = writer.commit(tree, &parents, message, &Identity::default(), at.as_second()).unwrap();
        repo.flush().unwrap();
        commit
    }

    /// A pass of a process of its own, whose state must be the one that others read.
    pub fn process(&self, clock: Timestamp) -> Said {
        let once = self.process_misled(clock);
        if let Ok(Once::Passed(_, cache)) = &once {
            self.assert_reads_back(cache);
        }
        Said::of_once(once)
    }

    /// A pass of a process of its own, which may have found forged bytes. One that hangs or panics fails the test.
    pub fn process_misled(&self, clock: Timestamp) -> Result<Once, PassError> {
        let (tell, told) = mpsc::channel();
        let settings = self.settings.clone();
        let running = std::thread::spawn(move || {
            let once = pass_once(&settings, clock, None);
            let _ = tell.send(());
            once
        });
        match told.recv_timeout(HANGING) {
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("a pass hangs"),
            _ => running.join().unwrap_or_else(|_| panic!("a pass panics")),
        }
    }

    /// Insists that the state of a pass is the one that another process reads from the branch.
    #[track_caller]
    fn assert_reads_back(&self, cache: &Cache) {
        let Some(CurrentState { commit, state, trees, foreign, .. }) = cache.current() else {
            return;
        };
        let read = read_current_at(&self.repo(), &self.settings.refs.rendered, *commit).unwrap();
        assert_eq!(read.state, *state, "the state of {commit}");
        assert_eq!((&read.trees, &read.foreign), (trees, foreign), "{commit}");
    }

    /// Finds every object that a ref leads to.
    pub fn check(&self) {
        let fsck =
            hermetic("git").args(["fsck", "--strict", "--no-dangling"]).current_dir(self.path()).output();
        let fsck = fsck.unwrap();
        assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stderr));
    }
}

/// All that a pass says.
#[derive(Debug, Default)]
pub struct Said {
    /// The outcome and the messages.
    words: String,
    /// The rest, absent after a process that had nothing to do.
    more: Option<String>,
    pub approvals: Vec<String>,
    pub next_change: Option<Timestamp>,
    pub is_published: bool,
    /// A process found that it had nothing to do, without a pass.
    pub is_idle: bool,
    pub is_refused: bool,
}

impl Said {
    fn of(passed: Result<PassResult, PassError>) -> Said {
        let passed = match passed {
            Ok(passed) => passed,
            Err(error) => {
                return Said { words: error.to_string(), is_refused: true, ..Said::default() };
            }
        };
        let PassResult {
            source, outcome, plan, rollout_steps, standing, held, diagnostics, next_change, ..
        } = passed;
        // The moments at which members are late are for those who heard their reports.
        let (sequence, rollouts, waiting) = (standing.sequence, standing.rollouts, standing.waiting);
        Said {
            words: format!("{source}\n{outcome:?}\n{plan:?}\n{rollout_steps:?}\n{held:#?}\n{diagnostics:#?}"),
            more: Some(format!("{next_change:?}\n{sequence:?}\n{rollouts:#?}\n{waiting}")),
            approvals: held.iter().map(|held| held.approval_of_all()).collect(),
            next_change,
            is_published: outcome != PassOutcome::Unchanged,
            is_idle: false,
            is_refused: false,
        }
    }

    /// Reports whether the pass said this.
    pub fn says(&self, words: &str) -> bool {
        self.words.contains(words)
    }

    fn of_once(once: Result<Once, PassError>) -> Said {
        match once {
            Ok(Once::Passed(passed, _)) => Said::of(Ok(*passed)),
            Ok(Once::Idle { source, diagnostics }) => {
                let (outcome, plan) = (PassOutcome::Unchanged, Plan::default());
                let words = format!("{source}\n{outcome:?}\n{plan:?}\n[]\n[]\n{diagnostics:#?}");
                Said { words, is_idle: true, ..Said::default() }
            }
            Err(error) => Said::of(Err(error)),
        }
    }

    #[track_caller]
    fn assert_same(&self, other: &Said, who: &str) {
        assert_eq!(self.words, other.words, "{who}");
        if self.more.is_some() {
            assert_eq!(self.more, other.more, "{who}");
        }
    }
}

/// A daemon that remembers, processes that find what the last one left, and processes that begin with nothing.
#[derive(Debug)]
pub struct Sides {
    /// The source and the reports, whose objects all others read.
    people: Side,
    warm: Side,
    cache: Cache,
    pub kept: Side,
    pub cold: Side,
    /// A side whose passes somebody else makes.
    pub other: Side,
}

impl Sides {
    pub fn new(settings: &Settings) -> Sides {
        let people = Side::new();
        let [warm, kept, cold, other] = [(); 4].map(|()| Side::beside(&people, settings));
        Sides { people, warm, cache: Cache::default(), kept, cold, other }
    }

    pub fn all(&self) -> impl Iterator<Item = &Side> {
        [&self.warm, &self.kept, &self.cold, &self.other].into_iter()
    }

    /// Moves a ref on all sides.
    pub fn point(&self, name: &str, to: Option<CommitId>) {
        self.all().for_each(|side| side.point(name, to));
    }

    /// Commits these files to the source of all sides.
    pub fn commit(&self, files: &Files, message: &str, at: Timestamp) -> CommitId {
        let parent = self.people.repo().read_ref(MAIN).unwrap();
        let commit = self.people.commit(files, parent, message, at);
        self.people.point(MAIN, Some(commit));
        self.point(MAIN, Some(commit));
        commit
    }

    /// Adds a commit with one more file to a ref of all sides.
    pub fn add(&self, name: &str, path: &str, text: &str, at: Timestamp) {
        for side in self.all() {
            let repo = side.repo();
            let Some(tip) = repo.read_ref(name).unwrap() else {
                continue;
            };
            let mut writer = Writer::new(&repo).unwrap();
            let file = EntryKind::File(writer.blob(text.as_bytes()).unwrap());
            let tree = writer.edited(repo.commit(tip).unwrap().tree, [(path, Some(file))]).unwrap();
            let seconds = at.as_second();
            let commit = writer.commit(tree, &[tip], "notes\n", &Identity::default(), seconds).unwrap();
            repo.move_ref(name, Some(tip), commit).unwrap();
        }
    }

    /// Gives all sides a member's report, or takes it away.
    pub fn report(&self, cluster: &str, text: Option<String>) {
        let file = |text| Files::from([(STATUS_FILE.to_owned(), text)]);
        let commit =
            text.map(|text| self.people.commit(&file(text), None, "status\n", Timestamp::UNIX_EPOCH));
        self.point(&self.cold.settings.refs.status_of(cluster), commit);
    }

    /// Keeps a report that a member sent by POST on all sides, or takes it away.
    pub fn post(&self, cluster: &str, text: Option<String>) {
        let name = &self.cold.settings.refs.statuses;
        let repo = self.people.repo();
        let there = repo.read_ref(name).unwrap().map(|tip| repo.commit(tip).unwrap().tree);
        let mut writer = Writer::new(&repo).unwrap();
        let file = text.map(|text| EntryKind::File(writer.blob(text.as_bytes()).unwrap()));
        let path = statuses::path_of(cluster);
        let tree = writer.edited(there.unwrap_or(TreeId::EMPTY), [(path.as_str(), file)]).unwrap();
        let commit = writer.commit(tree, &[], "statuses\n", &Identity::default(), 0).unwrap();
        self.people.point(name, Some(commit));
        self.point(name, Some(commit));
    }

    /// Returns the id of a folder that no repository has.
    pub fn absent_folder(number: u64) -> TreeId {
        berth_git::tree_id(Sides::absent_entries(number)).unwrap()
    }

    fn absent_entries(number: u64) -> Vec<Entry> {
        let shop = berth_git::tree_id(Sides::absent_files(number)).unwrap();
        vec![Entry { name: b"shop".to_vec(), kind: EntryKind::Folder(shop) }]
    }

    fn absent_files(number: u64) -> Vec<Entry> {
        let names = ["w0".to_owned(), "w1".to_owned(), "plain0".to_owned(), format!("x{number}")];
        let kind = EntryKind::File(EMPTY);
        names.iter().map(|name| Entry { name: format!("ConfigMap_{name}.yaml").into_bytes(), kind }).collect()
    }

    /// Lets such a folder come to all repositories.
    pub fn arrive(&self, number: u64) {
        let repo = self.people.repo();
        let mut writer = Writer::new(&repo).unwrap();
        assert_eq!(writer.blob(b"").unwrap(), EMPTY);
        writer.tree(Sides::absent_files(number)).unwrap();
        writer.tree(Sides::absent_entries(number)).unwrap();
        repo.flush().unwrap();
    }

    /// Ends the daemon, and begins another one.
    pub fn restart(&mut self) {
        self.cache = Cache::default();
    }

    /// The folders that members have now, by cluster.
    pub fn folders(&self) -> Vec<(String, TreeId)> {
        let (repo, prefix) = (self.cold.repo(), &self.cold.settings.refs.clusters);
        let named = |(name, commit): (String, CommitId)| {
            Some((name.strip_prefix(prefix.as_str())?.to_owned(), repo.commit(commit).ok()?.tree))
        };
        repo.list_refs(prefix).unwrap().into_iter().filter_map(named).collect()
    }

    /// Reports whether the rendered branch has a file.
    pub fn has(&self, path: &str) -> bool {
        let (repo, name) = (self.cold.repo(), &self.cold.settings.refs.rendered);
        let tip = repo.read_ref(name).unwrap();
        tip.is_some_and(|tip| berth_git::read_file_at(&repo, tip, path).unwrap().is_some())
    }

    /// Lets all sides but the other one make a pass, which must come to the same.
    pub fn pass(&mut self, clock: Timestamp) -> Said {
        let mut nothing = Cache::default();
        let forgot = Said::of(pass_with_cache(&self.cold.settings, clock, &mut nothing));
        self.cold.assert_reads_back(&nothing);
        let remembered = Said::of(pass_with_cache(&self.warm.settings, clock, &mut self.cache));
        self.warm.assert_reads_back(&self.cache);
        self.assert_same(&self.warm, &remembered, &forgot, "a daemon");
        let found = self.kept.process(clock);
        self.assert_same(&self.kept, &found, &forgot, "a process");
        Said { is_idle: found.is_idle, ..forgot }
    }

    /// Insists that a side came to the same as the one that began with nothing.
    #[track_caller]
    pub fn assert_same(&self, side: &Side, said: &Said, forgot: &Said, who: &str) {
        said.assert_same(forgot, who);
        assert_eq!(side.refs(), self.cold.refs(), "{who}");
    }

    /// Proves the last commit.
    pub fn prove(&self, clock: Timestamp) {
        let (repo, refs) = (self.cold.repo(), &self.cold.settings.refs);
        let Some(commit) = repo.read_ref(&refs.rendered).unwrap() else {
            return;
        };
        let proof = Verifier::new(&repo, refs, Expected::at(clock)).unwrap().prove(commit).unwrap();
        assert!(!proof.verdict.is_failed(), "{:?} at {clock}", proof.verdict);
    }
}
