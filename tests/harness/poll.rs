//! Waiting for a predicate with a deadline: the only way tests wait.

use std::fmt::Display;
use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

const PAUSE: Duration = Duration::from_millis(50);

/// The value of the first look that finds one.
///
/// `look` is called again and again until it returns `Ok(Some(value))`. `Ok(None)` means "not yet"; an error also means "not yet",
/// because a cluster that is coming up refuses requests, but the last one is told when `deadline` has passed.
pub async fn until<T, F, Fut>(deadline: Duration, what: impl Display, mut look: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<Option<T>>>,
{
    let begun = Instant::now();
    let mut looks = 0_u32;
    loop {
        looks += 1;
        let last = match look().await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        if begun.elapsed() < deadline {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        match last {
            Some(error) => {
                return Err(error.context(format!("{what}: not within {deadline:?}, {looks} looks")));
            }
            None => bail!("{what}: not within {deadline:?}, {looks} looks"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_value_that_comes_later_is_returned() {
        let mut looks = 0;
        let value = until(Duration::from_secs(1), "the third look", || {
            looks += 1;
            let seen = (looks == 3).then_some(looks);
            async move { Ok(seen) }
        });
        assert_eq!(value.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn the_last_error_is_reported_when_time_is_up() {
        let never = until::<(), _, _>(Duration::ZERO, "pod/a to run", || async { bail!("connection refused") });
        let error = format!("{:#}", never.await.unwrap_err());
        assert_eq!(error, "pod/a to run: not within 0ns, 1 looks: connection refused");
    }
}
