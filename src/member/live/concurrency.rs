//! Runs many requests, a limited number at once.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};

/// A task that panicked. Only standard error has the panic's message, which may quote a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

/// The message for a panic.
pub const PANICKED: &str = "a bug in berth: the place is on standard error";

/// Runs tasks, `at_once` at a time, and returns their results in the tasks' order. A panic ends only its own task.
pub async fn each<F, T, E>(at_once: usize, tasks: impl IntoIterator<Item = F>) -> Vec<Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
    E: From<Panicked>,
{
    let numbered = tasks.into_iter().enumerate().map(|(index, task)| async move {
        let result = AssertUnwindSafe(task).catch_unwind().await;
        (index, result.unwrap_or_else(|_| Err(Panicked.into())))
    });
    let mut done: Vec<(usize, Result<T, E>)> =
        stream::iter(numbered).buffer_unordered(at_once).collect().await;
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs tasks as [`each`] does, but on the runtime's worker threads, so that not every answer wakes the caller.
pub(crate) async fn each_beside<F, T, E>(
    at_once: usize,
    tasks: impl IntoIterator<Item = F, IntoIter: Send + 'static>,
) -> Vec<Result<T, E>>
where
    F: Future<Output = Result<T, E>> + Send + 'static,
    T: Send + 'static,
    E: From<Panicked> + Send + 'static,
{
    let tasks = tasks.into_iter();
    let done = tokio::spawn(each(at_once, tasks)).await;
    done.unwrap_or_else(|ended| std::panic::resume_unwind(ended.into_panic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_panics_ends_alone() {
        let task = async |number: u32| {
            assert!(number != 2, "the second one fails");
            Ok::<u32, Panicked>(number)
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let results = runtime.block_on(each(2, [1, 2, 3].map(task)));
        assert_eq!(results, [Ok(1), Err(Panicked), Ok(3)]);
    }
}
