//! A policy → bytes for its digest: equal for equal policies, different for different ones.
//!
//! A length or a tag precedes every value, so that no two policies share an encoding. Every `match` is
//! complete: a new variant of the model must get its number here.

use berth_base::model::placement::{
    Blocked, ClusterSet, Division, Filter, GroupSize, Grouping, Policy, Ranking, Retention, Rule, ScoreRule,
    Scorer, Selection, Share, Sorter, Toleration,
};
use berth_base::model::selector::{Comparison, Measure, PropertyRequirement, Requirement, Selector, Term};

/// The encoded bytes so far.
#[derive(Default)]
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn tag(&mut self, tag: u8) {
        self.bytes.push(tag);
    }

    pub(super) fn number(&mut self, number: i64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn count(&mut self, count: usize) {
        self.bytes.extend_from_slice(&(count as u64).to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn maybe<T>(&mut self, value: Option<T>, encode: impl FnOnce(&mut Encoder, T)) {
        self.tag(u8::from(value.is_some()));
        if let Some(value) = value {
            encode(self, value);
        }
    }

    pub(super) fn all<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        encode: impl Fn(&mut Encoder, T),
    ) {
        self.count(items.len());
        items.for_each(|item| encode(self, item));
    }

    fn texts<'t>(&mut self, texts: impl ExactSizeIterator<Item = &'t String>) {
        self.all(texts, |encoder, text| encoder.text(text));
    }
}

/// Encodes the policy without its candidates, because the digest covers those by name.
pub(super) fn policy(encoder: &mut Encoder, policy: &Policy) {
    filters(encoder, &policy.filters);
    encoder.all(policy.scorers.iter(), scorer);
    encoder.tag(match policy.ranking {
        Ranking::SumThenName => 1,
        Ranking::PartsThenNameDescending => 2,
    });
    match &policy.selection {
        Selection::All => encoder.tag(1),
        Selection::First(count) => {
            encoder.tag(2);
            encoder.count(*count);
        }
        Selection::Exactly(names) => {
            encoder.tag(3);
            encoder.texts(names.iter());
        }
        Selection::InTurn(choices) => {
            encoder.tag(4);
            encoder.all(choices.iter(), |encoder, choice| {
                encoder.text(&choice.name);
                encoder.all(choice.terms.iter(), term);
                encoder.maybe(choice.count, Encoder::count);
                encoder.count(choice.least);
            });
        }
    }
    encoder.tag(match policy.retention {
        Retention::None => 1,
        Retention::SamePolicy(_) => 2,
    });
    encoder.maybe(policy.groups.as_ref(), grouping);
    encoder.maybe(policy.blocked.as_ref(), blocked);
    // Left out without a division, so that decisions from before divisions existed stay sticky.
    if let Some(division) = &policy.division {
        divided(encoder, division);
    }
    // Left out when unset, so that earlier decisions stay sticky.
    if let Some(seconds) = policy.replace_after {
        encoder.text("replace after");
        encoder.number(seconds);
    }
    encoder.text(&policy.text.to_json().to_string());
}

pub(super) fn filters(encoder: &mut Encoder, filters: &[Filter]) {
    encoder.all(filters.iter(), |encoder, filter| {
        rule(encoder, &filter.rule);
        encoder.maybe(filter.by.as_ref(), |encoder, by| {
            [&by.group, &by.kind, &by.namespace, &by.name].into_iter().for_each(|part| encoder.text(part));
        });
    });
}

fn rule(encoder: &mut Encoder, rule: &Rule) {
    match rule {
        Rule::Nowhere(why) => {
            encoder.tag(1);
            encoder.text(why);
        }
        Rule::Named(names) => {
            encoder.tag(2);
            encoder.texts(names.iter());
        }
        Rule::Labels(wanted) => {
            encoder.tag(3);
            selector(encoder, wanted);
        }
        Rule::AnyOf(terms) => {
            encoder.tag(4);
            encoder.all(terms.iter(), term);
        }
        Rule::InSets(sets) => {
            encoder.tag(5);
            encoder.all(sets.iter(), set);
        }
        Rule::NotLeaving => encoder.tag(6),
        Rule::Eligible(limits) => {
            encoder.tag(7);
            encoder.number(limits.heartbeat_seconds);
            encoder.number(limits.unhealthy_seconds);
        }
        Rule::Tolerates(tolerations) => {
            encoder.tag(8);
            encoder.all(tolerations.iter(), toleration);
        }
        Rule::HoldsNamespace(namespace) => {
            encoder.tag(9);
            encoder.text(namespace);
        }
        Rule::Ready => encoder.tag(10),
        Rule::Reachable(reach) => {
            encoder.tag(11);
            encoder.text(&reach.folder);
            encoder.all(reach.clusters.iter(), |encoder, name| encoder.text(name));
        }
    }
}

fn set(encoder: &mut Encoder, set: &ClusterSet) {
    encoder.text(&set.name);
    encoder.maybe(set.members.as_ref(), selector);
}

fn sorter(encoder: &mut Encoder, sorter: &Sorter) {
    measure(encoder, &sorter.measure);
    encoder.tag(u8::from(sorter.ascending));
}

