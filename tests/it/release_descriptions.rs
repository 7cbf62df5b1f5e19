//! The descriptions for package managers of others, over an archive as a release has it.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::support::{Ran, hermetic};

const VERSION: &str = "1.2.3";
const FILES: [&str; 7] = [
    "bin/berth",
    "bin/berth-renderer",
    "share/doc/berth/LICENSE",
    "share/man/man1/berth.1",
    "share/bash-completion/completions/berth",
    "share/fish/vendor_completions.d/berth.fish",
    "share/zsh/vendor-completions/_berth",
];

struct Described {
    folder: tempfile::TempDir,
    sums: [String; 2],
}

impl Described {
    /// Makes an archive for each architecture, and the descriptions of both.
    fn make() -> Described {
        let folder = tempfile::tempdir().expect("a folder");
        let sums = ["amd64", "arm64"].map(|arch| {
            let name = format!("berth-{VERSION}-linux-{arch}");
            for file in FILES {
                let path = folder.path().join(&name).join(file);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, format!("{file} for {arch}\n")).expect("a file");
            }
            let archive = format!("{name}.tar.gz");
            Ran::of(hermetic("tar").current_dir(folder.path()).args(["-czf", &archive, &name])).expect(0);
            let sum = Ran::of(hermetic("sha256sum").arg(folder.path().join(archive))).expect(0).out;
            sum.split_whitespace().next().expect("a checksum").to_owned()
        });
        let script = "import json, packagers, sys\n\
                      for name, text in packagers.descriptions(*json.loads(sys.argv[1])).items(): open(name, 'w').write(text)\n";
        let names = ["amd64", "arm64"].map(|arch| format!("berth-{VERSION}-linux-{arch}.tar.gz"));
        let known: serde_json::Map<String, Json> =
            names.into_iter().zip(&sums).map(|(name, sum)| (name, sum.as_str().into())).collect();
        let given =
            serde_json::json!([VERSION, known, "https://downloads.example.com/v1/", "https://example.com"]);
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/release");
        let mut python = hermetic("python3");
        python.current_dir(folder.path()).args(["-B", "-c", script, &given.to_string()]);
        Ran::of(python.env("PYTHONPATH", scripts)).expect(0);
        Described { folder, sums }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }
}

#[test]
#[ignore = "needs Python"]
fn arch_installs_every_file_where_its_programs_look() {
    let described = Described::make();
    let target = described.path("installed");
    let script = "set -eu; . ./PKGBUILD; srcdir=$PWD/from pkgdir=$PWD/installed; mkdir from; \
                  tar -xf \"${source_x86_64##*/}\" -C from; echo \"$sha256sums_x86_64 $sha256sums_aarch64\"; package";
    let ran = Ran::of(hermetic("bash").current_dir(described.folder.path()).args(["-c", script])).expect(0);
    assert_eq!(ran.out.trim(), described.sums.join(" "));
    for file in [
        "usr/bin/berth",
        "usr/share/licenses/berth-bin/LICENSE",
        "usr/share/man/man1/berth.1",
        "usr/share/bash-completion/completions/berth",
        "usr/share/fish/vendor_completions.d/berth.fish",
        "usr/share/zsh/site-functions/_berth",
    ] {
        assert!(target.join(file).is_file(), "{file}");
    }
}

#[test]
#[ignore = "needs Python"]
fn krew_finds_the_program_of_each_architecture() {
    let described = Described::make();
    let plugin: Json = serde_yaml::from_str(&described.text("berth.krew.yaml")).expect("YAML");
    assert_eq!((&plugin["kind"], &plugin["spec"]["version"]), (&"Plugin".into(), &"v1.2.3".into()));
    let platforms = plugin["spec"]["platforms"].as_array().expect("a list");
    assert_eq!(platforms.len(), 2);
    for (platform, (arch, sum)) in platforms.iter().zip(["amd64", "arm64"].iter().zip(&described.sums)) {
        assert_eq!(platform["selector"]["matchLabels"]["arch"], **arch);
        assert_eq!(platform["sha256"], **sum);
        assert_eq!(
            platform["uri"],
            format!("https://downloads.example.com/v1/berth-{VERSION}-linux-{arch}.tar.gz")
        );
        for file in platform["files"].as_array().expect("files") {
            assert!(described.path(file["from"].as_str().expect("text")).is_file(), "{file}");
        }
    }
}

#[test]
#[ignore = "needs Python"]
fn the_formula_names_files_that_the_archives_have() {
    let described = Described::make();
    let formula = described.text("berth.rb");
    for sum in &described.sums {
        assert!(formula.contains(&format!("sha256 \"{sum}\"")), "{formula}");
    }
    let quoted = formula.split('"').skip(1).step_by(2).filter(|text| text.starts_with("share/"));
    let files: Vec<&str> = quoted.map(|text| text.trim_end_matches("/*")).collect();
    assert_eq!(files.len(), 4, "{formula}");
    for file in files {
        assert!(described.path(&format!("berth-{VERSION}-linux-amd64/{file}")).exists(), "{file}");
    }
    let count = |word: &str| formula.lines().filter(|line| line.trim_start().starts_with(word)).count();
    let opened = ["class ", "on_intel ", "on_arm ", "def ", "test "].map(count).iter().sum::<usize>();
    assert_eq!(opened, count("end"), "{formula}");
}
