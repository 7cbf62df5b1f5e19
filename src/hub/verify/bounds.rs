//! Bounds on the trailers that a proof uses as inputs, from the parent commit, the source's history and the expected
//! settings.
//!
//! A commit computed from a false input is proven like any other, since the false input is part of it. So each
//! trailer that is an input is checked against the possibilities that earlier commits leave.

use crate::inputs::gate::{self, Basis};
use crate::inputs::moment::MOST_AHEAD_SECONDS;
use crate::publish::{CurrentState, Trailers};
use berth_base::model::{ClusterStatus, Map, Shared, Timestamp};
use berth_engine::gate::Limits;
use berth_git::shared_refs::trailers::{PROCESSED, RULES};
use berth_git::{CommitId, CommitInfo, GitError, Repo};

/// The folder of access rules.
const RULES_FOLDER: &[u8] = b"access";

/// The limits on removals that a commit must have used, or stricter ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExpectedLimits {
    /// The limits of the commit before it.
    #[default]
    AsBefore,
    Given(Limits),
    Any,
}

/// The expected settings, which a commit itself cannot prove.
#[derive(Clone, Debug)]
pub struct Expected {
    pub clock: Timestamp,
    pub limits: ExpectedLimits,
    /// The name of the fleet. `None` accepts every name.
    pub fleet: Option<String>,
    /// Tips that must contain a source commit. Empty accepts every source commit.
    pub sources: Vec<CommitId>,
}

impl Expected {
    /// Expects nothing beyond the commits themselves.
    pub fn at(clock: Timestamp) -> Expected {
        Expected { clock, limits: ExpectedLimits::default(), fleet: None, sources: Vec::new() }
    }
}

/// The claims of a commit that exceed its bounds, and the first missing commit, without which some are unknown.
#[derive(Debug, Default)]
pub struct Bounds {
    pub findings: Vec<String>,
    pub missing: Option<(&'static str, CommitId)>,
}

/// A commit with its claims.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'a> {
    pub info: &'a CommitInfo,
    pub trailers: &'a Trailers,
    pub facts: &'a Map<String, Shared<ClusterStatus>>,
}

/// Checks a commit's trailers and facts against its parent, its source and the settings.
pub fn check(
    repo: &Repo,
    expected: &Expected,
    claims: Claims<'_>,
    current: Option<&CurrentState>,
) -> Result<Bounds, GitError> {
    let mut check = BoundsCheck { repo, expected, claims, bounds: Bounds::default() };
    check.all(current)?;
    Ok(check.bounds)
}

/// Describes limits looser than the defaults, if no limits are expected: the previous commit may have had the same,
/// so they are not a finding.
pub fn loose_limits(expected: &Expected, trailers: &Trailers) -> Option<String> {
    let (limits, own) = (Basis::of_trailers(trailers)?.limits, Limits::default());
    (expected.limits == ExpectedLimits::AsBefore && limits.is_looser_than(&own)).then(|| {
        format!(
            "it was made with the limits `{limits}`, which are looser than berth's own, `{own}`; say with \
             `--expect-gate` which are meant"
        )
    })
}

/// A check in progress.
struct BoundsCheck<'a> {
    repo: &'a Repo,
    expected: &'a Expected,
    claims: Claims<'a>,
    bounds: Bounds,
}