fn toleration(encoder: &mut Encoder, toleration: &Toleration) {
    for part in [&toleration.key, &toleration.value, &toleration.effect] {
        encoder.maybe(part.as_deref(), Encoder::text);
    }
    encoder.maybe(toleration.seconds, Encoder::number);
}

fn scorer(encoder: &mut Encoder, scorer: &Scorer) {
    encoder.text(&scorer.name);
    encoder.number(scorer.weight);
    match &scorer.rule {
        ScoreRule::Steady => encoder.tag(1),
        ScoreRule::Balance => encoder.tag(2),
        ScoreRule::Allocatable(resource) => {
            encoder.tag(3);
            encoder.text(resource);
        }
        ScoreRule::AddOn { resource, score } => {
            encoder.tag(4);
            encoder.text(resource);
            encoder.text(score);
        }
        ScoreRule::Preferred(preferred) => {
            encoder.tag(5);
            encoder.all(preferred.iter(), |encoder, preference| {
                encoder.number(preference.weight);
                term(encoder, &preference.term);
                encoder.maybe(preference.sorter.as_ref(), sorter);
            });
        }
        ScoreRule::Among(among) => {
            encoder.tag(8);
            sorter(encoder, among);
        }
        ScoreRule::Even(constraints) => {
            encoder.tag(7);
            encoder.all(constraints.iter(), |encoder, constraint| {
                encoder.text(&constraint.key);
                encoder.tag(u8::from(constraint.of_claims));
                encoder.number(constraint.max_skew);
                encoder.tag(u8::from(constraint.required));
            });
        }
        ScoreRule::Spread(constraints) => {
            encoder.tag(6);
            encoder.all(constraints.iter(), |encoder, constraint| {
                encoder.text(&constraint.key);
                encoder.number(constraint.max_skew);
                encoder.tag(u8::from(constraint.required));
            });
        }
    }
}

fn grouping(encoder: &mut Encoder, groups: &Grouping) {
    match groups.size {
        GroupSize::Count(count) => {
            encoder.tag(1);
            encoder.count(count);
        }
        GroupSize::Percent(percent) => {
            encoder.tag(2);
            encoder.number(i64::from(percent));
        }
    }
    encoder.all(groups.named.iter(), |encoder, (name, members)| {
        encoder.text(name);
        term(encoder, members);
    });
}

fn blocked(encoder: &mut Encoder, blocked: &Blocked) {
    let condition = &blocked.condition;
    for text in [&condition.kind, &condition.reason, &condition.message] {
        encoder.text(text);
    }
    encoder.tag(u8::from(condition.status));
    encoder.tag(u8::from(blocked.keep_earlier));
}

fn divided(encoder: &mut Encoder, division: &Division) {
    encoder.tag(1);
    encoder.number(i64::from(division.total));
    encoder.all(division.shares.iter(), |encoder, (cluster, (given, _))| {
        encoder.text(cluster);
        share(encoder, given);
    });
    encoder.maybe(division.others.as_ref(), share);
    encoder.tag(u8::from(division.rebalance));
    encoder.text(&division.hash_key);
    filters(encoder, &division.among);
    filters(encoder, &division.then);
}

fn share(encoder: &mut Encoder, share: &Share) {
    encoder.number(share.floor);
    encoder.maybe(share.ceiling, Encoder::number);
    encoder.number(share.weight);
}

fn term(encoder: &mut Encoder, term: &Term) {
    selector(encoder, &term.labels);
    selector(encoder, &term.claims);
    encoder.all(term.properties.iter(), property);
    // Left out without expressions, so that decisions from before expressions existed stay sticky.
    if !term.expressions.is_empty() {
        encoder.all(term.expressions.iter(), |encoder, one| {
            encoder.text(&one.text);
            encoder.text(one.view.name);
        });
    }
}

fn selector(encoder: &mut Encoder, selector: &Selector) {
    encoder.all(selector.requirements.iter(), requirement);
}

fn requirement(encoder: &mut Encoder, requirement: &Requirement) {
    match requirement {
        Requirement::Is(_, value) => {
            encoder.tag(1);
            encoder.text(value);
        }
        Requirement::In(_, values) => {
            encoder.tag(2);
            encoder.texts(values.iter());
        }
        Requirement::NotIn(_, values) => {
            encoder.tag(3);
            encoder.texts(values.iter());
        }
        Requirement::Exists(_) => encoder.tag(4),
        Requirement::DoesNotExist(_) => encoder.tag(5),
    }
    encoder.text(requirement.key());
}

fn property(encoder: &mut Encoder, wanted: &PropertyRequirement) {
    measure(encoder, &wanted.measure);
    encoder.tag(match wanted.comparison {
        Comparison::Greater => 1,
        Comparison::GreaterOrEqual => 2,
        Comparison::Equal => 3,
        Comparison::NotEqual => 4,
        Comparison::Less => 5,
        Comparison::LessOrEqual => 6,
    });
    encoder.bytes.extend_from_slice(&wanted.than.nanos().to_le_bytes());
}

fn measure(encoder: &mut Encoder, measure: &Measure) {
    let (tag, name) = match measure {
        Measure::Property(name) => (1, name),
        Measure::Capacity(name) => (2, name),
        Measure::Allocatable(name) => (3, name),
        Measure::Available(name) => (4, name),
    };
    encoder.tag(tag);
    encoder.text(name);
}
