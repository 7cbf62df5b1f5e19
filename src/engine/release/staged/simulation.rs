//! Staged rollouts over random histories, in which members are slow, fail, join, leave or change labels, and
//! people approve, stop and resume.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::tests::begun;
use super::*;
use crate::release::stages::plan;
use berth_base::model::Selector;
use berth_base::model::selector::Requirement;

const WAIT: i64 = 3600;

#[derive(Clone, Debug)]
enum Event {
    Pass(i64),
    Report(usize),
    Fail(usize),
    Heal(usize),
    Join(usize),
    Leave(usize),
    Return(usize),
    Vanish(usize),
    Relabel(usize, usize),
    RemovalDone(usize),
    Approve(usize, Side),
    State(RunState),
}

#[derive(Clone, Debug, Default)]
struct Member {
    labels: Labels,
    picked: bool,
    removing: bool,
    has: Version,
    health: Health,
    since: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct SimulatedRun {
    stages: Vec<Stage>,
    members: BTreeMap<String, Member>,
    joined: usize,
    approved: BTreeSet<StageGate>,
    state: RunState,
    progress: RunProgress,
    now: Timestamp,
}

impl Member {
    fn turn<'a>(&self, name: &'a str) -> Turn<'a> {
        Turn {
            cluster: name,
            picked: self.picked,
            has: self.has,
            health: self.health,
            since: self.since,
            removing: self.removing,
            ..Turn::default()
        }
    }
}

fn labels(ring: usize) -> Labels {
    Labels::from([("ring".to_owned(), ring.to_string())])
}

fn stage(index: usize, (at_a_time, before, waits, after): (Amount, bool, bool, bool)) -> Stage {
    let is_of_ring = Requirement::Is("ring".to_owned(), index.to_string());
    let approval = |is_asked: bool| is_asked.then_some(StageTask::Approval);
    Stage {
        name: format!("s{index}"),
        selector: Some(Selector { requirements: vec![is_of_ring] }),
        sorted_by: None,
        at_a_time,
        before: approval(before).into_iter().collect(),
        after: waits.then_some(StageTask::Wait(WAIT)).into_iter().chain(approval(after)).collect(),
    }
}

impl SimulatedRun {
    fn new(stages: Vec<Stage>, rings: &[usize]) -> SimulatedRun {
        let member = |(index, ring): (usize, &usize)| {
            let has = if index % 2 == 0 { Version::Old } else { Version::Nothing };
            let labels = labels(ring % stages.len());
            (format!("m{index:02}"), Member { labels, picked: true, has, ..Member::default() })
        };
        let members: BTreeMap<String, Member> = rings.iter().enumerate().map(member).collect();
        let planned = plan(&stages, members.iter().map(|(name, member)| (name.as_str(), &member.labels)));
        let now = "2026-06-01T12:00:00Z".parse().expect("a moment");
        SimulatedRun {
            progress: begun(planned.expect("each ring is a stage"), now),
            stages,
            joined: members.len(),
            members,
            approved: BTreeSet::new(),
            state: RunState::Run,
            now,
        }
    }

    fn member(&mut self, index: usize) -> Option<(&String, &mut Member)> {
        let count = self.members.len();
        self.members.iter_mut().nth(index.checked_rem(count)?)
    }

