//! Whether a thread has waited for storage in one and the same sleep for so long that somebody should hear of
//! it: a server that is gone, a device that was suspended. The kernel finds hung tasks by the same sign
//! (`kernel/hung_task.c`). Slow storage that moves wakes its thread with each request.

use std::time::Duration;

use flatout_sys::occupation::{self, HAND_OVER, SYNC, Wait};
use flatout_sys::page_cache;

use crate::output;

/// What a request takes where nothing is wrong is far less: some 10 s are a disk that spins up.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same of a call that copies much, where a server does it.
const PATIENCE_WITH_COPY: Duration = Duration::from_secs(60);

/// The sleeps of all threads, as seen by looks.
#[derive(Debug, Default)]
pub struct Standstill {
    sleeps: Vec<Sleep>,
    is_told: bool,
}

#[derive(Debug, Clone, Copy)]
struct Sleep {
    /// The thread, and how often it had lost its CPU before.
    id: (i32, u64),
    lasted: Duration,
    /// Pages that the whole system had written back when it was seen first.
    written_pages: Option<u64>,
}

impl Standstill {
    /// Looks once more after this time, and says what stands still; once, until nothing does.
    pub fn look(&mut self, passed: Duration) {
        let written_pages = page_cache::written_pages();
        let told = self.found(passed, occupation::sleepers(), written_pages, occupation::wait_of);
        if let Some(line) = told {
            output::complain(&line);
        }
    }

    fn found(
        &mut self,
        passed: Duration,
        sleepers: Vec<(i32, u64)>,
        written_pages: Option<u64>,
        wait_of: impl Fn(i32) -> Option<Wait>,
    ) -> Option<String> {
        let before = std::mem::take(&mut self.sleeps);
        let mut longest = None;
        for id in sleepers {
            let new = Sleep { id, lasted: Duration::ZERO, written_pages };
            let known = before.iter().find(|sleep| sleep.id == id);
            let known = known.map(|sleep| Sleep { lasted: sleep.lasted + passed, ..*sleep });
            let mut sleep = known.unwrap_or(new);
            let wait = if sleep.lasted < PATIENCE { None } else { wait_of(id.0) };
            // One wait may be for all that is written back.
            if sleep.written_pages != written_pages
                && wait.as_ref().is_some_and(|it| it.verb == SYNC)
            {
                sleep = new;
            }
            self.sleeps.push(sleep);
            let lasted = sleep.lasted;
            let is_long = |wait: &Wait| match wait.verb {
                HAND_OVER => lasted >= PATIENCE_WITH_COPY,
                _ => lasted >= PATIENCE,
            };
            if let Some(wait) = wait.filter(is_long) {
                longest = longest.max(Some((lasted, wait.verb, wait.path)));
            }
        }
        let was_told = std::mem::replace(&mut self.is_told, longest.is_some());
        let (lasted, verb, path) = longest.filter(|_| !was_told)?;
        let path = path.map_or(String::new(), |path| format!(" {path:?}"));
        let seconds = lasted.as_secs();
        Some(format!(
            "waiting for storage: one request to {verb}{path} has taken {seconds} s so far"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_secs(1);

    fn wait(verb: &'static str) -> impl Fn(i32) -> Option<Wait> {
        move |thread| (thread == 7).then(|| Wait { verb, path: Some("/mnt/file".into()) })
    }

    /// What is said of so many looks, in which thread 7 has lost its CPU so often, and so many pages are
    /// written.
    fn said(
        verb: &'static str,
        looks: u64,
        lost: fn(u64) -> u64,
        pages: fn(u64) -> u64,
    ) -> Vec<String> {
        let mut standstill = Standstill::default();
        let sleepers = |look| vec![(7, lost(look)), (8, 1)];
        (0..looks)
            .filter_map(|look| {
                standstill.found(LOOK, sleepers(look), Some(pages(look)), wait(verb))
            })
            .collect()
    }

    #[test]
    fn a_request_that_stands_still_is_said_once() {
        let line = "waiting for storage: one request to read \"/mnt/file\" has taken 5 s so far";
        assert_eq!(said("read", 100, |_| 3, |look| look), [line]);
        assert_eq!(said(SYNC, 100, |_| 3, |_| 3).len(), 1);
        assert_eq!(said("read", 30, |look| look / 15, |_| 3).len(), 2, "it went on between them");
    }

    #[test]
    fn slow_storage_that_moves_is_not() {
        assert!(said("read", 100, |look| look / 3, |look| look).is_empty());
        assert!(said(SYNC, 100, |_| 3, |look| look / 3).is_empty(), "it is written back");
        assert!(said(HAND_OVER, 50, |_| 3, |_| 3).is_empty(), "a server copies");
        assert_eq!(said(HAND_OVER, 90, |_| 3, |_| 3).len(), 1);
    }
}
