//! `berth doctor`: checks a setup and reports all problems at once.
//!
//! - [`finding`]: the results.
//! - [`machine`]: files, clock, addresses, signatures, and the repository on this machine, if there is no remote.
//! - [`remote_rights`]: the rights of an account at the remote, and the forge's rules for branches.
//! - [`registry`]: the rights at a container registry. [`clusters`]: those in clusters to which the daemon writes.

mod clusters;
mod finding;
mod machine;
mod registry;
mod remote_rights;

use std::path::{Path, PathBuf};

use super::run::artifacts::PublishArgs;
use super::run::hub_cluster::HubClusterArgs;
use super::run::listening::WebhookArgs;
use super::run::watchers::EventArgs;
use super::sync::reporting::StatusPostArgs;
use crate::flags::fleet;
use crate::flags::remote::{RemoteArgs, SourceRemoteArgs, StatusRemoteArgs};
use crate::flags::signing::SigningArgs;
use crate::flags::telemetry::MetricsArgs;
use crate::output::results::{Format, ResultKind};
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome};
use crate::process::files::OwnFolder;
use berth_base::model::Timestamp;
use berth_base::text::counted;
use berth_git::shared_refs::Refs;
use berth_git::signature::{AllowedSigners, Signer};
use berth_git::transport::probe::Probe;
use berth_git::transport::{Cancel, GitTransport, Listing, Transport as _, Want, WorkingCopy};
use berth_git::{Identity, Repo};
use berth_hub::inputs::current_state::short;
use berth_member::sync::commit_trust;
use berth_registry::Registry;
use finding::Findings;
use machine::Trust;
use registry::Followed;
use remote_rights::{AccountRole, Asker, ForgeApiArgs, Tips};

/// Check a setup: rights, protections, keys and machine, with what would be right
///
/// Takes the flags and environment variables of the process that it checks. Nothing is changed: to learn whether an
/// account may move a ref, berth pushes it together with two refs that a repository cannot both have, all or none, so that the
/// server asks its hooks and rules and then refuses. It marks as `not-known` all that this cannot show. Without a remote the
/// machine, the keys and the repository around the current folder are checked. Faults and warnings end with 1, and with 6
/// where the remote cannot be reached.
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("in_cluster").args(["events", "publish_decisions", "publish_profiles"]).multiple(true)),
    after_help = "Example:\n  berth doctor daemon --remote https://git.example.com/fleet.git --token-file /run/secrets/token\n  berth doctor member --cluster oslo --remote https://git.example.com/fleet.git --token-file oslo-token\n  berth doctor daemon --remote … --forge gitea --api https://git.example.com/api/v1 --repository team/fleet --forge-token-file admin-token"
)]
pub(crate) struct DoctorArgs {
    /// The part that the account plays
    #[arg(value_name = "ROLE", value_enum, default_value = "daemon")]
    role: RoleName,
    /// The member's cluster
    #[arg(long, value_name = "NAME", env = "BERTH_CLUSTER", required_if_eq("role", "member"))]
    cluster: Option<String>,
    /// The working copy of the daemon or member on this machine; without a remote, the fleet repository
    #[arg(long, value_name = "PATH", env = "BERTH_REPO")]
    repo: Option<PathBuf>,
    /// Branch that people edit; default: the one that the remote's HEAD names
    #[arg(long, value_name = "REF", env = "BERTH_SOURCE")]
    source: Option<String>,
    /// Push nothing, not even what must be refused: rights are not known then
    #[arg(long)]
    no_push: bool,
    /// The keys that members allow: a file in the format of `ssh-keygen -Y verify`
    #[arg(long, value_name = "FILE", env = "BERTH_ALLOWED_SIGNERS", help_heading = "Trust")]
    allowed_signers: Option<PathBuf>,
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    signing: SigningArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    webhook: WebhookArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    publish: PublishArgs,
    #[command(flatten)]
    source_remote: SourceRemoteArgs,
    #[command(flatten)]
    status_remote: StatusRemoteArgs,
    #[command(flatten)]
    status_post: StatusPostArgs,
    #[command(flatten)]
    events: EventArgs,
    #[command(flatten)]
    hub: HubClusterArgs,
    #[command(flatten)]
    forge: ForgeApiArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RoleName {
    /// Publishes: `berth run`
    Daemon,
    /// Applies one cluster's folder: `berth sync`
    Member,
    /// Reads: `berth plan` and `berth review` in CI
    Reviewer,
}

pub(crate) fn cmd_doctor(args: &DoctorArgs, ui: &Ui) -> Outcome {
    let mut findings = Findings::default();
    ui.watching("checking the setup", || args.check(&mut findings))?;
    match args.output {
        Format::Text => ui.out(&findings.text(ui)),
        format => format.write(ResultKind::Diagnosis, &findings, ui),
    }
    Ok(findings.exit())
}

impl DoctorArgs {
    fn role(&self) -> AccountRole {
        match (self.role, &self.cluster) {
            (RoleName::Member, Some(cluster)) => {
                let are_elsewhere = self.status_remote.named().is_given() || self.status_post.is_given();
                AccountRole::Member { cluster: cluster.clone(), reports_here: !are_elsewhere }
            }
            (RoleName::Reviewer, _) => AccountRole::Reviewer,
            (RoleName::Daemon | RoleName::Member, _) => AccountRole::Daemon,
        }
    }

