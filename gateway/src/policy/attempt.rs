//! Layer 10: how long one attempt may take.
//!
//! Own instead of `tower::timeout`, whose error is a boxed `dyn Error`: here an attempt that is cut has an *unknown*
//! outcome, which is neither success nor failure [weida TX-13], and the retries must see that as a value.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tower_layer::Layer;
use tower_service::Service;
use weida_bridge::{FabricError, Outcome};

use super::message::Attempt;
use super::stats::{RetryCause, RouteStats};

/// Builds [`AttemptTimeout`] services.
#[derive(Clone, Debug)]
pub struct AttemptTimeoutLayer {
    /// Longest attempt; `None` = as long as the message lives.
    pub limit: Option<Duration>,
    /// Where attempts are counted.
    pub stats: Arc<RouteStats>,
}

impl<S> Layer<S> for AttemptTimeoutLayer {
    type Service = AttemptTimeout<S>;

    fn layer(&self, inner: S) -> AttemptTimeout<S> {
        AttemptTimeout {
            terms: self.clone(),
            inner,
        }
    }
}

/// Cuts an attempt that takes too long and says that its outcome is unknown.
#[derive(Clone, Debug)]
pub struct AttemptTimeout<S> {
    terms: AttemptTimeoutLayer,
    inner: S,
}

impl<S> Service<Attempt> for AttemptTimeout<S>
where
    S: Service<Attempt, Response = Outcome, Error = FabricError>,
    S::Future: Send + 'static,
{
    type Response = Outcome;
    type Error = FabricError;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, FabricError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), FabricError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, attempt: Attempt) -> Self::Future {
        let stats = Arc::clone(&self.terms.stats);
        let limit = self.terms.limit;
        let mark = attempt.mark.clone();
        let begun = tokio::time::Instant::now();
        let inner = self.inner.call(attempt);
        Box::pin(async move {
            let result = match limit {
                None => inner.await,
                Some(limit) => match tokio::time::timeout(limit, inner).await {
                    Ok(result) => result,
                    Err(_elapsed) => {
                        mark.last_cause(RetryCause::Timeout);
                        Ok(Outcome::Indeterminate)
                    }
                },
            };
            stats.attempt(begun.elapsed());
            if matches!(result, Ok(Outcome::Indeterminate)) {
                mark.outcome_unknown();
            }
            result
        })
    }
}
