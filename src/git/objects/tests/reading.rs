use super::*;
use crate::{
    EntryKind, GitError, Merged, SourceCache, TreeId, read_file_at, read_source, read_source_with_cache,
};
use berth_base::source::{SourceFile, SourceTree};

#[test]
fn a_folder_without_git_is_named_as_such() {
    let folder = TempDir::new().unwrap();
    let error = Repo::open(folder.path()).unwrap_err();
    assert!(matches!(error, GitError::NotARepository { .. }), "{error}");
    assert!(error.hint().unwrap().contains("git init"));
    let missing = Repo::open(folder.path().join("missing")).unwrap_err();
    assert!(missing.to_string().ends_with("missing` does not exist"), "{missing}");
    assert!(!missing.hint().unwrap().contains("git init"));
}

#[test]
fn a_work_tree_and_a_bare_repository_open_alike() {
    let folder = TempDir::new().unwrap();
    git2::Repository::init(folder.path()).unwrap();
    assert!(Repo::open(folder.path()).unwrap().path().ends_with(".git"));
    let (guard, repo) = bare();
    assert_eq!(repo.path().canonicalize().unwrap(), guard.path().canonicalize().unwrap());
}

#[test]
fn reftable_and_sha256_repositories_are_refused_with_a_reason() {
    for (extension, said) in
        [("refstorage = reftable", "refstorage"), ("objectformat = sha256", "objectformat")]
    {
        let (folder, _) = bare();
        let config = format!("[core]\nrepositoryformatversion = 1\nbare = true\n[extensions]\n{extension}\n");
        std::fs::write(folder.path().join("config"), config).unwrap();
        let error = Repo::open(folder.path()).unwrap_err();
        assert!(matches!(error, GitError::Unsupported { .. }), "{extension}: {error}");
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn an_empty_repository_has_a_branch_and_no_commit() {
    let (_guard, repo) = bare();
    assert!(repo.head_branch().unwrap().unwrap().starts_with("refs/heads/"));
    assert_eq!(repo.resolve("HEAD").unwrap(), None);
    let error = repo.require("main").unwrap_err();
    assert!(error.hint().unwrap().contains("no commits yet"), "{error}");
}

#[test]
fn a_missing_branch_is_answered_with_those_there_are() {
    let (_guard, repo) = bare();
    commit_files(&repo, "refs/heads/main", &[("a.yaml", "a")]);
    assert!(repo.require("mian").unwrap_err().hint().unwrap().contains("main"));
    assert!(repo.require("production").unwrap_err().hint().unwrap().contains("`main`"));
}

#[test]
fn revisions_resolve_to_commits() {
    let (_guard, repo) = bare();
    let first = commit_files(&repo, "refs/heads/main", &[("a.yaml", "a")]);
    let second = commit_files(&repo, "refs/heads/main", &[("a.yaml", "b")]);
    assert_eq!(repo.resolve("main~1").unwrap(), Some(first));
    assert_eq!(repo.resolve(&second.to_string()).unwrap(), Some(second));
    assert_eq!(repo.resolve("0123456789012345678901234567890123456789").unwrap(), None);
    let info = repo.commit(second).unwrap();
    assert_eq!((info.parents, info.seconds), (vec![first], 1_700_000_000));
    assert_eq!((info.author.as_str(), info.email.as_str()), ("berth", "berth@berth.dev"));
}

#[test]
fn refs_are_listed_by_prefix_through_slashes() {
    let (_guard, repo) = bare();
    let id = commit_files(&repo, "refs/berth/clusters/a", &[("a.yaml", "a")]);
    repo.move_ref("refs/berth/processed", None, id).unwrap();
    let listed = repo.list_refs("refs/berth/").unwrap();
    assert_eq!(listed.keys().collect::<Vec<_>>(), ["refs/berth/clusters/a", "refs/berth/processed"]);
}

#[test]
fn a_source_tree_holds_yaml_in_path_order_and_no_dot_folders() {
    let (_guard, repo) = bare();
    let files = [
        ("b/x.yaml", "1"),
        ("a.yml", "2"),
        ("b.yaml", "3"),
        (".github/ci.yaml", "4"),
        ("b/.hidden/x.yaml", "5"),
        ("README.md", "6"),
    ];
    let commit = commit_files(&repo, "refs/heads/main", &files);
    let tree = read_source(&repo, commit).unwrap();
    let paths: Vec<&str> = tree.files.keys().map(|path| &**path).collect();
    assert_eq!(paths, ["a.yml", "b.yaml", "b/x.yaml"]);
    assert_eq!(&*tree.files["b/x.yaml"].bytes, b"1");
    assert!(tree.found.is_empty(), "{:?}", tree.found);
    assert_eq!(read_file_at(&repo, commit, "b/x.yaml").unwrap().as_deref(), Some(&b"1"[..]));
    for absent in ["b", "b/y.yaml", "b.yaml/x", ""] {
        assert_eq!(read_file_at(&repo, commit, absent).unwrap(), None, "{absent}");
    }
}

#[test]
fn the_output_of_render_is_passed_over() {
    let (_guard, repo) = bare();
    let files =
        [("berth.json", "{}"), ("a.yaml", "1"), ("out/berth.json", "{}"), ("out/clusters/a/b.yaml", "2")];
    let commit = commit_files(&repo, "refs/heads/main", &files);
    let tree = read_source(&repo, commit).unwrap();
    assert_eq!(tree.files.keys().map(|path| &**path).collect::<Vec<_>>(), ["a.yaml"]);
    let found: Vec<String> = tree.found.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["out: note: the output of `berth render` is not read"]);
}

#[test]
fn a_source_is_read_alike_after_any_other() {
    let (_guard, repo) = bare();
    let names = [
        "a.yaml",
        "a/b.yaml",
        "a/c/d.yaml",
        "a-b.yaml",
        "a.b/c.yaml",
        "a0.yml",
        "b/b.yaml",
        "b/.x/y.yaml",
        "a/berth.json",
        "a/c/berth.json",
    ];
    let mut cache = SourceCache::default();
    for round in 0..200_usize {
        let is_there = |place: &usize| ((round * 7_919) >> place) & 1 == 1;
        let content = |place: usize| if ((round * 31) >> place) & 1 == 1 { "1" } else { names[place] };
        let files: Vec<(&str, &str)> =
            (0..names.len()).filter(is_there).map(|place| (names[place], content(place))).collect();
        let commit = commit_files(&repo, &format!("refs/heads/{round}"), &files);
        let said = |tree: SourceTree| {
            let said = |file: &SourceFile| (file.path.clone(), file.id, file.bytes.to_vec());
            tree.files.values().map(said).collect::<Vec<_>>()
        };
        let expected = said(read_source(&repo, commit).unwrap());
        if round % 9 == 0 {
            cache.forget_unused();
        }
        assert_eq!(said(read_source_with_cache(&repo, commit, &mut cache).unwrap()), expected, "{round}");
    }
}

#[test]
fn a_source_is_read_although_the_one_before_was_pruned() {
    let (guard, repo) = bare();
    let before = commit_files(&repo, "refs/heads/main", &[("a/b.yaml", "1"), ("c.yaml", "2")]);
    let mut cache = SourceCache::default();
    read_source_with_cache(&repo, before, &mut cache).unwrap();
    std::fs::remove_dir_all(guard.path().join("objects")).unwrap();
    std::fs::create_dir_all(guard.path().join("objects")).unwrap();
    let repo = Repo::open(guard.path()).unwrap();
    let after = commit_files(&repo, "refs/heads/other", &[("a/b.yaml", "1"), ("d.yaml", "2")]);
    let tree = read_source_with_cache(&repo, after, &mut cache).unwrap();
    assert_eq!(tree.files.keys().map(|path| &**path).collect::<Vec<_>>(), ["a/b.yaml", "d.yaml"]);
}

/// Makes trees from the bits of a number, among them entries with diagnostics, and names that are folders or missing.
struct Odd<'r> {
    repo: &'r Repo,
    blob: [u8; 20],
}

