//! Drift: others changed an object although its wanted form is unchanged. Decides whether berth corrects it.
//!
//! Berth does not correct drift that is only reported or ignored for a time, or that somebody else keeps
//! causing. An object's annotation overrides the member's setting. Moments are arguments.
//!
//! In a fight, somebody else keeps reverting berth's corrections of one object. One message reports a fight.
//! It ends after a long pause, or when the wanted form changes.

mod authors;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::session::TrackedObject;
use super::watching::Shared;
use crate::sync::desired::Desired;
use crate::sync::strategy::{Strategy, WriteLimit};
use berth_base::backoff::Backoff;
use berth_base::backoff::pace::paced;
use berth_base::model::annotation::DRIFT;
use berth_base::model::{ObjectId, Timestamp};

/// The time after a report of drift in which further changes of the object start no sync.
pub(crate) const REPORT_PAUSE: Duration = Duration::from_secs(10);

/// The drift of all objects.
#[derive(Debug)]
pub struct Drift {
    /// The cache, in which uncorrected objects are muted.
    shared: Arc<Shared>,
    /// The mode of objects whose annotation sets none.
    mode: DriftMode,
    /// Berth's field manager.
    manager: String,
    /// The last correct form of each object, as far as this process knows.
    in_place: BTreeMap<ObjectId, Arc<str>>,
    /// The end of the time for which an object's drift is ignored.
    ignored: BTreeMap<ObjectId, Instant>,
    fights: DriftFights,
}

/// The treatment of an object that may have drifted.
#[derive(Debug)]
pub enum DriftVerdict {
    /// The object is brought to its wanted form.
    Correct,
    /// The object is not changed, for this reason.
    Refuse(String),
    /// Berth leaves the drift on purpose, with a remark for the report.
    Leave(Option<String>),
}

impl Drift {
    pub fn new(mode: DriftMode, manager: &str, shared: Arc<Shared>) -> Drift {
        let (manager, fights) = (manager.to_owned(), DriftFights::default());
        Drift { shared, mode, manager, in_place: BTreeMap::new(), ignored: BTreeMap::new(), fights }
    }

    /// Begins a sync, which determines again which drift is ignored.
    pub fn begin(&mut self) {
        self.ignored.clear();
    }

    /// Records that an object has this form.
    pub(crate) fn in_place(&mut self, id: &ObjectId, hash: &Arc<str>) {
        self.in_place.insert(id.clone(), hash.clone());
    }

    /// Records that berth wrote an object. `seen` is its state before the write.
    pub fn written(&mut self, id: &ObjectId, hash: &Arc<str>, seen: Option<&TrackedObject>) {
        if self.has_drifted(id, hash, seen) {
            self.fights.corrected(id, hash, Instant::now());
        }
        self.in_place(id, hash);
    }

    /// Forgets the forms of objects whose wanted form changed.
    pub(crate) fn forget_forms(&mut self, is_another: impl Fn(&ObjectId) -> bool) {
        self.in_place.retain(|id, _| !is_another(id));
    }

    /// Forgets objects that are no longer wanted.
    pub fn retain(&mut self, is_wanted: impl Fn(&ObjectId) -> bool) {
        self.in_place.retain(|id, _| is_wanted(id));
        self.fights.retain(is_wanted);
    }

