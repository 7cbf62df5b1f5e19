//! Hostile and careless repositories: each is answered with a place and a reason, quickly, and in
//! bounded memory; nothing panics and nothing is written outside.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::support::{Ran, Repo, cluster, config_map, namespace, run, small_fleet};

/// Validates a folder, insisting on an answer within a few seconds even in a debug build.
#[track_caller]
fn validate(repo: &Repo) -> Ran {
    let start = Instant::now();
    let ran = run(&["validate", "--repo", repo.arg()]);
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
    assert!(ran.code == 0 || ran.code == 1, "exit {}: {}", ran.code, ran.err);
    ran
}

#[test]
fn an_empty_folder_is_an_empty_fleet() {
    let repo = Repo::new();
    let ran = validate(&repo).expect(0);
    assert!(ran.out.contains("0 clusters"), "{}", ran.out);
}

#[test]
fn one_bad_document_among_many_is_named_and_the_others_count() {
    let repo = small_fleet();
    let text = format!(
        "{}---\nkind: [unclosed\n---\n{}",
        config_map("first", "1", "{clusterSelector: {}}"),
        config_map("last", "1", "{clusterSelector: {}}")
    );
    repo.write("apps/many.yaml", text);
    let ran = run(&["decide", "--repo", repo.arg()]).expect(1);
    assert!(ran.err.contains("apps/many.yaml:"), "{}", ran.err);
    assert!(ran.out.contains("shop/first") && ran.out.contains("shop/last"), "{}", ran.out);
}

