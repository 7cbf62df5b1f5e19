//! `berth verify`: computes generated commits again and compares them. `berth public-key`: prints the public part of a
//! key, for checking its signatures.

mod artifact;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::flags::fleet::RepoArg;
use crate::flags::state::StateArgs;
use crate::output::results::{Format, ResultKind};
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome};
use artifact::{ArtifactArgs, RenderedBranch};
use berth_base::model::Timestamp;
use berth_base::text::counted;
use berth_engine::gate::Limits;
use berth_git::shared_refs::Refs;
use berth_git::signature::{PlainSigner, PublicKey};
use berth_git::{CommitId, Repo};
use berth_hub::inputs::current_state::{self, Place};
use berth_hub::publish::Trailers;
use berth_hub::verify::{Expected, ExpectedLimits, Proof, Verdict, Verifier, VerifyError, select};

/// Prove that generated commits are what their inputs give
///
/// Each commit is computed again from its source commit, its parent, and the facts and trailers it holds,
/// and compared to the last byte. Nothing is written. A failed proof ends with 3, and with 6 where a
/// source commit is not in the repository.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth verify\n  berth verify berth/rendered~1\n  berth verify v1-state..berth/rendered -o json\n  berth verify --artifact oci://registry.example.com/fleet/clusters/oslo --key berth.pub\n  berth verify berth/rendered --statement"
)]
pub(crate) struct VerifyArgs {
    /// Commit, branch or `A..B`; default: all of the rendered branch
    #[arg(value_name = "COMMIT|RANGE")]
    commits: Option<String>,
    #[command(flatten)]
    repo: RepoArg,
    /// The branch berth writes, in place of this repository's own or, where it has none, its remote's: a ref, or a
    /// remote's URL to fetch from
    #[arg(long, value_name = "REF|URL", env = "BERTH_RENDERED")]
    rendered: Option<String>,
    /// The id of the import to trust as the root, as `berth import` printed it; without it, the one that
    /// `refs/berth/root` names
    #[arg(long, value_name = "COMMIT")]
    root: Option<String>,
    /// Fail for commits that were made with looser limits on removals than these, as a `Berth-Gate` trailer writes
    /// them, or accept `any`; without it, a commit may have no looser ones than the commit before it, and looser ones than
    /// berth's own are named
    #[arg(long, value_name = "LIMITS", value_parser = limits)]
    expect_gate: Option<ExpectedLimits>,
    /// The branch people edit, of which every source commit must be part; without it, the one HEAD names or a
    /// remote's
    #[arg(long, value_name = "REF", env = "BERTH_SOURCE")]
    source: Option<String>,
    /// Fail for commits of a fleet with another name
    #[arg(long, value_name = "NAME", env = "BERTH_FLEET")]
    fleet: Option<String>,
    /// Name at most this many differences of a commit
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    most: usize,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    artifact: ArtifactArgs,
}

/// Translates a revision of the rendered branch to this clone: `berth/rendered~1` to `origin/berth/rendered~1`.
fn in_clone(wanted: &str, place: &Place) -> String {
    let (own, here) = (place.own_name(), current_state::short(&place.refs.rendered));
    let own = current_state::short(&own);
    if own == here || place.commit.is_none() {
        return wanted.to_owned();
    }
    let side = |side: &str| match side.strip_prefix(own) {
        Some(rest) if rest.is_empty() || rest.starts_with(['~', '^', '@']) => format!("{here}{rest}"),
        _ => side.to_owned(),
    };
    wanted.split("..").map(side).collect::<Vec<_>>().join("..")
}

impl VerifyArgs {
    /// Reports whether the flags name commits, which can be proven on any branch.
    fn names_commits(&self) -> bool {
        self.commits.is_some() || self.artifact.artifact.is_some()
    }

    /// Finds the rendered branch.
    fn place(&self, repo: &Repo) -> Result<Place, CommandError> {
        let first = self.names_commits();
        let state = StateArgs { rendered: self.rendered.clone(), first };
        let search = state.search(&self.repo.path)?;
        match (&self.rendered, current_state::locate(repo, &search)) {
            (Some(name), Err(_)) if first => Ok(Place::named(name)),
            (_, found) => Ok(found?),
        }
    }

    /// Returns the properties expected of every commit.
    fn expected(&self, repo: &Repo, place: &Place, now: Timestamp) -> Result<Expected, CommandError> {
        Ok(Expected {
            limits: self.expect_gate.clone().unwrap_or_default(),
            fleet: self.fleet.clone(),
            sources: sources(repo, self.source.as_deref(), place)?,
            ..Expected::at(now)
        })
    }
}

