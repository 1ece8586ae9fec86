//! Whether the policies around the host are applied: read again and again, reported in the log and by a metric.

use decide::plan::JobKind;
use install::{check, preflight::Finding};
use kube::Client;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::sleep;
use tracing::{info, warn};
use troupe::{
    control::{
        reconcile::Context,
        supervise::{AbortOnDrop, supervise},
    },
    measure::{OfPolicy, Policies},
};

/// Time from the end of a look to the next.
const PERIOD: Duration = Duration::from_secs(300);

/// What a look has found of each policy: its name, and what is wrong with it. Else why the API server does not say.
type Looked = Result<Vec<(&'static str, Option<Finding>)>, String>;

/// Reports which of the policies around the host are applied, and for all of these kinds, until the value is dropped.
pub(super) fn report(client: Client, kinds: Vec<JobKind>, context: &Context) -> AbortOnDrop {
    let (kinds, policies) = (Arc::<[JobKind]>::from(kinds), context.policies().clone());
    supervise("policies", context.restarts(), move || {
        let (client, kinds, policies) = (client.clone(), Arc::clone(&kinds), policies.clone());
        let look = move || {
            let (client, kinds) = (client.clone(), Arc::clone(&kinds));
            async move { check::applied(&client, &kinds).await.map_err(|error| error.to_string()) }
        };
        async move { look_again(look, &policies).await }
    })
}

/// Looks, and looks again after each period.
async fn look_again<F: Future<Output = Looked>>(look: impl Fn() -> F, policies: &Policies) {
    let mut known = Known::default();
    loop {
        let looked = look().await;
        known.learn(looked).into_iter().for_each(News::log);
        for (&policy, wrong) in &known.wrong {
            policies.get_or_create(&OfPolicy { policy }).set(i64::from(wrong.is_none()));
        }
        sleep(PERIOD).await;
    }
}

/// What is known of the policies.
#[derive(Debug, Default)]
struct Known {
    /// What was wrong with each when it was read last.
    wrong: BTreeMap<&'static str, Option<Finding>>,
    /// Why the last look has found nothing, if it has not.
    unread: Option<String>,
}

/// What somebody who reads the log does not know yet.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Applied(&'static str),
    NotApplied(&'static str, Finding),
    Unknown(String),
}

impl Known {
    /// Takes in what a look has found; one that failed changes nothing of what is known. Returns what is new.
    fn learn(&mut self, looked: Looked) -> Vec<News> {
        let policies = match looked {
            Ok(policies) => policies,
            Err(why) if self.unread.as_ref() == Some(&why) => return vec![],
            Err(why) => {
                self.unread = Some(why.clone());
                return vec![News::Unknown(why)];
            }
        };
        self.unread = None;
        let news = policies.into_iter().filter_map(|(policy, wrong)| {
            let before = self.wrong.insert(policy, wrong.clone());
            if before.as_ref() == Some(&wrong) {
                return None;
            }
            match wrong {
                Some(finding) => Some(News::NotApplied(policy, finding)),
                // Applied when it is read first: as it should be.
                None => before.map(|_| News::Applied(policy)),
            }
        });
        news.collect()
    }
}

impl News {
    fn log(self) {
        match self {
            Self::Applied(policy) => info!(policy, "this policy around the host is applied now"),
            Self::NotApplied(policy, Finding { what, to_do, .. }) => {
                warn!(policy, to_do, "this host runs without a policy around it: {what}");
            }
            Self::Unknown(error) => warn!(error, "it is not known whether the policies around this host are applied"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use install::preflight::Weight;
    use std::{cell::RefCell, future::pending};
    use tokio::time::{Instant, timeout};

    fn found(wrong: Option<Finding>) -> Looked {
        Ok(vec![("fence", wrong)])
    }

    fn missing() -> Finding {
        Finding { weight: Weight::InTheWay, what: "it is missing".into(), to_do: None }
    }

    #[tokio::test(start_paused = true)]
    async fn policies_are_read_every_five_minutes_and_a_read_that_fails_keeps_what_is_known() {
        let busy = || Err("busy".to_owned());
        let looks = RefCell::new([busy(), found(Some(missing())), busy(), found(None)].into_iter());
        let (policies, begun, seen) = (Policies::default(), Instant::now(), RefCell::new(vec![]));
        let look = || {
            let gauge = policies.get(&OfPolicy { policy: "fence" }).map(|gauge| gauge.get());
            seen.borrow_mut().push((begun.elapsed().as_secs(), gauge));
            let looked = looks.borrow_mut().next();
            async move {
                match looked {
                    Some(looked) => looked,
                    None => pending().await,
                }
            }
        };
        timeout(PERIOD * 5, look_again(look, &policies)).await.unwrap_err();
        let expected = [(0, None), (300, None), (600, Some(0)), (900, Some(0)), (1200, Some(1))];
        assert_eq!(*seen.borrow(), expected);
    }

    #[test]
    fn what_the_log_has_already_is_not_reported_again() {
        let mut known = Known::default();
        let looks = [
            (found(None), vec![]),
            (found(Some(missing())), vec![News::NotApplied("fence", missing())]),
            (found(Some(missing())), vec![]),
            (Err("busy".into()), vec![News::Unknown("busy".into())]),
            (Err("busy".into()), vec![]),
            (found(Some(missing())), vec![]),
            (found(None), vec![News::Applied("fence")]),
        ];
        for (looked, news) in looks {
            assert_eq!(known.learn(looked), news);
        }
    }
}
