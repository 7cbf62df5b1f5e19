//! The gate: no place is lost without a permit. It judges a change as a whole, before its first step.
//!
//! Pure. The gate compares the current state with the state in the end: all waves done, all deadlines of the
//! change passed. A place that nobody has in the end is a loss. A loss has one cause, found when the loss
//! first becomes inevitable, and is held or permitted once. The ledger in the state remembers both until the
//! loss is carried out or cancelled, and counts the loss for one more day. A held workload keeps its last
//! good form in every cluster, together with the workloads of its group. A place that another workload takes
//! over is no loss: the old copy stays until the other workload's turn comes.
//!
//! - [`Question`]: the inputs. [`limits`]: the settings. [`losses`]: losses by workload, with their causes,
//!   and those that come later. [`digests`]: the digests that approve losses.
//! - [`limit_checks`]: the checks, with the losses of the [`window`]. [`groups`]: workloads that are judged
//!   together, or published without their held removals.
//! - [`verdict`]: the result, and lines for trailers. [`published_state`]: the state to publish.
//!   [`messages`]: the text for people.

mod digests;
mod groups;
mod limit_checks;
pub mod limits;
pub mod losses;
pub mod messages;
mod published_state;
#[cfg(test)]
mod tests;
mod verdict;
pub mod window;

use std::collections::{BTreeMap, BTreeSet};

use crate::state::ledger::{Cause, CopyOwner, Ledger, Loss, Place, Places, Stage};
use crate::state::{Comparison, FileDifference, PlaceOwners, State};
use berth_base::model::{Digest, Key};

pub use digests::{digest, digest_of_all};
pub use limits::{Limits, Percent, Span};
pub use losses::{Deadline, Outlook};
pub use published_state::without_gate;
pub use verdict::{Approved, Held, HeldRecord, Lookup, Question, Verdict, Why};
pub use window::{PastState, Wanted};

use groups::Apart;
use limit_checks::Reasons;
use losses::{ByWorkload, Due};

/// Judges the change from the current state to the desired one.
pub fn judge<L: Lookup>(question: &Question<'_>, mut lookup: L) -> Result<Verdict, L::Error> {
    let mut lost = losses::find(question, &mut lookup)?;
    let needs_permit =
        |lost: &ByWorkload| lost.values().any(|losses| losses.unpermitted_losses().next().is_some());
    let (mut reasons, mut is_rollback) = (Reasons::new(), false);
    let window = match needs_permit(&lost) || !question.failing.is_empty() {
        true => Some(window::look_up(question, &lost, &mut lookup)?),
        false => None,
    };
    if let Some(window) = &window {
        reasons = limit_checks::reasons(question, &lost, window);
        if may_go_back(question, &lost, &reasons) && lookup.is_rollback()? {
            is_rollback = true;
            let edited = lost.values_mut().flat_map(|losses| losses.0.values_mut());
            for loss in edited.filter(|loss| loss.stage == Stage::Held && loss.cause.is_edit()) {
                (loss.stage, loss.exempt) = (Stage::Permitted, true);
            }
            reasons = limit_checks::reasons(question, &lost, window);
        }
    }
    let mut judged = Judged::of(question, &lost, &reasons);
    // Approved losses count against no limit, so that other losses may be within the limits.
    while let Some(window) = window.as_ref().filter(|_| judged.is_partly_approved()) {
        let reasons = limit_checks::reasons(question, &judged.without_approved(), window);
        if !judged.keep_held(&reasons) {
            break;
        }
    }
    Ok(judged.verdict(is_rollback))
}

/// Reports whether a rollback could release something held. Only new losses by edits may pass as a rollback,
/// and no object that takes others with it: an earlier state cannot tell what a namespace contains by now.
fn may_go_back(question: &Question<'_>, lost: &ByWorkload, reasons: &Reasons) -> bool {
    let held = || reasons.keys().filter_map(|key| lost.get(key)).flat_map(losses::Losses::unpermitted_losses);
    let is_new = |loss: &Loss| (loss.since == question.now || !question.limits_stay) && loss.cause.is_edit();
    let is_risky = |(_, object): &Place| !question.limits.allow_risky && object.takes_more_along();
    question.failing.is_empty()
        && held().any(|(_, loss)| is_new(loss))
        && !held().any(|(place, loss)| loss.cause.is_edit() && is_risky(place))
}

/// A question with its losses and the reasons to hold them, and the groups that these reasons hold or
/// approvals release.
struct Judged<'j> {
    question: &'j Question<'j>,
    lost: &'j ByWorkload,
    reasons: &'j Reasons,
    going_on: Apart<'j>,
    groups: Vec<Group>,
}

