//! Many requests, so many of them at once.

use std::future::Future;

use futures_util::StreamExt as _;
use futures_util::stream;

/// Runs tasks, so many at once, and gives their results in the tasks' order.
pub async fn each<F: Future>(at_once: usize, tasks: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let numbered = tasks.into_iter().enumerate().map(|(index, task)| async move { (index, task.await) });
    let mut done: Vec<(usize, F::Output)> = stream::iter(numbered).buffer_unordered(at_once).collect().await;
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
