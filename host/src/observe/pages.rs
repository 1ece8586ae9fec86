//! How many objects a page of a list may have. The API server has no other limit, but the memory that a page takes
//! depends on its bytes.

use std::time::Duration;

/// A page has at most this many objects.
const MOST: u32 = 500;

/// However slow the API server is, so many objects may be asked for at once: thousands of requests in a row take longer than
/// it keeps the list that they are parts of.
const FEWEST: u32 = 31;

/// A page that comes within this time could have had twice as many objects: it is a third of the deadline.
const QUICK: Duration = Duration::from_secs(10);

/// The size that a page should have, in bytes.
const WANTED: usize = 4 << 20;

/// The size of the next page.
#[derive(Debug)]
pub(crate) struct Pages {
    limit: u32,
    /// The limit for a page of any bytes: a slow API server answers for no more in time. At least [`FEWEST`].
    most: u32,
}

impl Default for Pages {
    fn default() -> Self {
        Self { limit: MOST, most: MOST }
    }
}

impl Pages {
    /// A page that is larger than this, in bytes, is not read, but requested again with fewer objects. One object is never so
    /// large.
    pub(crate) const MOST_BYTES: usize = 32 << 20;

    /// Returns how many objects the next page may have.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns whether the next page has one object at most.
    pub(crate) fn is_least(&self) -> bool {
        self.limit == 1
    }

    /// Sets the limit after a page of this many objects and bytes that took this time: the next objects are expected to be
    /// alike.
    pub(crate) fn read(&mut self, objects: usize, bytes: usize, took: Duration) {
        if objects == 0 {
            return;
        }
        if took <= QUICK {
            let twice = u32::try_from(objects.saturating_mul(2)).unwrap_or(MOST);
            self.most = twice.clamp(self.most, MOST);
        }
        let fit = objects.saturating_mul(WANTED) / bytes.max(1);
        self.limit = u32::try_from(fit).unwrap_or(MOST).clamp(1, self.most);
    }

    /// Lowers the limit after a page that did not come in time, below [`FEWEST`], too: it may have been for its bytes. The
    /// page that comes shows that.
    pub(crate) fn was_too_slow(&mut self) {
        self.was_too_large();
        self.most = self.limit.max(FEWEST);
    }

    /// Lowers the limit after a page that was too large.
    pub(crate) fn was_too_large(&mut self) {
        self.limit = (self.limit / 16).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const SLOW: Duration = Duration::from_secs(20);

    /// Lists this many objects of 2,000 bytes, each page in this time. Returns the limits of the pages.
    fn listed(pages: &mut Pages, objects: u32, took: Duration) -> Vec<u32> {
        let (mut limits, mut left) = (vec![], objects);
        while left > 0 {
            let came = pages.limit().min(left) as usize;
            limits.push(pages.limit());
            left -= pages.limit().min(left);
            pages.read(came, came * 2_000, took);
        }
        limits
    }

    #[test]
    fn a_page_has_as_many_objects_as_fit_into_its_bytes() {
        let limit_after = |objects, bytes| {
            let mut pages = Pages::default();
            pages.read(objects, bytes, SECOND);
            pages.limit()
        };
        assert_eq!(limit_after(500, 500 * 2_000), 500);
        assert_eq!(limit_after(100, 100 << 20), 4);
        assert_eq!(limit_after(1, 5 << 20), 1);
        assert_eq!(limit_after(0, 80), 500);
    }

    #[test]
    fn a_page_that_is_too_large_is_asked_for_again_with_fewer_objects_down_to_one() {
        let mut pages = Pages::default();
        let mut limits = vec![pages.limit()];
        while !pages.is_least() {
            pages.was_too_large();
            limits.push(pages.limit());
        }
        assert_eq!(limits, [500, 31, 1]);
    }

    #[test]
    fn after_two_slow_answers_a_large_list_takes_tens_of_pages_once_they_come_quickly() {
        let mut pages = Pages::default();
        (0..2).for_each(|_| pages.was_too_slow());
        let limits = listed(&mut pages, 20_000, SECOND);
        assert_eq!(limits[..7], [1, 31, 62, 124, 248, 496, 500]);
        assert_eq!(limits.len(), 45);
        assert_eq!(listed(&mut pages, 20_000, SECOND).len(), 40, "the next list");
    }

    #[test]
    fn pages_stay_small_while_they_come_slowly_but_no_smaller_than_their_bytes_demand() {
        let mut pages = Pages::default();
        pages.was_too_slow();
        assert_eq!(listed(&mut pages, 310, SLOW), [31; 10]);
        pages.was_too_slow();
        assert_eq!(listed(&mut pages, 311, SLOW)[..3], [1, 31, 31]);
        pages.was_too_slow();
        pages.read(1, 2 << 20, SLOW);
        assert_eq!(pages.limit(), 2, "its objects are large");
    }

    #[test]
    fn quick_pages_of_few_large_objects_say_little_of_pages_of_many_small_ones() {
        let mut pages = Pages::default();
        pages.was_too_slow();
        for _ in 0..100 {
            pages.read(4, 4 << 20, SECOND);
        }
        pages.read(4, 4 * 2_000, SECOND);
        assert_eq!(pages.limit(), 31);
    }
}
