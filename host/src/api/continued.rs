//! When a list that goes on from page to page is given up: an API server that hands out continue tokens for ever would have
//! it followed for ever.

use http::Uri;
use std::collections::BTreeMap;

/// The maximum pages of a list. At the fewest objects that a page has, 31 unless they are large, that is half a million.
const MOST_PAGES: u32 = 20_000;

/// The maximum bytes of a list.
const MOST_BYTES: u64 = 8 << 30;

/// The maximum pages in a row without an object that are followed. The API server sends none.
const MOST_EMPTY: u32 = 16;

/// Why a list is not followed any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Endless {
    /// The token would lead to the same page for ever.
    #[error("the list does not end: a page has the continue token that it was asked for with")]
    SameToken,
    /// Nothing comes.
    #[error("the list does not end: {MOST_EMPTY} pages in a row have no objects and a continue token")]
    Empty,
    /// Too many pages.
    #[error("the list does not end: it has more than {MOST_PAGES} pages")]
    Pages,
    /// Too many bytes.
    #[error("the list does not end: it has more than {} GiB", MOST_BYTES >> 30)]
    Bytes,
}

/// How far the lists of a library have come, by path: it follows each to its end, and asks for no page again.
#[derive(Debug, Default)]
pub(crate) struct Lists(BTreeMap<String, Continued>);

impl Lists {
    /// Records a request for a page.
    ///
    /// # Errors
    /// If the list is not followed any further. The next list of the path begins anew.
    pub(crate) fn asks(&mut self, uri: &Uri) -> Result<(), Endless> {
        let pairs = uri.query().into_iter().flat_map(|query| query.split('&'));
        let token = pairs.filter_map(|pair| pair.strip_prefix("continue=")).find(|token| !token.is_empty());
        let Some(token) = token else {
            self.0.remove(uri.path());
            return Ok(());
        };
        // What is in its pages is not known here.
        self.0.entry(uri.path().to_owned()).or_default().next(1, 0, Some(token.to_owned())).map(drop)
    }
}

/// How far a list has come.
#[derive(Debug, Default)]
pub struct Continued {
    token: Option<String>,
    pages: u32,
    empty: u32,
    bytes: u64,
}

impl Continued {
    /// Returns the token of the next page; `None` after the last one. `next` is the token in a page of `objects`
    /// objects and `bytes` bytes.
    ///
    /// # Errors
    /// If the list is not followed any further.
    pub fn next(&mut self, objects: usize, bytes: usize, next: Option<String>) -> Result<Option<String>, Endless> {
        self.empty = if objects == 0 { self.empty + 1 } else { 0 };
        self.pages += 1;
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let Some(token) = next.filter(|token| !token.is_empty()) else { return Ok(None) };
        match () {
            () if self.token.as_ref() == Some(&token) => Err(Endless::SameToken),
            () if self.empty >= MOST_EMPTY => Err(Endless::Empty),
            () if self.pages >= MOST_PAGES => Err(Endless::Pages),
            () if self.bytes > MOST_BYTES => Err(Endless::Bytes),
            () => {
                self.token = Some(token.clone());
                Ok(Some(token))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows up to `pages` pages of this size, each with another token.
    fn follow(objects: usize, bytes: usize, pages: u32) -> Result<(), Endless> {
        let mut list = Continued::default();
        (0..pages).try_for_each(|page| list.next(objects, bytes, Some(page.to_string())).map(drop))
    }

    #[test]
    fn a_list_is_followed_to_its_end() {
        let mut list = Continued::default();
        let token = |text: &str| Some(text.to_owned());
        assert_eq!(list.next(500, 1, token("a")), Ok(token("a")));
        assert_eq!(list.next(0, 1, token("b")), Ok(token("b")));
        assert_eq!(list.next(7, 1, token("")), Ok(None));
        assert_eq!(follow(31, 1 << 10, MOST_PAGES - 1), Ok(()));
    }

    #[test]
    fn the_lists_of_a_library_are_told_apart_by_path_and_begin_anew() {
        let mut lists = Lists::default();
        let mut asks = |path: &str| lists.asks(&path.parse().unwrap());
        for _ in 0..3 {
            assert_eq!(asks("/api/v1/configmaps?limit=500"), Ok(()));
            assert_eq!(asks("/api/v1/configmaps?limit=500&continue=a"), Ok(()));
            assert_eq!(asks("/api/v1/secrets?continue=a&limit=500"), Ok(()));
            assert_eq!(asks("/api/v1/configmaps?limit=500&continue=b"), Ok(()));
            assert_eq!(asks("/api/v1/secrets?watch=true"), Ok(()));
        }
        assert_eq!(asks("/api/v1/configmaps?limit=500&continue=b"), Err(Endless::SameToken));
    }

    #[test]
    fn a_list_that_does_not_end_is_given_up() {
        let mut list = Continued::default();
        list.next(1, 1, Some("a".into())).unwrap();
        assert_eq!(list.next(1, 1, Some("a".into())), Err(Endless::SameToken));
        assert_eq!(follow(0, 1, u32::MAX), Err(Endless::Empty));
        assert_eq!(follow(1, 1, u32::MAX), Err(Endless::Pages));
        assert_eq!(follow(1, 64 << 20, u32::MAX), Err(Endless::Bytes));
    }
}
