//! Places that many share: each who takes some, a user or an address, has a limit of his own, and nobody keeps all of them
//! from others.

use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::Notify;

/// The places. A holder who has as many as one may gets another one for one that he does not use. When all are taken, the
/// holder with the most gives one to him who has fewer.
pub(super) struct Seats<K> {
    most: usize,
    of_one: usize,
    taken: Mutex<Taken<K>>,
}

struct Taken<K> {
    /// The places of each holder, the oldest first.
    by_holder: BTreeMap<K, Vec<Entry>>,
    /// How often anything has changed.
    changes: u64,
}

struct Entry {
    id: u64,
    /// Since which change it has not been in use; `None` while it is.
    idle: Option<u64>,
    revoked: Arc<Notify>,
}

/// One place; free again when dropped.
pub(super) struct Seat<K: Ord> {
    seats: Arc<Seats<K>>,
    holder: K,
    id: u64,
    revoked: Arc<Notify>,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// The holder uses as many as one may have.
    OfOne,
    /// All are taken, by holders that have no more than he has.
    OfAll,
}

impl<K: Ord + Clone> Seats<K> {
    /// Returns `most` places, all of them free, of which one holder may have `of_one`.
    pub(super) fn new(most: usize, of_one: usize) -> Arc<Self> {
        let taken = Taken { by_holder: BTreeMap::new(), changes: 0 };
        Arc::new(Self { most, of_one, taken: Mutex::new(taken) })
    }

    /// Takes a place, which is in use.
    ///
    /// # Errors
    /// There is none for this holder.
    pub(super) fn take(self: &Arc<Self>, holder: K) -> Result<Seat<K>, NoSeat> {
        let mut taken = self.taken.lock();
        let own = taken.by_holder.get(&holder).map_or(0, Vec::len);
        if own >= self.of_one {
            let idle = taken.by_holder.get_mut(&holder).and_then(longest_idle);
            idle.ok_or(NoSeat::OfOne)?.revoked.notify_one();
        } else if taken.by_holder.values().map(Vec::len).sum::<usize>() >= self.most {
            let most = taken.by_holder.values_mut().max_by_key(|of_holder| of_holder.len());
            let most = most.filter(|most| most.len() > own).ok_or(NoSeat::OfAll)?;
            longest_idle(most).unwrap_or_else(|| most.remove(0)).revoked.notify_one();
        }
        taken.by_holder.retain(|_, of_holder| !of_holder.is_empty());
        Ok(self.seat(&mut taken, holder))
    }

    /// Takes a place that nobody has, as [`take`](Self::take) does: for what cannot be ended before its time.
    ///
    /// # Errors
    /// There is none for this holder.
    pub(super) fn take_free(self: &Arc<Self>, holder: K) -> Result<Seat<K>, NoSeat> {
        let mut taken = self.taken.lock();
        if taken.by_holder.get(&holder).map_or(0, Vec::len) >= self.of_one {
            return Err(NoSeat::OfOne);
        }
        if taken.by_holder.values().map(Vec::len).sum::<usize>() >= self.most {
            return Err(NoSeat::OfAll);
        }
        Ok(self.seat(&mut taken, holder))
    }

    fn seat(self: &Arc<Self>, taken: &mut Taken<K>, holder: K) -> Seat<K> {
        taken.changes += 1;
        let (id, revoked) = (taken.changes, Arc::new(Notify::new()));
        let entry = Entry { id, idle: None, revoked: Arc::clone(&revoked) };
        taken.by_holder.entry(holder.clone()).or_default().push(entry);
        Seat { seats: Arc::clone(self), holder, id, revoked }
    }

    /// Returns whether no place is taken.
    pub(super) fn are_free(&self) -> bool {
        self.taken.lock().by_holder.is_empty()
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.taken.lock().by_holder.values().map(Vec::len).sum()
    }
}

/// Removes the place that has not been in use for the longest, if there is one.
fn longest_idle(of_holder: &mut Vec<Entry>) -> Option<Entry> {
    let idle = of_holder.iter().enumerate().filter_map(|(at, entry)| Some((entry.idle?, at)));
    idle.min().map(|(_, at)| of_holder.remove(at))
}