    fn happen(&mut self, event: &Event) {
        let (now, rings) = (self.now, self.stages.len());
        let index = match event {
            Event::Report(index)
            | Event::Fail(index)
            | Event::Heal(index)
            | Event::Leave(index)
            | Event::Return(index)
            | Event::Vanish(index)
            | Event::Relabel(index, _)
            | Event::RemovalDone(index) => *index,
            Event::Pass(seconds) => {
                self.now = later(now, *seconds);
                return;
            }
            Event::Join(ring) => {
                let member = Member { labels: labels(ring % rings), picked: true, ..Member::default() };
                self.members.insert(format!("m{:02}", self.joined), member);
                self.joined += 1;
                return;
            }
            Event::Approve(stage, side) => {
                self.approved.insert(StageGate { stage: format!("s{}", stage % rings), side: *side });
                return;
            }
            Event::State(state) => {
                self.state = *state;
                return;
            }
        };
        let Some((name, member)) = self.member(index) else { return };
        let name = name.clone();
        let become_health = |member: &mut Member, health: Health| {
            if member.has != Version::Nothing && member.health != health {
                (member.health, member.since) = (health, Some(now));
            }
        };
        match event {
            Event::Report(_) => match member.health {
                Health::Applying => become_health(member, Health::Progressing),
                Health::Progressing => become_health(member, Health::Succeeded),
                Health::Succeeded | Health::Failed => {}
            },
            Event::Fail(_) => become_health(member, Health::Failed),
            Event::Heal(_) => become_health(member, Health::Succeeded),
            Event::Leave(_) => member.picked = false,
            Event::Return(_) => member.picked = true,
            Event::Relabel(_, ring) => member.labels = labels(ring % rings),
            Event::RemovalDone(_) if member.removing => {
                *member =
                    Member { labels: member.labels.clone(), picked: member.picked, ..Member::default() };
            }
            _ => {}
        }
        if matches!(event, Event::Vanish(_)) || (!member.picked && member.has == Version::Nothing) {
            self.members.remove(&name);
        }
    }

    /// Steps, and returns the standing with the number of newly assigned clusters.
    fn step(&mut self) -> (Standing, usize) {
        let members = self.members.clone();
        let labels_of = |name: &str| members.get(name).map(|member| &member.labels);
        let orders = StagedOrders {
            stages: &self.stages,
            approved: &self.approved,
            state: self.state,
            labels: &labels_of,
        };
        let turns: Vec<Turn<'_>> = members.iter().map(|(name, member)| member.turn(name)).collect();
        let Stepped { step, progress, standing } = {
            let stepped = step(orders, &turns, &self.progress, self.now);
            self.check(&stepped);
            stepped
        };
        for name in &step.give {
            let member = self.members.get_mut(*name).expect("a member");
            (member.has, member.health, member.since) = (Version::New, Health::Applying, None);
        }
        for name in &step.remove {
            self.members.get_mut(*name).expect("a member").removing = true;
        }
        self.progress = progress;
        (standing, step.give.len() + step.remove.len())
    }

    fn check(&self, stepped: &Stepped<'_>) {
        let Stepped { step, progress, standing } = stepped;
        let member = |name: &str| self.members.get(name).filter(|member| member.picked);
        let has_new = |name: &str| member(name).filter(|member| member.has == Version::New);
        let all_finished = progress.stages.iter().all(|stage| stage.finished.is_some());
        if self.state != RunState::Run {
            assert!(step.give.is_empty() && step.remove.is_empty(), "{standing:?}");
        }
        assert!(step.remove.is_empty() || all_finished);
        assert_eq!(progress.finished.is_some(), *standing == Standing::Succeeded);
        if progress.finished.is_some() && self.progress.finished.is_none() {
            let own = progress.stages.iter().flat_map(|stage| &stage.clusters);
            let mut own = own.filter_map(|cluster| member(&cluster.name));
            assert!(own.all(|member| member.has == Version::New && member.health == Health::Succeeded));
        }
        for name in &step.give {
            let of = progress
                .stages
                .iter()
                .position(|stage| stage.clusters.iter().any(|cluster| cluster.name == *name));
            let (before, rest) = progress.stages.split_at(of.expect("a cluster that is told has a stage"));
            assert!(before.iter().all(|stage| stage.finished.is_some()), "{name} goes before its turn");
            let own = &rest[0];
            assert!(own.before.is_empty() || self.is_approved(own, Side::Before), "{name} is not approved");
            let now = own.clusters.iter().filter_map(|cluster| has_new(&cluster.name));
            let under_way = now.clone().filter(|member| member.health != Health::Succeeded).count();
            assert!(under_way + step.give.len() <= own.most_at_a_time(), "{under_way} + {:?}", step.give);
            assert!(!now.clone().any(|member| member.health == Health::Failed), "{name} follows a failure");
        }
        for (index, stage) in progress.stages.iter().enumerate() {
            let was_finished = self.progress.stages.get(index).is_some_and(|stage| stage.finished.is_some());
            if stage.finished.is_some() && !was_finished {
                self.check_finished(stage);
            }
        }
        for (name, member) in self.members.iter().filter(|(_, member)| member.picked) {
            let places = progress.stages.iter().flat_map(|stage| &stage.clusters);
            let places = places.filter(|cluster| cluster.name == *name).count();
            assert!(places == 1 || (places == 0 && all_finished && member.has == Version::New), "{name}");
            let waits = member.has != Version::New && !step.give.contains(name.as_str());
            assert_eq!(step.waits.contains_key(name.as_str()), waits, "{name} {standing:?}");
        }
    }

