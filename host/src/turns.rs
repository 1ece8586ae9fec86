//! Whose request is next when many want to make one: so many are under way at once, and pods go before everything else.
//! In a burst of jobs the pods of all of them are made before the Services of any, so that they are scheduled and pull
//! their images meanwhile.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;

/// One turn in so many goes to the rest even while pods wait, so that a stream of pods holds nothing up for good.
const ONE_IN: usize = 4;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// A pod, or the Job that makes one.
    Pod,
    /// Everything else.
    Rest,
}

/// The queue for turns; those of a rank come in the order in which they asked.
#[derive(Debug)]
pub(crate) struct Turns(Arc<Mutex<Waiting>>);

#[derive(Debug)]
struct Waiting {
    free: usize,
    pods: VecDeque<oneshot::Sender<Turn>>,
    rest: VecDeque<oneshot::Sender<Turn>>,
    /// Turns of pods since the last of the rest.
    pods_in_a_row: usize,
}

/// A request may be under way as long as this is held. The next one's turn comes when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Mutex<Waiting>>);

impl Turns {
    /// So many at once.
    pub(crate) fn new(at_once: usize) -> Self {
        let waiting = Waiting { free: at_once, pods: VecDeque::new(), rest: VecDeque::new(), pods_in_a_row: 0 };
        Self(Arc::new(Mutex::new(waiting)))
    }

    /// Waits for a turn. Who gives up waiting passes it on.
    pub(crate) async fn wait(&self, rank: Rank) -> Turn {
        let turn = {
            let mut waiting = lock(&self.0);
            if waiting.free > 0 {
                waiting.free -= 1;
                return Turn(Arc::clone(&self.0));
            }
            let (give, turn) = oneshot::channel();
            waiting.line(rank).push_back(give);
            turn
        };
        match turn.await {
            Ok(turn) => turn,
            Err(_) => unreachable!("those who wait are dropped after the last turn, which gives them theirs"),
        }
    }
}

impl Waiting {
    fn line(&mut self, rank: Rank) -> &mut VecDeque<oneshot::Sender<Turn>> {
        match rank {
            Rank::Pod => &mut self.pods,
            Rank::Rest => &mut self.rest,
        }
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let rank = match (self.pods.is_empty(), self.rest.is_empty()) {
            (false, false) if self.pods_in_a_row + 1 < ONE_IN => Rank::Pod,
            (false, true) => Rank::Pod,
            _ => Rank::Rest,
        };
        self.pods_in_a_row = if rank == Rank::Pod { self.pods_in_a_row + 1 } else { 0 };
        self.line(rank).pop_front()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0);
        match waiting.next() {
            Some(next) => {
                drop(waiting);
                // One that nobody waits for any more comes back, and is dropped in its turn.
                drop(next.send(Self(Arc::clone(&self.0))));
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

    fn asks(turns: &Turns, rank: Rank) -> BoxFuture<'_, Turn> {
        let mut waits = turns.wait(rank).boxed();
        assert!((&mut waits).now_or_never().is_none(), "it has to wait");
        waits
    }

    #[test]
    fn so_many_are_under_way_at_once() {
        let turns = Turns::new(2);
        let [one, _two] = [(), ()].map(|()| turns.wait(Rank::Rest).now_or_never().unwrap());
        let mut third = asks(&turns, Rank::Rest);
        drop(one);
        assert!((&mut third).now_or_never().is_some());
    }

    #[test]
    fn pods_go_first_and_one_turn_in_four_to_the_rest() {
        let turns = Turns::new(1);
        let mut turn = turns.wait(Rank::Rest).now_or_never();
        let ranks = [[Rank::Rest; 3], [Rank::Pod; 3], [Rank::Pod; 3]].concat();
        let mut waiting: Vec<_> = ranks.into_iter().map(|rank| (rank, asks(&turns, rank))).collect();
        let mut order = String::new();
        while !waiting.is_empty() {
            drop(turn.take());
            let next = waiting.iter_mut().enumerate().find_map(|(at, (_, wait))| Some((at, wait.now_or_never()?)));
            let (at, given) = next.expect("somebody's turn");
            turn = Some(given);
            order.push(if waiting.remove(at).0 == Rank::Pod { 'p' } else { 'r' });
        }
        assert_eq!(order, "ppprppprr");
    }

    #[test]
    fn who_gave_up_waiting_passes_its_turn_on() {
        let turns = Turns::new(1);
        let turn = turns.wait(Rank::Pod).now_or_never().unwrap();
        drop(asks(&turns, Rank::Pod));
        let mut later = asks(&turns, Rank::Rest);
        drop(turn);
        drop((&mut later).now_or_never().expect("its turn"));
        assert!(turns.wait(Rank::Rest).now_or_never().is_some());
    }

    #[test]
    fn a_turn_that_was_given_and_not_taken_is_passed_on() {
        let turns = Turns::new(1);
        let turn = turns.wait(Rank::Pod).now_or_never().unwrap();
        let given = asks(&turns, Rank::Pod);
        drop(turn);
        drop(given);
        assert!(turns.wait(Rank::Rest).now_or_never().is_some());
    }
}
