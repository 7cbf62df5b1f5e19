//! The page of a server: it follows the fleet by one more script.

use crate::document;
use crate::site::{Site, SiteFile};

/// The script, by its path below the page's address.
const SCRIPT: (&str, &str) = ("page/live.js", include_str!("assets/live.js"));

/// What the page of files may not do, and what the page of a server may.
const FILES_ALONE: &str = "connect-src 'none'";
const OWN_SERVER: &str = "connect-src 'self'";

/// The last script of the page of files.
const HEAD_SCRIPT: &str = "<script src=\"data/head.js\" defer></script>";

impl Site {
    /// Returns the first page for a server, and the script by which it follows the fleet.
    pub fn live(&self) -> [SiteFile; 2] {
        let scripts = format!("{HEAD_SCRIPT}\n<script src=\"{}\" defer></script>", SCRIPT.0);
        let page = document::first_page(&self.head);
        // The head of the page comes before all texts of the fleet.
        let page = page.replacen(FILES_ALONE, OWN_SERVER, 1).replacen(HEAD_SCRIPT, &scripts, 1);
        let file = |path: &str, text: String| SiteFile { path: path.to_owned(), bytes: text.into_bytes() };
        [file(Site::INDEX, page), file(SCRIPT.0, SCRIPT.1.to_owned())]
    }
}
