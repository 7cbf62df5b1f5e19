//! The metrics of a daemon: passes, and the state of the fleet.
//!
//! Only halted rollouts have labels with their names, and only a limited number, because they need attention.

use std::collections::BTreeSet;
use std::time::Duration;

use super::PassError;
pub use super::counters::HubCounts;
use super::counters::RegistryNumbers;
use super::pass::PassOutcome;
use super::pass_end::PassEnd;
use super::standing::{FleetStanding, MemberStanding};
use super::{status_posts, webhooks};
use crate::next_commit::NextCommitError;
use berth_base::diag::Severity;
use berth_base::model::{Key, Timestamp};
use berth_engine::release::workload_rollout::RolloutState;
use berth_telemetry::meter::{
    ByLabel, Counter, Family, Histogram, Later, Moment, Number, Registry, SECONDS, registry,
};
use berth_telemetry::{Page, ProcessHealth};

/// The least silence after which a daemon counts as stuck: longer than passes of the largest fleets.
const LEAST_SILENCE: Duration = Duration::from_secs(900);

/// Returns the silence after which a daemon counts as stuck, given the polling interval.
fn longest_silence(poll: Duration) -> Duration {
    poll.saturating_mul(3).max(LEAST_SILENCE)
}

/// The number of halted rollouts with a label.
const MOST_NAMED: usize = 50;

