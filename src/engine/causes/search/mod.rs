//! The search for the inputs behind each effect: the step is computed again with some inputs taken back.
//!
//! A few inputs are taken back one at a time. Of many inputs, the documents come first. Each document has a
//! number. For each binary digit, one trial takes back all documents that have a one there. The digits at
//! which this changes an effect spell the number of its document, which another numbering or a separate trial
//! confirms. Then the fields of all such documents are separated side by side. The number of trials is
//! limited; effects that are not traced within the limit are reported as untraced.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::trials::{Answers, EffectItems, InputSet, Inquiry};
use super::{Blame, How};

/// The maximal number of inputs to take back one at a time.
const MOST_SINGLY: usize = 24;
/// The maximal number of fields of one document to separate. The rest count as one.
const MOST_FIELDS: usize = 16;

/// The form of one effect in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The same as with all inputs.
    After,
    /// The same as before the step.
    Before,
    /// Something else.
    Between,
}

/// A step that can be computed again.
pub trait Trials {
    type Error;

    /// Computes the step with these inputs taken back. Returns one answer for each effect.
    fn without(&mut self, taken_back: &BTreeSet<usize>) -> Result<Vec<Seen>, Self::Error>;
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// One for each effect.
    pub blames: Vec<Blame>,
    pub asked: usize,
}

/// Searches for the inputs behind each of `n_effects` effects. `documents` contain the numbers of all inputs,
/// each once.
pub fn trace<T: Trials>(
    trials: &mut T,
    documents: &[Vec<usize>],
    n_effects: usize,
) -> Result<Traced, T::Error> {
    let mut inquiry = Inquiry::new(trials, n_effects);
    let inputs: Vec<InputSet> = documents.iter().flatten().map(|input| InputSet::from([*input])).collect();
    let effects: Vec<usize> = (0..n_effects).collect();
    let mut blames = vec![Blame { changes: Vec::new(), how: How::Untraced }; n_effects];
    if n_effects == 0 || inputs.is_empty() {
        blames.iter_mut().for_each(|blame| blame.how = How::Earlier);
    } else if inputs.len() <= MOST_SINGLY {
        for (effect, share) in inquiry.within(&inputs, effects)? {
            blames[effect] = share.blame(&inputs);
        }
    } else {
        inquiry.in_documents(documents, effects, &mut blames)?;
    }
    // Several fields that were not separated.
    let several = |blame: &&mut Blame| blame.how == How::Alone && blame.changes.len() > 1;
    blames.iter_mut().filter(several).for_each(|blame| blame.how = How::Untraced);
    Ok(Traced { blames, asked: inquiry.asked() })
}

