//! Everything that a page shows, read from a repository.

use std::path::Path;

use super::history::{self, KnownHistory};
use super::{PageOptions, stamp};
use crate::commands::status::{FleetStatus, Selection, gather};
use crate::flags::state::{self, Located};
use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::model::{ClusterStatus, Decision, Fleet, Key, Map, Shared, Timestamp};
use berth_engine::dialects::Detail;
use berth_engine::gate::HeldRecord;
use berth_engine::pipeline::Built;
use berth_engine::report::{ClusterLine, FleetSummary};
use berth_engine::rollouts::{RolloutProgress, Sources};
use berth_engine::state::State;
use berth_git::GitContents;
use berth_git::shared_refs::trailers::HELD;
use berth_hub::inputs::PassInputs;
use berth_hub::publish::CurrentState;
use berth_site::form::Stamp;
use berth_site::inputs::{Held, Links, Members, PlannedChange, Publication, Shown, SourceProgress};
use berth_site::{Site, SiteInputs};

/// The inputs of a page.
pub(super) struct Gathered {
    name: String,
    now: Timestamp,
    current: CurrentState,
    fleet: Option<Shared<Fleet>>,
    members: Option<GatheredMembers>,
    rollouts: Vec<RolloutProgress>,
    held: Vec<Held>,
    source: SourceProgress,
    history: Vec<Publication>,
    links: Option<Links>,
    change: Option<PlannedChange>,
    stamp: Stamp,
}

/// The members' reports, and what they mean.
struct GatheredMembers {
    summary: FleetSummary,
    lines: Vec<ClusterLine>,
    /// The first second at which a member that is behind counts as silent.
    next_silence: Option<i64>,
    statuses: Map<String, Shared<ClusterStatus>>,
}

impl Gathered {
    pub fn read(
        options: &PageOptions,
        located: &Located,
        inputs_digest: String,
        known: &mut KnownHistory,
        ui: &Ui,
    ) -> Result<Gathered, CommandError> {
        let repo = located.repo();
        let Some(newest) = &located.state.current else {
            let error = CommandError::usage("nothing is published yet");
            return Err(error.hint("publish with `berth run --once`"));
        };
        let current = match &options.at {
            Some(name) => past(located, newest, name)?,
            None => newest.clone(),
        };
        let inputs = state::publication_inputs(repo, &current, &current);
        if inputs.is_none() {
            ui.status(
                "note: the source of the state is not in this clone: the page has neither labels nor the reasons of clusters \
                 that are not picked; fetch the branch that people edit",
            );
        }
        let is_past = options.at.is_some();
        let (members, source) =
            if is_past { (None, SourceProgress::default()) } else { members(located, ui)? };
        let built = built(located, &current, inputs.as_ref(), is_past, ui)?;
        let now = if is_past { current.trailers.now.unwrap_or_default() } else { ui.now() };
        let rollouts = RolloutProgress::all(Sources { current: &current.state, built: built.as_ref(), now });
        let until = match &members {
            _ if is_past => None,
            Some(members) => {
                stamp::until(members.next_silence, &members.statuses, built.as_ref(), &rollouts, now)
            }
            None => stamp::until(None, &Map::new(), built.as_ref(), &rollouts, now),
        };
        let stamp = Stamp { inputs: inputs_digest, until: until.map(Timestamp::as_second) };
        Ok(Gathered {
            stamp,
            now,
            name: name(options, located, &current),
            fleet: inputs.as_ref().map(PassInputs::fleet),
            members,
            rollouts,
            held: held(located, &current, is_past),
            source,
            history: history::read(options, located, &current, known, ui)?,
            links: links(options, located)?,
            change: None,
            current,
        })
    }

    /// Makes it the page of a change that is not published yet.
    pub fn with_change(self, change: PlannedChange) -> Gathered {
        Gathered { change: Some(change), ..self }
    }

    /// Returns the names of the placements.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.current.state.decisions.keys().map(Key::full_name)
    }

    pub fn site(&self) -> Site {
        self.with_inputs(Site::of)
    }

    /// Makes something of the inputs of a page.
    pub fn with_inputs<T>(&self, make: impl FnOnce(&SiteInputs<'_>) -> T) -> T {
        let current = &self.current;
        let (commit, source) = (current.commit.to_string(), current.trailers.source.map(|id| id.to_string()));
        let published = Timestamp::from_second(current.seconds).unwrap_or_default();
        let newest = self.history.first();
        let subject = newest.and_then(|publication| publication.subject.clone()).unwrap_or_default();
        make(&SiteInputs {
            name: &self.name,
            shown: Shown {
                sequence: current.trailers.seq,
                commit: &commit,
                source: source.as_deref(),
                subject: &subject,
                moment: current.trailers.now.unwrap_or(published),
                published,
            },
            now: self.now,
            state: &current.state,
            fleet: self.fleet.as_deref(),
            members: self.members.as_ref().map(GatheredMembers::view),
            rollouts: &self.rollouts,
            held: &self.held,
            source: self.source.clone(),
            history: &self.history,
            change: self.change.as_ref(),
            links: self.links.clone(),
            stamp: self.stamp.clone(),
        })
    }
}

