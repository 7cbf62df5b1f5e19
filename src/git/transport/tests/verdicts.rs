use crate::transport::TransportError as E;
use crate::transport::verdict::{gist, of, of_push};

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