/// Counts passes, and shows the state of the fleet after the last one.
#[derive(Debug)]
pub struct PassMeter {
    health: ProcessHealth,
    passes: ByLabel<Counter>,
    failures: ByLabel<Counter>,
    webhooks: ByLabel<Counter>,
    statuses: ByLabel<Counter>,
    seconds: Histogram,
    sequence: Later<Number>,
    last_success: Later<Moment>,
    problems: ByLabel<Number>,
    held_workloads: Later<Number>,
    held_removals: Later<Number>,
    rollouts: ByLabel<Number>,
    halted: Family<[(&'static str, String); 1], Number>,
    waiting: Later<Number>,
    members: ByLabel<Number>,
    leader: Later<Number>,
    settings: Number,
    hub_objects: HubCounts,
    artifacts: RegistryNumbers,
    /// The members after the last pass. They can become late without another pass.
    heard: Vec<MemberStanding>,
    /// The halted rollouts that have labels.
    named: BTreeSet<Key>,
}

impl PassMeter {
    /// Returns the meter and the page that shows its numbers. `poll` is the polling interval.
    pub fn with_page(poll: Duration) -> (PassMeter, Page) {
        let mut registry = registry();
        let meter = PassMeter::new(&mut registry, poll);
        let page = Page::new(registry, meter.health.clone());
        (meter, page)
    }

    fn new(registry: &mut Registry, poll: Duration) -> PassMeter {
        let meter = PassMeter {
            health: ProcessHealth::new("pass", longest_silence(poll)),
            passes: ByLabel::default(),
            failures: ByLabel::default(),
            webhooks: ByLabel::default(),
            statuses: ByLabel::default(),
            seconds: Histogram::new(SECONDS),
            sequence: Later::default(),
            last_success: Later::default(),
            problems: ByLabel::default(),
            held_workloads: Later::default(),
            held_removals: Later::default(),
            rollouts: ByLabel::default(),
            halted: Family::default(),
            waiting: Later::default(),
            members: ByLabel::default(),
            leader: Later::default(),
            settings: Number::default(),
            hub_objects: HubCounts::default(),
            artifacts: RegistryNumbers::default(),
            heard: Vec::new(),
            named: BTreeSet::new(),
        };
        meter.start_at_zero();
        meter.settings.set(1);
        meter.register(registry);
        meter
    }

    /// Shows each known label with 0: monitoring sees no increase if a counter first appears as 1.
    fn start_at_zero(&self) {
        for result in ["published", "unchanged", "failed", "standby"] {
            drop(self.passes.get_or_create(&[("result", result)]));
        }
        for reason in REASONS {
            drop(self.failures.get_or_create(&[("reason", reason)]));
        }
        for result in webhooks::RESULTS {
            drop(self.webhooks.get_or_create(&[("result", result)]));
        }
        for result in status_posts::RESULTS {
            drop(self.statuses.get_or_create(&[("result", result)]));
        }
    }

    fn register(&self, registry: &mut Registry) {
        let run = registry.sub_registry_with_prefix("berth_run");
        run.register("passes", "Passes by result", self.passes.clone());
        run.register("failures", "Failed passes by reason", self.failures.clone());
        run.register("webhooks", "Deliveries of webhooks by result", self.webhooks.clone());
        run.register("statuses", "Statuses that members sent by POST, by result", self.statuses.clone());
        run.register("pass_seconds", "Duration of passes", self.seconds.clone());
        run.register("sequence", "The number of the last publication", self.sequence.clone());
        let help = "Time of the last pass that did its work";
        run.register("last_success_timestamp_seconds", help, self.last_success.clone());
        let help = "Faults of the fleet found by the last pass, by severity";
        run.register("problems", help, self.problems.clone());
        let help = "Workloads with changes that are held for approval";
        run.register("held_workloads", help, self.held_workloads.clone());
        run.register("held_removals", "Removals that are held for approval", self.held_removals.clone());
        let help = "1 if the settings are those of their files, 0 if changed files cannot be used";
        run.register("settings_current", help, self.settings.clone());
        self.hub_objects.register(run);
        self.artifacts.register(run);
        let help = "Workloads that roll out step by step, by state";
        registry.register("berth_rollouts", help, self.rollouts.clone());
        let help = "1 for each workload whose rollout is halted, at most 50 of them";
        registry.register("berth_rollout_halted", help, self.halted.clone());
        let help = "Clusters that wait for their turn, one for each workload";
        registry.register("berth_rollout_waiting_clusters", help, self.waiting.clone());
        let help = "Members that report, by the state of their reports";
        registry.register("berth_members", help, self.members.clone());
        let help = "With a lease: 1 if this daemon publishes, 0 if it stands by";
        registry.register("berth_leader", help, self.leader.clone());
    }

    /// Returns the counter of webhook deliveries.
    pub fn webhooks(&self) -> ByLabel<Counter> {
        self.webhooks.clone()
    }

    /// Returns the counter of statuses sent by POST.
    pub fn statuses(&self) -> ByLabel<Counter> {
        self.statuses.clone()
    }

    /// Returns the counters of writes to a hub cluster.
    pub fn hub_objects(&self) -> HubCounts {
        self.hub_objects.clone()
    }

    /// Returns the metrics of a container registry.
    pub fn artifacts(&self) -> RegistryNumbers {
        self.artifacts.clone()
    }

    /// Records that the loop is running.
    pub fn beat(&self) {
        self.health.beat();
    }

    /// Shows whether this daemon, one of several, publishes.
    pub fn leads(&self, leads: bool) {
        self.leader.known().set(u64::from(leads));
    }

    /// Shows whether the current settings are those in their files.
    pub fn reloaded(&self, well: bool) {
        self.settings.set(u64::from(well));
    }

    /// Counts the end of a pass.
    pub fn count(&mut self, end: PassEnd<'_>, took: Duration, now: Timestamp) {
        let passed = match end {
            PassEnd::Spared => {
                self.health.beat();
                self.show_members(now);
                return;
            }
            PassEnd::StoodBy => {
                self.passes.get_or_create(&[("result", "standby")]).inc();
                self.hide_fleet();
                self.health.ended(true);
                return;
            }
            PassEnd::Done(passed) => passed,
            PassEnd::Failed(error) => return self.failed(reason(error), took),
            PassEnd::Crashed => return self.failed(CRASH, took),
        };
        let result = match passed.outcome {
            PassOutcome::Published { .. } => "published",
            PassOutcome::Unchanged => "unchanged",
        };
        self.ended(result, took);
        self.last_success.known().set(now.as_duration().as_secs_f64());
        for (label, severity) in [("error", Severity::Error), ("warning", Severity::Warning)] {
            let count = passed.diagnostics.iter().filter(|problem| problem.severity == severity).count();
            self.problems.get_or_create(&[("severity", label)]).set(number(count));
        }
        self.held_workloads.known().set(number(passed.held.len()));
        let removals = passed.held.iter().map(|held| held.places.len()).sum();
        self.held_removals.known().set(number(removals));
        self.show_fleet(&passed.standing);
        self.show_members(now);
        self.health.ended(true);
    }

    fn failed(&self, reason: &'static str, took: Duration) {
        self.ended("failed", took);
        self.failures.get_or_create(&[("reason", reason)]).inc();
        self.health.ended(false);
    }

    fn ended(&self, result: &'static str, took: Duration) {
        self.passes.get_or_create(&[("result", result)]).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    fn show_fleet(&mut self, standing: &FleetStanding) {
        if let Some(sequence) = standing.sequence {
            self.sequence.known().set(sequence);
        }
        self.waiting.known().set(number(standing.waiting));
        self.heard.clone_from(&standing.members);
        for state in RolloutState::ALL {
            let count = standing.rollouts.values().filter(|one| **one == state).count();
            self.rollouts.get_or_create(&[("state", state.word())]).set(number(count));
        }
        let halted = standing.rollouts.iter().filter(|(_, state)| **state == RolloutState::Halted);
        let halted: BTreeSet<Key> = halted.map(|(key, _)| key.clone()).take(MOST_NAMED).collect();
        let label = |key: &Key| [("workload", key.to_string())];
        // Labels of still halted rollouts are set without a gap, because a gap would restart their alerts.
        for key in &halted {
            self.halted.get_or_create(&label(key)).set(1);
        }
        for key in self.named.difference(&halted) {
            self.halted.remove(&label(key));
        }
        self.named = halted;
    }

    /// Hides the fleet's metrics: they become outdated here, and the publishing daemon shows them.
    fn hide_fleet(&mut self) {
        self.show_fleet(&FleetStanding::default());
        for numbers in [&self.problems, &self.rollouts, &self.members] {
            numbers.clear();
        }
        self.held_workloads.known().set(0);
        self.held_removals.known().set(0);
    }

    fn show_members(&self, now: Timestamp) {
        let is_late = |member: &&MemberStanding| !member.is_silent && member.late_from <= now;
        let silent = self.heard.iter().filter(|member| member.is_silent).count();
        let late = self.heard.iter().filter(is_late).count();
        let timely = self.heard.len() - silent - late;
        for (state, count) in [("timely", timely), ("late", late), ("silent", silent)] {
            self.members.get_or_create(&[("state", state)]).set(number(count));
        }
    }
}

fn number(count: usize) -> u64 {
    count as u64
}

/// All results of [`reason`], and the reason for a crash, which has no error.
const REASONS: [&str; 9] =
    ["race", "remote", "source", "refused", "git", "publication", "signer", "lease", CRASH];
const CRASH: &str = "crash";

/// Classifies a failure by who has to fix it.
fn reason(error: &PassError) -> &'static str {
    match error {
        _ if error.is_race() => "race",
        _ if error.is_unsigned() => "signer",
        PassError::Remote(_) => "remote",
        PassError::NoSource(_)
        | PassError::NoSuchSource { .. }
        | PassError::OtherBranch { .. }
        | PassError::SourceIsRendered(_) => "source",
        PassError::RenderedRewound { .. } | PassError::Untrusted(_) | PassError::Proof(_) => "refused",
        PassError::NextCommit(error) if error.is_refusal() => "refused",
        PassError::NextCommit(NextCommitError::Git(_)) => "git",
        PassError::NextCommit(_) => "publication",
        PassError::LeaseEnded => "lease",
    }
}

#[cfg(test)]
mod tests {
    use berth_telemetry::meter::encode;

    use super::*;

    fn meter() -> (Registry, PassMeter) {
        let mut registry = registry();
        let meter = PassMeter::new(&mut registry, Duration::from_secs(30));
        (registry, meter)
    }

    #[test]
    fn a_daemon_is_stuck_after_three_pauses_and_not_before_a_quarter_of_an_hour() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(longest_silence(Duration::from_secs(30)), minutes(15));
        assert_eq!(longest_silence(minutes(10)), minutes(30));
    }

    fn page(registry: &Registry) -> String {
        let mut page = String::new();
        encode(&mut page, registry).expect("a page");
        page
    }

    fn named(registry: &Registry) -> usize {
        page(registry).lines().filter(|line| line.starts_with("berth_rollout_halted{")).count()
    }

    #[test]
    fn only_so_many_halted_rollouts_are_named_and_all_are_counted() {
        let (registry, mut meter) = meter();
        assert!(!page(&registry).contains("berth_run_held") && !page(&registry).contains("berth_rollouts{"));
        let key = |n: usize| Key::new("", "Workload", "shop", &format!("web-{n:03}"));
        let standing = |halted: usize| {
            let state = |n| if n < halted { RolloutState::Halted } else { RolloutState::Done };
            let rollouts = (0..100).map(|n| (key(n), state(n))).collect();
            FleetStanding { rollouts, ..FleetStanding::default() }
        };
        for (halted, shown) in [(60, 50), (3, 3), (0, 0)] {
            meter.show_fleet(&standing(halted));
            assert_eq!(named(&registry), shown);
            let total = format!("berth_rollouts{{state=\"halted\"}} {halted}\n");
            assert!(page(&registry).contains(&total), "{}", page(&registry));
        }
        assert!(page(&registry).contains("berth_rollouts{state=\"done\"} 100\n"));
    }

    #[test]
    fn members_become_late_while_nothing_else_happens() {
        let (registry, mut meter) = meter();
        let at = |second| Timestamp::from_second(second).expect("a moment");
        let member = |late_from, is_silent| MemberStanding { late_from: at(late_from), is_silent };
        let members = vec![member(10, true), member(10, false), member(100, false)];
        meter.show_fleet(&FleetStanding { members, ..FleetStanding::default() });
        for (now, timely, late) in [(0, 2, 0), (10, 1, 1), (100, 0, 2)] {
            meter.count(PassEnd::Spared, Duration::ZERO, at(now));
            let page = page(&registry);
            for (state, count) in [("timely", timely), ("late", late), ("silent", 1)] {
                let line = format!("berth_members{{state=\"{state}\"}} {count}\n");
                assert!(page.contains(&line), "{line}{page}");
            }
        }
    }

    #[test]
    fn a_failed_pass_is_counted_by_what_has_to_be_mended() {
        let (registry, mut meter) = meter();
        let failures = [
            PassError::NoSource("main".to_owned()),
            PassError::SourceIsRendered("main".to_owned()),
            berth_git::GitError::Raced { name: "main".to_owned() }.into(),
        ];
        for error in &failures {
            meter.count(PassEnd::Failed(error), Duration::from_millis(200), Timestamp::UNIX_EPOCH);
        }
        meter.count(PassEnd::Crashed, Duration::ZERO, Timestamp::UNIX_EPOCH);
        let page = page(&registry);
        for line in [
            "# TYPE berth_run_passes counter",
            "berth_run_passes_total{result=\"failed\"} 4",
            "berth_run_failures_total{reason=\"source\"} 2",
            "berth_run_failures_total{reason=\"race\"} 1",
            "berth_run_failures_total{reason=\"crash\"} 1",
            "berth_run_pass_seconds_count 4",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
        assert!(!page.contains("berth_run_last_success"), "{page}");
    }
}