    fn check(&self, to: &mut Findings) -> Result<(), CommandError> {
        let (now, role) = (Timestamp::now(), self.role());
        self.check_machine(&role, now, to);
        self.check_clusters(to);
        to.begin("keys");
        let signer = self.signer(to);
        let allowed = self.allowed(to);
        if role == AccountRole::Daemon {
            let key = signer.as_ref().map(|signer| signer.public());
            machine::check_signing_key(key, allowed.as_ref(), now, to);
        }
        let trust = Trust { allowed: allowed.as_ref().map(|(allowed, _)| allowed), now };
        if !self.remote.is_given() {
            let here = self.repo.clone().unwrap_or_else(fleet::here_or_above);
            return machine::check_repository(&here, &role, self.source.as_deref(), trust, to);
        }
        let folder = OwnFolder::make()?;
        if let (AccountRole::Member { cluster, .. }, Some(registry)) = (&role, self.registry_followed()?) {
            let followed = Followed { registry: &registry, cluster, limits: self.remote.git_limits() };
            return followed.check(trust.allowed, folder.path(), !self.no_push, to);
        }
        to.begin("remote");
        let Some((transport, copy)) =
            self.remote.open(Some(&folder.path().join("fleet")), "doctor", &Cancel::default())?
        else {
            return Ok(());
        };
        let Some(listing) = self.reach(&transport, to) else { return Ok(()) };
        let source = self.source(&listing).filter(|_| !self.source_remote.named().is_given());
        let mut tips = Tips { listed: &listing.refs, source, cluster_branch: None, refs: Refs::default() };
        let repo = Repo::open(copy.path())?;
        let identity = Identity { signer, ..Identity::default() };
        let followed = role.followed(&tips.refs);
        let wanted = [tips.source.as_ref(), Some(&tips.refs.rendered), Some(&followed)];
        if !fetch(&transport, &copy, wanted, &listing, to) {
            return Ok(());
        }
        to.begin("trust");
        match listing.refs.get(&followed) {
            Some(tip) => trust.check_tip(&repo, short(&followed), *tip, to)?,
            None => {
                to.not_known(format!("cannot check the signature of `{}`: not published", short(&followed)));
            }
        }
        if role == AccountRole::Daemon
            && let Some(registry) = self.publish.named()?
        {
            to.begin("registry");
            registry::check_daemon(&registry, &listing, !self.no_push, to);
        }
        to.begin("rights");
        tips.cluster_branch = remote_rights::cluster_branch(&tips, &repo);
        if let Some(probe) = self.probe(&transport, &copy, &listing, to) {
            Asker { tips: &tips, repo: &repo, identity: &identity }.check(&role, &probe, to)?;
        }
        self.check_other_remote(role, folder.path(), &identity, to)?;
        to.begin("protections");
        self.forge.check(&tips.refs.rendered, tips.source.as_deref(), to)
    }

    /// Checks the files, clock and addresses of this machine.
    fn check_machine(&self, role: &AccountRole, now: Timestamp, to: &mut Findings) {
        to.begin("machine");
        let secrets = self.remote.secret_files().chain(self.status_remote.named().secret_files());
        let secrets = secrets.chain(self.source_remote.named().secret_files());
        let secrets = secrets.chain(self.status_post.secret_file()).chain(self.signing.secret_file());
        let secrets = secrets.chain(self.forge.secret_file());
        secrets.for_each(|file| machine::check_secret_file(file, to));
        if self.remote.is_given() {
            machine::check_clock(self.remote.url(), now, to);
        }
        let usage = if *role == AccountRole::Daemon { "run" } else { "sync" };
        if let Some(folder) =
            self.remote.folder(self.repo.as_deref(), usage).filter(|_| *role != AccountRole::Reviewer)
        {
            machine::check_working_copy(&folder, to);
        }
        if let Some((address, file)) = self.webhook.given() {
            machine::check_webhooks(address, file, to);
        }
        if let Some(address) = self.metrics.address() {
            machine::check_metrics(address, to);
        }
    }

    /// Checks the clusters to which a daemon writes objects.
    fn check_clusters(&self, to: &mut Findings) {
        to.begin("cluster");
        let access = self.events.access();
        if let Some(place) = self.events.place() {
            clusters::check_events(place, &access, to);
        }
        for hub in self.hub.hubs(&access, "") {
            clusters::check_hub(&hub, to);
        }
    }

    /// Opens the signing key.
    fn signer(&self, to: &mut Findings) -> Option<Signer> {
        match self.signing.signer(&Cancel::default()) {
            Ok(signer) => signer,
            Err(error) => {
                to.push(finding::Level::Fault, error.message, error.hint);
                None
            }
        }
    }

