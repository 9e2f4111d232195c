//! Layer 9: what is sent again, when, and at whose expense.
//!
//! tower's `Retry` runs it and tower's token budget (`TpsBudget`) pays for it; this file decides. A retry holds its
//! concurrency permit for the whole sequence, which is wanted: it is one message at the destination.
//!
//! | result of an attempt | sent again | counts as an attempt | costs a token |
//! | --- | --- | --- | --- |
//! | destination away, nothing was sent | always: waiting is not failing | no | no |
//! | unknown, the connection broke | if it may be repeated | yes | no: one cut, one resend |
//! | unknown otherwise | if it may be repeated | yes | yes |
//! | "not now" (limit, queue, rate) | if it may be repeated | yes | yes |
//! | a definite no | never | | |
//!
//! A message may be repeated on an at-least-once route, and a request when the route says `idempotent`. An exhausted
//! budget is not a drop: the message waits with back-off until tokens return; only `timeout` and `max_attempts` end it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use tower::retry::Policy;
use tower::retry::budget::{Budget, TpsBudget};
use weida_bridge::{DropCause, FabricError, FabricErrorKind, Ledger, Outcome, Refusal};

use super::message::Attempt;
use super::stats::{RetryCause, RouteStats};
use crate::config::valid;

/// The retries of one route, shared by all of its messages.
#[derive(Debug)]
pub struct RetryTerms {
    budget: TpsBudget,
    backoff_min: Duration,
    backoff_max: Duration,
    /// The message may reach the destination twice.
    repeatable: bool,
    max_attempts: u32,
    ledger: Arc<Ledger>,
    stats: Arc<RouteStats>,
}

impl RetryTerms {
    /// Terms of one route.
    ///
    /// # Limits
    /// The window is held between 1 s and 60 s, the ratio between 0 and 1000, which is what the budget can count.
    #[must_use]
    pub fn new(
        retry: &valid::Retry,
        repeatable: bool,
        max_attempts: u32,
        ledger: Arc<Ledger>,
        stats: Arc<RouteStats>,
    ) -> Arc<Self> {
        let window = retry
            .window
            .clamp(Duration::from_secs(1), Duration::from_secs(60));
        let ratio = if retry.budget_ratio.is_finite() {
            retry.budget_ratio
        } else {
            0.0
        };
        let backoff_min = retry.backoff_min.max(Duration::from_millis(1));
        Arc::new(Self {
            budget: TpsBudget::new(
                window,
                retry.min_per_second.min(1 << 20),
                ratio.clamp(0.0, 1000.0),
            ),
            backoff_min,
            backoff_max: retry.backoff_max.max(backoff_min),
            repeatable,
            max_attempts: max_attempts.max(1),
            ledger,
            stats,
        })
    }

    fn backoff(&self, step: u32) -> Duration {
        let full = self
            .backoff_min
            .checked_mul(2_u32.saturating_pow(step))
            .map_or(self.backoff_max, |wait| wait.min(self.backoff_max));
        // The upper half is drawn, so that what failed together does not come back together.
        full.mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

/// The retry policy of one message: tower clones it for each.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    terms: Arc<RetryTerms>,
    step: u32,
}

impl RetryPolicy {
    /// A policy for a message that was not tried yet.
    #[must_use]
    pub fn new(terms: Arc<RetryTerms>) -> Self {
        Self { terms, step: 0 }
    }

    fn judge(&self, attempt: &Attempt, result: &Result<Outcome, FabricError>) -> Verdict {
        let repeatable = self.terms.repeatable;
        match result {
            Ok(Outcome::Indeterminate) if repeatable => {
                let cause = attempt.mark.take_cause().unwrap_or(RetryCause::Error);
                Verdict::Again {
                    cause,
                    counts: true,
                    pays: cause != RetryCause::Disconnected,
                }
            }
            Ok(Outcome::Refused(
                Refusal::LimitExceeded(_) | Refusal::QueueFull | Refusal::RateLimited,
            )) if repeatable => Verdict::Again {
                cause: RetryCause::Refused,
                counts: true,
                pays: true,
            },
            Ok(_) => Verdict::Final,
            Err(error) => match error.kind() {
                FabricErrorKind::NotConnected | FabricErrorKind::Away => Verdict::Again {
                    cause: RetryCause::Disconnected,
                    counts: false,
                    pays: false,
                },
                FabricErrorKind::Timeout if repeatable => {
                    attempt.mark.outcome_unknown();
                    Verdict::Again {
                        cause: RetryCause::Timeout,
                        counts: true,
                        pays: true,
                    }
                }
                _ => Verdict::Final,
            },
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Verdict {
    Final,
    Again {
        cause: RetryCause,
        counts: bool,
        pays: bool,
    },
}

impl Policy<Attempt, Outcome, FabricError> for RetryPolicy {
    type Future = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn retry(
        &mut self,
        attempt: &mut Attempt,
        result: &mut Result<Outcome, FabricError>,
    ) -> Option<Self::Future> {
        let Verdict::Again {
            cause,
            counts,
            pays,
        } = self.judge(attempt, result)
        else {
            if matches!(result, Ok(outcome) if outcome.reached().is_some()) {
                self.terms.budget.deposit();
            }
            return None;
        };
        let unknown = match result {
            Ok(outcome) => *outcome == Outcome::Indeterminate,
            Err(error) => error.kind() == FabricErrorKind::Timeout,
        };
        if unknown {
            // An unknown outcome that stays the last one is counted with the end of its message.
            self.terms.ledger.count_indeterminate();
        }
        if counts {
            if attempt.number >= self.terms.max_attempts {
                *result = Ok(Outcome::Dropped(DropCause::AttemptsExhausted));
                return None;
            }
            attempt.number += 1;
        }
        let wait = self.terms.backoff(self.step);
        self.step = self.step.saturating_add(1);
        let terms = Arc::clone(&self.terms);
        Some(Box::pin(async move {
            let _level = terms.stats.enter_retrying();
            tokio::time::sleep(wait).await;
            let mut told = false;
            while pays && !terms.budget.withdraw() {
                if !std::mem::replace(&mut told, true) {
                    terms.stats.budget_exhausted();
                }
                tokio::time::sleep(terms.backoff(8)).await;
            }
            terms.stats.retry(cause);
            if unknown {
                terms.stats.duplicate_possible();
            }
        }))
    }

    fn clone_request(&mut self, attempt: &Attempt) -> Option<Attempt> {
        Some(attempt.clone())
    }
}
