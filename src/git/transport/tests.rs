//! Addresses, error messages, and real exchanges with a repository on this machine.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use crate::testing::bare;
use crate::transport::credentials::{Secret, Token};
use crate::transport::error::{gist, of, of_push};
use crate::transport::remote::shows_password;
use crate::transport::upkeep::Step;
use crate::transport::{
    Access, Cancel, GitTransport, Limits, RefPush, RemoteUrl, Transport, TransportError, TransportError as E,
    Want, WorkingCopy,
};
use crate::{CommitId, Identity, Repo, TreeId, Writer};

fn clean(text: &str) -> String {
    RemoteUrl::parse(text, false).map_or_else(|error| format!("refused: {error}"), |url| url.to_string())
}

#[test]
fn credentials_are_taken_out_of_an_address() {
    let url = RemoteUrl::parse("https://ann:p%40ss@host.example:8443/fleet.git", false).unwrap();
    assert_eq!(url.to_string(), "https://host.example:8443/fleet.git");
    assert_eq!((url.username.as_deref(), url.password.clone()), (Some("ann"), Some(Secret::new("p@ss"))));
    assert!(!format!("{url:?}").contains("ann"));
    assert_eq!(clean("ssh://git@host/fleet.git"), "ssh://git@host/fleet.git");
    assert_eq!(clean("git@host:team/fleet.git"), "git@host:team/fleet.git");
    assert_eq!(clean("/srv/fleet.git"), "/srv/fleet.git");
    assert_eq!(clean("file:///srv/fleet.git"), "file:///srv/fleet.git");
}

#[test]
fn addresses_that_run_programs_or_send_in_the_clear_are_refused() {
    for bad in [
        "ext::sh -c id",
        "ext::sh",
        "fd::17",
        "http::https://host/x",
        "ftp://host/x",
        "http://host/x",
        "git://host/x",
        "ssh://-oProxyCommand=id/x",
        "ssh://git@-oProxyCommand=id/x",
        "-oProxyCommand=id:x",
        "git@-host:x",
        "--upload-pack=id",
        "https:///x",
        "file://host/x",
        "https://host/a\nb",
        "",
    ] {
        assert!(clean(bad).starts_with("refused"), "{bad}: {}", clean(bad));
    }
    assert_eq!(RemoteUrl::parse("git://host/x", true).unwrap().to_string(), "git://host/x");
    let error = RemoteUrl::parse("ftp://ann:secret@host/x", false).unwrap_err().to_string();
    assert!(error.contains("ftp") && !error.contains("secret"), "{error}");
}

#[test]
fn a_password_on_the_command_line_is_noticed() {
    assert!(shows_password("--remote=https://ann:secret@host/x"));
    assert!(shows_password("http://ann:secret@proxy:3128"));
    for fine in
        ["https://ann@host/x", "ssh://git@host:22/x", "git@host:x", "https://host:8443/x", "Ann <a@b.c>"]
    {
        assert!(!shows_password(fine), "{fine}");
    }
}

proptest! {
    #[test]
    fn no_address_panics_or_shows_its_password(text in "\\PC{0,40}", scheme in "(https|http|ssh|git|ext|x)(://|::|:)") {
        let _ = RemoteUrl::parse(&text, true);
        let _ = shows_password(&text);
        let url = format!("{scheme}ann:SECRET@{text}");
        let shown = RemoteUrl::parse(&url, true).map_or_else(|error| error.to_string(), |url| url.to_string());
        prop_assert!(!scheme.ends_with("//") || !shown.contains("SECRET"), "{}", shown);
    }
}

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

fn word(said: &str) -> &'static str {
    match of("r", said) {
        E::Untrusted { .. } => "untrusted",
        E::Denied { .. } => "denied",
        E::NoRepository { .. } => "no repository",
        E::NoSuchRef { .. } => "no ref",
        E::Unreachable { .. } => "unreachable",
        E::Truncated { .. } => "truncated",
        E::Setting { .. } => "setting",
        E::Failed { .. } => "failed",
        E::Limited { .. } => "limited",
        _ => "other",
    }
}

