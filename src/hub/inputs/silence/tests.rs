//! Silences over any course of events: members that stop and come back, a Git server that is away, daemons that
//! start anew.

use std::collections::BTreeMap;

use super::*;
use berth_base::model::Cluster;
use berth_engine::gate::Limits;
use proptest::prelude::*;

/// Seconds between two fetches.
const STEP: i64 = 60;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

/// An event before a step.
#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    /// A member stops, or comes back.
    Toggle(usize),
    /// The Git server goes away, or comes back.
    Outage,
    /// Another daemon takes over.
    Restart,
}

struct Member {
    name: String,
    interval: i64,
    is_alive: bool,
    /// How far its clock is ahead.
    ahead: i64,
    status: ClusterStatus,
    /// When its last report arrived, in seconds.
    arrived: i64,
    /// The seconds since in which the daemon could fetch.
    waited: i64,
}

struct World {
    fleet: Fleet,
    members: Vec<Member>,
    /// The silences in the current state.
    facts: BTreeMap<String, Silence>,
    hearing: Hearing,
    now: i64,
    is_up: bool,
    then: Option<Timestamp>,
}

impl World {
    fn of(intervals: &[i64]) -> World {
        let members = intervals.iter().enumerate().map(|(n, interval)| Member {
            name: format!("c{n:02}"),
            interval: *interval,
            is_alive: true,
            ahead: 0,
            status: ClusterStatus::default(),
            arrived: 0,
            waited: 0,
        });
        let members: Vec<Member> = members.collect();
        let clusters = members.iter().map(|member| {
            let name = member.name.clone();
            (name.clone(), Cluster { name: name.into(), ..Cluster::default() }.into())
        });
        World {
            fleet: Fleet { clusters: clusters.collect(), ..Fleet::default() },
            members,
            facts: BTreeMap::new(),
            hearing: Hearing::default(),
            now: 0,
            is_up: true,
            then: None,
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Nothing => {}
            Event::Toggle(n) => {
                let n = n % self.members.len();
                self.members[n].is_alive = !self.members[n].is_alive;
            }
            Event::Outage => self.is_up = !self.is_up,
            Event::Restart => {
                self.hearing = Hearing::default();
                self.members.iter_mut().for_each(|member| member.waited = -STEP);
            }
        }
    }

    /// Lets a minute pass, and judges as a pass of the daemon would.
    fn step(&mut self) -> Silences {
        self.now += STEP;
        if !self.is_up {
            return Silences::default();
        }
        for member in &mut self.members {
            member.waited += STEP;
            if !member.is_alive {
                continue;
            }
            if member.status.reported.is_none() || self.now - member.arrived >= member.interval {
                (member.arrived, member.waited) = (self.now, 0);
                member.status.cluster.clone_from(&member.name);
                member.status.reported = Some(at(self.now + member.ahead));
                member.status.next_due = Some(at(self.now + member.ahead + member.interval));
            }
        }
        let mut statuses = self.statuses();
        self.hearing.fetched(at(self.now));
        assert!(self.hearing.note(&statuses, at(self.now), Limits::SILENT));
        let silences = self.judge(&mut statuses);
        let mut again = statuses.clone();
        self.judge(&mut again);
        assert_eq!(again, statuses, "a verdict stands");
        if silences.outage.is_some() {
            self.hearing.begin(at(self.now));
        }
        self.check(&statuses, &silences);
        self.facts =
            statuses.into_iter().filter_map(|(name, status)| Some((name, status.silence()?))).collect();
        self.then = Some(at(self.now));
        silences
    }

    fn statuses(&self) -> Map<String, Shared<ClusterStatus>> {
        let with_silence = |member: &Member| {
            let silence = self.facts.get(&member.name);
            let (silent, frozen) = (silence.map(|one| one.since), silence.and_then(|one| one.frozen));
            (member.name.clone(), ClusterStatus { silent, frozen, ..member.status.clone() }.into())
        };
        self.members.iter().map(with_silence).collect()
    }

    fn judge(&self, statuses: &mut Map<String, Shared<ClusterStatus>>) -> Silences {
        Silences::judge(&self.hearing, &self.fleet, statuses, self.then, at(self.now))
    }

