//! A member's account of its applied folder → its verdict on one workload's copies there.

use std::collections::{BTreeMap, BTreeSet};

use super::copies::{self, Copy};
use berth_base::model::ObjectId;
use berth_base::model::release::{CopyReport, Health};
use berth_base::model::status::Applied;
use berth_base::text::some_of;

/// The number of objects that a message names, and the length of the text on each.
const MOST_NAMED: usize = 3;
const LONGEST_MESSAGE: usize = 300;

/// A member's account of its folder, for questions about single workloads.
#[derive(Clone, Debug)]
pub struct Account<'a> {
    problems: BTreeMap<&'a ObjectId, &'a str>,
    waiting: BTreeSet<&'a ObjectId>,
    /// The account leaves some objects out, so the health of unnamed objects is unknown.
    incomplete: bool,
    removing: BTreeSet<&'a ObjectId>,
    /// The account leaves out some objects that are being removed.
    more_removing: bool,
}

impl<'a> Account<'a> {
    /// Reads a member's account. `None` while the member does not apply its folder: its earlier account may
    /// no longer hold.
    pub fn of(applied: &'a Applied) -> Option<Account<'a>> {
        if applied.suspended.is_some() || applied.failing.is_some() {
            return None;
        }
        // If an object has several messages, the first counts.
        let problems = applied.problems.iter().rev();
        Some(Account {
            problems: problems.map(|problem| (&problem.object, &*problem.message)).collect(),
            waiting: applied.waiting.iter().collect(),
            incomplete: applied.lacks_problems() || applied.progressing && applied.waiting.is_empty(),
            removing: applied.removing.iter().collect(),
            more_removing: applied.more_removing > 0,
        })
    }

    /// Judges whether copies of these objects are gone, if the account's folder has none of them.
    pub fn verdict_on_removal<'o>(&self, objects: impl IntoIterator<Item = &'o ObjectId>) -> CopyReport {
        let is_left = self.more_removing || objects.into_iter().any(|object| self.removing.contains(object));
        CopyReport {
            digest: copies::digest([]),
            health: if is_left { Health::Progressing } else { Health::Succeeded },
            since: None,
            message: String::new(),
        }
    }

