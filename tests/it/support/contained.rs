//! The image of a release, unpacked and run as a pod runs it: its own root, which is read-only, nobody's user, and no
//! rights.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use super::programs::skipped;
use super::{Ran, hermetic};

pub const USER: u32 = 65532;

/// Runs a program in the root `$1`, with the caches `$2`, and `$3` in place of the pod's Secret.
const CONTAIN: &str = r#"
root=$1 cache=$2 secret=$3
shift 3
mount --bind "$root" "$root"
mount --bind "$cache" "$root/var/cache/berth"
mount --bind -o ro "$secret" "$root/etc/berth/git"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
for device in null urandom; do mount --bind "/dev/$device" "$root/dev/$device"; done
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs /usr/sbin/chroot --userspec=65532:65532 "$root" "$@"
"#;

#[derive(Debug)]
pub struct Image {
    folder: tempfile::TempDir,
    pub config: Json,
}

impl Image {
    /// Unpacks the image of this machine's architecture from an archive of an OCI layout, and checks each digest.
    pub fn unpacked(archive: &Path) -> Image {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["layout", "root", "cache", "secret"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let mut image = Image { folder, config: Json::Null };
        image.untar(archive, "layout");
        let index = std::fs::read(image.path("layout/index.json")).expect("an index");
        let index: Json = serde_json::from_slice(&index).expect("JSON");
        let images = image.document(&index["manifests"][0]);
        let manifest = image.document(&images["manifests"][0]);
        image.config = image.document(&manifest["config"]);
        for layer in manifest["layers"].as_array().expect("layers") {
            image.untar(&image.blob(layer), "root");
        }
        // A runtime makes what it mounts upon.
        std::fs::create_dir_all(image.path("root/etc/berth/git")).expect("a folder");
        for device in ["null", "urandom"] {
            std::fs::write(image.path("root/dev").join(device), "").expect("a file");
        }
        image
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn untar(&self, archive: &Path, into: &str) {
        let into = self.path(into);
        let mut tar = hermetic("tar");
        // With the owners of the archive, where the tests may give files away.
        let ran = Ran::of(
            tar.args(["--extract", "--auto-compress", "--numeric-owner", "--file"])
                .arg(archive)
                .arg("--directory")
                .arg(into),
        );
        assert_eq!((ran.code, &*ran.err), (0, ""), "{}", archive.display());
    }

    /// The file of a descriptor, which has its size and digest.
    fn blob(&self, descriptor: &Json) -> PathBuf {
        let digest =
            descriptor["digest"].as_str().expect("a digest").strip_prefix("sha256:").expect("SHA-256");
        let path = self.path("layout/blobs/sha256").join(digest);
        let content = std::fs::read(&path).expect("a blob");
        assert_eq!(descriptor["size"], content.len());
        assert_eq!(hex(&content), digest);
        path
    }

    fn document(&self, descriptor: &Json) -> Json {
        serde_json::from_slice(&std::fs::read(self.blob(descriptor)).expect("a blob")).expect("JSON")
    }

    /// Puts a file into what stands for the pod's Secret, and returns its path there. Others may not read it.
    pub fn secret(&self, name: &str, from: &Path) -> String {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let path = self.path("secret").join(name);
        std::fs::copy(from, &path).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).expect("rights");
        chown(&path, Some(USER), Some(USER)).expect("an owner");
        format!("/etc/berth/git/{name}")
    }

    /// A program in the container; `None`, with words or a failure, where none can be made.
    pub fn command(&self, program: &str) -> Option<Command> {
        if !rustix::process::geteuid().is_root() {
            skipped("root", "an image is run by chroot");
            return None;
        }
        let mut tried = hermetic("unshare");
        let tried =
            Ran::of(tried.args(["--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]));
        if tried.code != 0 {
            skipped("namespaces", &tried.err);
            return None;
        }
        std::os::unix::fs::chown(self.path("cache"), Some(USER), Some(USER)).expect("an owner");
        let mut command = Command::new("/usr/bin/unshare");
        command.env_clear();
        for variable in self.config["config"]["Env"].as_array().expect("variables") {
            let (name, value) = variable.as_str().and_then(|text| text.split_once('=')).expect("a variable");
            command.env(name, value);
        }
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", CONTAIN, "contain"]);
        command.args(["root", "cache", "secret"].map(|name| self.path(name))).arg(program);
        Some(command)
    }
}

pub fn hex(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
