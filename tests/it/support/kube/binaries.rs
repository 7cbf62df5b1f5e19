//! Finds the programs of a control plane: those of `KUBEBUILDER_ASSETS` where that is set, else our
//! own build, which is made once where Go is at hand. Finding none is a skipped test, or under
//! `CI=true` a failed one.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::Wanted;

#[derive(Debug)]
pub enum Binaries {
    /// Our own: everything in one process.
    Together { folder: PathBuf },
    /// The usual separate programs; the controllers among them or not.
    Apart { folder: PathBuf, controllers: bool },
}

impl Binaries {
    pub fn kubectl(&self) -> PathBuf {
        match self {
            Binaries::Together { folder } | Binaries::Apart { folder, .. } => folder.join("kubectl"),
        }
    }
}

/// The programs for what is wanted, looked for once in a test run.
pub fn find(wanted: Wanted) -> Option<&'static Binaries> {
    static FOUND: OnceLock<Result<Binaries, String>> = OnceLock::new();
    match FOUND.get_or_init(look) {
        Ok(Binaries::Apart { controllers: false, .. }) if wanted.controllers => {
            skipped("KUBEBUILDER_ASSETS holds no kube-controller-manager");
            None
        }
        Ok(binaries) => Some(binaries),
        Err(why) => {
            skipped(why);
            None
        }
    }
}

/// Says that the running test is skipped for want of Kubernetes; fails it where none may be.
fn skipped(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    assert!(
        !std::env::var("CI").is_ok_and(|value| value == "true"),
        "`{test}` needs Kubernetes, and under CI=true it may not be skipped: {why}"
    );
    // Unlike `eprintln!`, this is shown for passing tests too.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: it needs Kubernetes: {why}");
}

fn look() -> Result<Binaries, String> {
    if std::env::var_os("BERTH_TESTS_WITHOUT_KUBERNETES").is_some() {
        return Err("BERTH_TESTS_WITHOUT_KUBERNETES is set".to_owned());
    }
    match std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()) {
        Some(folder) => given(PathBuf::from(folder)),
        None => built(),
    }
}

fn given(folder: PathBuf) -> Result<Binaries, String> {
    for program in ["etcd", "kube-apiserver", "kubectl"] {
        let path = folder.join(program);
        if !path.is_file() {
            return Err(format!("KUBEBUILDER_ASSETS is set, but there is no `{}`", path.display()));
        }
    }
    let controllers = folder.join("kube-controller-manager").is_file();
    Ok(Binaries::Apart { folder, controllers })
}

fn built() -> Result<Binaries, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane/ready");
    // Its stderr is this process's, so that minutes of building do not pass in silence.
    let output = Command::new(&script)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`{}` does not run: {error}", script.display()))?;
    if !output.status.success() {
        return Err(format!("`{}` failed and said why", script.display()));
    }
    let folder = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    Ok(Binaries::Together { folder: PathBuf::from(folder) })
}