    /// Judges a workload's copies, which must be those of the account's folder.
    pub fn verdict(&self, copies: &[Copy<'_>]) -> CopyReport {
        let failed: Vec<String> = copies.iter().filter_map(|copy| self.fault_of(copy.object)).collect();
        let is_waited_for = |copy: &Copy<'_>| self.incomplete || self.waiting.contains(copy.object);
        let health = match () {
            () if !failed.is_empty() => Health::Failed,
            () if copies.iter().any(is_waited_for) => Health::Progressing,
            () => Health::Succeeded,
        };
        CopyReport {
            digest: copies::digest(copies.iter().map(|copy| (copy.path, copy.content))),
            health,
            since: None,
            message: some_of(failed, MOST_NAMED),
        }
    }

    fn fault_of(&self, object: &ObjectId) -> Option<String> {
        let message = self.problems.get(object)?;
        let mut words = message.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = words.char_indices().nth(LONGEST_MESSAGE) {
            words.truncate(end);
            words.push('…');
        }
        Some(format!("{object}: {words}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::model::ContentId;
    use berth_base::model::status::{Failing, MOST_PROBLEMS, Problem, Suspension};

    fn object(name: &str) -> ObjectId {
        ObjectId::new("apps", "Deployment", "shop", name)
    }

    fn problem(name: &str, message: &str) -> Problem {
        Problem::failed(object(name), message)
    }

    /// Returns the verdict on the Deployments `web` and `cart`, which have the contents 1 and 2.
    fn verdict(applied: &Applied) -> Option<CopyReport> {
        let objects = [object("web"), object("cart")];
        let paths = copies::ObjectPaths::of(&objects);
        let copies = paths.copies(|path| Some(ContentId([if path.contains("web") { 1 } else { 2 }; 20])));
        assert_eq!(copies.len(), 2);
        Some(Account::of(applied)?.verdict(&copies))
    }

    fn health(applied: &Applied) -> Option<Health> {
        verdict(applied).map(|report| report.health)
    }

    #[test]
    fn copies_that_nothing_is_said_of_succeeded() {
        let silent = verdict(&Applied::default()).unwrap();
        assert_eq!((silent.health, silent.since, &*silent.message), (Health::Succeeded, None, ""));
        let digest = copies::digest([
            ("shop/Deployment.apps_cart.yaml", ContentId([2; 20])),
            ("shop/Deployment.apps_web.yaml", ContentId([1; 20])),
        ]);
        assert_eq!(silent.digest, digest);
        let others = Applied { problems: vec![problem("blog", "failed: no")], ..Applied::default() };
        assert_eq!(health(&others), Some(Health::Succeeded), "another workload's problem is its own");
        let waits = Applied { progressing: true, waiting: vec![object("blog")], ..Applied::default() };
        assert_eq!(health(&waits), Some(Health::Succeeded), "and so is its waiting");
    }

    #[test]
    fn a_problem_fails_the_copies_with_the_members_words() {
        let problems = vec![
            problem("cart", "refused"),
            problem("web", "failed: Progressing is False: ProgressDeadlineExceeded:\n timed out"),
            problem("web", "and a remark"),
        ];
        let waiting = vec![object("web")];
        let report =
            verdict(&Applied { problems, progressing: true, waiting, ..Applied::default() }).unwrap();
        assert_eq!(report.health, Health::Failed);
        assert_eq!(
            report.message,
            "Deployment.apps shop/web: failed: Progressing is False: ProgressDeadlineExceeded: timed out, \
             Deployment.apps shop/cart: refused"
        );
        let long = Applied { problems: vec![problem("web", &"é".repeat(5_000))], ..Applied::default() };
        assert!(verdict(&long).unwrap().message.chars().count() < LONGEST_MESSAGE + 40);
    }

    #[test]
    fn what_the_member_waits_for_progresses_also_where_it_names_none() {
        let waiting = vec![object("web"), object("blog")];
        let named = Applied { progressing: true, waiting, ..Applied::default() };
        assert_eq!(health(&named), Some(Health::Progressing));
        let unnamed = Applied { progressing: true, ..Applied::default() };
        assert_eq!(health(&unnamed), Some(Health::Progressing));
    }

    #[test]
    fn problems_that_were_left_out_may_be_of_any_object_and_notes_are_not_problems() {
        let many: Vec<Problem> = (0..MOST_PROBLEMS).map(|n| problem(&format!("blog-{n}"), "no")).collect();
        let cut = Applied { problems: many.clone(), left_out: 1, ..Applied::default() };
        assert_eq!(health(&cut), Some(Health::Progressing));
        assert_eq!(health(&Applied { problems: many, ..Applied::default() }), Some(Health::Succeeded));
        let notes = Applied { problems: vec![problem("blog", "no")], left_out: 4, ..Applied::default() };
        assert_eq!(health(&notes), Some(Health::Succeeded));
    }

    #[test]
    fn copies_are_gone_when_the_member_names_none_of_them_and_leaves_none_out() {
        let gone = |removing: &[&str], more_removing| {
            let removing = removing.iter().map(|name| object(name)).collect();
            let applied = Applied { removing, more_removing, ..Applied::default() };
            let report = Account::of(&applied)?.verdict_on_removal(&[object("web"), object("cart")]);
            assert_eq!(report.digest, copies::digest([]));
            Some(report.health == Health::Succeeded)
        };
        assert_eq!(gone(&[], 0), Some(true));
        assert_eq!(gone(&["blog"], 0), Some(true));
        assert_eq!(gone(&["blog", "cart"], 0), Some(false));
        assert_eq!(gone(&["blog"], 3), Some(false), "any object may be among those left out");
    }

    #[test]
    fn a_member_that_applies_nothing_gives_no_verdict() {
        let suspended = Applied { suspended: Some(Suspension::default()), ..Applied::default() };
        assert_eq!(verdict(&suspended), None);
        let failing = Applied { failing: Some(Failing::default()), ..Applied::default() };
        assert_eq!(verdict(&failing), None);
    }
}