pub(crate) fn cmd_verify(args: &VerifyArgs, ui: &Ui) -> Outcome {
    let repo = Repo::open(&args.repo.path)?;
    let wanted = args.commits.as_deref();
    let place = args.place(&repo)?;
    let branch = &place.refs.rendered;
    if args.artifact.statement {
        return artifact::print_statement(&repo, wanted.unwrap_or(branch), ui);
    }
    let refs = Refs { rendered: place.own_name(), ..Refs::default() };
    if !args.names_commits() {
        ui.status(&format!("proving {}", current_state::short(branch)));
    }
    let mut verifier = Verifier::new(&repo, &refs, args.expected(&repo, &place, ui.now())?)?;
    if let Some(root) = &args.root {
        verifier = verifier.trusting(pinned(&repo, root)?);
    }
    if let Some(reference) = &args.artifact.artifact {
        let branch = RenderedBranch { repo: &repo, name: branch, verifier: &verifier };
        return artifact::prove(args, reference, branch, ui);
    }
    let wanted = wanted.map_or_else(|| branch.clone(), |wanted| in_clone(wanted, &place));
    let proofs = prove(&verifier, select(&repo, &wanted, branch)?, args, ui)?;
    match args.output {
        Format::Text => {}
        format => {
            let list = ProofList { commits: proofs.iter().map(ProofForm::of).collect() };
            format.write(ResultKind::ProofList, &list, ui);
        }
    }
    show_totals(&proofs, &repo, ui);
    Ok(proofs.iter().map(exit_of).fold(Exit::Done, Exit::worst))
}

/// Proves commits. Prints each proof at once if the output is text.
fn prove(
    verifier: &Verifier<'_>,
    commits: Vec<CommitId>,
    args: &VerifyArgs,
    ui: &Ui,
) -> Result<Vec<Proof>, CommandError> {
    ui.watching("proving commits", || {
        let mut proofs = Vec::with_capacity(commits.len());
        ui.progress().begin_of("proving commits", commits.len());
        for commit in commits {
            let proof = verifier.prove(commit)?;
            ui.progress().add(1);
            if args.output == Format::Text {
                ui.out(&proof_text(&proof, args.most, ui));
            }
            proofs.push(proof);
        }
        Ok(proofs)
    })
}

/// Prints the number of proofs per verdict, and a hint if only history may be missing.
fn show_totals(proofs: &[Proof], repo: &Repo, ui: &Ui) {
    let count = |word| proofs.iter().filter(|proof| proof.verdict.word() == word).count();
    let rest: String = ["root", "differs", "foreign", "missing"]
        .map(|word| (word, count(word)))
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| match word {
            "root" => format!(", {count} trusted as the root"),
            word => format!(", {count} {word}"),
        })
        .collect();
    ui.status(&format!("{} proven{rest}", counted(count("ok"), "commit")));
    if count("differs") + count("missing") > 0 && repo.is_shallow() {
        ui.status(
            "the repository is a shallow clone, and proofs may need more history: git fetch \
                   --unshallow",
        );
    }
}

/// Returns the tips of the source branch: the given one, or the branches of HEAD here and at remotes; for a fetched
/// state, at its own remote. Empty for a detached HEAD, which names no branch.
fn sources(repo: &Repo, named: Option<&str>, place: &Place) -> Result<Vec<CommitId>, CommandError> {
    if let Some(named) = named {
        return Ok(vec![repo.require(named)?]);
    }
    if let Some(remote) = &place.remote {
        // HEAD is only the branch checked out in this clone.
        let head = repo.remote_head(remote)?.map(|head| repo.tracking_ref(remote, &head)).transpose()?;
        return Ok(head.map(|head| repo.read_ref(&head)).transpose()?.flatten().into_iter().collect());
    }
    let Some(branch) = repo.head_branch()?.filter(|branch| *branch != place.refs.rendered) else {
        return Ok(Vec::new());
    };
    // HEAD is on a rendered state.
    let is_rendered =
        |tip: &CommitId| repo.commit(*tip).is_ok_and(|tip| Trailers::read(&tip.message).is_some());
    let remotes = repo.list_refs("refs/remotes/")?.into_iter().filter(|(name, _)| name.ends_with("/HEAD"));
    let here = repo.read_ref(&branch)?.filter(|tip| !is_rendered(tip));
    Ok(here.into_iter().chain(remotes.map(|(_, tip)| tip)).collect())
}

fn limits(text: &str) -> Result<ExpectedLimits, String> {
    if text == "any" {
        return Ok(ExpectedLimits::Any);
    }
    let example = Limits::default();
    text.parse().map(ExpectedLimits::Given).map_err(|()| format!("write it as `{example}`, or `any`"))
}

/// Returns the commit with an id. A name is refused, because it follows moves and pins nothing.
fn pinned(repo: &Repo, id: &str) -> Result<CommitId, CommandError> {
    if let Ok(whole) = id.parse() {
        return Ok(whole);
    }
    match repo.commit_of_id(id)? {
        Some(commit) => Ok(commit),
        None => {
            let error = CommandError::usage(format!("--root: `{id}` is not the id of one commit"));
            Err(error.hint("give the full id that `berth import` printed: a branch or tag can be moved"))
        }
    }
}

fn exit_of(proof: &Proof) -> Exit {
    match &proof.verdict {
        Verdict::Missing(_) => Exit::Unreachable,
        verdict if verdict.is_failed() => Exit::Different,
        _ => Exit::Done,
    }
}