impl Odd<'_> {
    /// Writes a tree, out of order and with repeated names, as the bits determine.
    fn tree(&self, bits: usize, depth: usize) -> Result<git2::Oid, git2::Error> {
        const NAMES: [&[u8]; 8] =
            [b"a.yaml", b"a", b"a-b.yml", b".a", b"link.yaml", b"a/b.yaml", b"\xff.yaml", b"m"];
        const MODES: [&str; 7] = ["100644", "40000", "120000", "160000", "040000", "100755", "100664"];
        let mut entries: Vec<Vec<u8>> = Vec::new();
        for (place, name) in NAMES.iter().enumerate().filter(|(place, _)| (bits >> place) & 1 == 1) {
            let mode = MODES[(bits / (place + 3)) % MODES.len()];
            let id = match mode {
                "40000" | "040000" if depth > 0 => self.tree(bits / (place + 2), depth - 1)?,
                "40000" | "040000" => continue,
                _ => git2::Oid::from_bytes(&self.blob)?,
            };
            entries.push([mode.as_bytes(), b" ", name, &[0], id.as_bytes()].concat());
        }
        if bits.is_multiple_of(5) {
            entries.reverse();
        }
        if bits.is_multiple_of(7) {
            entries.extend_from_within(..entries.len() / 2);
        }
        self.repo.inner.odb()?.write(git2::ObjectType::Tree, &entries.concat())
    }
}

