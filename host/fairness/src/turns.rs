//! A semaphore with fair order. Namespaces take turns, and one holds at most its share of the permits, so that there is
//! room for others. Pods go before everything else: in a burst of jobs the pods of all jobs are created before the
//! Services of any, so that they are scheduled and pull their images meanwhile.

use crate::lanes::{Lanes, Shares};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

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
pub struct Turns(Arc<Mutex<Waiting>>);

#[derive(Debug)]
struct Waiting {
    free: usize,
    shares: Shares,
    pods: Lanes<oneshot::Sender<Turn>>,
    rest: Lanes<oneshot::Sender<Turn>>,
    /// Turns given to pods since the last turn of the rest.
    pods_in_a_row: usize,
}

/// A permit. Dropping it gives the turn to the next in the queue.
#[derive(Debug)]
pub struct Turn {
    turns: Arc<Mutex<Waiting>>,
    namespace: String,
}

impl Turns {
    /// Allows `at_once` turns at a time, at most `of_one` of them in one namespace.
    pub fn new(at_once: usize, of_one: usize) -> Self {
        let (pods, rest) = (Lanes::default(), Lanes::default());
        let waiting = Waiting { free: at_once, shares: Shares::of(of_one), pods, rest, pods_in_a_row: 0 };
        Self(Arc::new(Mutex::new(waiting)))
    }

    /// Waits for a turn. A caller that stops waiting passes its turn on.
    pub async fn wait(&self, rank: Rank, namespace: &str) -> Turn {
        let turn = {
            let mut waiting = lock(&self.0);
            if waiting.free > 0 && waiting.shares.has_room(namespace) {
                waiting.free -= 1;
                waiting.shares.begin(namespace);
                return self.turn(namespace.to_owned());
            }
            let (give, turn) = oneshot::channel();
            waiting.lanes(rank).push(namespace, give);
            turn
        };
        match turn.await {
            Ok(turn) => turn,
            Err(_) => unreachable!("those who wait are dropped after the last turn, which gives them theirs"),
        }
    }

    fn turn(&self, namespace: String) -> Turn {
        Turn { turns: Arc::clone(&self.0), namespace }
    }
}

impl Waiting {
    fn lanes(&mut self, rank: Rank) -> &mut Lanes<oneshot::Sender<Turn>> {
        match rank {
            Rank::Pod => &mut self.pods,
            Rank::Rest => &mut self.rest,
        }
    }

    fn next(&mut self) -> Option<(String, oneshot::Sender<Turn>)> {
        let rank = match (self.pods.has(&self.shares), self.rest.has(&self.shares)) {
            (true, true) if self.pods_in_a_row + 1 < ONE_IN => Rank::Pod,
            (true, false) => Rank::Pod,
            _ => Rank::Rest,
        };
        self.pods_in_a_row = if rank == Rank::Pod { self.pods_in_a_row + 1 } else { 0 };
        let Self { pods, rest, shares, .. } = self;
        if rank == Rank::Pod { pods.pop(shares) } else { rest.pop(shares) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut waiting = lock(&self.turns);
        waiting.shares.end(&self.namespace);
        match waiting.next() {
            Some((namespace, next)) => {
                waiting.shares.begin(&namespace);
                drop(waiting);
                // If the receiver is gone, `send` returns the turn; dropping it passes the turn on.
                drop(next.send(Self { turns: Arc::clone(&self.turns), namespace }));
            }
            None => waiting.free += 1,
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
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
        let turns = Turns::new(2, 2);
        let [one, _two] = [(), ()].map(|()| takes(&turns, Rank::Rest, "a"));
        let mut third = asks(&turns, Rank::Rest, "a");
        drop(one);
        assert!((&mut third).now_or_never().is_some());
    }

    #[test]
    fn pods_go_first_and_one_turn_in_four_to_the_rest() {
        let turns = Turns::new(1, 1);
        let turn = takes(&turns, Rank::Rest, "a");
        let ranks = [['r'; 3], ['p'; 3], ['p'; 3]].concat();
        let rank = |name| if name == 'p' { Rank::Pod } else { Rank::Rest };
        let waiting = ranks.into_iter().map(|name| (name, asks(&turns, rank(name), "a"))).collect();
        assert_eq!(order(Some(turn), waiting), "ppprppprr");
    }

    #[test]
    fn namespaces_take_turns() {
        let turns = Turns::new(1, 1);
        let turn = takes(&turns, Rank::Pod, "crowd");
        let crowd = ['1', '2', '3', '4'].map(|name| (name, asks(&turns, Rank::Pod, "crowd")));
        let quiet = ('q', asks(&turns, Rank::Pod, "quiet"));
        assert_eq!(order(Some(turn), crowd.into_iter().chain([quiet]).collect()), "1q234");
    }

    #[test]
    fn a_namespace_with_its_share_under_way_leaves_room_for_others() {
        let turns = Turns::new(3, 2);
        let [one, _two] = [(), ()].map(|()| takes(&turns, Rank::Pod, "crowd"));
        let mut third = asks(&turns, Rank::Pod, "crowd");
        drop(takes(&turns, Rank::Rest, "quiet"));
        assert!((&mut third).now_or_never().is_none(), "the place is for others");
        drop(one);
        assert!((&mut third).now_or_never().is_some());
    }

    #[test]
    fn a_call_that_stopped_waiting_passes_its_turn_on() {
        let turns = Turns::new(1, 1);
        let turn = takes(&turns, Rank::Pod, "a");
        drop(asks(&turns, Rank::Pod, "a"));
        let mut later = asks(&turns, Rank::Rest, "a");
        drop(turn);
        drop((&mut later).now_or_never().expect("its turn"));
        takes(&turns, Rank::Rest, "a");
    }

    #[test]
    fn a_turn_that_was_given_but_not_taken_is_passed_on() {
        let turns = Turns::new(1, 1);
        let turn = takes(&turns, Rank::Pod, "a");
        let given = asks(&turns, Rank::Pod, "a");
        drop(turn);
        drop(given);
        takes(&turns, Rank::Rest, "a");
    }
}
