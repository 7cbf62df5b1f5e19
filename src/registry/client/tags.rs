//! The tags of a repository, page by page.

use serde::Deserialize;

use super::Repository;
use super::login::Rights;
use crate::error::RegistryError;

/// The number of tags per page.
const PAGE: usize = 1_000;
/// More pages than any repository of berth's has.
const MOST_PAGES: usize = 1_000;

impl Repository {
    /// Returns all tags. A repository that does not exist has none.
    pub fn tags(&self) -> Result<Vec<String>, RegistryError> {
        #[derive(Deserialize)]
        struct Page {
            // Registries send `null` for an empty list.
            tags: Option<Vec<String>>,
        }
        let mut tags = Vec::new();
        let mut path = format!("{}/tags/list?n={PAGE}", self.name);
        for _ in 0..MOST_PAGES {
            let answer = self.ask("GET", &path, &[], None, Rights::Pull)?;
            if answer.status == 404 {
                return Ok(tags);
            }
            if !answer.status.is_success() {
                return Err(self.http.refusal(&answer, &self.name));
            }
            let page: Page = serde_json::from_slice(&answer.body)
                .map_err(|_| self.wrong("", "its list of tags is not as expected"))?;
            tags.extend(page.tags.unwrap_or_default());
            match answer.header("link").and_then(next_page) {
                Some(next) => next.clone_into(&mut path),
                None => return Ok(tags),
            }
        }
        Err(self.wrong("", "its list of tags does not end"))
    }
}

/// Reads the address in `<address>; rel="next"`.
fn next_page(link: &str) -> Option<&str> {
    let (address, about) = link.strip_prefix('<')?.split_once('>')?;
    about.contains("next").then_some(address)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_next_page_is_found_in_the_link() {
        assert_eq!(
            super::next_page(r#"</v2/a/tags/list?n=1&last=b>; rel="next""#),
            Some("/v2/a/tags/list?n=1&last=b")
        );
        assert_eq!(super::next_page(r#"</v2/a>; rel="prev""#), None);
        assert_eq!(super::next_page(""), None);
    }
}
