//! A semaphore with fair order. Namespaces take turns, and one holds at most its share of the permits, so that there is
//! room for others. Pods go before everything else: in a burst of jobs the pods of all jobs are created before the
//! Services of any, so that they are scheduled and pull their images meanwhile. tokio's semaphore serves in the order of
//! arrival alone.

use crate::lanes::{Amount, Lanes, Share, Shares};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::{sync::oneshot, time::Instant};

/// One turn in this many goes to the rest even while pods wait, so that a stream of pods does not starve the rest.
const ONE_IN: usize = 4;

/// What a turn is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// A pod, or the Job that makes one.
    Pod,
    /// Everything else.
    Rest,
}

/// A semaphore with a queue; requests of the same rank and namespace keep their order.
#[derive(Debug, Clone)]
pub struct Turns {
    waiting: Arc<Mutex<Waiting>>,
    /// The maximum of one request.
    largest: usize,
}

#[derive(Debug)]
struct Waiting {
    free: usize,
    shares: Shares,
    pods: Lanes<PendingRequest>,
    rest: Lanes<PendingRequest>,
    /// Turns given to pods since the last turn of the rest.
    pods_in_a_row: usize,
}

/// A request that waits for its turn.
#[derive(Debug)]
struct PendingRequest {
    amount: usize,
    give: oneshot::Sender<Turn>,
}

impl Amount for PendingRequest {
    fn amount(&self) -> usize {
        self.amount
    }
}

/// A permit. Dropping it gives the turn to the next in the queue.
#[derive(Debug)]
pub struct Turn {
    waiting: Arc<Mutex<Waiting>>,
    namespace: String,
    amount: usize,
}

impl Turns {
    /// Allows an amount of `at_once` at a time, at most a `share` of it in one namespace.
    #[must_use]
    pub fn new(at_once: usize, share: Share) -> Self {
        let (pods, rest) = (Lanes::default(), Lanes::default());
        let waiting = Waiting { free: at_once, shares: Shares::of(share), pods, rest, pods_in_a_row: 0 };
        Self { waiting: Arc::new(Mutex::new(waiting)), largest: share.alone.min(share.beside) }
    }

    /// Waits for a turn. A caller that stops waiting passes its turn on.
    pub async fn wait(&self, rank: Rank, namespace: &str) -> Turn {
        self.wait_for(1, rank, namespace).await
    }

    /// Waits for a turn of this amount; an amount above the share of a namespace counts as the whole share. A smaller
    /// request does not overtake the next one in the order while that waits for room.
    pub async fn wait_for(&self, amount: usize, rank: Rank, namespace: &str) -> Turn {
        let amount = amount.min(self.largest);
        let turn = {
            let mut waiting = self.waiting.lock();
            let now = Instant::now();
            if waiting.is_free_for(amount, namespace, now) {
                waiting.begin(namespace, amount, now);
                return self.turn(namespace.to_owned(), amount);
            }
            let (give, turn) = oneshot::channel();
            waiting.lanes(rank).push(namespace, PendingRequest { amount, give });
            turn
        };
        match turn.await {
            Ok(turn) => turn,
            Err(_) => unreachable!("those who wait are dropped after the last turn, which gives them theirs"),
        }
    }

    fn turn(&self, namespace: String, amount: usize) -> Turn {
        Turn { waiting: Arc::clone(&self.waiting), namespace, amount }
    }
}

impl Waiting {
    fn lanes(&mut self, rank: Rank) -> &mut Lanes<PendingRequest> {
        match rank {
            Rank::Pod => &mut self.pods,
            Rank::Rest => &mut self.rest,
        }
    }

    /// Returns whether a request waits whose namespace has room in its share.
    fn is_asked_for(&self, now: Instant) -> bool {
        [&self.pods, &self.rest].into_iter().any(|lanes| lanes.next(&self.shares, now).is_some())
    }

    /// Returns whether there is room for this amount, and no other request waits for the room.
    fn is_free_for(&self, amount: usize, namespace: &str, now: Instant) -> bool {
        amount <= self.free && self.shares.has_room(namespace, amount, now) && !self.is_asked_for(now)
    }

    fn begin(&mut self, namespace: &str, amount: usize, now: Instant) {
        self.free -= amount;
        self.shares.begin(namespace, amount, now);
    }