impl<K: Ord> Seat<K> {
    /// Notes whether the place is in use.
    pub(super) fn set_in_use(&self, in_use: bool) {
        let mut taken = self.seats.taken.lock();
        taken.changes += 1;
        let now = taken.changes;
        let of_holder = taken.by_holder.get_mut(&self.holder);
        if let Some(entry) = of_holder.and_then(|all| all.iter_mut().find(|entry| entry.id == self.id)) {
            entry.idle = (!in_use).then_some(now);
        }
    }

    /// Returns who has the place.
    pub(super) fn holder(&self) -> &K {
        &self.holder
    }

    /// Returns what completes when somebody else has been given the place.
    pub(super) fn revoked(&self) -> impl Future<Output = ()> + Send + use<K> {
        let revoked = Arc::clone(&self.revoked);
        async move { revoked.notified().await }
    }
}

impl<K: Ord> Drop for Seat<K> {
    fn drop(&mut self) {
        let mut taken = self.seats.taken.lock();
        if let Some(of_holder) = taken.by_holder.get_mut(&self.holder) {
            of_holder.retain(|entry| entry.id != self.id);
            if of_holder.is_empty() {
                taken.by_holder.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const MOST: usize = 32;
    const OF_ONE: usize = 4;

    fn seats() -> Arc<Seats<usize>> {
        Seats::new(MOST, OF_ONE)
    }

    /// Returns which of these were given to others.
    fn revoked(seats: &[Seat<usize>]) -> Vec<usize> {
        let is_revoked = |seat: &Seat<usize>| seat.revoked().now_or_never().is_some();
        seats.iter().enumerate().filter_map(|(at, seat)| is_revoked(seat).then_some(at)).collect()
    }

    #[test]
    fn one_holder_has_a_limit_and_others_have_places_beside_him() {
        let seats = seats();
        let taken: Vec<_> = (0..100).map_while(|_| seats.take(1).ok()).collect();
        assert_eq!((taken.len(), seats.take(1).err()), (OF_ONE, Some(NoSeat::OfOne)));
        assert!(seats.take(2).is_ok());
        assert_eq!(revoked(&taken), [0; 0]);
        drop(taken);
        assert!(seats.are_free());
    }

    #[test]
    fn a_holder_with_all_of_his_gives_the_one_that_he_has_not_used_for_the_longest() {
        let seats = seats();
        let mut taken: Vec<_> = (0..OF_ONE).map(|_| seats.take(1).unwrap()).collect();
        taken[2].set_in_use(false);
        taken[1].set_in_use(false);
        taken[3].set_in_use(false);
        taken[3].set_in_use(true);
        taken.push(seats.take(1).unwrap());
        assert_eq!(revoked(&taken), [2]);
        taken.push(seats.take(1).unwrap());
        assert_eq!(revoked(&taken), [1]);
        assert_eq!((seats.take(1).err(), seats.count()), (Some(NoSeat::OfOne), OF_ONE));
        // What was given away changes nothing any more.
        taken[2].set_in_use(false);
        taken.remove(1);
        assert_eq!((seats.take(1).err(), seats.count()), (Some(NoSeat::OfOne), OF_ONE));
    }

    #[test]
    fn where_all_are_taken_one_more_gets_a_place_of_the_holder_with_the_most() {
        for holders in [MOST / OF_ONE, MOST] {
            let seats = seats();
            let taken: Vec<_> = (0..MOST).map(|at| seats.take(at % holders).unwrap()).collect();
            let one_more = seats.take(MOST).unwrap();
            assert_eq!(seats.count(), MOST);
            assert_eq!(revoked(&taken).len(), 1, "one of {holders} gave a place");
            assert!(one_more.revoked().now_or_never().is_none());
            drop((taken, one_more));
            assert!(seats.are_free());
        }
    }

    // Else two that come again and again would take each other's places.
    #[test]
    fn nobody_gets_a_place_of_one_who_has_as_few() {
        let seats = seats();
        let taken: Vec<_> = (0..MOST).map(|at| seats.take(at).unwrap()).collect();
        assert!((0..MOST).all(|at| seats.take(at).err() == Some(NoSeat::OfAll)));
        assert_eq!(revoked(&taken), [0; 0]);
    }
}