    fn is_approved(&self, stage: &StageProgress, side: Side) -> bool {
        self.approved.contains(&StageGate { stage: stage.name.clone(), side })
    }

    fn check_finished(&self, stage: &StageProgress) {
        let members = stage.clusters.iter().filter_map(|cluster| self.members.get(&cluster.name));
        for member in members.filter(|member| member.picked) {
            assert!(member.has == Version::New && member.health == Health::Succeeded, "{stage:?}");
            let waits = stage.after.contains(&StageTask::Wait(WAIT));
            let since = member.since.expect("a success has a moment");
            assert!(!waits || later(since, WAIT) <= self.now, "{} goes on too early", stage.name);
        }
        let asks = stage.after.contains(&StageTask::Approval);
        assert!(!asks || self.is_approved(stage, Side::After), "{} is not approved", stage.name);
    }

    /// Lets all clusters be healthy from here on: the rollout must finish.
    fn converge(&mut self) {
        self.state = RunState::Run;
        for stage in self.stages.iter().map(|stage| stage.name.clone()) {
            for side in [Side::Before, Side::After] {
                self.approved.insert(StageGate { stage: stage.clone(), side });
            }
        }
        for _ in 0..4 * (self.members.len() + self.stages.len() + 1) {
            if self.step().0 == Standing::Succeeded {
                assert!(self.members.values().all(|member| member.picked && member.has == Version::New));
                return;
            }
            self.now = later(self.now, WAIT);
            for index in 0..self.members.len() {
                self.happen(&Event::Heal(index));
            }
            let gone: Vec<usize> = (0..self.members.len()).rev().collect();
            gone.into_iter().for_each(|index| self.happen(&Event::RemovalDone(index)));
        }
        panic!("the rollout is stuck: {:#?}", self.progress);
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let at = || 0_usize..12;
    let one = prop_oneof![
        3 => prop::sample::select(vec![1_i64, 60, 400, 1800, 3600]).prop_map(Event::Pass),
        8 => at().prop_map(Event::Report),
        2 => at().prop_map(Event::Fail),
        3 => at().prop_map(Event::Heal),
        1 => at().prop_map(Event::Join),
        2 => at().prop_map(Event::Leave),
        2 => at().prop_map(Event::Return),
        1 => at().prop_map(Event::Vanish),
        1 => (at(), at()).prop_map(|(index, ring)| Event::Relabel(index, ring)),
        2 => at().prop_map(Event::RemovalDone),
        2 => (at(), prop::sample::select(vec![Side::Before, Side::After]))
            .prop_map(|(stage, side)| Event::Approve(stage, side)),
        1 => prop::sample::select(vec![RunState::Stop, RunState::Run, RunState::Run, RunState::Initialize])
            .prop_map(Event::State),
    ];
    prop::collection::vec(one, 0..80)
}

fn paces() -> impl Strategy<Value = (Amount, bool, bool, bool)> {
    let amounts = vec![Amount::Count(1), Amount::Count(2), Amount::Percent(30), Amount::Percent(100)];
    (prop::sample::select(amounts), prop::bool::weighted(0.3), any::<bool>(), prop::bool::weighted(0.3))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_and_pace_hold_in_every_history_and_a_healthy_fleet_gets_everywhere(
        paces in prop::collection::vec(paces(), 1..4),
        rings in prop::collection::vec(0_usize..4, 0..8),
        events in events(),
    ) {
        let stages = paces.into_iter().enumerate().map(|(index, pace)| stage(index, pace)).collect();
        let mut world = SimulatedRun::new(stages, &rings);
        for event in &events {
            world.step();
            world.happen(event);
            // A second step at the same moment assigns no further cluster.
            world.step();
            let once = world.progress.clone();
            let (_, told) = world.step();
            prop_assert_eq!(told, 0);
            prop_assert_eq!(&world.progress, &once);
        }
        world.converge();
    }
}
