//! `--site`: the page of the fleet on a branch, beside the publications. The daemon makes it on a thread of its own, so
//! that no pass waits for it and no fault of it stops one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing::{Span, info, warn};

use crate::commands::site::PageOptions;
use crate::commands::site::branch::{PageBranch, PageUpdate, page_branch};
use crate::flags::remote::RemoteArgs;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Exit};
use berth_base::backoff::pace::paced;
use berth_base::backoff::{Backoff, chance};
use berth_base::model::Timestamp;
use berth_base::text::counted;
use berth_hub::daemon::{PassEnd, PassOutcome, Settings};
use berth_site::inputs::Links;

/// The shortest time between two pages of one publication.
const REST: Duration = Duration::from_secs(60);
/// The pauses after pages that failed.
const PAUSES: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));
/// The longest time between two looks at the clock.
const LONGEST: Duration = Duration::from_secs(3_600);
/// The share of the time for which pages of one publication are made: one part in so many.
const SHARE: u32 = 20;
/// The time for which the end of a daemon waits for a page.
const PATIENCE: Duration = Duration::from_secs(5);

/// The page on a branch
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Page")]
pub(crate) struct PageArgs {
    /// Keep the page of `berth site` on this branch, such as `berth/site`, for GitHub Pages and its like. Its faults stop no publication
    #[arg(long, value_name = "BRANCH", env = "BERTH_SITE")]
    site: Option<String>,
    /// The address of a file's line at the forge, with {commit}, {file} and {line}; guessed from the remote where it is left out
    #[arg(long, value_name = "TEMPLATE", requires_all = ["site", "site_commit_link"])]
    site_file_link: Option<String>,
    /// The address of a commit at the forge, with {commit}
    #[arg(long, value_name = "TEMPLATE", requires_all = ["site", "site_file_link"])]
    site_commit_link: Option<String>,
}

impl PageArgs {
    /// Returns the full name of the branch, if one is set. Refuses branches with another use.
    pub fn branch(&self, settings: &Settings) -> Result<Option<String>, CommandError> {
        self.site.as_deref().map(|name| page_branch(name, settings)).transpose()
    }

    /// Opens the branch, if one is set. `copy` is the working copy of the remote.
    fn open(
        &self,
        settings: &Settings,
        remote: &RemoteArgs,
        copy: Option<&Path>,
    ) -> Result<Option<PageBranch>, CommandError> {
        let Some(name) = self.branch(settings)? else { return Ok(None) };
        let links = self.site_file_link.clone().zip(self.site_commit_link.clone());
        let options = PageOptions {
            links: links.map(|(file, commit)| Links { file, commit }),
            address: remote.url().map(str::to_owned),
            ..PageOptions::default()
        };
        let remote = copy.map(|copy| remote.open_beside(copy, "page", Duration::MAX)).transpose()?;
        Ok(Some(PageBranch::new(&name, settings, options, remote)))
    }

    /// Starts to keep the page alongside the passes, if a branch is set.
    pub fn start(
        &self,
        settings: &Settings,
        remote: &RemoteArgs,
        copy: Option<&Path>,
    ) -> Result<Option<PageKeeper>, CommandError> {
        let Some(branch) = self.open(settings, remote, copy)? else { return Ok(None) };
        let (passes, heard) = channel();
        let leads = Arc::new(AtomicBool::new(true));
        let worker =
            Worker { branch, leads: leads.clone(), due: None, rests_until: None, failures: 0, last: None };
        let span = Span::current();
        let thread = std::thread::Builder::new().name("page".into());
        let thread = thread
            .spawn(move || span.in_scope(|| worker.work(&heard)))
            .map_err(|error| CommandError::io("starting to keep the page", &error))?;
        Ok(Some(PageKeeper { leads, passes: Some(passes), thread: Some(thread) }))
    }

    /// Brings the branch to the page, if a branch is set, and reports the result.
    pub fn once(
        &self,
        settings: &Settings,
        remote: &RemoteArgs,
        copy: Option<&Path>,
        ui: &Ui,
    ) -> Result<Exit, CommandError> {
        let Some(mut branch) = self.open(settings, remote, copy)? else { return Ok(Exit::Done) };
        match branch.update(ui) {
            Ok(PageUpdate::Written { commit, files }) => {
                let (files, on) = (counted(files, "file"), branch.shown());
                ui.out(&format!("wrote the page to {on} ({}): {files}", commit.short()));
                Ok(Exit::Done)
            }
            Ok(PageUpdate::Unchanged | PageUpdate::NoState) => Ok(Exit::Done),
            Err(error) => {
                ui.error(&error);
                Ok(error.exit)
            }
        }
    }
}

