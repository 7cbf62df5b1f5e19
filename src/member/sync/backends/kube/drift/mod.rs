//! Drift: others changed an object although its wanted form is unchanged. Decides whether berth corrects it.
//!
//! Berth does not correct drift that is only reported or ignored for a time, or that somebody else keeps causing.

mod authors;
pub(crate) mod fights;
pub mod mode;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::tracked_object::TrackedObject;
use super::watching::shared::Shared;
use crate::sync::desired::Desired;
use crate::sync::strategy::{Strategy, WriteLimit};
use berth_base::backoff::pace::paced;
use berth_base::model::{ObjectId, Timestamp};
use fights::DriftFights;
use mode::DriftMode;

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
        matches!(mode::of(object, self.mode, Timestamp::now()), Ok(DriftMode::Report))
    }

    /// Decides about the drift of an object by its mode. `None`: it is corrected.
    fn leave(&mut self, object: &Desired, seen: Option<&TrackedObject>) -> Option<DriftVerdict> {
        let (id, now) = (&object.id, Timestamp::now());
        match mode::of(object, self.mode, now) {
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
