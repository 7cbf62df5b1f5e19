//! The file of allowed signers (ssh-keygen, ALLOWED SIGNERS) → the allowed signer of a commit.
//!
//! A line that berth cannot read makes the whole file invalid: skipping it could drop the rule that matters. Times
//! without a zone are UTC.

use std::fmt;

use super::keys::PublicKey;
use super::{commit, sshsig};
use berth_base::model::Timestamp;
use berth_base::text::base64;

/// The allowed keys, and what each may sign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedSigners(Vec<Allowed>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Allowed {
    principals: String,
    key: PublicKey,
    namespaces: Option<String>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

/// Writes all lines in the file's format, with fingerprints in place of keys.
impl fmt::Display for AllowedSigners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Allowed { principals, key, namespaces, after, before } in &self.0 {
            write!(f, "{principals:?} {key}")?;
            if let Some(namespaces) = namespaces {
                write!(f, " namespaces={namespaces:?}")?;
            }
            for (name, moment) in [("valid-after", after), ("valid-before", before)] {
                if let Some(moment) = moment {
                    write!(f, " {name}={moment}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl AllowedSigners {
    /// Reads the file. Each fault is one line of the error.
    pub fn read(name: &str, text: &str) -> Result<AllowedSigners, String> {
        let (mut allowed, mut faults) = (Vec::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match read_line(line) {
                Ok(one) => allowed.push(one),
                Err(why) => faults.push(format!("{name}:{}: {why}", index + 1)),
            }
        }
        if faults.is_empty() && allowed.is_empty() {
            faults.push(format!("{name}: it allows no key"));
        }
        if faults.is_empty() { Ok(AllowedSigners(allowed)) } else { Err(faults.join("\n")) }
    }

    /// Allows a single key, for every commit.
    pub fn of(key: &PublicKey) -> AllowedSigners {
        let principals = String::new();
        AllowedSigners(vec![Allowed {
            principals,
            key: key.clone(),
            namespaces: None,
            after: None,
            before: None,
        }])
    }

    /// Joins two sets of keys.
    #[must_use]
    pub fn and(mut self, other: AllowedSigners) -> AllowedSigners {
        self.0.extend(other.0);
        self
    }

    /// Returns the signer of a commit of this date, or the reason why the signature is not valid.
    pub fn check(&self, raw: &[u8], at: Timestamp) -> Result<&str, String> {
        let signed = commit::split(raw).ok_or("it is not signed")?;
        let key = sshsig::verify(&signed.payload, &signed.signature, super::GIT)?;
        let allowed =
            self.allowance(&key, at).map_err(|why| format!("it is signed by the key {key}, {why}"))?;
        Ok(&allowed.principals)
    }

    /// Checks that a key may sign a commit of this date. Returns the moment from which it no longer may, if there is
    /// one; otherwise the reason, as the end of a sentence.
    pub fn allows(&self, key: &PublicKey, at: Timestamp) -> Result<Option<Timestamp>, String> {
        Ok(self.allowance(key, at)?.before)
    }

    /// Reports whether a line has this key.
    pub fn has(&self, key: &PublicKey) -> bool {
        self.0.iter().any(|one| one.key == *key)
    }

    /// Checks that a key may sign this cluster's status now: its line's principals are names of clusters.
    pub fn may_report(&self, key: &PublicKey, cluster: &str, now: Timestamp) -> Result<(), String> {
        let checked = self.first(key, |one| {
            if !is_match(&one.principals, cluster) {
                return Some(format!("which does not speak for `{cluster}`"));
            }
            one.refusal(sshsig::STATUS, ["statuses", "the status"], now)
        });
        checked.map(drop).map_err(|why| format!("it is signed by the key {key}, {why}"))
    }

    fn allowance(&self, key: &PublicKey, at: Timestamp) -> Result<&Allowed, String> {
        self.first(key, |one| one.refusal(super::GIT, ["commits", "the commit"], at))
    }

    /// Returns the first line of this key that allows the use; otherwise the last line's reason, as the end of a
    /// sentence.
    fn first(
        &self,
        key: &PublicKey,
        refusal: impl Fn(&Allowed) -> Option<String>,
    ) -> Result<&Allowed, String> {
        let mut why = "which is not allowed".to_owned();
        for one in self.0.iter().filter(|one| one.key == *key) {
            match refusal(one) {
                None => return Ok(one),
                Some(refusal) => why = refusal,
            }
        }
        Err(why)
    }
}

impl Allowed {
    /// Returns the reason why this line does not allow the namespace at this moment.
    fn refusal(&self, namespace: &str, [all, what]: [&str; 2], at: Timestamp) -> Option<String> {
        if self.namespaces.as_deref().is_some_and(|namespaces| !is_match(namespaces, namespace)) {
            return Some(format!("which is not allowed to sign {all}"));
        }
        if let Some(after) = self.after.filter(|after| at < *after) {
            return Some(format!("which is not valid before {after}, but {what} is of {at}"));
        }
        let before = self.before.filter(|before| at >= *before)?;
        Some(format!("which was valid until {before}, but {what} is of {at}"))
    }
}

fn read_line(line: &str) -> Result<Allowed, String> {
    let (principals, mut rest) = field(line).ok_or("it has no principals")?;
    let mut allowed = Allowed {
        principals: principals.trim_matches('"').to_owned(),
        key: PublicKey::from_wire(&[]),
        namespaces: None,
        after: None,
        before: None,
    };
    let (mut kind, mut after) = field(rest).ok_or("it holds no key")?;
    if !is_key_type(kind) {
        for option in options(kind) {
            set(&mut allowed, option)?;
        }
        rest = after;
        (kind, after) = field(rest).ok_or("it holds no key")?;
    }
    let (text, _comment) = field(after).ok_or("it holds no key")?;
    let wire = base64::decode_exactly(text).ok_or("its key is not base64")?;
    allowed.key = PublicKey::from_wire(&wire);
    const USABLE: [&str; 4] = ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384"];
    if !USABLE.contains(&kind) {
        return Err(format!("keys of the kind `{kind}` cannot be checked; use one of {}", USABLE.join(", ")));
    }
    if allowed.key.algorithm() != Some(kind) {
        return Err(format!("its key is not of the kind `{kind}`"));
    }
    Ok(allowed)
}

fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|start| word.starts_with(start))
}

/// Returns the first word and the rest. Quoted spaces do not end a word.
fn field(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && c.is_whitespace()
    });
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (!word.is_empty()).then_some((word, rest))
}