    /// Returns the moments at which objects' drift must be looked at again.
    pub fn ends(&self) -> impl Iterator<Item = Instant> + '_ {
        self.fights.ends().chain(self.ignored.values().copied())
    }

    /// Reports whether somebody changed the object after it had its present form.
    fn has_drifted(&self, id: &ObjectId, hash: &Arc<str>, seen: Option<&TrackedObject>) -> bool {
        seen.is_some_and(|seen| seen.drifted) || self.in_place.get(id) == Some(hash)
    }

    /// Decides about an object that may differ from its wanted form. Mutes an object that berth does not correct.
    pub fn judge(&mut self, object: &Desired, hash: &Arc<str>, seen: Option<&TrackedObject>) -> DriftVerdict {
        // Drift is left on purpose only in objects that berth writes.
        if Strategy::of(object).way == WriteLimit::Write
            && self.has_drifted(&object.id, hash, seen)
            && let Some(verdict) = self.leave(object, seen)
        {
            return verdict;
        }
        self.refuse_fight(object, hash, seen).map_or(DriftVerdict::Correct, DriftVerdict::Refuse)
    }

    /// Reports whether the drift of an object is only reported.
    pub(crate) fn is_only_reported(&self, object: &Desired) -> bool {
        matches!(of(object, self.mode, Timestamp::now()), Ok(DriftMode::Report))
    }

    /// Decides about the drift of an object by its mode. `None`: it is corrected.
    fn leave(&mut self, object: &Desired, seen: Option<&TrackedObject>) -> Option<DriftVerdict> {
        let (id, now) = (&object.id, Timestamp::now());
        match of(object, self.mode, now) {
            Err(message) => Some(DriftVerdict::Refuse(message)),
            Ok(DriftMode::Correct) => None,
            Ok(DriftMode::IgnoreUntil(until)) => {
                let seconds = until.as_second().saturating_sub(now.as_second()).clamp(1, 1 << 32);
                let until = Instant::now() + Duration::from_secs(seconds.unsigned_abs());
                self.shared.cache().mute(id, until);
                self.ignored.insert(id.clone(), until);
                Some(DriftVerdict::Leave(None))
            }
            Ok(DriftMode::Report) => self.report(object, seen),
        }
    }

    /// Reports who changed which fields. Returns `None` if only a dry run can show whether anything changed.
    fn report(&self, object: &Desired, seen: Option<&TrackedObject>) -> Option<DriftVerdict> {
        let live = seen.and_then(|seen| seen.live.as_ref());
        let changes = live.map(|live| authors::changes(live, &object.object(), &self.manager));
        let Some(mut changes) = changes else {
            let message = "removed by others; its drift mode only reports, so berth does not recreate it";
            return Some(DriftVerdict::Refuse(message.to_owned()));
        };
        // Changes that admission made to berth's own request are no drift.
        changes.retain(|change| change.manager.as_ref() != Some(&self.manager));
        if changes.is_empty() {
            return None;
        }
        let words = authors::words(&changes, true);
        self.shared.cache().mute(&object.id, Instant::now() + paced(REPORT_PAUSE));
        Some(DriftVerdict::Leave(Some(format!("{words}; berth only reports its drift"))))
    }

    /// Returns the message about an object that berth stops correcting because somebody else keeps changing it.
    fn refuse_fight(
        &mut self,
        object: &Desired,
        hash: &Arc<str>,
        seen: Option<&TrackedObject>,
    ) -> Option<String> {
        let (id, now) = (&object.id, Instant::now());
        if let Some(message) = self.fights.stopped(id, hash, now) {
            return Some(message.to_owned());
        }
        if !self.has_drifted(id, hash, seen) || !self.fights.is_too_often(id, hash, now) {
            return None;
        }
        let live = seen.and_then(|seen| seen.live.as_ref());
        let changes = live.map(|live| authors::changes(live, &object.object(), &self.manager));
        let what = match changes {
            Some(changes) if !changes.is_empty() => authors::words(&changes, false),
            Some(_) => "somebody changed it".to_owned(),
            None => "somebody removed it".to_owned(),
        };
        let message = format!(
            "{what} again after each correction; berth leaves it unchanged for some time, or until the \
             folder changes"
        );
        let until = self.fights.stop(id, hash, now, message.clone())?;
        self.shared.cache().mute(id, until);
        Some(message)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriftMode {
    #[default]
    Correct,
    /// Drift is only reported, with its authors.
    Report,
    /// Until this moment, drift is neither corrected nor reported.
    IgnoreUntil(Timestamp),
}

/// Returns the mode of an object at a moment.
pub fn of(desired: &Desired, otherwise: DriftMode, now: Timestamp) -> Result<DriftMode, String> {
    let Some(text) = desired.annotation(DRIFT) else { return Ok(otherwise) };
    read(text.trim(), otherwise, now).ok_or_else(|| {
        format!(
            "its annotation `{DRIFT}` is none of `correct`, `report` and `ignore-until=` with a time as in 2026-01-31T12:00:00Z"
        )
    })
}

fn read(text: &str, otherwise: DriftMode, now: Timestamp) -> Option<DriftMode> {
    match text {
        "correct" => Some(DriftMode::Correct),
        "report" => Some(DriftMode::Report),
        text => {
            let until: Timestamp = text.strip_prefix("ignore-until=")?.trim().parse().ok()?;
            // An end in the past has no effect.
            Some(if now < until { DriftMode::IgnoreUntil(until) } else { otherwise })
        }
    }
}

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
    fn is_too_often(&self, id: &ObjectId, hash: &Arc<str>, now: Instant) -> bool {
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
    fn a_mode_is_read_and_ends_with_its_time() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-01-31T12:00:00Z");
        let read = |text: &str| read(text, DriftMode::Report, now);
        assert_eq!(read("correct"), Some(DriftMode::Correct));
        assert_eq!(read("report"), Some(DriftMode::Report));
        let later = "2026-01-31T12:00:01Z";
        assert_eq!(read(&format!("ignore-until={later}")), Some(DriftMode::IgnoreUntil(at(later))));
        assert_eq!(read("ignore-until=2026-01-31T12:00:00Z"), Some(DriftMode::Report));
        for bad in ["", "ignore", "ignore-until=", "ignore-until=tomorrow", "Report"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

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
