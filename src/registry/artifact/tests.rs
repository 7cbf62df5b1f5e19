use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;
use crate::testing::{bare, commit_files};
use berth_git::{Repo, TreeId};

const FILES: [(&str, &str); 4] = [
    ("_cluster/Namespace_shop.yaml", "kind: Namespace\n"),
    ("shop-2/ConfigMap_b.yaml", "kind: ConfigMap\n"),
    ("shop/ConfigMap_a.yaml", "kind: ConfigMap\n"),
    ("shop/Secret_a.yaml", "kind: Secret\n"),
];

fn tree_of(repo: &Repo, files: &[(&str, &str)]) -> TreeId {
    let commit = commit_files(repo, "refs/heads/main", files);
    repo.commit(commit).unwrap().tree
}

#[test]
fn one_tree_has_one_digest_whatever_the_machine() {
    let (_folder, repo) = bare();
    let artifact = pack(&repo, tree_of(&repo, &FILES), "oslo").unwrap();
    let (_other_folder, other) = bare();
    assert_eq!(pack(&other, tree_of(&other, &FILES), "rome").unwrap(), artifact);
    // A new encoder would change the digest of every folder in every fleet. Users must be informed of such a change.
    let digest = artifact.digest().to_string();
    assert_eq!(digest, EXPECTED, "{:?}", artifact.manifest);
    let changed = [FILES[0], ("shop/ConfigMap_a.yaml", "kind: Other\n")];
    assert_ne!(pack(&repo, tree_of(&repo, &changed), "oslo").unwrap().digest(), artifact.digest());
}

const EXPECTED: &str = "sha256:e6c8076c97757f2e1377ab2fafd26248b48e2abe69c4569e0d2543f3db2e2e3c";

#[test]
fn a_folder_comes_back_as_the_tree_that_it_was() {
    let (_folder, repo) = bare();
    let long = format!("{}/{}.yaml", "n".repeat(200), "x".repeat(180));
    for files in [&FILES[..], &FILES[..1], &[(long.as_str(), "x")]] {
        let tree = tree_of(&repo, files);
        let artifact = pack(&repo, tree, "oslo").unwrap();
        let (_other_folder, other) = bare();
        assert_eq!(unpack(&other, artifact.layer.as_slice()).unwrap(), tree);
        other.flush().unwrap();
        assert_eq!(other.tree(tree).unwrap(), repo.tree(tree).unwrap());
    }
    let empty = pack(&repo, TreeId::EMPTY, "oslo").unwrap();
    let (_other_folder, other) = bare();
    assert_eq!(unpack(&other, empty.layer.as_slice()).unwrap(), TreeId::EMPTY);
}

/// A handmade entry of an archive: its kind, its raw path, its bytes.
type Odd<'a> = (EntryType, &'a [u8], &'a [u8]);

fn archive(entries: &[Odd<'_>]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (kind, path, bytes) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        if let Some(gnu) = header.as_gnu_mut() {
            for (to, from) in gnu.name.iter_mut().zip(*path) {
                *to = *from;
            }
            for (to, from) in gnu.linkname.iter_mut().zip(b"/etc/passwd") {
                *to = *from;
            }
        }
        header.set_cksum();
        archive.append(&header, *bytes).unwrap();
    }
    zipped(&archive.into_inner().unwrap())
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn nothing_in_an_archive_leads_out_of_its_folder() {
    use EntryType::{
        Block, Char, Directory, Fifo, GNULongLink, GNULongName, GNUSparse, Link, Regular, Symlink, XHeader,
    };
    let (_folder, repo) = bare();
    let cases: &[&[Odd<'_>]] = &[
        &[(Regular, b"../x", b"x")],
        &[(Regular, b"/etc/x", b"x")],
        &[(Regular, b"a/../../x", b"x")],
        &[(Regular, b"./x", b"x")],
        &[(Regular, b"a//x", b"x")],
        &[(Regular, b"a\\..\\x", b"x")],
        &[(Regular, b"", b"x")],
        &[(Regular, b"a/", b"x")],
        &[(Regular, b"\xff", b"x")],
        &[(Directory, b"../a/", b"")],
        &[(Directory, b"a/", b"content")],
        &[(Symlink, b"a", b"")],
        &[(Link, b"a", b"")],
        &[(Char, b"a", b"")],
        &[(Block, b"a", b"")],
        &[(Fifo, b"a", b"")],
        &[(GNUSparse, b"a", b"x")],
        &[(XHeader, b"a", b"18 path=../../xyz\n"), (Regular, b"a", b"x")],
        &[(GNULongLink, b"a", b"/etc/passwd\0"), (Symlink, b"a", b"")],
        &[(GNULongName, b"l", b"../../x\0"), (Regular, b"a", b"x")],
        &[(GNULongName, b"l", &[b'a'; 5_000]), (Regular, b"a", b"x")],
        &[(GNULongName, b"l", b"a\0"), (GNULongName, b"l", b"b\0"), (Regular, b"a", b"x")],
        &[(Regular, b"a", b"x"), (Regular, b"a", b"y")],
        &[(Regular, b"a", b"x"), (Regular, b"a/b", b"y")],
        &[(Regular, b"a/b", b"x"), (Regular, b"a", b"y")],
    ];
    for case in cases {
        let said = unpack(&repo, archive(case).as_slice());
        assert!(matches!(said, Err(UnpackError::Unfit(_))), "{case:?}: {said:?}");
    }
    assert!(repo.list_refs("refs/").unwrap().is_empty());
}

#[test]
fn a_bomb_and_a_cut_archive_are_given_up_in_bounded_memory() {
    let (_folder, repo) = bare();
    let refused = |bytes: &[u8]| unpack(&repo, bytes).unwrap_err().to_string();
    // A file that claims more than the limit, and one that claims more bytes than follow.
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.as_gnu_mut().unwrap().name[0] = b'a';
    for (size, words) in [(LONGEST_FILE + 1, "more than"), (1_000, "")] {
        header.set_size(size);
        header.set_cksum();
        let said = refused(&zipped(header.as_bytes()));
        assert!(said.contains(words), "{said}");
    }
    // Zeros compress a thousand to one. They end the archive, and nothing after the end is read.
    let zeros = zipped(&vec![0; 4 << 20]);
    assert_eq!(unpack(&repo, zeros.as_slice()).unwrap(), TreeId::EMPTY);
    for bytes in [b"".as_slice(), b"no archive", &zeros[..3], b"\x1f\x8b\x08\0\0\0\0\0\0\xff"] {
        assert!(matches!(unpack(&repo, bytes), Err(UnpackError::Unreadable(_))), "{bytes:?}");
    }
    let whole = pack(&repo, tree_of(&repo, &FILES), "oslo").unwrap().layer;
    for end in 0..whole.len() {
        // If only the unread end is missing, the digest shows it.
        if let Ok(tree) = unpack(&repo, &whole[..end]) {
            assert_eq!(tree, tree_of(&repo, &FILES));
        }
    }
}

#[test]
fn only_plain_files_become_an_artifact() {
    let (_folder, repo) = bare();
    let mut writer = berth_git::Writer::new(&repo).unwrap();
    let id = writer.blob(b"/etc/passwd").unwrap().0;
    let kind = berth_git::EntryKind::Other { mode: 0o120_000, id };
    let tree = writer.tree(vec![berth_git::Entry { name: b"link".to_vec(), kind }]).unwrap();
    repo.flush().unwrap();
    let said = pack(&repo, tree, "oslo").unwrap_err().to_string();
    assert_eq!(said, "the folder of `oslo` cannot be an artifact: `link` is not a plain file");
}