/// Splits a list at commas, except quoted ones.
fn options(text: &str) -> Vec<&str> {
    let mut quoted = false;
    text.split(|c: char| {
        quoted ^= c == '"';
        !quoted && c == ','
    })
    .collect()
}

fn set(allowed: &mut Allowed, option: &str) -> Result<(), String> {
    let (name, value) = option.split_once('=').map_or((option, ""), |(name, value)| (name, value));
    let value = value.trim_matches('"');
    match name.to_ascii_lowercase().as_str() {
        "namespaces" => allowed.namespaces = Some(value.to_owned()),
        "valid-after" => allowed.after = Some(time(value)?),
        "valid-before" => allowed.before = Some(time(value)?),
        "cert-authority" => {
            return Err("certificates cannot be checked; list the keys themselves".to_owned());
        }
        _ => return Err(format!("unknown option `{name}`")),
    }
    Ok(())
}

/// Reads `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, with or without a `Z`.
fn time(text: &str) -> Result<Timestamp, String> {
    let wrong = || format!("`{text}` is not a time such as 20260131 or 20260131120000Z");
    let digits = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let full = match digits.len() {
        8 => format!("{digits}000000"),
        12 => format!("{digits}00"),
        14 => digits.to_owned(),
        _ => return Err(wrong()),
    };
    if !full.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let part = |from: usize, to: usize| full.get(from..to).unwrap_or_default();
    let (date, clock) = ((part(0, 4), part(4, 6), part(6, 8)), (part(8, 10), part(10, 12), part(12, 14)));
    let iso = format!("{}-{}-{}T{}:{}:{}Z", date.0, date.1, date.2, clock.0, clock.1, clock.2);
    iso.parse().map_err(|_| wrong())
}

/// Reports whether a list of patterns matches a name. `*` and `?` are wildcards; a pattern with `!` excludes.
fn is_match(patterns: &str, name: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split(',').map(str::trim) {
        match pattern.strip_prefix('!') {
            Some(pattern) if glob(pattern.as_bytes(), name.as_bytes()) => return false,
            Some(_) => {}
            None => found |= glob(pattern.as_bytes(), name.as_bytes()),
        }
    }
    found
}

/// Takes time proportional to the product of both lengths at most.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from, mut back) = (0, 0, None);
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                back = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[from] => (at, from) = (at + 1, from + 1),
            _ => match back {
                Some((star, begun)) => {
                    (at, from) = (star + 1, begun + 1);
                    back = Some((star, begun + 1));
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|letter| *letter == b'*')
}
