//! The real cosign for tests, built once where Go is at hand. Finding none is a skipped test, or under `CI=true` a failed
//! one.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{Ran, hermetic, programs};

/// cosign, with a home of its own. It asks no server but the registry.
#[derive(Debug)]
pub struct Cosign {
    program: PathBuf,
    home: tempfile::TempDir,
}

impl Cosign {
    /// Without the means for it, says so loudly and gives nothing, and the test returns; under `CI=true` the test fails.
    pub fn find() -> Option<Cosign> {
        let program = folder()?.join("cosign");
        Some(Cosign { program, home: tempfile::tempdir().expect("a temporary folder") })
    }

    /// Runs a command of cosign.
    pub fn run(&self, args: &[&str]) -> Ran {
        let mut command = hermetic(self.program.to_str().expect("a text path"));
        command.current_dir(self.home.path()).env("HOME", self.home.path());
        Ran::of(command.args(args))
    }

    /// Checks an artifact's signature as an operator does who is offline.
    pub fn verify(&self, key: &Path, artifact: &str) -> Ran {
        let key = key.to_str().expect("a text path");
        self.run(&["verify", "--key", key, "--insecure-ignore-tlog", "--allow-http-registry", artifact])
    }

    /// Checks that an artifact has provenance.
    pub fn verify_provenance(&self, key: &Path, artifact: &str) -> Ran {
        let key = key.to_str().expect("a text path");
        let kind = ["--type", "slsaprovenance1"];
        let offline = ["--insecure-ignore-tlog", "--allow-http-registry"];
        self.run(&[&["verify-attestation", "--key", key], &kind[..], &offline[..], &[artifact]].concat())
    }
}

/// Returns the folder of the built program, looked for once in a test run.
fn folder() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(|| programs::made(&["ready", "cosign"], "cosign")) {
        Ok(folder) => Some(folder),
        Err(why) => {
            programs::skipped("cosign", why);
            None
        }
    }
}
