//! Waiting for a condition instead of for a while.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Pause between two looks.
const STEP: Duration = Duration::from_millis(5);

/// True as soon as `condition` holds; false when it still does not after `within`.
///
/// The caller asserts, so that the assertion stays in the test:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// assert!(weida_testkit::eventually(|| true, Duration::from_secs(1)).await);
/// # }
/// ```
pub async fn eventually(mut condition: impl FnMut() -> bool, within: Duration) -> bool {
    eventually_some(|| std::future::ready(condition().then_some(())), within)
        .await
        .is_some()
}

/// The first value that `look` finds; `None` when it finds none within the time.
///
/// A look that hangs ends with the time, too.
pub async fn eventually_some<T, F>(mut look: impl FnMut() -> F, within: Duration) -> Option<T>
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + within;
    loop {
        let found = tokio::time::timeout_at(deadline, look()).await;
        match found {
            Ok(Some(value)) => return Some(value),
            Ok(None) if Instant::now() < deadline => sleep(STEP).await,
            Ok(None) | Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_waits_no_longer_than_needed_and_no_longer_than_allowed() {
        let begun = Instant::now();
        let at = begun + Duration::from_millis(200);
        assert!(eventually(|| Instant::now() >= at, Duration::from_secs(5)).await);
        assert!(begun.elapsed() < Duration::from_millis(250));
        let begun = Instant::now();
        assert!(!eventually(|| false, Duration::from_secs(2)).await);
        assert!(begun.elapsed() < Duration::from_millis(2100));
        let hangs =
            eventually_some(std::future::pending::<Option<()>>, Duration::from_secs(2)).await;
        assert!(hangs.is_none());
    }
}
