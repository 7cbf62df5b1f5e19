use std::path::Path;
use std::time::Duration;

use crate::testing::bare;
use crate::transport::credentials::Token;
use crate::transport::upkeep::Step;
use crate::transport::{
    Access, Cancel, GitTransport, Limits, RefPush, RemoteUrl, Transport, TransportError, Want, WorkingCopy,
};
use crate::{CommitId, Identity, Repo, TreeId, Writer};

fn transport(remote: &Path) -> GitTransport {
    let url = RemoteUrl::parse(remote.to_str().unwrap(), false).unwrap();
    let access = Access {
        url,
        username: None,
        token: Token::None,
        ca_file: None,
        proxy: None,
        ssh_key: None,
        known_hosts: None,
        timeout: Duration::from_secs(60),
        stall: Duration::from_secs(30),
        limits: Limits::default(),
    };
    GitTransport::new(access, Cancel::default())
}

fn commit(repo: &Repo, message: &str) -> CommitId {
    Writer::new(repo).unwrap().commit(TreeId::EMPTY, &[], message, &Identity::default(), 0).unwrap()
}

const A: &str = "refs/berth/clusters/a";
const B: &str = "refs/berth/clusters/b";

fn moved(name: &str, old: Option<CommitId>, new: Option<CommitId>) -> RefPush {
    RefPush { name: name.to_owned(), old, new }
}

#[test]
fn refs_come_and_go_and_are_listed() {
    let ((there, remote), (here, local)) = (bare(), bare());
    let by = transport(there.path());
    let (one, two) = (commit(&remote, "one"), commit(&remote, "two"));
    remote.move_ref(A, None, one).unwrap();
    remote.move_ref(B, None, two).unwrap();
    remote.move_ref("refs/heads/main", None, one).unwrap();
    let listing = by.list("refs/berth/").unwrap();
    assert_eq!(listing.refs.keys().collect::<Vec<_>>(), [A, B]);

    by.fetch(here.path(), &[Want::all("refs/berth/clusters/"), Want::same("refs/heads/main")], None).unwrap();
    assert_eq!(local.read_ref(B).unwrap(), Some(two));
    assert_eq!(local.read_ref("refs/heads/main").unwrap(), Some(one));
    remote.delete_ref(B, two).unwrap();
    by.fetch(here.path(), &[Want::all("refs/berth/clusters/")], None).unwrap();
    assert_eq!((local.read_ref(A).unwrap(), local.read_ref(B).unwrap()), (Some(one), None));
    by.tidy(here.path(), Step::Merge).unwrap();
    by.tidy(here.path(), Step::Whole).unwrap();
    assert_eq!(local.commit(one).unwrap().subject(), "one");
    let error = by.fetch(here.path(), &[Want::same(B)], Some(1)).unwrap_err();
    assert!(matches!(&error, TransportError::NoSuchRef { name, .. } if name == B), "{error}");
}

#[test]
fn a_push_moves_all_refs_or_none_and_only_from_what_was_seen() {
    let ((there, remote), (here, local)) = (bare(), bare());
    let by = transport(there.path());
    let (one, two) = (commit(&local, "one"), commit(&local, "two"));
    let three = commit(&local, "three");
    by.push(here.path(), &[moved(A, None, Some(one)), moved(B, None, Some(one))], true).unwrap();
    assert_eq!(remote.read_ref(B).unwrap(), Some(one));
    // B still has the expected value, A has not.
    let moves = [moved(B, Some(one), Some(two)), moved(A, Some(two), Some(three))];
    let error = by.push(here.path(), &moves, true).unwrap_err();
    assert!(error.is_race(), "{error}");
    assert_eq!(remote.read_ref(B).unwrap(), Some(one));
    let error = by.push(here.path(), &[moved(A, None, Some(two))], true).unwrap_err();
    assert!(error.is_race(), "what must not exist yet exists: {error}");
    by.push(here.path(), &[moved(A, Some(one), None), moved(B, Some(one), Some(two))], true).unwrap();
    assert_eq!((remote.read_ref(A).unwrap(), remote.read_ref(B).unwrap()), (None, Some(two)));
}

#[test]
fn more_refs_than_fit_one_push_all_move() {
    let ((there, remote), (here, local)) = (bare(), bare());
    let one = commit(&local, "one");
    let moves: Vec<RefPush> =
        (0..1_203).map(|n| moved(&format!("refs/berth/clusters/c{n}"), None, Some(one))).collect();
    transport(there.path()).push(here.path(), &moves, true).unwrap();
    assert_eq!(remote.list_refs("refs/berth/clusters/").unwrap().len(), 1_203);
}

#[test]
fn what_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = transport(&folder.path().join("none")).list("").unwrap_err();
    assert!(matches!(error, TransportError::NoRepository { .. }), "{error:?}");
}

/// Until it is loaded, a started `git` still has all open files of its berth.
#[cfg(target_os = "linux")]
#[test]
fn a_git_that_is_not_loaded_yet_counts_as_no_berth() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy");
    let url = RemoteUrl::parse("https://h/a", false).unwrap();
    drop(WorkingCopy::open(&path, &url).unwrap());
    let lock = std::fs::File::open(path.join("berth-lock")).unwrap();
    lock.lock().unwrap();
    let start = |lock: std::fs::File| {
        let script = "exec 9<&0; while :; do sleep 0.1; done";
        std::process::Command::new("sh").args(["-c", script]).stdin(lock).spawn().unwrap()
    };
    let mut git = start(lock);
    // Reaps it, as the system reaps an orphan.
    let end = std::thread::spawn(move || git.wait());
    WorkingCopy::open(&path, &url).unwrap();
    end.join().unwrap().unwrap();
}

#[test]
fn a_working_copy_is_berths_own_of_one_remote_and_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let url = |name: &str| RemoteUrl::parse(&format!("https://ann:secret@h/{name}"), false).unwrap();
    let path = folder.path().join("copy");
    let copy = WorkingCopy::open(&path, &url("a")).unwrap();
    let again = WorkingCopy::open(&path, &url("a")).unwrap_err().to_string();
    assert!(again.contains("another berth"), "{again}");
    std::fs::write(path.join("config"), "[core]\n\tsshCommand = id\n\tbare = true\n").unwrap();
    std::fs::write(path.join("refs/heads/x.lock"), "").unwrap();
    drop(copy);
    let other = WorkingCopy::open(&path, &url("b")).unwrap_err().to_string();
    assert!(other.contains("working copy of `https://h/a`"), "{other}");
    WorkingCopy::open(&path, &url("a")).unwrap();
    assert!(!std::fs::read_to_string(path.join("config")).unwrap().contains("ssh"));
    assert!(!path.join("refs/heads/x.lock").exists());

    let (strange, _) = bare();
    let error = WorkingCopy::open(strange.path(), &url("a")).unwrap_err().to_string();
    assert!(error.contains("not a working copy"), "{error}");
}