#[test]
fn an_odd_source_is_read_alike_after_any_other() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let odd = Odd { repo: &repo, blob: writer.blob(b"a: 1").unwrap().0 };
    let mut cache = SourceCache::default();
    let (mut n_files, mut n_found) = (0, 0);
    for round in 0..400_usize {
        let tree = TreeId(odd.tree(round * 7_919 % 65_536, 3).unwrap().as_bytes().try_into().unwrap());
        let commit = writer.commit(tree, &[], "x", &Identity::default(), 1).unwrap();
        let said = |tree: SourceTree| (tree.files.keys().cloned().collect::<Vec<_>>(), tree.found);
        let expected = said(read_source(&repo, commit).unwrap());
        (n_files, n_found) = (n_files + expected.0.len(), n_found + expected.1.len());
        assert_eq!(said(read_source_with_cache(&repo, commit, &mut cache).unwrap()), expected, "{round}");
    }
    assert!(n_files > 400 && n_found > 400, "{n_files} {n_found}");
}

#[test]
fn links_submodules_and_huge_files_are_named_and_not_read() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let target = writer.blob(b"/etc/passwd").unwrap();
    let huge = writer.blob(&vec![b'#'; berth_base::yaml::Limits::default().bytes + 1]).unwrap();
    let other =
        |name: &str, mode, id| crate::Entry { name: name.into(), kind: EntryKind::Other { mode, id } };
    let tree = writer
        .tree(vec![
            other("link.yaml", 0o120_000, target.0),
            other("notes.md", 0o120_000, target.0),
            other("module", 0o160_000, [7; 20]),
            crate::Entry { name: b"huge.yaml".to_vec(), kind: EntryKind::File(huge) },
            crate::Entry { name: b"bad\xff.yaml".to_vec(), kind: EntryKind::File(target) },
        ])
        .unwrap();
    let commit = writer.commit(tree, &[], "x", &Identity::default(), 1).unwrap();
    let source = read_source(&repo, commit).unwrap();
    assert!(source.files.is_empty());
    let said: Vec<String> = source.found.iter().map(ToString::to_string).collect();
    for expected in [
        "link.yaml: warning: a symbolic link",
        "module: warning: a submodule",
        "huge.yaml: error",
        "not UTF-8",
    ] {
        assert!(said.iter().any(|line| line.contains(expected)), "{expected} in {said:?}");
    }
    assert_eq!(said.len(), 4);
}

#[test]
fn a_tree_made_to_exhaust_the_stack_is_reported() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let mut tree = writer.tree(Vec::new()).unwrap();
    for _ in 0..5_000 {
        let entry = crate::Entry { name: b"d".to_vec(), kind: EntryKind::Folder(tree) };
        tree = writer.tree(vec![entry]).unwrap();
    }
    let commit = writer.commit(tree, &[], "x", &Identity::default(), 1).unwrap();
    assert!(read_source(&repo, commit).unwrap().found.has_errors());
}