    fn check(&self, statuses: &Map<String, Shared<ClusterStatus>>, silences: &Silences) {
        for member in &self.members {
            let (before, now) = (self.facts.get(&member.name), statuses[&member.name].silence());
            let grace = 3 * member.interval;
            let Some(silence) = now else { continue };
            assert!(silence.since <= at(self.now));
            match before {
                Some(before) => {
                    assert_eq!(before.since, silence.since, "a silence keeps its beginning");
                    let thaws = before.frozen.is_some() && silence.frozen.is_none();
                    assert!(!thaws || member.waited >= grace, "a full grace first");
                }
                None => {
                    assert_eq!(silences.outage, None);
                    assert!(member.waited >= grace, "{} too early", member.name);
                }
            }
            let is_heard = self.now - member.arrived < member.interval;
            let is_free = silence.frozen.is_none();
            assert!(!(is_heard && is_free), "nothing moves away from a member that reports");
            let age = self.now - (silence.since.as_second() - at(0).as_second());
            assert!(!(silences.outage.is_some() && is_free), "nor in an outage, {age}");
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        60 => Just(Event::Nothing),
        8 => (0_usize..12).prop_map(Event::Toggle),
        2 => Just(Event::Outage),
        1 => Just(Event::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_course_of_events_makes_a_silence_that_is_none(
        intervals in prop::collection::vec(prop::sample::select(vec![120_i64, 300, 600]), 1..12),
        events in prop::collection::vec(event(), 0..300),
    ) {
        let mut world = World::of(&intervals);
        for event in events {
            world.happens(event);
            world.step();
        }
        // With everybody back for long enough, nobody is silent.
        world.is_up = true;
        world.members.iter_mut().for_each(|member| member.is_alive = true);
        (0..70).for_each(|_| { world.step(); });
        prop_assert!(world.facts.is_empty(), "{:?}", world.facts);
        // One that is gone alone is silent after its grace, to the minute.
        world.members[0].is_alive = false;
        let grace = 3 * world.members[0].interval / STEP;
        let left = (world.members[0].arrived - world.now) / STEP + grace;
        (1..left).for_each(|_| { world.step(); });
        prop_assert!(world.facts.is_empty());
        world.step();
        prop_assert_eq!(world.facts.len(), 1);
        prop_assert_eq!(world.facts["c00"].frozen, None);
    }

    #[test]
    fn members_that_are_cut_off_together_are_all_late_before_one_is_silent(
        phases in prop::collection::vec(0_i64..10, 3..12),
    ) {
        let mut world = World::of(&vec![600; phases.len()]);
        // Each begins in its own minute.
        world.members.iter_mut().for_each(|member| member.is_alive = false);
        for minute in 0..10 {
            for (member, phase) in world.members.iter_mut().zip(&phases) {
                member.is_alive |= *phase == minute;
            }
            world.step();
        }
        (0..40).for_each(|_| { world.step(); });
        world.members.iter_mut().for_each(|member| member.is_alive = false);
        let outages = (0..200).filter(|_| world.step().outage.is_some()).count();
        prop_assert!(outages > 150);
        prop_assert!(world.facts.is_empty(), "{:?}", world.facts);
    }
}

#[test]
fn the_next_moment_is_that_of_the_first_silence() {
    let mut world = World::of(&[600, 300]);
    world.step();
    let next = world.step().next;
    assert_eq!(next, Some(at(60 + 900)));
    assert_eq!(Hearing::default().since, None);
}

#[test]
fn clusters_that_are_gone_for_good_do_not_freeze_the_fleet() {
    let mut world = World::of(&[600; 10]);
    world.step();
    // One after the other, so that none of them makes an outage.
    for n in 0..5 {
        world.members[n].is_alive = false;
        (0..2 * 1_440).for_each(|_| {
            world.step();
        });
    }
    assert_eq!(world.facts.len(), 5);
    world.members[5].is_alive = false;
    (0..40).for_each(|_| {
        world.step();
    });
    assert_eq!(world.facts.len(), 6);
    assert!(world.facts.values().all(|silence| silence.frozen.is_none()));
}

#[test]
fn a_clock_that_is_wrong_makes_nobody_silent() {
    for wrong in [-7_200, 7_200] {
        let mut world = World::of(&[600]);
        world.members[0].ahead = wrong;
        (0..100).for_each(|_| {
            world.step();
        });
        assert!(world.facts.is_empty(), "{wrong}");
    }
}
