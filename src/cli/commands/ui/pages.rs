//! The page of now and the one before: a browser that loads the one before still finds all of its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use berth_base::text::hex;
use berth_site::{Site, SiteFile};

/// The files of a page, by their paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// Another one for each other page.
    pub stamp: String,
    files: BTreeMap<String, Arc<str>>,
}

impl Page {
    /// Returns the page of a server: that of files, with one more script.
    pub fn of(site: &Site) -> Page {
        let mut page = Page::default();
        for SiteFile { path, bytes } in site.files.iter().cloned().chain(site.live()) {
            if path == Site::HEAD {
                page.stamp = hex(&Sha256::digest(&bytes)[..8]);
            }
            let text = String::from_utf8_lossy(&bytes);
            page.files.insert(path, text.into());
        }
        page
    }
}

/// The newest pages, for readers in other threads.
#[derive(Debug)]
pub(super) struct Pages(watch::Sender<[Arc<Page>; 2]>);

impl Pages {
    pub fn of(page: Page) -> Pages {
        Pages(watch::Sender::new([Arc::new(page), Arc::default()]))
    }

    /// Puts a page in the place of the newest one. Readers of the one before that may miss files.
    pub fn renew(&self, page: Page) {
        self.0.send_modify(|[newest, before]| *before = std::mem::replace(newest, Arc::new(page)));
    }

    /// Returns a file: of the newest page, or else of the one before.
    pub fn file(&self, path: &str) -> Option<Arc<str>> {
        self.0.borrow().iter().find_map(|page| page.files.get(path).cloned())
    }

    /// Returns the stamp of the newest page once it is another one.
    pub async fn newer_than(&self, stamp: Option<&str>) -> String {
        let mut changes = self.0.subscribe();
        let is_newer = |[newest, _]: &[Arc<Page>; 2]| Some(newest.stamp.as_str()) != stamp;
        match changes.wait_for(is_newer).await {
            Ok(pages) => pages[0].stamp.clone(),
            // The sender is gone with the process.
            Err(_) => String::new(),
        }
    }
}
