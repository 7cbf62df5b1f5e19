use super::*;

/// A step whose effects are functions of the remaining inputs.
struct Toy<F> {
    n_inputs: usize,
    effects: F,
    /// The effects without any input, and with all inputs.
    ends: [Vec<i64>; 2],
}

impl<F: Fn(&BTreeSet<usize>) -> Vec<i64>> Toy<F> {
    fn new(n_inputs: usize, effects: F) -> Toy<F> {
        let ends = [effects(&BTreeSet::new()), effects(&(0..n_inputs).collect())];
        Toy { n_inputs, effects, ends }
    }
}

impl<F: Fn(&BTreeSet<usize>) -> Vec<i64>> Trials for Toy<F> {
    type Error = std::convert::Infallible;

    fn without(&mut self, taken_back: &BTreeSet<usize>) -> Result<Vec<Seen>, Self::Error> {
        let left = (0..self.n_inputs).filter(|input| !taken_back.contains(input)).collect();
        let [before, after] = &self.ends;
        let seen = |(now, (before, after)): (i64, (&i64, &i64))| match now {
            _ if now == *after => Seen::After,
            _ if now == *before => Seen::Before,
            _ => Seen::Between,
        };
        Ok((self.effects)(&left).into_iter().zip(before.iter().zip(after)).map(seen).collect())
    }
}

/// Traces the effects of inputs in documents of these sizes.
fn traced(sizes: &[usize], effects: impl Fn(&BTreeSet<usize>) -> Vec<i64>) -> Traced {
    let mut next = 0..;
    let documents: Vec<Vec<usize>> = sizes.iter().map(|size| next.by_ref().take(*size).collect()).collect();
    let mut toy = Toy::new(sizes.iter().sum(), effects);
    let n_effects = toy.ends[0].len();
    let Ok(traced) = trace(&mut toy, &documents, n_effects);
    traced
}

fn blames(sizes: &[usize], effects: impl Fn(&BTreeSet<usize>) -> Vec<i64>) -> Vec<(How, Vec<usize>)> {
    traced(sizes, effects).blames.into_iter().map(|blame| (blame.how, blame.changes)).collect()
}

/// Effects of each kind, with the inputs to blame.
fn sorts(on: &BTreeSet<usize>, [a, b, c]: [usize; 3]) -> Vec<i64> {
    let [a, b, c] = [a, b, c].map(|input| on.contains(&input));
    let count = |given: &[bool]| i64::try_from(given.iter().filter(|one| **one).count()).expect("a few");
    vec![
        i64::from(a),
        i64::from(a && b),
        count(&[a, b]),
        i64::from(a || b),
        i64::from(count(&[a, b, c]) >= 2),
        i64::from(a && (b || c)),
    ]
}

#[test]
fn each_sort_of_cause_is_told_among_few() {
    let found = blames(&[1; 5], |on| sorts(on, [1, 3, 4]));
    let wanted = [
        (How::Alone, vec![1]),
        (How::Together, vec![1, 3]),
        (How::Parts, vec![1, 3]),
        (How::Each, vec![1, 3]),
        (How::Together, vec![1, 3]),
        (How::Together, vec![1, 3]),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn each_sort_of_cause_is_told_among_many() {
    for (a, b, c) in [(7, 400, 901), (999, 0, 512), (3, 4, 5), (0, 1, 2)] {
        let found = blames(&[1; 1000], |on| sorts(on, [a, b, c]));
        assert_eq!(found[0], (How::Alone, vec![a]));
        let [mut both, mut three] = [vec![a, b], vec![a, b, c]];
        both.sort_unstable();
        three.sort_unstable();
        assert_eq!(found[1], (How::Together, both.clone()));
        assert_eq!(found[2], (How::Parts, both.clone()));
        // The search finds one sufficient input, not all of them.
        assert!(found[3].0 == How::Each && found[3].1.iter().all(|one| both.contains(one)), "{found:?}");
        assert!(found[4].0 == How::Together && found[4].1.len() == 2, "{found:?}");
        assert!(found[4].1.iter().all(|one| three.contains(one)), "{found:?}");
        assert!(found[5].1.contains(&a) && found[5].1.len() == 2, "{found:?}");
    }
}

#[test]
fn a_thousand_edits_of_their_own_objects_take_some_thirty_trials() {
    let found = traced(&[1; 1000], |on| (0..1000).map(|input| i64::from(on.contains(&input))).collect());
    for (input, blame) in found.blames.iter().enumerate() {
        assert_eq!(*blame, Blame { changes: vec![input], how: How::Alone });
    }
    assert!(found.asked <= 30, "{}", found.asked);
}

#[test]
fn fields_of_many_documents_are_told_apart_side_by_side() {
    // Each document's effect comes from one of its three fields.
    let effects = |on: &BTreeSet<usize>| (0..200).map(|n| i64::from(on.contains(&(3 * n + n % 3)))).collect();
    let found = traced(&[3; 200], effects);
    for (n, blame) in found.blames.iter().enumerate() {
        assert_eq!(*blame, Blame { changes: vec![3 * n + n % 3], how: How::Alone });
    }
    assert!(found.asked <= 40, "{}", found.asked);
}

#[test]
fn fields_beyond_those_told_apart_are_candidates() {
    let found = blames(&[40], |on| vec![i64::from(on.contains(&2)), i64::from(on.contains(&30))]);
    assert_eq!(found[0], (How::Alone, vec![2]));
    assert_eq!(found[1].0, How::Untraced);
    assert_eq!(found[1].1, (15..40).collect::<Vec<_>>());
}

#[test]
fn what_no_input_makes_comes_from_before() {
    let mut toy = Toy::new(2, |_: &BTreeSet<usize>| vec![1]);
    toy.ends[0] = vec![0];
    let Ok(found) = trace(&mut toy, &[vec![0], vec![1]], 1);
    assert_eq!(found.blames, [Blame { changes: vec![], how: How::Earlier }]);
    let mut toy = Toy::new(0, |_: &BTreeSet<usize>| vec![1]);
    toy.ends[0] = vec![0];
    let Ok(found) = trace(&mut toy, &[], 1);
    assert_eq!((found.blames[0].how, found.asked), (How::Earlier, 0));
}

#[test]
fn the_number_of_trials_is_limited() {
    // Every effect needs two distant inputs.
    let effects = |on: &BTreeSet<usize>| {
        (0..500).map(|n| i64::from(on.contains(&n) && on.contains(&(999 - n)))).collect::<Vec<i64>>()
    };
    let found = traced(&[1; 1000], effects);
    assert!(found.asked <= 96, "{}", found.asked);
    for (n, blame) in found.blames.iter().enumerate() {
        let right = blame.how == How::Together && blame.changes == [n, 999 - n];
        assert!(right || blame.how == How::Untraced, "{n}: {blame:?}");
    }
    assert!(found.blames.iter().any(|blame| blame.how == How::Together));
}