/// Workloads that are held or approved together.
struct Group {
    keys: BTreeSet<Key>,
    places: Places,
    digest: Digest,
    /// Matching approvals that were used before.
    spent: Vec<Digest>,
    /// The approvals that this group uses up. `None`: the group is held.
    approved: Option<BTreeSet<Digest>>,
}

impl<'j> Judged<'j> {
    fn of(question: &'j Question<'j>, lost: &'j ByWorkload, reasons: &'j Reasons) -> Judged<'j> {
        let mut going_on = match reasons.is_empty() {
            true => Apart::new(),
            false => groups::find_apart(question, lost),
        };
        going_on.retain(|key, _| reasons.contains_key(*key));
        let goes_on = |key: &Key| reasons.get(key).is_some_and(|why| groups::goes_on(&going_on, key, why));
        let mut keys = groups::of(question, lost, reasons.keys().filter(|key| !goes_on(key)));
        let grouped: BTreeSet<Key> = keys.iter().flatten().cloned().collect();
        let alone = reasons.keys().filter(|key| !grouped.contains(*key));
        keys.extend(alone.map(|key| BTreeSet::from([key.clone()])));
        going_on.retain(|key, _| !grouped.contains(*key));
        let groups = keys.into_iter().map(|keys| Group::of(question, lost, keys)).collect();
        let mut judged = Judged { question, lost, reasons, going_on, groups };
        judged.approve();
        judged
    }

    fn approvals(&self) -> BTreeSet<Digest> {
        let Question { in_files, in_messages, now, .. } = *self.question;
        let kept = self.question.ledger().approvals.iter().filter(|(_, given)| given.until > now);
        let digests = kept.map(|(digest, _)| digest).chain(in_messages.keys()).chain(in_files);
        digests.copied().collect()
    }

    fn approve(&mut self) {
        let (approvals, used) = (self.approvals(), &self.question.ledger().used);
        for group in &mut self.groups {
            group.spent.retain(|digest| approvals.contains(digest));
            group.approved = approvals.contains(&group.digest).then(|| BTreeSet::from([group.digest]));
        }
        // One approval may cover all held groups, or all groups without their own approval.
        let rest = |group: &Group| group.approved.is_none();
        let everything = |_: &Group| true;
        for covers in [&everything as &dyn Fn(&Group) -> bool, &rest] {
            let digests =
                self.groups.iter().filter(|group| covers(group)).map(|group| group.digest).collect();
            let all =
                digest_of_all(&digests).filter(|all| approvals.contains(all) && !used.contains_key(all));
            let Some(all) = all else { continue };
            for group in self.groups.iter_mut().filter(|group| digests.contains(&group.digest)) {
                group.approved.get_or_insert_default().extend([all, group.digest]);
            }
        }
    }

    fn is_partly_approved(&self) -> bool {
        let is_approved = |group: &Group| group.approved.is_some();
        self.groups.iter().any(is_approved) && !self.groups.iter().all(is_approved)
    }

    /// Returns the losses without the approved ones.
    fn without_approved(&self) -> ByWorkload {
        let mut lost = self.lost.clone();
        let approved = self.groups.iter().filter(|group| group.approved.is_some());
        let places: BTreeSet<&Place> = approved.flat_map(|group| &group.places).collect();
        let losses = lost.values_mut().flat_map(|losses| &mut losses.0);
        for (_, loss) in losses.filter(|(place, _)| places.contains(place)) {
            (loss.stage, loss.exempt) = (Stage::Permitted, true);
        }
        lost
    }

    /// Releases the held groups that neither an edit nor a limit holds any more. Returns true if there was
    /// any.
    fn keep_held(&mut self, reasons: &Reasons) -> bool {
        let before = self.groups.len();
        let edited =
            |key: &Key| self.lost.get(key).is_some_and(|losses| losses.held_edits().next().is_some());
        let is_held = |group: &Group| group.keys.iter().any(|key| reasons.contains_key(key) || edited(key));
        self.groups.retain(|group| group.approved.is_some() || is_held(group));
        self.approve();
        self.groups.len() < before
    }

    fn verdict(self, is_rollback: bool) -> Verdict {
        let Judged { question, lost, .. } = self;
        let held: Vec<&Group> = self.groups.iter().filter(|group| group.approved.is_none()).collect();
        let held_keys: BTreeSet<&Key> = held.iter().flat_map(|group| &group.keys).collect();
        let whole = held_keys.iter().copied().filter(|key| !self.going_on.contains_key(*key)).collect();
        let going_on = self.going_on.iter().filter(|(key, _)| held_keys.contains(**key));
        let going_on: Apart<'_> = going_on.map(|(key, kept)| (*key, kept.clone())).collect();
        let [mut state, end] = [question.step, question.desired()]
            .map(|towards| published_state::merge(question, towards, &whole, &going_on));
        let mut losses = self.stages(&held_keys);
        let owners = published_state::hand_over(question, &whole, &losses, &mut state);
        let mut prunable = Places::new();
        for (place, loss) in
            losses.iter_mut().filter(|(place, loss)| loss.due.is_none() && !losses::has(&state, place))
        {
            if loss.exempt && place.1.takes_more_along() {
                prunable.insert(place.clone());
            }
            loss.stage = Stage::Gone { before: question.before.to_owned() };
        }
        let gone = question.ledger().losses.iter().filter(|(place, loss)| {
            !loss.is_pending() && !losses.contains_key(*place) && !losses::has(&state, place)
        });
        let gone: Vec<(Place, Loss)> = gone.map(|(place, loss)| (place.clone(), loss.clone())).collect();
        losses.extend(gone);
        let all = digest_of_all(&held.iter().map(|group| group.digest).collect());
        losses.extend(self.passing(&state));
        let in_group = |group: &&Group| {
            let all = all.unwrap_or(group.digest);
            let shown = group.keys.iter().filter(|key| !self.is_placement_along(key));
            shown.map(|key| self.held(group, key, all)).collect::<Vec<_>>()
        };
        let mut held: Vec<Held> = held.iter().flat_map(in_group).collect();
        held.sort_by(|one, other| one.key.cmp(&other.key));
        let approved: Vec<Approved> = self.groups.iter().flat_map(|group| self.approved(group)).collect();
        let deadlines = lost.iter().filter(|(key, _)| !held_keys.contains(key)).flat_map(|(key, losses)| {
            let due = losses.0.iter().filter(|(_, loss)| loss.since == question.now);
            let due: Due = due.filter_map(|(place, loss)| Some((place.clone(), loss.due?))).collect();
            Deadline::of(key, &due)
        });
        let deadlines = deadlines.collect();
        let used = approved.iter().flat_map(|approved| approved.digests.clone()).collect();
        let ledger = self.ledger(losses, owners, &used, &state);
        self.settle(&mut state, ledger);
        Verdict { held, approved, deadlines, is_rollback, prunable, state, end }
    }

    /// Returns the future losses, each with the stage that this verdict gives it.
    fn stages(&self, held: &BTreeSet<&Key>) -> BTreeMap<Place, Loss> {
        let approved: BTreeSet<&Place> = self
            .groups
            .iter()
            .filter(|group| group.approved.is_some())
            .flat_map(|group| &group.places)
            .collect();
        let mut losses: BTreeMap<Place, Loss> = BTreeMap::new();
        for (key, lost) in self.lost {
            for (place, loss) in &lost.0 {
                let is_held = loss.stage == Stage::Held && held.contains(key);
                let entry = losses.entry(place.clone()).or_insert_with(|| {
                    let exempt = loss.exempt || approved.contains(place);
                    // A held loss counts from its permit on.
                    let before = self.question.ledger().losses.get(place);
                    let was_permitted = before.is_some_and(|before| before.stage == Stage::Permitted);
                    let since = match loss.stage == Stage::Held && !was_permitted {
                        true => self.question.now,
                        false => loss.since,
                    };
                    Loss { stage: Stage::Permitted, exempt, since, ..loss.clone() }
                });
                // If any workload of a shared place is held, the place is held, and that workload owns the
                // loss.
                if is_held {
                    *entry = Loss { owner: key.clone(), exempt: false, ..loss.clone() };
                }
            }
        }
        losses
    }

    /// Returns the losses of temporary copies: this state adds them, and the end lacks them. Objects that
    /// take others with them are judged when they are removed.
    fn passing(&self, state: &State) -> Vec<(Place, Loss)> {
        let Question { states, source, now, .. } = self.question;
        let desired = &self.question.desired().folders;
        let stays =
            |cluster: &str, path: &str| desired.get(cluster).is_some_and(|folder| folder.contains_key(path));
        let comparison = Comparison::of(states.current, state);
        let new = comparison.files().filter(|file| file.before.is_none() && !stays(file.cluster, file.path));
        let mut owners = None;
        let loss = |file: FileDifference<'_>| {
            let owners = owners.get_or_insert_with(|| PlaceOwners::of(state));
            let owner = *owners.holders(file.cluster, file.path).first()?;
            let loss = Loss {
                owner: owner.key.clone(),
                cause: Cause::Edit { commit: (*source).to_owned() },
                since: *now,
                due: None,
                stage: Stage::Permitted,
                exempt: true,
            };
            let place = (file.cluster.to_owned(), owner.object.clone());
            Some((place, loss)).filter(|((_, object), _)| !object.takes_more_along())
        };
        new.filter_map(loss).collect()
    }

    fn ledger(
        &self,
        losses: BTreeMap<Place, Loss>,
        owners: BTreeMap<Place, CopyOwner>,
        used_now: &BTreeSet<Digest>,
        state: &State,
    ) -> Ledger {
        let question = self.question;
        let before = question.ledger();
        let (mut approvals, mut used) = (before.approvals.clone(), before.used.clone());
        approvals.extend(question.in_messages.iter().map(|(digest, given)| (*digest, given.clone())));
        approvals.retain(|digest, _| !used_now.contains(digest) && !used.contains_key(digest));
        used.extend(used_now.iter().map(|digest| (*digest, question.seq)));
        // A held workload keeps its record or its last number.
        let mut last_releases = before.last_releases.clone();
        last_releases.extend(question.step.ledger.last_releases.clone());
        last_releases.retain(|key, _| !state.releases.contains_key(key));
        Ledger { losses, owners, approvals, used, last_releases }
    }

    /// Puts the ledger into the state. Old entries are dropped with the next change; they alone cause no
    /// publication.
    fn settle(&self, state: &mut State, mut ledger: Ledger) {
        let current = self.question.states.current;
        if ledger == *current.ledger && state.holds_the_same_as(current) {
            state.ledger = current.ledger.clone();
            return;
        }
        let since = window::begin(self.question, ledger.losses.values());
        ledger.forget(since, self.question.now);
        state.ledger = ledger.into();
    }

    fn approved(&self, group: &Group) -> Vec<Approved> {
        let Some(digests) = &group.approved else { return Vec::new() };
        let one = |key: &Key| Approved {
            key: key.clone(),
            digests: digests.clone(),
            places: self.lost.get(key).map(losses::Losses::unpermitted).unwrap_or_default(),
        };
        group.keys.iter().map(one).collect()
    }

    /// Reports whether a placement is unchanged only because a workload that follows it is held.
    fn is_placement_along(&self, key: &Key) -> bool {
        let decision = self.question.states.current.decisions.get(key);
        decision.is_some_and(losses::is_consumed) && !self.reasons.contains_key(key)
    }

    fn held(&self, group: &Group, key: &Key, all: Digest) -> Held {
        let Question { states, .. } = self.question;
        let source = states.current.decisions.get(key).map(|decision| decision.source.clone());
        let lost = self.lost.get(key);
        let losses = || lost.into_iter().flat_map(losses::Losses::unpermitted_losses);
        let with = || group.keys.iter().find(|other| self.reasons.contains_key(*other));
        let along = || with().map(|with| Why::Along { with: with.clone() }).into_iter().collect();
        Held {
            source: source.unwrap_or_default(),
            causes: losses().map(|(_, loss)| loss.cause.clone()).collect(),
            places: losses().map(|(place, _)| place.clone()).collect(),
            due: losses().filter_map(|(place, loss)| Some((place.clone(), loss.due?))).collect(),
            digest: group.digest,
            all,
            why: self.reasons.get(key).cloned().unwrap_or_else(along),
            goes_on: self.going_on.contains_key(key),
            is_gone: !states.next.decisions.contains_key(key),
            spent: group.spent.clone(),
            expired: None,
            key: key.clone(),
        }
    }
}

impl Group {
    fn of(question: &Question<'_>, lost: &ByWorkload, keys: BTreeSet<Key>) -> Group {
        let places: Places =
            keys.iter().filter_map(|key| lost.get(key)).flat_map(losses::Losses::unpermitted).collect();
        let failing = keys.iter().filter_map(|key| question.failing.get_key_value(key));
        let failing: Vec<_> = failing
            .map(|(key, failed)| digests::failing_placement(key, failed, question.desired()))
            .collect();
        let (digest, spent) = digests::unused_digest(&places, &failing, &question.ledger().used);
        Group { keys, places, digest, spent, approved: None }
    }
}
