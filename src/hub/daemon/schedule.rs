//! The schedule of passes: a pure step from a state and an event to the next state and an action.
//!
//! Passes run one at a time; any number of events during a pass lead to exactly one more. A failed pass is retried
//! with growing pauses, which never delay a newer change.

use std::time::Duration;

use berth_base::backoff::Backoff;

/// The state of the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    running: bool,
    /// Something changed while a pass was running.
    again: bool,
    stopping: bool,
    failures: u32,
}

/// An event that the loop receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A ref moved, a poll is due, or a deadline passed.
    Wake,
    /// The pass succeeded, even if it found faults in the fleet.
    Done,
    /// The pass failed.
    Failed,
    /// The process was asked to stop.
    Stop,
}

/// An action for the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    StartPass,
    /// Wake again after a pause.
    WakeAfter(Duration),
    Exit,
}

const PAUSES: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(60));

/// Returns the state after an event, and the action that the event requires.
pub fn step(mut state: Schedule, event: Event) -> (Schedule, Option<Action>) {
    let action = match event {
        Event::Stop if state.running => {
            // A pass is never interrupted: it is short, and leaves its refs consistent.
            state.stopping = true;
            None
        }
        Event::Stop => Some(Action::Exit),
        Event::Wake if state.stopping => None,
        Event::Wake if state.running => {
            state.again = true;
            None
        }
        Event::Wake => {
            state.running = true;
            Some(Action::StartPass)
        }
        Event::Done | Event::Failed => {
            state.running = false;
            state.failures = if event == Event::Done { 0 } else { state.failures.saturating_add(1) };
            match (state.stopping, std::mem::take(&mut state.again), event) {
                (true, _, _) => Some(Action::Exit),
                (false, true, _) => {
                    state.running = true;
                    Some(Action::StartPass)
                }
                (false, false, Event::Failed) => Some(Action::WakeAfter(PAUSES.pause(state.failures))),
                (false, false, _) => None,
            }
        }
    };
    (state, action)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(events: &[Event]) -> Vec<Option<Action>> {
        let mut state = Schedule::default();
        let mut actions = Vec::new();
        for event in events {
            let (next, action) = step(state, *event);
            state = next;
            actions.push(action);
        }
        actions
    }

    #[test]
    fn a_burst_during_a_pass_leads_to_one_more_pass() {
        use Event::{Done, Wake};
        let actions = run(&[Wake, Wake, Wake, Wake, Done, Done]);
        assert_eq!(actions, [Some(Action::StartPass), None, None, None, Some(Action::StartPass), None]);
    }

    #[test]
    fn stopping_waits_for_the_pass_and_starts_no_other() {
        use Event::{Done, Stop, Wake};
        assert_eq!(run(&[Wake, Stop, Wake, Done]), [Some(Action::StartPass), None, None, Some(Action::Exit)]);
        assert_eq!(run(&[Stop]), [Some(Action::Exit)]);
    }

    #[test]
    fn failures_pause_longer_and_longer_and_a_success_resets_them() {
        use Event::{Done, Failed, Wake};
        let pauses: Vec<_> = run(&[Wake, Failed, Wake, Failed, Wake, Done, Wake, Failed])
            .into_iter()
            .filter_map(|action| match action {
                Some(Action::WakeAfter(pause)) => Some(pause.as_millis()),
                _ => None,
            })
            .collect();
        assert_eq!(pauses, [500, 1000, 500]);
    }

    #[test]
    fn a_change_during_a_failing_pass_does_not_wait_for_the_pause() {
        use Event::{Failed, Wake};
        assert_eq!(run(&[Wake, Wake, Failed]), [Some(Action::StartPass), None, Some(Action::StartPass)]);
    }
}