/// A tree of nested folders, each level with ten times as many paths.
fn unfolding(writer: &mut Writer<'_>, levels: usize, name: &str) -> TreeId {
    let blob = writer.blob(b"a: 1\n").unwrap();
    let mut kind = EntryKind::File(blob);
    for level in 0..levels {
        let end = if level == 0 { name } else { "" };
        let entries =
            (0..10).map(|number| crate::Entry { name: format!("{number}{end}").into_bytes(), kind });
        let entries = entries.collect();
        kind = EntryKind::Folder(writer.tree(entries).unwrap());
    }
    let EntryKind::Folder(tree) = kind else { panic!("there is a level") };
    tree
}

/// A commit with a file, and with a folder beside others.
fn with_folder(writer: &mut Writer<'_>, tree: TreeId, text: &str, parents: &[CommitId]) -> CommitId {
    let file = EntryKind::File(writer.blob(text.as_bytes()).unwrap());
    let entry = |name: &str, kind| crate::Entry { name: name.into(), kind };
    let team = writer.tree(vec![entry("good.yaml", file), entry("x", EntryKind::Folder(tree))]).unwrap();
    let root = writer.tree(vec![entry("a.yaml", file), entry("team", EntryKind::Folder(team))]).unwrap();
    writer.commit(root, parents, "x", &Identity::default(), 1).unwrap()
}

#[test]
fn of_a_tree_that_unfolds_without_end_one_folder_is_not_read() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    for (levels, name) in [(10, ".yaml"), (60, "")] {
        let mut cache = SourceCache::default();
        let small = unfolding(&mut writer, 2, ".yaml");
        let small = with_folder(&mut writer, small, "a: 1", &[]);
        let large = unfolding(&mut writer, levels, name);
        let large = with_folder(&mut writer, large, "a: 2", &[small]);
        for (commit, files) in [(small, 102), (large, 2), (small, 102)] {
            let tree = read_source_with_cache(&repo, commit, &mut cache).unwrap();
            assert_eq!(tree.files.len(), files);
            let said: Vec<String> = tree.found.iter().map(ToString::to_string).collect();
            let is_named =
                |said: &String| said.starts_with("team/x: error: with this folder the tree is too large");
            assert!(
                (files == 102 && said.is_empty()) || (said.len() == 1 && said.iter().all(is_named)),
                "{said:?}"
            );
            assert_eq!(read_source(&repo, commit).unwrap().found, tree.found);
        }
        let ours = with_folder(&mut writer, TreeId::EMPTY, "a: 3", &[small]);
        match repo.merge(ours, large, "m") {
            Err(GitError::TooLarge { path }) => assert_eq!(path, "team/x"),
            other => panic!("{other:?}"),
        }
        let [before, after] = [small, large].map(|id| repo.commit(id).unwrap().tree);
        let n_changed = repo.changed_paths(before, after, &[]).unwrap().len();
        assert!((3..2_000_000).contains(&n_changed), "{n_changed}");
    }
}

#[test]
fn of_one_large_file_under_many_names_not_all_are_read() {
    let (_guard, repo) = bare();
    let mut writer = Writer::new(&repo).unwrap();
    let file = EntryKind::File(writer.blob(&vec![b'#'; 9 << 20]).unwrap());
    let entries = |end: &str| {
        (0..300)
            .map(|number| crate::Entry { name: format!("{number}.{end}").into_bytes(), kind: file })
            .collect()
    };
    let read = writer.tree(entries("yaml")).unwrap();
    let commit = with_folder(&mut writer, read, "a: 1", &[]);
    let source = read_source(&repo, commit).unwrap();
    assert_eq!(source.files.len(), 2);
    assert!(source.found.iter().next().unwrap().to_string().starts_with("team/x: error"));
    // Skipped files count no bytes.
    let passed_over = writer.tree(entries("txt")).unwrap();
    let commit = with_folder(&mut writer, passed_over, "a: 1", &[]);
    assert!(read_source(&repo, commit).unwrap().found.is_empty());
    // Skipped files are not compared for renames either.
    let base = with_folder(&mut writer, TreeId::EMPTY, "a: 0", &[]);
    let ours = with_folder(&mut writer, TreeId::EMPTY, "a: 2", &[base]);
    let theirs = writer.commit(passed_over, &[base], "x", &Identity::default(), 1).unwrap();
    assert!(matches!(repo.merge(ours, theirs, "m").unwrap(), Merged::Conflicts(_)));
}
