//! Drift: an object that others changed although its wanted form is the same, and whether it is corrected.
//!
//! It is not corrected if its drift is only reported or ignored for a time, or if somebody else keeps changing it.

mod authors;
pub mod fights;
pub mod mode;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::survey::{LiveMap, refuse};
use super::{ClusterSession, TrackedObject};
use crate::sync::desired::Desired;
use crate::sync::health::Health;
use crate::sync::plan::{Form, Live, Version};
use crate::sync::strategy::{Strategy, WriteLimit};
use berth_base::model::{ObjectId, Timestamp};
use mode::DriftMode;

/// For how long further changes to an object whose drift was just said ask for no sync.
pub const REPORT_PAUSE: Duration = Duration::from_secs(10);

impl ClusterSession {
    /// Reports whether somebody changed the object after its present form was in place.
    pub fn has_drifted(&self, id: &ObjectId, hash: &Arc<str>) -> bool {
        self.tracked.get(id).is_some_and(|seen| seen.drifted) || self.in_place.get(id) == Some(hash)
    }

    /// Returns the message about an object that is no longer corrected, because somebody else keeps changing it.
    pub fn refuse_fight(&mut self, object: &Desired, hash: &Arc<str>) -> Option<String> {
        let (id, now) = (&object.id, Instant::now());
        if let Some(message) = self.fights.stopped(id, hash, now) {
            return Some(message.to_owned());
        }
        if !self.has_drifted(id, hash) || !self.fights.is_too_often(id, hash, now) {
            return None;
        }
        let live = self.tracked.get(id).and_then(|seen| seen.live.as_ref());
        let changes = live.map(|live| authors::changes(live, &object.object, &self.identity.manager));
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
        self.watching.shared.cache().mute(id, until);
        Some(message)
    }

    /// Reports whether the drift of an object stays on purpose, and says so in `found`.
    pub fn is_left_drifted(&mut self, object: &Desired, hash: &Arc<str>, found: &mut LiveMap) -> bool {
        let id = &object.id;
        // Only an object that berth keeps as wanted can drift.
        if Strategy::of(object).way != WriteLimit::Write || !self.has_drifted(id, hash) {
            return false;
        }
        let now = Timestamp::now();
        match mode::of(object, self.drift, now) {
            Err(message) => refuse(found, id, message),
            Ok(DriftMode::Correct) => return false,
            Ok(DriftMode::IgnoreUntil(until)) => {
                let seconds = until.as_second().saturating_sub(now.as_second()).clamp(1, 1 << 32);
                let until = Instant::now() + Duration::from_secs(seconds.unsigned_abs());
                self.watching.shared.cache().mute(id, until);
                self.ignored.insert(id.clone(), until);
                self.leave_as_is(id, None, found);
            }
            Ok(DriftMode::Report) => return self.only_say(object, found),
        }
        true
    }

    /// Reports who changed which fields. Returns false if only a dry run can tell whether there is a change at all.
    fn only_say(&mut self, object: &Desired, found: &mut LiveMap) -> bool {
        let id = &object.id;
        let live = self.tracked.get(id).and_then(|seen| seen.live.clone());
        let manager = &self.identity.manager;
        let changes = live.map(|live| authors::changes(&live, &object.object, manager));
        let Some(mut changes) = changes else {
            refuse(
                found,
                id,
                "somebody removed it; berth only reports its drift and does not create it again".to_owned(),
            );
            return true;
        };
        // Admission's changes to berth's own request are no drift.
        changes.retain(|change| change.manager.as_ref() != Some(manager));
        if changes.is_empty() {
            return false;
        }
        let words = authors::words(&changes, true);
        self.watching.shared.cache().mute(id, Instant::now() + REPORT_PAUSE);
        self.leave_as_is(id, Some(format!("{words}; berth only reports its drift")), found);
        true
    }

    fn leave_as_is(&mut self, id: &ObjectId, remark: Option<String>, found: &mut LiveMap) {
        let seen = self.tracked.entry(id.clone()).or_insert_with(|| TrackedObject {
            owned: true,
            health: Health::Healthy,
            ..TrackedObject::default()
        });
        (seen.checked, seen.remark) = (true, remark);
        let same = Form::There { version: Version(String::new()), same: true };
        match found.get_mut(id) {
            Some(Live { form: Form::There { same, .. }, .. }) => *same = true,
            Some(_) => {}
            None => {
                found.insert(
                    id.clone(),
                    Live { owned: true, form: same, annotations: BTreeMap::new(), stays: None },
                );
            }
        }
    }
}