impl<T: Trials> Inquiry<'_, T> {
    /// Searches among many inputs: first for the documents, then within them.
    fn in_documents(
        &mut self,
        documents: &[Vec<usize>],
        effects: Vec<usize>,
        blames: &mut [Blame],
    ) -> Result<(), T::Error> {
        let items: Vec<InputSet> = documents.iter().map(|inputs| inputs.iter().copied().collect()).collect();
        let shares = match items.len() {
            0..=MOST_SINGLY => self.within(&items, effects)?,
            _ => self.by_number(&items, effects)?,
        };
        let mut of_one = Vec::new();
        let mut of_several: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for (effect, share) in shares {
            blames[effect] = share.blame(&items);
            match (share.how, share.items.as_slice()) {
                (How::Earlier | How::Untraced, _) => {}
                (_, [one]) => of_one.push((effect, *one)),
                (_, several) => of_several.entry(several.to_vec()).or_default().push(effect),
            }
        }
        self.among_fields(documents, of_one, blames)?;
        for (several, effects) in of_several {
            let inputs = several.iter().flat_map(|document| &documents[*document]);
            let fields: Vec<InputSet> = inputs.map(|input| InputSet::from([*input])).collect();
            if fields.len() > MOST_SINGLY {
                effects.into_iter().for_each(|effect| blames[effect].how = How::Untraced);
                continue;
            }
            // The trials of these documents took back all others.
            let is_other = |document: &usize| !several.contains(document);
            let others = (0..documents.len()).filter(is_other).flat_map(|document| &documents[document]);
            for (effect, share) in self.within_alone(&fields, others.copied().collect(), effects)? {
                refine(&mut blames[effect], share.blame(&fields), several.len());
            }
        }
        Ok(())
    }

    /// Separates the fields of documents, for effects of one document each: one trial takes back the first
    /// field of all documents, the next trial the second.
    fn among_fields(
        &mut self,
        documents: &[Vec<usize>],
        effects: Vec<(usize, usize)>,
        blames: &mut [Blame],
    ) -> Result<(), T::Error> {
        let (effects, concerned): (Vec<usize>, BTreeSet<usize>) =
            effects.into_iter().filter(|(_, document)| documents[*document].len() > 1).unzip();
        let n_fields = concerned.iter().map(|document| documents[*document].len()).max().unwrap_or(0);
        let mut fields = vec![InputSet::new(); n_fields.min(MOST_FIELDS)];
        for document in concerned {
            for (place, input) in documents[document].iter().enumerate() {
                fields[place.min(MOST_FIELDS - 1)].insert(*input);
            }
        }
        if effects.is_empty() {
            return Ok(());
        }
        for (effect, share) in self.within(&fields, effects)? {
            let mut blame = share.blame(&fields);
            blame.changes.retain(|input| blames[effect].changes.contains(input));
            refine(&mut blames[effect], blame, 1);
        }
        Ok(())
    }

    /// Searches among many documents by their numbers.
    fn by_number(
        &mut self,
        items: &[InputSet],
        effects: Vec<usize>,
    ) -> Result<Vec<(usize, EffectItems)>, T::Error> {
        let mut shares = Vec::new();
        let mut unclear = Vec::new();
        let in_order: Vec<usize> = (0..items.len()).collect();
        let spelt = self.spell(items, &in_order, &effects, Sides::One)?;
        let met: Vec<usize> = spelt.values().copied().collect::<BTreeSet<usize>>().into_iter().collect();
        let mut confirmed = BTreeMap::new();
        if 2 * met.len() <= MOST_SINGLY {
            for document in met {
                let trials = (self.ask(items[document].clone())?, self.only(items, &[document])?);
                let (Some(without), Some(only)) = trials else { break };
                let is_cause = |effect: usize| without[effect] != Seen::After && only[effect] == Seen::After;
                let its = spelt.iter().filter(|(effect, spelt)| **spelt == document && is_cause(**effect));
                confirmed.extend(its.map(|(effect, document)| (*effect, *document)));
            }
        } else {
            // A second spelling takes fewer trials than many documents one at a time.
            let again = self.spell(items, &shuffled(items.len()), &effects, Sides::Both)?;
            confirmed = spelt.into_iter().filter(|(effect, one)| again.get(effect) == Some(one)).collect();
        }
        for effect in effects {
            match confirmed.get(&effect) {
                Some(document) => {
                    shares.push((effect, EffectItems { items: vec![*document], how: How::Alone }));
                }
                None => unclear.push(effect),
            }
        }
        if !unclear.is_empty() {
            self.one_by_one(items, unclear, &mut shares)?;
        }
        Ok(shares)
    }

    /// Searches for the documents of each effect separately.
    fn one_by_one(
        &mut self,
        items: &[InputSet],
        effects: Vec<usize>,
        shares: &mut Vec<(usize, EffectItems)>,
    ) -> Result<(), T::Error> {
        let none = self.only(items, &[])?;
        let mut joint: Option<Vec<usize>> = None;
        for effect in effects {
            let share = if none.as_ref().is_some_and(|none| none[effect] == Seen::After) {
                EffectItems { items: Vec::new(), how: How::Earlier }
            } else {
                joint = self.joint(items, &[], effect, joint)?;
                match joint.as_deref() {
                    Some([one]) => {
                        let without = self.ask(items[*one].clone())?;
                        let stays = without.is_some_and(|without| without[effect] == Seen::After);
                        EffectItems { items: vec![*one], how: if stays { How::Each } else { How::Alone } }
                    }
                    Some(joint) => EffectItems { items: joint.to_vec(), how: How::Together },
                    None => EffectItems { items: Vec::new(), how: How::Untraced },
                }
            };
            shares.push((effect, share));
        }
        Ok(())
    }

    /// Reads the number of the single document behind each effect, digit by digit. `numbers` holds each
    /// document's number. An effect of several documents may spell the number of an unrelated one. With both
    /// sides, two documents spell nothing: where their digits differ, either both sides change the effect, or
    /// neither does.
    fn spell(
        &mut self,
        items: &[InputSet],
        numbers: &[usize],
        effects: &[usize],
        sides: Sides,
    ) -> Result<BTreeMap<usize, usize>, T::Error> {
        let mut spelt: BTreeMap<usize, usize> = effects.iter().map(|effect| (*effect, 0)).collect();
        for digit in digits(items.len()) {
            let mut side = |wanted: usize| {
                let with = numbers.iter().enumerate().filter(|(_, number)| (*number >> digit) & 1 == wanted);
                self.ask(with.flat_map(|(item, _)| &items[item]).copied().collect())
            };
            let Some(ones) = side(1)? else { return Ok(BTreeMap::new()) };
            let zeros = if sides == Sides::Both { side(0)? } else { None };
            if sides == Sides::Both && zeros.is_none() {
                return Ok(BTreeMap::new());
            }
            spelt.retain(|effect, number| {
                let changes = |answers: &Answers| answers[*effect] != Seen::After;
                let one = changes(&ones);
                *number |= usize::from(one) << digit;
                zeros.as_ref().is_none_or(|zeros| changes(zeros) != one)
            });
        }
        let places: BTreeMap<usize, usize> = numbers.iter().enumerate().map(|(item, n)| (*n, item)).collect();
        let document = |(effect, number): (usize, usize)| Some((effect, *places.get(&number)?));
        Ok(spelt.into_iter().filter_map(document).collect())
    }
}

/// The trials for one digit: which documents they take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sides {
    /// The documents with a one at this digit.
    One,
    /// Also, separately, the documents with a zero.
    Both,
}

/// Replaces the blame of some documents by the blame of their fields, if these could be separated.
fn refine(blame: &mut Blame, fields: Blame, n_documents: usize) {
    if !fields.changes.is_empty() && fields.how != How::Untraced {
        *blame = fields;
    } else if blame.changes.len() > n_documents {
        blame.how = How::Untraced;
    }
}

/// Returns the binary digits of numbers below `count`.
fn digits(count: usize) -> Range<u32> {
    0..usize::BITS - count.saturating_sub(1).leading_zeros()
}

/// Returns the numbers in an order that is unrelated to the first one.
fn shuffled(count: usize) -> Vec<usize> {
    let common = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let start = (count * 618 / 1000).max(1);
    let step = (start..).find(|step| common(*step, count) == 1).unwrap_or(1);
    (0..count).map(|place| (place * step + count / 3) % count).collect()
}

#[cfg(test)]
mod tests;