#[test]
fn a_values_file_is_passed_over_with_one_note() {
    let repo = small_fleet();
    repo.write("charts/values.yaml", "image: nginx\nreplicas: 3\n");
    repo.write("charts/other/values.yaml", "a: b\n");
    let ran = validate(&repo).expect(0);
    assert_eq!(ran.err.matches("note:").count(), 1, "{}", ran.err);
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_out_is_not_followed() {
    let repo = small_fleet();
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret.yaml"), cluster("stolen", &[])).expect("a file");
    std::os::unix::fs::symlink(outside.path(), repo.path().join("clusters/out")).expect("a link");
    std::os::unix::fs::symlink(outside.path().join("secret.yaml"), repo.path().join("clusters/out.yaml"))
        .expect("a link");
    let ran = validate(&repo);
    assert!(ran.err.contains("symbolic link"), "{}", ran.err);
    assert!(ran.out.contains("3 clusters"), "{}", ran.out);
    repo.commit("links");
    let ran = repo.publish();
    assert!(ran.err.contains("symbolic link"), "from Git objects as well: {}", ran.err);
}

#[test]
fn a_cluster_with_a_path_for_a_name_is_refused() {
    let repo = small_fleet();
    repo.write("clusters/evil.yaml", cluster("../x", &[]));
    let ran = validate(&repo).expect(1);
    assert!(ran.err.contains("clusters/evil.yaml:4:"), "{}", ran.err);
    let out = tempfile::tempdir().expect("a folder");
    let target = out.path().join("inner");
    run(&["render", "--repo", repo.arg(), "--out", &target.to_string_lossy()]).expect(1);
    let beside: Vec<_> = std::fs::read_dir(out.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(beside, ["inner"], "nothing outside the folder");
}

#[test]
fn duplicate_keys_are_errors_that_name_both_lines() {
    let repo = small_fleet();
    repo.write(
        "apps/twice.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\ndata: {c: d}\n",
    );
    let ran = validate(&repo).expect(1);
    assert!(ran.err.contains("apps/twice.yaml:5:1") && ran.err.contains('4'), "{}", ran.err);
}

#[test]
fn a_huge_scalar_is_refused_without_reading_it_whole() {
    let repo = small_fleet();
    let mut text = String::from("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata:\n  x: \"");
    text.extend(std::iter::repeat_n('a', 50_000_000));
    text.push_str("\"\n");
    repo.write("apps/big.yaml", text);
    let ran = validate(&repo).expect(1);
    assert!(ran.err.contains("apps/big.yaml"), "{}", ran.err);
    assert!(ran.out.contains("3 clusters"), "the rest still counts: {}", ran.out);
}

#[test]
fn an_alias_bomb_is_defused() {
    let repo = small_fleet();
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..30 {
        let before = format!("*a{}", n - 1);
        let _ = writeln!(text, "a{n}: &a{n} [{}]", vec![before; 10].join(", "));
    }
    repo.write("apps/bomb.yaml", text);
    let ran = validate(&repo).expect(1);
    assert!(ran.err.contains("apps/bomb.yaml"), "{}", ran.err);
}

#[test]
fn deep_nesting_is_refused() {
    let repo = small_fleet();
    repo.write(
        "apps/deep.yaml",
        format!(
            "apiVersion: v1\nkind: X\nmetadata: {{name: x}}\nx: {}{}\n",
            "[".repeat(50_000),
            "]".repeat(50_000)
        ),
    );
    let ran = validate(&repo).expect(1);
    assert!(ran.err.contains("apps/deep.yaml"), "{}", ran.err);
}

#[test]
fn carriage_returns_and_a_byte_order_mark_are_read() {
    let repo = small_fleet();
    let text = format!("\u{feff}{}---\n{}", cluster("d", &[]), cluster("e", &[])).replace('\n', "\r\n");
    repo.write("clusters/windows.yaml", text);
    let ran = validate(&repo).expect(0);
    assert!(ran.out.contains("5 clusters"), "{}", ran.out);
}

#[test]
fn two_objects_of_one_name_are_both_named() {
    let repo = small_fleet();
    repo.write("apps/again.yaml", config_map("web", "two", "{clusters: []}"));
    let ran = validate(&repo).expect(1);
    assert!(ran.err.contains("apps/again.yaml:") && ran.err.contains("apps/web.yaml:"), "{}", ran.err);
}

#[test]
fn text_that_is_not_utf8_and_other_encodings_are_named() {
    let repo = small_fleet();
    repo.write("apps/latin.yaml", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: caf\xe9}\n");
    repo.write("apps/wide.yaml", b"\xff\xfea\x00:\x00 \x00b\x00");
    let ran = validate(&repo).expect(1);
    assert!(ran.err.contains("apps/latin.yaml:3") && ran.err.contains("apps/wide.yaml"), "{}", ran.err);
}

#[test]
fn a_pointer_to_large_file_storage_is_recognised() {
    let repo = small_fleet();
    repo.write(
        "apps/lfs.yaml",
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
    );
    let ran = validate(&repo).expect(1);
    assert!(ran.err.contains("LFS"), "{}", ran.err);
}

#[test]
fn clusters_that_differ_only_by_case_are_refused() {
    let repo = small_fleet();
    repo.write("clusters/upper.yaml", cluster("A", &[]));
    let ran = validate(&repo).expect(1);
    assert!(ran.err.contains("clusters/upper.yaml"), "{}", ran.err);
}

#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    let repo = Repo::with(&[("clusters/a.yaml", &cluster("a", &[])), ("apps/shop.yaml", &namespace("shop"))]);
    repo.write(
        "apps/x.yaml",
        "apiVersion: v1\nkind: \"Config\\u001b[31mMap\"\nmetadata: {name: \"a\\u001b]0;b\"}\n",
    );
    let ran = validate(&repo);
    assert!(!ran.err.contains('\u{1b}') && !ran.out.contains('\u{1b}'));
}

#[test]
fn the_data_of_a_secret_is_in_no_output_and_no_message() {
    let repo = small_fleet();
    repo.write(
        "apps/secret.yaml",
        "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedSecret\nmetadata: {name: s, namespace: shop}\nspec:\n  \
         template:\n    stringData: {pin: 0123456, hex: 0x5EC3E7, word: hunter2}\n  placement: {clusterSelector: {}}\n",
    );
    repo.commit("a secret");
    let mut said = String::new();
    let ran = repo.publish();
    said.push_str(&(ran.out + &ran.err));
    for args in [
        &["validate", "--repo", repo.arg(), "-o", "json"][..],
        &["decide", "--repo", repo.arg(), "-o", "yaml"],
        &["explain", "s", "--repo", repo.arg()],
        &["plan", "--repo", repo.arg(), "--diff", "--base", "HEAD~1"],
        &["status", "--repo", repo.arg()],
    ] {
        let ran = run(args);
        said.push_str(&(ran.out + &ran.err));
    }
    said.push_str(&repo.git(&["log", "--all", "--format=%B"]));
    for secret in ["0123456", "42798", "5EC3E7", "6210535", "hunter2"] {
        assert!(!said.contains(secret), "`{secret}` was shown:\n{said}");
    }
}
