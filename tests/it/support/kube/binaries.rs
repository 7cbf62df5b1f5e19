//! Finds the programs of a control plane: those of `KUBEBUILDER_ASSETS` where that is set, else our
//! own build, which is made once where Go is at hand. Finding none is a skipped test, or under
//! `CI=true` a failed one.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::super::programs::{made, skipped};
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
            skipped("Kubernetes", "KUBEBUILDER_ASSETS holds no kube-controller-manager");
            None
        }
        Ok(binaries) => Some(binaries),
        Err(why) => {
            skipped("Kubernetes", why);
            None
        }
    }
}

fn look() -> Result<Binaries, String> {
    let given_folder = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty());
    match given_folder.filter(|_| std::env::var_os("BERTH_TESTS_WITHOUT_KUBERNETES").is_none()) {
        Some(folder) => given(PathBuf::from(folder)),
        None => made(&["ready", "control-plane"], "Kubernetes").map(|folder| Binaries::Together { folder }),
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