impl GatheredMembers {
    fn view(&self) -> Members<'_> {
        Members { summary: &self.summary, lines: &self.lines, statuses: &self.statuses }
    }
}

fn past(located: &Located, newest: &CurrentState, name: &str) -> Result<CurrentState, CommandError> {
    let repo = located.repo();
    let commit = state::find_publication(repo, newest.commit, name)?;
    state::read_publication(repo, &located.state.refs.rendered, commit)
}

/// Reads the members' reports as `berth status` does. A clone of a remote may have none.
fn members(located: &Located, ui: &Ui) -> Result<(Option<GatheredMembers>, SourceProgress), CommandError> {
    let (repo, state) = (located.repo(), &located.state);
    let inputs = gather(repo, state, ui)?;
    let (statuses, now) = (inputs.statuses.clone(), inputs.now);
    // Where berth publishes, it also records the source processed last. Members' reports arrive there and nowhere else.
    let is_clone = state.remote.is_some() || state.processed.is_none();
    let has_none = is_clone && statuses.is_empty();
    let summary = FleetSummary::of(inputs, Detail::Full);
    let status = FleetStatus::of_summary(repo, state, (&summary, now), &Selection::All)?;
    let source = SourceProgress {
        errors: status.processed.as_ref().map_or(0, |processed| processed.errors),
        commit: status.processed.as_ref().map(|processed| processed.source.clone()),
        pending: status.pending.as_ref().map(|pending| (pending.commits, pending.branch.clone())),
    };
    let next_silence = status.next_silence;
    let lines = status.fleet.clusters.into_iter().map(|cluster| cluster.line).collect();
    if has_none {
        ui.status(
            "note: no member's report is in this clone; fetch them: git fetch '+refs/berth/*:refs/berth/*'",
        );
        return Ok((None, source));
    }
    Ok((Some(GatheredMembers { summary, lines, next_silence, statuses }), source))
}

/// Makes the step that follows the state: for the newest publication as a pass would make it now, for an earlier one
/// from its own record. `None` without a source: then rollouts are known from their record alone. `None` also for a fleet
/// without rollouts, because it renders the whole fleet.
fn built(
    located: &Located,
    current: &CurrentState,
    inputs: Option<&PassInputs>,
    is_past: bool,
    ui: &Ui,
) -> Result<Option<Built>, CommandError> {
    let Some(inputs) = inputs.filter(|_| has_rollouts(&current.state)) else { return Ok(None) };
    match is_past {
        true => Ok(Some(inputs.build(&mut GitContents::remembering(located.repo())?)?)),
        false => located.build(ui.now(), ui).map(Some),
    }
}

/// Reports whether a workload goes, or is to go, in steps.
fn has_rollouts(state: &State) -> bool {
    let is_pending = |decision: &Decision| decision.picks.iter().any(|pick| pick.pending);
    !state.releases.is_empty() || state.decisions.values().any(is_pending)
}

/// Returns the held removals: of the source processed last, or of a past publication.
fn held(located: &Located, current: &CurrentState, is_past: bool) -> Vec<Held> {
    let of_trailers = || {
        let held = current.trailers.others.iter().filter(|(name, _)| name == HELD);
        held.map(|(_, line)| line.clone()).collect::<Vec<String>>()
    };
    let lines = match &located.state.processed {
        Some(processed) if !is_past => processed.held.clone(),
        _ => of_trailers(),
    };
    let records = lines.iter().filter_map(|line| line.parse::<HeldRecord>().ok());
    records.map(|record| Held { key: record.key, digest: record.digest }).collect()
}

/// Returns the fleet's name: its own, or that of its repository, which all work trees share.
fn name(options: &PageOptions, located: &Located, current: &CurrentState) -> String {
    let own = current.trailers.fleet().map(str::to_owned);
    let of_path = |path: &Path| {
        let path = path.canonicalize().ok()?;
        let root = if path.ends_with(".git") { path.parent()? } else { &path };
        let name = root.file_name()?.to_string_lossy().into_owned();
        Some(name.strip_suffix(".git").map(str::to_owned).unwrap_or(name))
    };
    let of_address = |address: &str| {
        // A query may contain a token, and so may the part before the host.
        let path = address.split(['?', '#']).next()?.trim_end_matches('/');
        let last = path.rsplit(['/', ':']).next()?.rsplit('@').next()?;
        Some(last.trim_end_matches(".git").to_owned())
    };
    let found = own.or_else(|| match options.address.as_deref() {
        Some(address) => of_address(address),
        None => of_path(located.repo().shared_path()),
    });
    found.filter(|name| !name.is_empty()).unwrap_or_else(|| "fleet".to_owned())
}

/// Returns the addresses of files and commits: as given, or guessed from the remote.
fn links(options: &PageOptions, located: &Located) -> Result<Option<Links>, CommandError> {
    if let Some(given) = &options.links {
        return Ok(Some(given.clone()));
    }
    if let Some(address) = &options.address {
        return Ok(Links::guess(address));
    }
    let repo = located.repo();
    let remote = repo.remote_for(repo.head_branch()?.as_deref())?;
    let address = remote.map(|remote| repo.remote_url(&remote)).transpose()?.flatten();
    Ok(address.and_then(|address| Links::guess(&address)))
}
