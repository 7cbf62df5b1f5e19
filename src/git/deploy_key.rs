//! Chance → a new Ed25519 key for ssh.

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::signature::{PublicKey, keys};

/// A key that gives access to a repository.
pub struct DeployKey {
    pub public: PublicKey,
    /// The private part, in the text form of OpenSSH.
    pub private: String,
}

impl std::fmt::Debug for DeployKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeployKey({})", self.public)
    }
}

impl DeployKey {
    /// Makes a key. `None` if the system gives no randomness.
    pub fn generate(comment: &str) -> Option<DeployKey> {
        let mut random = [0; 36];
        SystemRandom::new().fill(&mut random).ok()?;
        let (seed, check) = random.split_first_chunk::<32>()?;
        let check = u32::from_be_bytes(check.try_into().ok()?);
        let (signer, private) = keys::write(seed, check, comment)?;
        Some(DeployKey { public: signer.public().clone(), private })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Signer;

    #[test]
    fn a_new_key_is_read_again_and_no_two_are_equal() {
        let key = DeployKey::generate("berth-hub").expect("a key");
        assert_eq!(Signer::read(&key.private).expect("a signer").public(), &key.public);
        assert!(
            key.public.line().starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"),
            "{}",
            key.public.line()
        );
        assert!(!format!("{key:?}").contains("PRIVATE"));
        assert_ne!(DeployKey::generate("berth-hub").expect("a key").public, key.public);
    }

    #[test]
    fn ssh_keygen_reads_a_new_key_whatever_the_length_of_its_comment() {
        use std::os::unix::fs::PermissionsExt as _;
        for length in 0..9 {
            let key = DeployKey::generate(&"c".repeat(length)).expect("a key");
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), &key.private).expect("written");
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).expect("rights");
            let Ok(ran) =
                std::process::Command::new("ssh-keygen").arg("-y").arg("-f").arg(file.path()).output()
            else {
                return eprintln!("NOT TESTED: `ssh-keygen` is missing");
            };
            let said = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
            assert!(said.starts_with(&key.public.line()), "{said} {}", String::from_utf8_lossy(&ran.stderr));
        }
    }
}
