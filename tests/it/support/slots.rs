//! Slots: how many tests use a kind of bed at a time, however many run. A bed takes memory and both processors while it
//! starts, so that ten at once are slower than three, and time out.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// The tests that start control planes of their own.
pub static CONTROL_PLANES: Slots = Slots::new(4);

/// The tests that start a forge.
pub static FORGES: Slots = Slots::new(2);

/// The places of one kind of bed.
#[derive(Debug)]
pub struct Slots {
    most: usize,
    /// The threads that hold a place, once for each bed. A test that has one bed gets others without waiting, or two
    /// tests could wait for each other.
    holders: Mutex<Vec<ThreadId>>,
    freed: Condvar,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: &'static Slots,
    holder: ThreadId,
}

impl Slots {
    const fn new(most: usize) -> Slots {
        Slots { most, holders: Mutex::new(Vec::new()), freed: Condvar::new() }
    }

    /// Takes a place for the test of this thread, and waits until there is one.
    pub fn take(&'static self) -> Slot {
        let holder = std::thread::current().id();
        let is_full = |holders: &mut Vec<ThreadId>| {
            let tests: HashSet<&ThreadId> = holders.iter().collect();
            !tests.contains(&holder) && tests.len() >= self.most
        };
        let holders = self.freed.wait_while(self.holders(), is_full);
        holders.unwrap_or_else(PoisonError::into_inner).push(holder);
        Slot { slots: self, holder }
    }

    fn holders(&self) -> MutexGuard<'_, Vec<ThreadId>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut holders = self.slots.holders();
        if let Some(at) = holders.iter().position(|thread| *thread == self.holder) {
            holders.swap_remove(at);
        }
        self.slots.freed.notify_all();
    }
}

#[test]
fn no_more_tests_hold_a_slot_than_there_are_and_one_test_may_hold_several() {
    static TWO: Slots = Slots::new(2);
    let (first, again) = (TWO.take(), TWO.take());
    let second = std::thread::spawn(|| TWO.take()).join().expect("a second test");
    let third = std::thread::spawn(|| TWO.take());
    assert_eq!(TWO.holders().len(), 3);
    drop((first, again));
    let third = third.join().expect("a third test, once there is a place");
    assert_eq!(TWO.holders().len(), 2);
    drop((second, third));
}
