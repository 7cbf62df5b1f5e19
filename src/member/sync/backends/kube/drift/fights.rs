//! Detects fights: somebody else keeps reverting berth's corrections of one object.
//!
//! Moments are arguments. One message reports a fight. It ends after a long pause, or when the wanted form changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use berth_base::backoff::Backoff;
use berth_base::model::ObjectId;

/// The number of corrections of one object, and the time, that together make a fight.
const CORRECTIONS: usize = 5;
const WITHIN: Duration = Duration::from_secs(60);

/// The pauses after a fight: the first one, and the longest.
const PAUSES: Backoff = Backoff::new(Duration::from_secs(600), Duration::from_secs(4 * 3600));

#[derive(Debug, Default)]
pub(crate) struct DriftFights {
    bouts: BTreeMap<ObjectId, CorrectionHistory>,
}

/// The corrections of one object in one form.
#[derive(Debug)]
struct CorrectionHistory {
    hash: Arc<str>,
    corrected: VecDeque<Instant>,
    stopped: Option<Stopped>,
    stops: u32,
}

#[derive(Debug)]
struct Stopped {
    until: Instant,
    message: String,
}

impl DriftFights {
    /// Records a correction of an object.
    pub fn corrected(&mut self, id: &ObjectId, hash: &Arc<str>, now: Instant) {
        let bout = self.bouts.entry(id.clone()).or_insert_with(|| CorrectionHistory::new(hash));
        if bout.hash != *hash {
            *bout = CorrectionHistory::new(hash);
        }
        bout.corrected.push_back(now);
        while bout.corrected.len() > CORRECTIONS {
            bout.corrected.pop_front();
        }
    }

    /// Reports whether the object was corrected too often to correct it again.
    pub(crate) fn is_too_often(&self, id: &ObjectId, hash: &Arc<str>, now: Instant) -> bool {
        let recent = |at: &&Instant| now.saturating_duration_since(**at) < WITHIN;
        self.bout(id, hash).is_some_and(|bout| bout.corrected.iter().filter(recent).count() >= CORRECTIONS)
    }

    /// Stops correcting the object. Returns the moment of the next try.
    pub fn stop(&mut self, id: &ObjectId, hash: &Arc<str>, now: Instant, message: String) -> Option<Instant> {
        let bout = self.bouts.get_mut(id).filter(|bout| bout.hash == *hash)?;
        bout.stops = bout.stops.saturating_add(1);
        bout.corrected.clear();
        let until = now + PAUSES.pause(bout.stops);
        bout.stopped = Some(Stopped { until, message });
        Some(until)
    }

    /// Returns the message about an object that berth does not correct now.
    pub fn stopped(&self, id: &ObjectId, hash: &Arc<str>, now: Instant) -> Option<&str> {
        let stopped = self.bout(id, hash)?.stopped.as_ref()?;
        (now < stopped.until).then_some(stopped.message.as_str())
    }

    /// Returns the ends of all pauses.
    pub fn ends(&self) -> impl Iterator<Item = Instant> + '_ {
        self.bouts.values().filter_map(|bout| bout.stopped.as_ref().map(|stopped| stopped.until))
    }

    pub fn retain(&mut self, is_wanted: impl Fn(&ObjectId) -> bool) {
        self.bouts.retain(|id, _| is_wanted(id));
    }

    fn bout(&self, id: &ObjectId, hash: &Arc<str>) -> Option<&CorrectionHistory> {
        self.bouts.get(id).filter(|bout| bout.hash == *hash)
    }
}

impl CorrectionHistory {
    fn new(hash: &Arc<str>) -> CorrectionHistory {
        CorrectionHistory { hash: hash.clone(), corrected: VecDeque::new(), stopped: None, stops: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fight_is_more_than_five_corrections_within_a_minute_and_ends_with_time_or_new_content() {
        let id = ObjectId::new("", "ConfigMap", "shop", "web");
        let (hash, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let (mut fights, begun) = (DriftFights::default(), Instant::now());
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        for second in 0..4 {
            fights.corrected(&id, &hash, at(second));
        }
        assert!(!fights.is_too_often(&id, &hash, at(4)));
        fights.corrected(&id, &hash, at(4));
        assert!(fights.is_too_often(&id, &hash, at(5)));
        assert!(!fights.is_too_often(&id, &hash, at(63)), "the first four are long ago");
        assert!(!fights.is_too_often(&id, &other, at(5)));
        let until = fights.stop(&id, &hash, at(5), "enough".to_owned()).unwrap();
        assert_eq!(until, at(605));
        assert_eq!(fights.stopped(&id, &hash, at(604)), Some("enough"));
        assert_eq!(fights.stopped(&id, &hash, at(605)), None);
        assert_eq!(fights.stopped(&id, &other, at(6)), None);
        assert_eq!(fights.ends().collect::<Vec<_>>(), [at(605)]);
        // A repeated fight gets a longer pause.
        for _ in 0..5 {
            fights.corrected(&id, &hash, at(610));
        }
        assert_eq!(fights.stop(&id, &hash, at(611), String::new()).unwrap(), at(611 + 1200));
    }
}