#[test]
fn each_fault_is_told_from_the_others() {
    for (said, expected) in [
        ("fatal: unable to access 'https://h/r/': Could not resolve host: h", "unreachable"),
        (
            "fatal: unable to access 'https://h/r/': Failed to connect to h port 443: Connection refused",
            "unreachable",
        ),
        ("fatal: unable to access 'https://h/r/': The requested URL returned error: 503", "unreachable"),
        ("fatal: unable to access 'https://h/r/': The requested URL returned error: 403", "denied"),
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", "denied"),
        (
            "fatal: unable to access 'https://h/r/': server certificate verification failed. CAfile: none CRLfile: none",
            "untrusted",
        ),
        (
            "fatal: unable to access 'https://h/r/': SSL certificate problem: self-signed certificate",
            "untrusted",
        ),
        ("Host key verification failed.\nfatal: Could not read from remote repository.", "untrusted"),
        ("git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", "denied"),
        (
            "ssh: connect to host h port 22: Connection refused\nfatal: Could not read from remote repository.",
            "unreachable",
        ),
        (
            "fatal: 'x' does not appear to be a git repository\nfatal: Could not read from remote repository.",
            "no repository",
        ),
        ("fatal: repository 'https://h/r/' not found", "no repository"),
        ("fatal: couldn't find remote ref refs/heads/main", "no ref"),
        (
            "error: RPC failed; curl 18 transfer closed with outstanding read data remaining\nfatal: early EOF",
            "truncated",
        ),
        (
            "fetch-pack: unexpected disconnect while reading sideband packet\nfatal: early EOF\nfatal: fetch-pack: invalid index-pack output",
            "truncated",
        ),
        ("fatal: the remote end hung up unexpectedly", "truncated"),
        ("fatal: unable to access 'https://h/r/': The requested URL returned error: 301", "setting"),
        ("fatal: remote error: access denied or repository not exported: /x", "denied"),
        ("fatal: something new", "failed"),
        ("fatal: Out of memory, malloc failed\nfatal: index-pack failed", "limited"),
        ("error: index-pack died of signal 25\nfatal: index-pack failed", "limited"),
        ("error: cannot run ssh: Permission denied\nfatal: unable to fork", "limited"),
        ("error: cannot run ssh: No such file or directory\nfatal: unable to fork", "failed"),
        ("Load key \"/k\": Permission denied\ngit@h: Permission denied (publickey).", "denied"),
        ("remote: fatal: Out of memory, malloc failed\nfatal: early EOF", "truncated"),
    ] {
        assert_eq!(word(said), expected, "{said}");
    }
}

#[test]
fn a_refused_push_names_what_stood_in_the_way() {
    let out = "To r\n!\tabc:refs/heads/a\t[remote rejected] (atomic push failure)\n\
               !\tabc:refs/heads/b\t[remote rejected] (pre-receive hook declined)\nDone\n";
    let error =
        of_push("r", out, "remote: no changes on Fridays        \nerror: failed to push some refs to 'r'");
    assert_eq!(
        error.unwrap().to_string(),
        "`r` refuses to move `refs/heads/b`: pre-receive hook declined; no changes on Fridays"
    );
    for (why, race) in [
        ("[rejected] (stale info)", true),
        ("[rejected] (fetch first)", true),
        ("[remote rejected] (failed to update ref)", true),
        ("[remote rejected] (atomic transaction failed)", true),
        ("[remote rejected] (non-fast-forward)", false),
        ("[remote rejected] (protected branch hook declined)", false),
        ("[remote rejected] (deny updating a hidden ref)", false),
    ] {
        let error = of_push("r", &format!("!\tx:refs/heads/b\t{why}\n"), "").unwrap();
        assert_eq!(error.is_race(), race, "{why}: {error}");
    }
    let out = "!\tx:refs/heads/b\t[remote rejected] (failed to update ref)\n";
    let said = "remote: error: cannot lock ref 'refs/heads/b': Unable to create '/r/./refs/heads/b.lock': File exists.        \nremote: \n";
    let error = of_push("r", out, said).unwrap();
    assert_eq!(error.to_string(), "`refs/heads/b` is locked at `r`: `/r/refs/heads/b.lock` exists");
    assert!(error.is_race() && error.is_passing());
    assert_eq!(of_push("r", "To r\nDone\n", "fatal: x"), None);
}

#[test]
fn what_a_server_says_is_one_short_harmless_line() {
    let long = format!("remote: \x1b[31m{}\nfatal: x\n", "é".repeat(1_000));
    let text = gist(&long);
    assert!(text.chars().count() <= 401 && !text.contains(['\x1b', '\n']), "{text}");
    assert_eq!(gist("\n"), "it gave no reason");
}
