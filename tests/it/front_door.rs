//! What a stranger meets first: README.md with its plan, commands and links, the changelog, and the forms of the forge.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::support::workflow::{self, Action};
use crate::support::{Ran, berth, hermetic, run};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_plan_of_the_readme_is_the_one_of_the_demo() {
    let folder = tempfile::tempdir().expect("a folder");
    let demo = run(&["demo", folder.path().join("demo").to_str().expect("text")]).expect(0).out;
    let readme = read("README.md");
    let block = |kind: &str| {
        let (_, rest) = readme.split_once(&format!("```{kind}\n")).expect("a block");
        rest.split_once("```").expect("its end").0
    };
    for part in [block("diff")].into_iter().chain(block("text").split("[…]\n")) {
        assert!(!part.is_empty() && demo.contains(part), "not in the demo:\n{part}\nbut\n{demo}");
    }
}

#[test]
fn the_first_fleet_of_the_readme_works_as_written() {
    let readme = read("README.md");
    let (_, section) = readme.split_once("\n## A first fleet\n").expect("the section");
    let blocks = section.split("```sh\n").skip(1).take(2).filter_map(|rest| rest.split("```").next());
    let commands = blocks.collect::<String>();
    let folder = tempfile::tempdir().expect("a folder");
    let member = folder.path().join("oslo");
    assert!(commands.contains("dir:../oslo"), "{commands}");
    let ran = paste(folder.path(), &commands);
    assert!(member.join("hello/ConfigMap_greeting.yaml").is_file(), "{}", ran.out);
    for words in
        ["FederatedConfigMap", "published ", "in sync", "start", "1 object changed", "a warmer greeting"]
    {
        assert!(ran.out.contains(words), "no `{words}` in\n{}", ran.out);
    }
}

/// Pastes commands into a shell in a folder, with berth on its path.
#[track_caller]
fn paste(folder: &Path, commands: &str) -> Ran {
    let programs = Path::new(berth().get_program()).parent().expect("its folder").display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").expect("a path"));
    let mut bash = hermetic("bash");
    Ran::of(bash.current_dir(folder).env("PATH", path).args(["-e", "-c", commands])).expect(0)
}

#[test]
fn the_first_workload_of_the_book_is_placed_as_the_page_shows() {
    let page = read("docs/fleet-repository.md");
    let (_, section) = page.split_once("\n## A first workload\n").expect("the section");
    let blocks = |kind: &str| -> Vec<String> {
        let start = format!("```{kind}\n");
        let all = section.split(&start).skip(1).filter_map(|rest| rest.split("```").next());
        all.map(str::to_owned).collect()
    };
    let (commands, files, outputs) = (blocks("sh"), blocks("yaml"), blocks("text"));
    let folder = tempfile::tempdir().expect("a folder");
    paste(folder.path(), &commands[0]);
    let fleet = folder.path().join("fleet");
    std::fs::write(fleet.join("apps/shop.yaml"), &files[0]).expect("a file");
    assert_eq!(paste(&fleet, "berth decide").out, outputs[0]);
    paste(&fleet, &commands[1]);
    assert!(folder.path().join("oslo/shop/Deployment.apps_web.yaml").is_file());
}

#[test]
fn the_readme_links_each_page_once() {
    let readme = read("README.md");
    let (_, groups) = readme.split_once("\n## Documentation\n").expect("the section");
    for entry in root().join("docs").read_dir().expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("text");
        let times = groups.matches(&format!("(docs/{name})")).count();
        let expected =
            usize::from(name.ends_with(".md") && !["roadmap.md", "SUMMARY.md"].contains(&name.as_str()));
        assert_eq!(times, expected, "docs/{name}");
    }
}

/// The pages that a text links, in order, without their folder.
fn linked(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    links.map(|link| link.trim_start_matches("docs/")).collect()
}

#[test]
fn the_groups_of_the_readme_are_the_parts_of_the_book() {
    let (summary, readme) = (read("docs/SUMMARY.md"), read("README.md"));
    let parts = summary.split("\n# ").skip(1).map(|part| part.split("\n---\n").next().expect("a part"));
    let parts: Vec<_> = parts.map(|part| (part.lines().next().expect("a name"), linked(part))).collect();
    let (_, groups) = readme.split_once("\n## Documentation\n").expect("the section");
    let groups = groups.split("\n\n").filter_map(|group| group.strip_prefix("**")?.split_once("**: "));
    let groups: Vec<_> = groups.map(|(name, pages)| (name, linked(pages))).collect();
    assert_eq!(parts.len(), 4);
    assert_eq!(groups, parts);
}

#[test]
fn the_changelog_has_this_version_and_a_place_for_the_next() {
    let text = read("CHANGELOG.md");
    let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings[0], "Unreleased");
    let (version, date) = headings[1].split_once(" - ").expect("a date");
    assert_eq!((version, date.len()), (env!("CARGO_PKG_VERSION"), "2026-11-30".len()));
    let released = text.split("\n## ").nth(2).expect("a section");
    assert!(released.lines().count() <= 120, "{} lines", released.lines().count());
}

#[test]
fn the_forms_of_the_forge_have_what_it_asks_for() {
    let forms = root().join(".github/ISSUE_TEMPLATE");
    let mut count = 0;
    for entry in forms.read_dir().expect("a folder") {
        let path: PathBuf = entry.expect("an entry").path();
        let form: Json =
            serde_yaml::from_str(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if path.ends_with("config.yml") {
            continue;
        }
        count += 1;
        assert!(form["name"].is_string() && form["description"].is_string(), "{}", path.display());
        let fields = form["body"].as_array().expect("a list");
        let asks = fields.iter().filter(|field| field["type"] != "markdown");
        let mut ids: Vec<&str> = asks.map(|field| field["id"].as_str().expect("an id")).collect();
        assert!(fields.iter().all(|field| field["attributes"].is_object()), "{}", path.display());
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
        assert!(!ids.is_empty(), "{}", path.display());
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn files_for_ci_pin_what_they_run_and_make_nothing_up() {
    for entry in workflow::path("").read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = read(&path);
        for made_up in ["example.com", "00000000", "curl "] {
            assert!(!text.contains(made_up), "{} has `{made_up}`", path.display());
        }
    }
    let uses: Vec<String> = Action::read().uses().map(str::to_owned).collect();
    assert_eq!(uses.len(), 3);
    for one in uses {
        let (_, commit) = one.split_once('@').expect("a commit");
        assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    }
}