    /// Whose turn it is, if there is room for it.
    fn next(&mut self, now: Instant) -> Option<(String, PendingRequest)> {
        let (rank, amount) = match (self.pods.next(&self.shares, now), self.rest.next(&self.shares, now)) {
            (Some(pod), Some(_)) if self.pods_in_a_row + 1 < ONE_IN => (Rank::Pod, pod),
            (Some(pod), None) => (Rank::Pod, pod),
            (_, rest) => (Rank::Rest, rest?),
        };
        if amount > self.free {
            return None;
        }
        self.pods_in_a_row = if rank == Rank::Pod { self.pods_in_a_row + 1 } else { 0 };
        let Self { pods, rest, shares, .. } = self;
        if rank == Rank::Pod { pods.pop(shares, now) } else { rest.pop(shares, now) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut given = Vec::new();
        let mut waiting = self.waiting.lock();
        let now = Instant::now();
        waiting.free += self.amount;
        waiting.shares.end(&self.namespace, self.amount);
        if !waiting.is_asked_for(now) {
            waiting.pods_in_a_row = 0;
        }
        while let Some((namespace, PendingRequest { amount, give })) = waiting.next(now) {
            waiting.begin(&namespace, amount, now);
            given.push((give, Self { waiting: Arc::clone(&self.waiting), namespace, amount }));
        }
        drop(waiting);
        // One that nobody waits for any more comes back, and is dropped in its turn.
        given.into_iter().for_each(|(give, turn)| drop(give.send(turn)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt, future::BoxFuture};

    fn takes(turns: &Turns, rank: Rank, namespace: &str) -> Turn {
        turns.wait(rank, namespace).now_or_never().expect("a turn is free")
    }

    fn asks<'a>(turns: &'a Turns, rank: Rank, namespace: &'a str) -> BoxFuture<'a, Turn> {
        let mut waits = turns.wait(rank, namespace).boxed();
        assert!((&mut waits).now_or_never().is_none(), "it has to wait");
        waits
    }

    /// Returns the names of the waiting calls in the order of their turns.
    fn order(mut turn: Option<Turn>, mut waiting: Vec<(char, BoxFuture<'_, Turn>)>) -> String {
        let mut order = String::new();
        while !waiting.is_empty() {
            drop(turn.take());
            let next = waiting.iter_mut().enumerate().find_map(|(at, (_, wait))| Some((at, wait.now_or_never()?)));
            let (at, given) = next.expect("somebody's turn");
            turn = Some(given);
            order.push(waiting.remove(at).0);
        }
        order
    }

    #[test]
    fn a_limited_number_of_turns_is_held_at_once() {
        let turns = Turns::new(2, Share::fixed(2));
        let [one, _two] = [(), ()].map(|()| takes(&turns, Rank::Rest, "a"));
        let mut third = asks(&turns, Rank::Rest, "a");
        drop(one);
        assert!((&mut third).now_or_never().is_some());
    }

    #[test]
    fn pods_go_first_and_one_turn_in_four_to_the_rest() {
        let turns = Turns::new(1, Share::fixed(1));
        let turn = takes(&turns, Rank::Rest, "a");
        let ranks = [['r'; 3], ['p'; 3], ['p'; 3]].concat();
        let rank = |name| if name == 'p' { Rank::Pod } else { Rank::Rest };
        let waiting = ranks.into_iter().map(|name| (name, asks(&turns, rank(name), "a"))).collect();
        assert_eq!(order(Some(turn), waiting), "ppprppprr");
    }

    #[test]
    fn a_turn_that_nobody_waits_for_begins_another_row_of_pods() {
        let turns = Turns::new(1, Share::fixed(1));
        let turn = takes(&turns, Rank::Pod, "a");
        let pods = ['1', '2', '3'].map(|name| (name, asks(&turns, Rank::Pod, "a")));
        assert_eq!(order(Some(turn), pods.into()), "123");
        let turn = takes(&turns, Rank::Rest, "a");
        let rest = ('r', asks(&turns, Rank::Rest, "a"));
        let pods = ['4', '5'].map(|name| (name, asks(&turns, Rank::Pod, "a")));
        assert_eq!(order(Some(turn), [rest].into_iter().chain(pods).collect()), "45r");
    }

    #[test]
    fn namespaces_take_turns() {
        let turns = Turns::new(1, Share::fixed(1));
        let turn = takes(&turns, Rank::Pod, "crowd");
        let crowd = ['1', '2', '3', '4'].map(|name| (name, asks(&turns, Rank::Pod, "crowd")));
        let quiet = ('q', asks(&turns, Rank::Pod, "quiet"));
        assert_eq!(order(Some(turn), crowd.into_iter().chain([quiet]).collect()), "1q234");
    }

    #[test]
    fn a_namespace_with_its_share_under_way_leaves_room_for_others() {
        let turns = Turns::new(3, Share::fixed(2));
        let [one, _two] = [(), ()].map(|()| takes(&turns, Rank::Pod, "crowd"));
        let mut third = asks(&turns, Rank::Pod, "crowd");
        drop(takes(&turns, Rank::Rest, "quiet"));
        assert!((&mut third).now_or_never().is_none(), "the place is for others");
        drop(one);
        assert!((&mut third).now_or_never().is_some());
    }

    #[test]
    fn a_call_that_stopped_waiting_passes_its_turn_on() {
        let turns = Turns::new(1, Share::fixed(1));
        let turn = takes(&turns, Rank::Pod, "a");
        drop(asks(&turns, Rank::Pod, "a"));
        let mut later = asks(&turns, Rank::Rest, "a");
        drop(turn);
        drop((&mut later).now_or_never().expect("its turn"));
        takes(&turns, Rank::Rest, "a");
    }

    #[test]
    fn a_turn_that_was_given_but_not_taken_is_passed_on() {
        let turns = Turns::new(1, Share::fixed(1));
        let turn = takes(&turns, Rank::Pod, "a");
        let given = asks(&turns, Rank::Pod, "a");
        drop(turn);
        drop(given);
        takes(&turns, Rank::Rest, "a");
    }

    /// Bytes, say: of nine at once six may be of one namespace.
    fn takes_much(turns: &Turns, amount: usize, namespace: &str) -> Turn {
        turns.wait_for(amount, Rank::Pod, namespace).now_or_never().expect("there is room")
    }

    fn asks_much<'a>(turns: &'a Turns, amount: usize, namespace: &'a str) -> BoxFuture<'a, Turn> {
        let mut waits = turns.wait_for(amount, Rank::Pod, namespace).boxed();
        assert!((&mut waits).now_or_never().is_none(), "it has to wait");
        waits
    }

    #[test]
    fn what_is_large_of_one_namespace_leaves_room_for_what_is_small_of_others() {
        let turns = Turns::new(9, Share::fixed(6));
        let large = takes_much(&turns, 5, "crowd");
        let mut crowd = [5, 5, 5].map(|amount| asks_much(&turns, amount, "crowd"));
        let small = [1, 2].map(|amount| takes_much(&turns, amount, "quiet"));
        drop((large, small));
        for next in &mut crowd {
            drop(next.now_or_never().expect("its turn"));
        }
    }

    #[test]
    fn what_is_larger_than_a_share_counts_as_the_share() {
        let turns = Turns::new(9, Share::fixed(6));
        let _huge = takes_much(&turns, usize::MAX, "a");
        takes_much(&turns, 3, "b");
    }

    // A stream of small ones would keep it waiting for ever.
    #[test]
    fn nothing_smaller_passes_one_whose_turn_it_is() {
        let turns = Turns::new(9, Share::fixed(6));
        let (six, two) = (takes_much(&turns, 6, "a"), takes_much(&turns, 2, "b"));
        let mut large = asks_much(&turns, 4, "c");
        let mut small = asks_much(&turns, 1, "d");
        drop(two);
        assert!((&mut large).now_or_never().is_none() && (&mut small).now_or_never().is_none());
        drop(six);
        let _both = (large.now_or_never().expect("its turn"), small.now_or_never().expect("room is left"));
    }

    #[test]
    fn the_namespace_with_the_least_under_way_is_next_not_the_one_with_the_fewest() {
        let turns = Turns::new(9, Share::fixed(6));
        let held = [takes_much(&turns, 4, "large"), takes_much(&turns, 1, "small"), takes_much(&turns, 1, "small")];
        let full = takes_much(&turns, 3, "other");
        let mut large = asks_much(&turns, 2, "large");
        let mut small = asks_much(&turns, 3, "small");
        drop(full);
        let _given = (&mut small).now_or_never().expect("two are less than four");
        assert!((&mut large).now_or_never().is_none());
        drop(held);
        assert!((&mut large).now_or_never().is_some());
    }
}
