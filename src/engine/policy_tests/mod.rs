//! Policy tests: people's rules about the fleet before and after a change, and the findings that break them.
//!
//! Pure. A test runs its rule on each workload, on each cluster or on the whole fleet. The rules are CEL with
//! typed variables, and each test does a limited amount of work.
//!
//! - [`policy_test`]: document → test, and its expressions, with their places.
//! - [`view`]: the fleet with its decisions, and the values that rules see of it.
//! - `findings`: tests, before, after → findings → the workloads to hold.
//! - [`example`]: given fleets and expected verdicts, for `berth test`.

mod example;
mod findings;
mod policy_test;
#[cfg(test)]
mod tests;
mod view;

pub use example::{Example, ExampleVerdict, Given, GivenFleet, Mismatch, check};
pub use findings::{Failed, Item, PolicyFinding, failing_workloads, judge};
pub use policy_test::{Over, PolicyTest, changes, read};
pub use view::Side;

/// The kind of a document with a policy test.
pub const KIND: &str = "PolicyTest";

/// The folder at the root in which policy tests are valid: access rules can name it. Its subfolders belong to
/// examples.
pub const FOLDER: &str = "policy-tests/";

/// Reports whether a path belongs to a folder of examples, which is not part of the fleet.
pub fn is_of_an_example(path: &str) -> bool {
    path.strip_prefix(FOLDER).is_some_and(|rest| rest.contains('/'))
}
