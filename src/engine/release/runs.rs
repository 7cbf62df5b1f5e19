//! The staged runs of a fleet: which one drives a workload, the content that it is for, and its stages.
//!
//! One run drives a workload at a time. It is for the release that was made of the files when it began: what is
//! edited later waits for the next run. A newer run takes the place of one that is not finished, so that a fix does
//! not wait for what it mends; a run that was finished or replaced does not begin again.

use std::cmp::Ordering;

use berth_base::model::rollout::Strategy;
use berth_base::model::staged::{Run, RunProgress, RunState, StageProgress};
use berth_base::model::{Decision, Fleet, Key};

use super::stages::{Fault, plan};

/// The run that drives a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Driver<'f> {
    pub run: &'f Run,
    pub content: RunContent,
    /// The run is not in the record yet: its stages are worked out now.
    pub begins: bool,
}

/// The content that a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunContent {
    /// What the files say now, as a release of its own if it differs from the current one.
    Files,
    /// The release with this number, whatever the files say.
    Release(u64),
}

/// Returns the run that drives a workload now. Without one, every cluster keeps what it has, and new content is no
/// release yet. `recorded` is the progress that was recorded last.
pub fn driver<'f>(fleet: &'f Fleet, workload: &Key, recorded: Option<&RunProgress>) -> Option<Driver<'f>> {
    let current = recorded.and_then(|progress| Some((progress, progress.run.as_ref()?)));
    let is_new = |run: &&Run| match recorded {
        Some(progress) => progress.run.as_ref() != Some(&run.key) && !progress.ended.contains(&run.key),
        None => true,
    };
    let own = fleet.runs.values().filter(|run| run.workload == *workload);
    let newest =
        own.filter(|run| run.state == RunState::Run).filter(is_new).max_by(|a, b| by_number(&a.key, &b.key));
    if let Some(run) = newest {
        let content = run.release.map_or(RunContent::Files, RunContent::Release);
        return Some(Driver { run, content, begins: true });
    }
    let (progress, key) = current?;
    let run = fleet.runs.get(key).filter(|run| run.workload == *workload && progress.finished.is_none())?;
    Some(Driver { run, content: RunContent::Release(progress.release), begins: false })
}

/// Orders names as people count: `web-9` comes before `web-10`.
fn by_number(a: &Key, b: &Key) -> Ordering {
    let split = |key: &Key| {
        let name = key.name.trim_end_matches(|c: char| c.is_ascii_digit());
        (name.to_owned(), key.name[name.len()..].parse::<u128>().unwrap_or_default())
    };
    split(a).cmp(&split(b)).then_with(|| a.cmp(b))
}

/// Works out a run's stages over the clusters that its workload is decided for. Without any fault in the error, the
/// run names something that does not exist or does not fit: the loader has reported it.
pub fn plan_run(
    fleet: &Fleet,
    decision: Option<&Decision>,
    run: &Run,
) -> Result<Vec<StageProgress>, Vec<Fault>> {
    let strategy = fleet.stage_strategies.get(&run.strategy).ok_or_else(Vec::new)?;
    let workload = fleet.workloads.get(&run.workload).filter(|one| one.strategy == Strategy::Runs);
    let (_, decision) = workload.zip(decision).ok_or_else(Vec::new)?;
    let clusters = decision.picked().filter_map(|pick| {
        let cluster = fleet.clusters.get(&pick.cluster)?;
        Some((pick.cluster.as_str(), &cluster.labels))
    });
    plan(&strategy.stages, clusters)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use berth_base::diag::Pos;
    use berth_base::model::Timestamp;

    fn run(name: &str, state: RunState) -> Run {
        let at = Pos::file("run.yaml");
        Run {
            key: Key::new("g", "Run", "", name),
            origin: at.clone(),
            workload: Key::new("g", "Workload", "", "web"),
            workload_at: at.clone(),
            strategy: Key::new("g", "Strategy", "", "rings"),
            strategy_at: at,
            release: None,
            state,
        }
    }

    /// The name of the run that drives, and whether it begins.
    fn drives(runs: &[Run], recorded: Option<&RunProgress>) -> Option<(String, RunContent, bool)> {
        let runs = runs.iter().map(|run| (run.key.clone(), run.clone())).collect();
        let fleet = Fleet { runs, ..Fleet::default() };
        let found = driver(&fleet, &Key::new("g", "Workload", "", "web"), recorded)?;
        Some((found.run.key.name.to_string(), found.content, found.begins))
    }

    fn recorded(name: &str, ended: &[&str]) -> RunProgress {
        RunProgress {
            run: Some(run(name, RunState::Run).key),
            release: 3,
            begun: Timestamp::UNIX_EPOCH,
            stages: Vec::new(),
            finished: None,
            ended: ended.iter().map(|name| run(name, RunState::Run).key).collect::<BTreeSet<_>>(),
        }
    }

    fn begins(name: &str) -> Option<(String, RunContent, bool)> {
        Some((name.to_owned(), RunContent::Files, true))
    }

    fn goes_on(name: &str) -> Option<(String, RunContent, bool)> {
        Some((name.to_owned(), RunContent::Release(3), false))
    }

    #[test]
    fn a_run_begins_in_the_state_run_and_the_newest_name_drives() {
        use RunState::{Initialize, Run, Stop};
        assert_eq!(drives(&[], None), None);
        assert_eq!(drives(&[run("a", Initialize), run("b", Stop)], None), None);
        assert_eq!(
            drives(&[run("web-9", Run), run("web-10", Run), run("web-11", Stop)], None),
            begins("web-10")
        );
        let of_release = super::Run { release: Some(7), ..run("a", Run) };
        assert_eq!(drives(&[of_release], None), Some(("a".to_owned(), RunContent::Release(7), true)));
        let of_others = super::Run { workload: Key::new("g", "Workload", "", "api"), ..run("a", Run) };
        assert_eq!(drives(&[of_others], None), None);
    }

    #[test]
    fn a_run_that_has_begun_goes_on_until_it_is_finished_replaced_or_gone() {
        use RunState::{Initialize, Run, Stop};
        let two = recorded("web-2", &["web-1"]);
        let ended = run("web-1", Run);
        for state in [Run, Stop, Initialize] {
            assert_eq!(drives(&[ended.clone(), run("web-2", state)], Some(&two)), goes_on("web-2"));
        }
        assert_eq!(drives(&[run("web-2", Run), run("web-3", Initialize)], Some(&two)), goes_on("web-2"));
        assert_eq!(drives(&[run("web-2", Run), run("web-3", Run)], Some(&two)), begins("web-3"));
        assert_eq!(drives(&[ended.clone()], Some(&two)), None);
        let done = RunProgress { finished: Some(Timestamp::UNIX_EPOCH), ..two };
        assert_eq!(drives(&[ended, run("web-2", Run)], Some(&done)), None);
    }
}