/// Describes a proof in one line, followed by a line for each difference.
fn proof_text(proof: &Proof, most: usize, ui: &Ui) -> String {
    let tone = match &proof.verdict {
        Verdict::Proven => Tone::Good,
        Verdict::Root(_) => Tone::Strong,
        Verdict::Foreign(changed) if changed.is_empty() => Tone::Faint,
        Verdict::Foreign(_) | Verdict::Missing(_) => Tone::Warn,
        Verdict::Differs(_) => Tone::Bad,
    };
    let word = ui.tint(&format!("{:<8}", proof.verdict.word()), tone);
    let seq = proof.seq.map_or_else(|| "-".to_owned(), |seq| seq.to_string());
    let mut text = format!("{word} {} {seq:>5}  {}\n", proof.commit.short(), proof.subject);
    let details = [details(&proof.verdict), proof.notes.clone()].concat();
    for detail in details.iter().take(most) {
        let _ = writeln!(text, "           {detail}");
    }
    if let Some(more @ 1..) = details.len().checked_sub(most) {
        let _ = writeln!(text, "           and {more} more");
    }
    text
}

fn details(verdict: &Verdict) -> Vec<String> {
    match verdict {
        Verdict::Proven => Vec::new(),
        Verdict::Root(from) => {
            vec![format!("trusted as the root: imported from {from}; later commits are proven from it")]
        }
        Verdict::Differs(found) => found.iter().map(ToString::to_string).collect(),
        Verdict::Foreign(changed) if changed.is_empty() => {
            vec!["not made by berth; it changes none of berth's files".to_owned()]
        }
        Verdict::Foreign(changed) => {
            std::iter::once("not made by berth, but it changes".to_owned()).chain(changed.clone()).collect()
        }
        Verdict::Missing(what) => vec![what.clone()],
    }
}

/// The proofs of commits, for programs.
#[derive(Serialize)]
struct ProofList<'a> {
    commits: Vec<ProofForm<'a>>,
}

#[derive(Serialize)]
struct ProofForm<'a> {
    commit: String,
    sequence: Option<u64>,
    source: Option<String>,
    subject: &'a str,
    verdict: &'static str,
    failed: bool,
    details: Vec<String>,
    notes: &'a [String],
}

impl<'a> ProofForm<'a> {
    fn of(proof: &'a Proof) -> ProofForm<'a> {
        ProofForm {
            commit: proof.commit.to_string(),
            sequence: proof.seq,
            source: proof.source.map(|source| source.to_string()),
            subject: &proof.subject,
            verdict: proof.verdict.word(),
            failed: proof.verdict.is_failed(),
            details: details(&proof.verdict),
            notes: &proof.notes,
        }
    }
}

impl From<VerifyError> for CommandError {
    fn from(error: VerifyError) -> CommandError {
        let exit = match error {
            VerifyError::Git(error) => return error.into(),
            VerifyError::NotBefore { .. } => Exit::Usage,
            _ => Exit::Unreachable,
        };
        CommandError { exit, message: error.to_string(), hint: error.hint() }
    }
}

/// Print the public key of a signing key
///
/// Reads a private key, or a public one, of OpenSSH or in PEM. cosign and Flux take PEM; `--allowed-signers` and
/// `ssh-keygen` take the line of OpenSSH. A private key is never printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth public-key berth-key > berth.pub\n  cosign verify --key berth.pub --insecure-ignore-tlog registry.example.com/fleet/clusters/oslo:current\n  berth public-key artifact-key.pem --form ssh"
)]
pub(crate) struct PublicKeyArgs {
    #[arg(value_name = "FILE")]
    key: PathBuf,
    /// Form of the printed key
    #[arg(long, value_enum, default_value = "pem")]
    form: KeyFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum KeyFormat {
    /// As cosign, Flux and OpenSSL read it
    Pem,
    /// As a line of `authorized_keys`
    Ssh,
}

pub(crate) fn cmd_public_key(args: &PublicKeyArgs, ui: &Ui) -> Outcome {
    let key = read_key(&args.key)?;
    let text = match args.form {
        KeyFormat::Pem => key.pem(),
        KeyFormat::Ssh => Some(format!("{}\n", key.line())),
    };
    let text = text.ok_or_else(|| {
        let message = format!("`{}` is no key that signs artifacts", args.key.display());
        CommandError::usage(message).hint("name an Ed25519 key, or one on the curve P-256")
    })?;
    ui.out(text.trim_end());
    Ok(Exit::Done)
}

/// Reads the public part of a key, in any form.
fn read_key(file: &Path) -> Result<PublicKey, CommandError> {
    let unusable = |why: &str| {
        let message = format!("the key `{}` cannot be read: {why}", file.display());
        CommandError::usage(message)
            .hint("name a key of OpenSSH or in PEM, private or public, without a passphrase")
    };
    let text = std::fs::read_to_string(file).map_err(|error| unusable(&error.to_string()))?;
    let public = PublicKey::read_pem(&text).or_else(|| PublicKey::read(text.trim()));
    match public {
        Some(public) => Ok(public),
        None => PlainSigner::read(&text)
            .map(|signer| signer.public().clone())
            .map_err(|error| unusable(&error.to_string())),
    }
}