    /// Checks another repository, from which a role reads the source or to which it writes its statuses.
    fn check_other_remote(
        &self,
        role: AccountRole,
        folder: &Path,
        identity: &Identity,
        to: &mut Findings,
    ) -> Result<(), CommandError> {
        let apart = folder.join("apart");
        let cancel = Cancel::default();
        let (remote, part) = match &role {
            AccountRole::Daemon => (
                self.source_remote.named().open_apart(&self.remote, &apart, &cancel)?,
                AccountRole::SourceReader,
            ),
            AccountRole::Member { cluster, .. } => {
                let cluster = cluster.clone();
                (
                    self.status_remote.named().open_apart(&self.remote, &apart, &cancel)?,
                    AccountRole::Reporter { cluster },
                )
            }
            _ => (None, role),
        };
        if let Some((transport, copy)) = remote {
            self.check_apart(&part, &transport, &copy, identity, to)?;
        }
        Ok(())
    }

    /// Returns the registry that a member follows instead of a repository, if any.
    fn registry_followed(&self) -> Result<Option<Registry>, CommandError> {
        let url = self.remote.url().filter(|_| self.remote.is_registry());
        url.map(|url| self.publish.registry_at(url)).transpose()
    }

    /// Reads the allowed signers. Returns them with their file.
    fn allowed(&self, to: &mut Findings) -> Option<(AllowedSigners, &Path)> {
        let file = self.allowed_signers.as_deref()?;
        match commit_trust::read_allowed_signers(file) {
            Ok(allowed) => Some((allowed, file)),
            Err(why) => {
                to.fault(why, "correct the file");
                None
            }
        }
    }

    /// Returns the full name of the source branch, if the remote has it.
    fn source(&self, listing: &Listing) -> Option<String> {
        let full = |name: &String| {
            if name.starts_with("refs/") { name.clone() } else { format!("refs/heads/{name}") }
        };
        let named = self.source.as_ref().map(full).or_else(|| listing.head.clone())?;
        listing.refs.contains_key(&named).then_some(named)
    }

    /// Lists the refs of a remote.
    fn reach(&self, transport: &GitTransport, to: &mut Findings) -> Option<Listing> {
        match transport.version().and_then(|version| Ok((version, transport.list("")?))) {
            Ok((version, listing)) => {
                to.good(format!(
                    "git {version} reaches `{}`, which has {}",
                    transport.shown(),
                    counted(listing.refs.len(), "ref")
                ));
                Some(listing)
            }
            Err(error) => {
                to.unreachable(&error);
                None
            }
        }
    }

    /// Prepares the probes of a remote, with any commit that it has.
    fn probe<'t>(
        &self,
        transport: &'t GitTransport,
        copy: &WorkingCopy,
        listing: &Listing,
        to: &mut Findings,
    ) -> Option<Probe<'t>> {
        if self.no_push {
            to.not_known("the rights of the account: `--no-push` asks for none");
            return None;
        }
        let here = Repo::open(copy.path()).ok()?;
        let Some(known) = listing.refs.values().find(|id| here.has_commit(**id)) else {
            to.not_known("the rights of the account: the repository has no commit");
            return None;
        };
        match Probe::begin(transport, copy.path(), *known, listing) {
            Ok(probe) => Some(probe),
            Err(error) => {
                to.not_known(format!("the rights of the account: {error}"));
                None
            }
        }
    }

    /// Checks the rights in a repository that berth uses for a single purpose.
    fn check_apart(
        &self,
        role: &AccountRole,
        transport: &GitTransport,
        copy: &WorkingCopy,
        identity: &Identity,
        to: &mut Findings,
    ) -> Result<(), CommandError> {
        let Some(listing) = self.reach(transport, to) else { return Ok(()) };
        let source = self.source(&listing).filter(|_| *role == AccountRole::SourceReader);
        if !fetch(transport, copy, [source.as_ref(), None, None], &listing, to) {
            return Ok(());
        }
        let Some(probe) = self.probe(transport, copy, &listing, to) else { return Ok(()) };
        let tips = Tips { listed: &listing.refs, source, cluster_branch: None, refs: Refs::default() };
        let repo = Repo::open(copy.path())?;
        Ok(Asker { tips: &tips, repo: &repo, identity }.check(role, &probe, to)?)
    }
}

/// Fetches the newest commits of these refs; if the remote has none of them, the commit of any ref.
fn fetch(
    transport: &GitTransport,
    copy: &WorkingCopy,
    names: [Option<&String>; 3],
    listing: &Listing,
    to: &mut Findings,
) -> bool {
    let mut names: Vec<&String> =
        names.into_iter().flatten().filter(|name| listing.refs.contains_key(*name)).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        names.extend(listing.refs.keys().next());
    }
    let wants: Vec<Want> = names.into_iter().map(|name| Want::same(name)).collect();
    if wants.is_empty() {
        return true;
    }
    let fetched = transport.fetch(copy.path(), &wants, Some(1));
    fetched.map_err(|error| to.unreachable(&error)).is_ok()
}
