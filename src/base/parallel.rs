//! Independent work on all processors.

use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// The number of processors for this process. Cached, because asking reads several files.
static PROCESSORS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));

/// The number of small items that a thread takes at a time.
const BATCH: usize = 32;

/// Computes a result for each item, in the order of the items. The result is the same on any number of
/// processors.
pub fn map<T: Sync, R: Send>(items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    in_batches(BATCH, items, make)
}

/// Computes results like [`map`], for items that may each take long.
pub fn map_large<T: Sync, R: Send>(items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    in_batches(1, items, make)
}

/// Reads one part after the other on this thread, and makes a result of each while the next one is read. `take` gets the
/// results in the order of the parts. Ends at the first part that cannot be read.
pub fn map_read<P, T: Send, R: Send, E>(
    parts: impl IntoIterator<Item = P>,
    mut read: impl FnMut(P) -> Result<T, E>,
    make: impl Fn(T) -> R + Sync,
    mut take: impl FnMut(R),
) -> Result<(), E> {
    let make = &make;
    thread::scope(|scope| {
        let mut running: Option<ScopedJoinHandle<'_, R>> = None;
        let mut finish = |running: Option<ScopedJoinHandle<'_, R>>| {
            if let Some(running) = running {
                take(running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        };
        for part in parts {
            let read = read(part)?;
            finish(running.replace(scope.spawn(move || make(read))));
        }
        finish(running);
        Ok(())
    })
}

fn in_batches<T: Sync, R: Send>(batch: usize, items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = PROCESSORS.min(items.len().div_ceil(batch));
    if threads < 2 {
        return items.iter().map(make).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made: Vec<(usize, Vec<R>)> = Vec::new();
        loop {
            let start = next.fetch_add(batch, Ordering::Relaxed);
            let Some(rest) = items.get(start..).filter(|rest| !rest.is_empty()) else { return made };
            made.push((start, rest.iter().take(batch).map(&make).collect()));
        }
    };
    let mut made = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut made = work();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    });
    made.sort_unstable_by_key(|(start, _)| *start);
    made.into_iter().flat_map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_the_order_of_the_items() {
        for count in [0, 1, 31, 64, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = (0..count).map(|n| n * 2).collect();
            assert_eq!(super::map(&items, |item| item * 2), doubled);
            assert_eq!(super::map_large(&items, |item| item * 2), doubled);
        }
    }

    #[test]
    fn results_of_read_parts_are_in_their_order_until_one_cannot_be_read() {
        for count in [0, 1, 5] {
            let read = |part: usize| if part == 4 { Err("the fourth") } else { Ok(part) };
            let mut made = Vec::new();
            let ended = super::map_read(0..count, read, |part| part * 2, |part| made.push(part));
            assert_eq!(ended, if count > 4 { Err("the fourth") } else { Ok(()) });
            assert!(made.iter().copied().eq((0..count.min(3)).map(|part| part * 2)), "{made:?}");
        }
    }

    #[test]
    #[should_panic(expected = "the 700th")]
    fn a_panic_is_passed_on() {
        let items: Vec<usize> = (0..1000).collect();
        super::map(&items, |item| assert_ne!(*item, 700, "the 700th"));
    }
}