impl BoundsCheck<'_> {
    fn all(&mut self, current: Option<&CurrentState>) -> Result<(), GitError> {
        self.moment();
        self.labels();
        self.silences();
        let trailers = self.claims.trailers;
        if let (Some(wanted), Some(fleet)) = (&self.expected.fleet, trailers.fleet())
            && wanted != fleet
        {
            self.find(format!("it is a commit of the fleet `{fleet}`, not of `{wanted}`"));
        }
        let Some(source) = trailers.source else { return Ok(()) };
        self.source(source)?;
        self.source_date(source)?;
        let Some(current) = current.filter(|current| current.trailers.digest.is_some()) else {
            return Ok(());
        };
        let Some(basis) = Basis::of_trailers(trailers) else {
            self.find("it was made without asking the gate about removals");
            return Ok(());
        };
        self.limits(&basis.limits, current);
        self.follows(source, &basis, current)
    }

    fn find(&mut self, finding: impl Into<String>) {
        self.bounds.findings.push(finding.into());
    }

    fn moment(&mut self) {
        let Claims { info, trailers, .. } = self.claims;
        let latest = self.expected.clock.as_second().saturating_add(MOST_AHEAD_SECONDS);
        if let Some(now) = trailers.now.filter(|now| now.as_second() > latest) {
            self.find(format!("it was decided for {now}, which is in the future"));
        } else if info.seconds > latest {
            self.find("its date is in the future");
        }
    }

    fn source(&mut self, source: CommitId) -> Result<(), GitError> {
        if self.expected.sources.is_empty() || !self.repo.has_commit(source) {
            return Ok(());
        }
        for tip in &self.expected.sources {
            if self.repo.is_same_or_after(*tip, source)? {
                return Ok(());
            }
        }
        let short = source.short();
        self.find(format!("its source commit {short} is not part of the source branch"));
        Ok(())
    }

    /// A daemon refuses a source commit dated far ahead of its clock, so the decision's moment cannot be long before
    /// that date.
    fn source_date(&mut self, source: CommitId) -> Result<(), GitError> {
        let Some(now) = self.claims.trailers.now.filter(|_| self.repo.has_commit(source)) else {
            return Ok(());
        };
        let seconds = self.repo.commit(source)?.seconds;
        if now.as_second().saturating_add(MOST_AHEAD_SECONDS) < seconds {
            let source = source.short();
            self.find(format!(
                "it was decided for {now}, long before the date of its source commit {source}"
            ));
        }
        Ok(())
    }

    fn limits(&mut self, limits: &Limits, current: &CurrentState) {
        let (wanted, whose) = match &self.expected.limits {
            ExpectedLimits::Any => return,
            ExpectedLimits::Given(wanted) => (Some(wanted.clone()), "expected"),
            ExpectedLimits::AsBefore => {
                (Basis::of_trailers(&current.trailers).map(|basis| basis.limits), "of the commit before it")
            }
        };
        if let Some(wanted) = wanted.filter(|wanted| limits.is_looser_than(wanted)) {
            self.find(format!(
                "it was made with the limits `{limits}`, which are looser than those {whose}, `{wanted}`"
            ));
        }
    }

    /// Members may only report labels that the daemon allows.
    fn labels(&mut self) {
        let Claims { trailers, facts, .. } = self.claims;
        let given = match &self.expected.limits {
            ExpectedLimits::Given(limits) => Some(limits),
            ExpectedLimits::AsBefore | ExpectedLimits::Any => None,
        };
        let own = Basis::of_trailers(trailers).map(|basis| basis.limits);
        let Some(allowed) = own.as_ref().or(given).map(|limits| &limits.labels) else { return };
        for (cluster, fact) in facts {
            if let Some(key) = fact.labels.keys().find(|key| !allowed.allow(key)) {
                self.find(format!(
                    "it has the label `{key}` from a status of `{cluster}`, and members may report \
                     `labels={allowed}`"
                ));
            }
        }
    }

    /// A silence or freeze in the facts must begin before the decision's moment.
    fn silences(&mut self) {
        let Claims { trailers, facts, .. } = self.claims;
        let Some(now) = trailers.now else { return };
        for (cluster, fact) in facts {
            if fact.silent.max(fact.frozen).is_some_and(|moment| moment > now) {
                self.find(format!(
                    "its facts date the silence or freeze of `{cluster}` after {now}, the moment of the decision"
                ));
            }
        }
    }

    /// The source must descend from the parent's source. The processed commit and the rules must lie between the two.
    fn follows(&mut self, source: CommitId, basis: &Basis, current: &CurrentState) -> Result<(), GitError> {
        let Some(before) = current.trailers.source else { return self.begins(source, basis) };
        let ids = [("parent's source", Some(before)), ("source", Some(source))];
        let ids = ids.into_iter().chain([("processed", basis.since), ("rules'", basis.rules)]);
        let mut known = ids.filter_map(|(what, id)| Some((what, id?)));
        if let Some(missing) = known.find(|(_, id)| !self.repo.has_commit(*id)) {
            self.bounds.missing = Some(missing);
            return Ok(());
        }
        if !self.repo.is_same_or_after(source, before)? {
            let (source, before) = (source.short(), before.short());
            self.find(format!(
                "its source commit {source} does not come after {before}, the source of the commit before it"
            ));
            return Ok(());
        }
        let Some(since) = basis.since else {
            self.find("it does not name the source commit that was processed before it");
            return Ok(());
        };
        self.between(PROCESSED, since, before, source)?;
        if since != source {
            return Ok(());
        }
        // For an unchanged source, the rules stay those of the earlier commit.
        let inherited = gate::rules_of(&current.trailers, before);
        if before == source {
            if basis.rules != inherited {
                let named = |id: Option<CommitId>| id.map_or_else(|| "none".to_owned(), |id| id.short());
                let (rules, inherited) = (named(basis.rules), named(inherited));
                self.find(format!(
                    "its `Berth-Rules` name {rules}, but the same source was published before under {inherited}"
                ));
            }
            return Ok(());
        }
        match basis.rules {
            Some(rules) if rules != source => self.between(RULES, rules, before, source)?,
            _ => self.find(
                "its source commit was published under access rules of its own, which no change may give itself",
            ),
        }
        Ok(())
    }

    /// After an import, which has no source, the processed commit and the rules must be on the source branch.
    fn begins(&mut self, source: CommitId, basis: &Basis) -> Result<(), GitError> {
        for (trailer, id) in [(PROCESSED, basis.since), (RULES, basis.rules)] {
            let Some(id) = id else { continue };
            if !self.repo.has_commit(id) {
                self.bounds.missing = Some((if id == source { "source" } else { "processed" }, id));
            } else if !self.repo.first_parents(source).any(|commit| commit.id == id) {
                let (id, source) = (id.short(), source.short());
                self.find(format!(
                    "its `{trailer}` names {id}, which was never the source branch's tip up to {source}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that a daemon can have processed a commit between two others: it was the source branch's tip.
    fn between(
        &mut self,
        trailer: &str,
        id: CommitId,
        before: CommitId,
        source: CommitId,
    ) -> Result<(), GitError> {
        if id == before {
            return Ok(());
        }
        let repo = self.repo;
        let follows = repo.is_same_or_after(id, before)? && repo.is_same_or_after(source, id)?;
        if follows && (is_tip(repo, source, before, id)? || has_same_rules(repo, id, before)?) {
            return Ok(());
        }
        let (id, before, source) = (id.short(), before.short(), source.short());
        self.find(format!(
            "its `{trailer}` names {id}, which was never the source branch's tip between {before} and {source}"
        ));
        Ok(())
    }
}

/// Reports whether a commit is among the first parents between a newer and an older one.
fn is_tip(repo: &Repo, newer: CommitId, older: CommitId, id: CommitId) -> Result<bool, GitError> {
    for commit in repo.first_parents(newer) {
        if commit.id == id {
            return Ok(true);
        }
        // A merge may have left the older commit's line.
        if commit.id == older || !repo.is_same_or_after(commit.id, id)? {
            return Ok(false);
        }
    }
    Ok(false)
}

fn has_same_rules(repo: &Repo, one: CommitId, other: CommitId) -> Result<bool, GitError> {
    let rules = |id: CommitId| -> Result<_, GitError> {
        let root = repo.tree(repo.commit(id)?.tree)?;
        Ok(root.into_iter().find(|entry| entry.name == RULES_FOLDER).map(|entry| entry.kind))
    };
    Ok(rules(one)? == rules(other)?)
}
