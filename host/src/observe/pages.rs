//! How many objects a page of a list may have. The API server has no other limit, but the memory that a page takes
//! depends on its bytes.

/// A page has at most this many objects.
const MOST: u32 = 500;

/// The size that a page should have, in bytes.
const WANTED: usize = 4 << 20;

/// A page that is larger than this, in bytes, is not read, but requested again with fewer objects.
const MOST_BYTES: usize = 32 << 20;

/// The size of the next page.
#[derive(Debug)]
pub(crate) struct Pages {
    limit: u32,
    /// The limit whatever the bytes of a page: a slow API server answers for no more in time.
    most: u32,
}

impl Default for Pages {
    fn default() -> Self {
        Self { limit: MOST, most: MOST }
    }
}

impl Pages {
    /// Returns how many objects the next page may have.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns how many bytes the next page may have. The size of a page with one object is not limited.
    pub(crate) fn most_bytes(&self) -> usize {
        if self.limit > 1 { MOST_BYTES } else { usize::MAX }
    }

    /// Sets the limit after a page of this many objects and bytes: the next objects are expected to be alike.
    pub(crate) fn read(&mut self, objects: usize, bytes: usize) {
        if objects > 0 {
            let fit = objects.saturating_mul(WANTED) / bytes.max(1);
            self.limit = u32::try_from(fit).unwrap_or(MOST).clamp(1, self.most);
        }
    }

    /// Lowers the limit after a page that did not come in time.
    pub(crate) fn was_too_slow(&mut self) {
        self.was_too_large();
        self.most = self.limit;
    }

    /// Raises the limit after a whole list that came in time.
    pub(crate) fn all_came(&mut self) {
        self.most = (self.most * 2).min(MOST);
    }

    /// Lowers the limit after a page that was too large.
    pub(crate) fn was_too_large(&mut self) {
        self.limit = (self.limit / 16).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_as_many_objects_as_fit_into_its_bytes() {
        let limit_after = |objects, bytes| {
            let mut pages = Pages::default();
            pages.read(objects, bytes);
            pages.limit()
        };
        assert_eq!(limit_after(500, 500 * 2_000), 500);
        assert_eq!(limit_after(100, 100 << 20), 4);
        assert_eq!(limit_after(1, 5 << 20), 1);
        assert_eq!(limit_after(0, 80), 500);
    }

    #[test]
    fn a_page_that_is_too_large_is_asked_for_again_with_fewer_objects_down_to_one_of_any_size() {
        let mut pages = Pages::default();
        let mut limits = vec![pages.limit()];
        while pages.most_bytes() < usize::MAX {
            pages.was_too_large();
            limits.push(pages.limit());
        }
        assert_eq!(limits, [500, 31, 1]);
    }

    #[test]
    fn pages_that_are_too_slow_stay_small_until_a_list_is_whole() {
        let mut pages = Pages::default();
        pages.was_too_slow();
        for _ in 0..3 {
            pages.read(31, 31 * 2_000);
            assert_eq!(pages.limit(), 31);
        }
        pages.all_came();
        pages.read(31, 31 * 2_000);
        assert_eq!(pages.limit(), 62);
        (0..9).for_each(|_| pages.all_came());
        pages.read(31, 31 * 2_000);
        assert_eq!(pages.limit(), 500);
    }
}
