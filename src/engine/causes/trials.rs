//! One search: the trials so far, and the search among a few inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::search::{Seen, Trials};
use super::{Blame, How};

/// The limit on trials.
const MOST_TRIALS: usize = 96;
/// The maximal number of inputs to search when only several together make an effect.
const MOST_JOINT: usize = 8;

/// Inputs that are taken back together.
pub(super) type InputSet = BTreeSet<usize>;
pub(super) type Answers = Arc<[Seen]>;

/// The items behind one effect.
#[derive(Clone, Debug)]
pub(super) struct EffectItems {
    pub(super) items: Vec<usize>,
    pub(super) how: How,
}

impl EffectItems {
    pub(super) fn blame(&self, items: &[InputSet]) -> Blame {
        let changes: InputSet = self.items.iter().flat_map(|item| &items[*item]).copied().collect();
        Blame { changes: changes.into_iter().collect(), how: self.how }
    }
}

/// A search, with its trials so far.
pub(super) struct Inquiry<'t, T> {
    trials: &'t mut T,
    /// Inputs that every trial takes back.
    aside: InputSet,
    known: BTreeMap<InputSet, Answers>,
    n_effects: usize,
}

impl<'t, T: Trials> Inquiry<'t, T> {
    pub(super) fn new(trials: &'t mut T, n_effects: usize) -> Inquiry<'t, T> {
        Inquiry { trials, aside: InputSet::new(), known: BTreeMap::new(), n_effects }
    }

    /// Returns the number of trials so far.
    pub(super) fn asked(&self) -> usize {
        self.known.len()
    }

    /// Makes a trial, unless its result is known. `None` beyond the limit.
    pub(super) fn ask(&mut self, mut taken_back: InputSet) -> Result<Option<Answers>, T::Error> {
        taken_back.extend(&self.aside);
        if taken_back.is_empty() {
            return Ok(Some(vec![Seen::After; self.n_effects].into()));
        }
        if let Some(known) = self.known.get(&taken_back) {
            return Ok(Some(known.clone()));
        }
        if self.known.len() >= MOST_TRIALS {
            return Ok(None);
        }
        let answers: Answers = self.trials.without(&taken_back)?.into();
        self.known.insert(taken_back, answers.clone());
        Ok(Some(answers))
    }

    /// Makes the trial with only the chosen items.
    pub(super) fn only(&mut self, items: &[InputSet], chosen: &[usize]) -> Result<Option<Answers>, T::Error> {
        let chosen: BTreeSet<usize> = chosen.iter().copied().collect();
        let others = items.iter().enumerate().filter(|(item, _)| !chosen.contains(item));
        self.ask(others.flat_map(|(_, inputs)| inputs).copied().collect())
    }

    /// Makes a trial for each item. `None` if the limit is too low.
    pub(super) fn each(
        &mut self,
        n_items: usize,
        mut trial: impl FnMut(&mut Self, usize) -> Result<Option<Answers>, T::Error>,
    ) -> Result<Option<Vec<Answers>>, T::Error> {
        (0..n_items).map(|item| trial(self, item)).collect()
    }

    /// Searches among a few items, while every trial takes back these inputs.
    pub(super) fn within_alone(
        &mut self,
        items: &[InputSet],
        aside: InputSet,
        effects: Vec<usize>,
    ) -> Result<Vec<(usize, EffectItems)>, T::Error> {
        self.aside = aside;
        let found = self.within(items, effects);
        self.aside.clear();
        found
    }

    /// Searches among a few items, while all other inputs stay.
    pub(super) fn within(
        &mut self,
        items: &[InputSet],
        effects: Vec<usize>,
    ) -> Result<Vec<(usize, EffectItems)>, T::Error> {
        let singly = self.each(items.len(), |inquiry, item| inquiry.ask(items[item].clone()))?;
        let mut found = Vec::new();
        let Some(singly) = singly else {
            let all = EffectItems { items: (0..items.len()).collect(), how: How::Untraced };
            return Ok(effects.into_iter().map(|effect| (effect, all.clone())).collect());
        };
        let mut classes: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for effect in effects {
            let needed = (0..items.len()).filter(|item| singly[*item][effect] != Seen::After);
            classes.entry(needed.collect()).or_default().push(effect);
        }
        for (needed, effects) in classes {
            if needed.is_empty() {
                self.needing_none(items, effects, &mut found)?;
            } else {
                self.needing(items, &singly, &needed, effects, &mut found)?;
            }
        }
        Ok(found)
    }

    /// Finds the effects that need some of these items: taking back one such item changes the effect.
    fn needing(
        &mut self,
        items: &[InputSet],
        singly: &[Answers],
        needed: &[usize],
        effects: Vec<usize>,
        found: &mut Vec<(usize, EffectItems)>,
    ) -> Result<(), T::Error> {
        let enough = self.only(items, needed)?;
        let mut joint: Option<Vec<usize>> = None;
        for effect in effects {
            let (mut all, mut is_found) = (needed.to_vec(), true);
            if enough.as_ref().is_some_and(|enough| enough[effect] != Seen::After) {
                joint = self.joint(items, needed, effect, joint)?;
                is_found = joint.is_some();
                all = joint.clone().unwrap_or(all);
            }
            let undoes = |item: &usize| singly[*item][effect] == Seen::Before;
            let how = match all.len() {
                _ if !is_found => How::Untraced,
                1 => How::Alone,
                _ if needed.iter().all(undoes) => How::Together,
                _ => How::Parts,
            };
            found.push((effect, EffectItems { items: all, how }));
        }
        Ok(())
    }

    /// Finds the effects that remain whichever single item is taken back.
    fn needing_none(
        &mut self,
        items: &[InputSet],
        effects: Vec<usize>,
        found: &mut Vec<(usize, EffectItems)>,
    ) -> Result<(), T::Error> {
        let none = self.only(items, &[])?;
        let stays = |effect: &usize| none.as_ref().is_some_and(|none| none[*effect] == Seen::After);
        let (earlier, effects): (Vec<usize>, Vec<usize>) = effects.into_iter().partition(stays);
        found.extend(
            earlier.into_iter().map(|effect| (effect, EffectItems { items: Vec::new(), how: How::Earlier })),
        );
        if effects.is_empty() {
            return Ok(());
        }
        let alone = self.each(items.len(), |inquiry, item| inquiry.only(items, &[item]))?;
        let mut joint: Option<Vec<usize>> = None;
        for effect in effects {
            let enough =
                |item: &usize| alone.as_ref().is_some_and(|alone| alone[*item][effect] == Seen::After);
            let each: Vec<usize> = (0..items.len()).filter(enough).collect();
            let share = if each.is_empty() {
                joint = self.joint(items, &[], effect, joint)?;
                match &joint {
                    Some(joint) => EffectItems { items: joint.clone(), how: How::Together },
                    None => EffectItems { items: (0..items.len()).collect(), how: How::Untraced },
                }
            } else {
                EffectItems { items: each, how: How::Each }
            };
            found.push((effect, share));
        }
        Ok(())
    }

    /// Searches for a few items that make an effect together with the `fixed` ones and need each other. Tries
    /// the `guess` first.
    pub(super) fn joint(
        &mut self,
        items: &[InputSet],
        fixed: &[usize],
        effect: usize,
        guess: Option<Vec<usize>>,
    ) -> Result<Option<Vec<usize>>, T::Error> {
        if let Some(guess) = guess
            && self.makes(items, &guess, effect)? == Some(true)
            && self.least(items, fixed, guess.clone(), effect)? == guess
        {
            return Ok(Some(guess));
        }
        let mut chosen = fixed.to_vec();
        let mut left: Vec<usize> = (0..items.len()).filter(|item| !fixed.contains(item)).collect();
        while chosen.len() < fixed.len() + MOST_JOINT {
            match self.makes(items, &chosen, effect)? {
                None => return Ok(None),
                Some(true) => {
                    chosen.sort_unstable();
                    return Ok(Some(self.least(items, fixed, chosen, effect)?));
                }
                Some(false) => {}
            }
            // The last item of the shortest sufficient prefix is needed.
            let mut between = 0..left.len();
            while between.len() > 1 {
                let middle = between.start + between.len() / 2;
                let tried = [&chosen[..], &left[..middle]].concat();
                match self.makes(items, &tried, effect)? {
                    None => return Ok(None),
                    Some(true) => between.end = middle,
                    Some(false) => between.start = middle,
                }
            }
            left.truncate(between.end);
            let Some(last) = left.pop() else { return Ok(None) };
            chosen.push(last);
        }
        Ok(None)
    }

    /// Drops the chosen items that an effect does not need, except the `fixed` ones: one edit may undo
    /// another.
    fn least(
        &mut self,
        items: &[InputSet],
        fixed: &[usize],
        mut chosen: Vec<usize>,
        effect: usize,
    ) -> Result<Vec<usize>, T::Error> {
        for item in chosen.clone().into_iter().filter(|item| !fixed.contains(item)) {
            let others: Vec<usize> = chosen.iter().filter(|one| **one != item).copied().collect();
            if self.makes(items, &others, effect)? == Some(true) {
                chosen = others;
            }
        }
        Ok(chosen)
    }

    /// Reports whether the chosen items alone make an effect.
    fn makes(
        &mut self,
        items: &[InputSet],
        chosen: &[usize],
        effect: usize,
    ) -> Result<Option<bool>, T::Error> {
        Ok(self.only(items, chosen)?.map(|answers| answers[effect] == Seen::After))
    }
}