/// The daemon's side: it passes on the ends of passes, and never waits for the page.
#[derive(Debug)]
pub(crate) struct PageKeeper {
    leads: Arc<AtomicBool>,
    /// True for each pass that published.
    passes: Option<Sender<bool>>,
    thread: Option<JoinHandle<()>>,
}

impl PageKeeper {
    /// Sets whether this daemon, one of several, publishes.
    pub fn leads(&self, leads: bool) {
        self.leads.store(leads, Ordering::SeqCst);
    }

    /// Handles the end of a pass. Only then has Git's remote accepted the refs.
    pub fn hear(&self, end: PassEnd<'_>) {
        if let (PassEnd::Done(passed), Some(passes)) = (end, &self.passes) {
            let _ = passes.send(matches!(passed.outcome, PassOutcome::Published { .. }));
        }
    }
}

impl Drop for PageKeeper {
    fn drop(&mut self) {
        drop(self.passes.take());
        let Some(thread) = self.thread.take() else { return };
        let begun = Instant::now();
        while !thread.is_finished() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

/// The thread that makes the page.
struct Worker {
    branch: PageBranch,
    leads: Arc<AtomicBool>,
    /// The moment of the next page.
    due: Option<Instant>,
    /// The moment before which only a publication makes a page.
    rests_until: Option<Instant>,
    failures: u32,
    /// The last logged failure.
    last: Option<String>,
}

impl Worker {
    fn work(mut self, heard: &Receiver<bool>) {
        loop {
            match heard.recv_timeout(self.pause()) {
                Ok(published) => {
                    // The passes of a long page count as one.
                    let published = heard.try_iter().fold(published, |all, one| all | one);
                    self.plan(published);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let is_due = self.due.is_some_and(|due| due <= Instant::now()) || self.is_outdated();
            if is_due && self.leads.load(Ordering::SeqCst) {
                self.make();
            }
        }
    }

    /// Plans the next page after a pass. While pages fail, their own pauses count.
    fn plan(&mut self, published: bool) {
        let now = Instant::now();
        let rested = self.rests_until.filter(|_| !published).map_or(now, |until| until.max(now));
        if self.failures == 0 {
            self.due = Some(self.due.map_or(rested, |due| due.min(rested)));
        }
    }

    /// Reports whether time alone has changed the page, such as a member that is silent now.
    fn is_outdated(&self) -> bool {
        let now = Timestamp::now().as_second();
        self.failures == 0 && self.due.is_none() && self.branch.until().is_some_and(|until| until <= now)
    }

    fn pause(&self) -> Duration {
        if let Some(due) = self.due {
            return due.saturating_duration_since(Instant::now());
        }
        let left = self.branch.until().map(|until| until.saturating_sub(Timestamp::now().as_second()));
        let left = left.map_or(LONGEST, |left| Duration::from_secs(left.max(1).unsigned_abs()));
        left.min(LONGEST)
    }

    fn make(&mut self) {
        let begun = Instant::now();
        let made = catch_unwind(AssertUnwindSafe(|| self.branch.update(&Ui::silent())));
        let on = self.branch.shown();
        let failure = match made {
            Ok(Ok(PageUpdate::Written { commit, files })) => {
                info!(on, %commit, files, "the page was written");
                None
            }
            Ok(Ok(PageUpdate::Unchanged | PageUpdate::NoState)) => None,
            Ok(Err(CommandError { message, hint, .. })) => Some((message, hint)),
            Err(_) => Some(("making it crashed, a bug in berth".to_owned(), None)),
        };
        let now = Instant::now();
        self.rests_until = Some(now + paced(REST).max(begun.elapsed() * SHARE));
        let Some((error, hint)) = failure else {
            (self.due, self.failures, self.last) = (None, 0, None);
            return;
        };
        self.failures = self.failures.saturating_add(1);
        self.due = Some(now + PAUSES.jittered(self.failures, chance()));
        if self.last.as_ref() != Some(&error) {
            warn!(on, error, hint, "the page could not be written; retrying");
            self.last = Some(error);
        }
    }
}
