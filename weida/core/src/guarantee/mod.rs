//! Guarantee sets: what a hop offers and requires, one level per dimension. [wire 9]

mod levels;

pub(crate) use levels::wire_levels;
pub use levels::{
    Acknowledgement, Backpressure, Deduplication, DeliveryLevel, Durability, OrderingMode,
    ProducerNaming,
};

use crate::error::Error;

/// One level per dimension, as HELLO keys 5 and 6 declare them.
///
/// [`GuaranteeSet::CORE`] is the default and is written as nothing at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GuaranteeSet {
    /// Delivery. A ladder.
    pub delivery: DeliveryLevel,
    /// Completion reported to the sender. A ladder.
    pub acknowledgement: Acknowledgement,
    /// Persistence behind `Stored` and `Replicated`; legal with those only.
    pub durability: Option<Durability>,
    /// Copies behind `Replicated`, at least 2; legal with it only.
    pub replicas: Option<u64>,
    /// Ordering. A ladder.
    pub ordering: OrderingMode,
    /// Deduplication. A ladder.
    pub deduplication: Deduplication,
    /// Window in milliseconds; required with `Bounded`, forbidden otherwise.
    pub dedup_window_ms: Option<u64>,
    /// What a full queue does. Not a ladder: both sides say the same or fail.
    pub backpressure: Backpressure,
    /// How a producer is named. Not a ladder: both sides say the same or fail.
    pub producer_naming: ProducerNaming,
    /// Whether control traffic is kept apart from bulk. `true` is stronger.
    pub control_isolated: bool,
}

/// Why a set is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuaranteeError {
    /// Two sides declare a dimension that has no weaker of two differently.
    #[error("the two sides declare {dimension} differently")]
    Incomparable {
        /// The dimension.
        dimension: &'static str,
    },
    /// Durability without `Stored` or `Replicated`.
    #[error("durability needs the acknowledgement level stored or replicated")]
    DurabilityWithoutStore,
    /// A replica count without `Replicated`.
    #[error("a replica count needs the acknowledgement level replicated")]
    ReplicasWithoutReplication,
    /// A replica count below 2.
    #[error("{replicas} replicas are not a replication")]
    TooFewReplicas {
        /// The count.
        replicas: u64,
    },
    /// Bounded deduplication without a window.
    #[error("bounded deduplication needs a window")]
    WindowMissing,
    /// A window without bounded deduplication.
    #[error("a deduplication window needs bounded deduplication")]
    WindowWithoutBound,
    /// Coalescing would drop what reassembly waits for.
    #[error("coalesce and reassemble contradict each other")]
    CoalesceWithReassemble,
    /// Weaker than [`GuaranteeSet::CORE`], which every hop gives.
    #[error("{dimension} is below what every hop gives")]
    BelowCore {
        /// The dimension.
        dimension: &'static str,
    },
    /// A level this build does not implement.
    #[error("this build cannot honour {level}")]
    NotImplemented {
        /// Dimension and level.
        level: &'static str,
    },
}

impl GuaranteeSet {
    /// What every hop offers and requires when nothing is declared.
    pub const CORE: Self = Self {
        delivery: DeliveryLevel::BestEffort,
        acknowledgement: Acknowledgement::TransportReceipt,
        durability: None,
        replicas: None,
        ordering: OrderingMode::None,
        deduplication: Deduplication::None,
        dedup_window_ms: None,
        backpressure: Backpressure::Block,
        producer_naming: ProducerNaming::Fingerprint,
        control_isolated: false,
    };

    /// Whether this is the default set, which is never written.
    pub fn is_core(&self) -> bool {
        *self == Self::CORE
    }

    /// Checks the combinations the wire forbids. [wire 9.1]
    ///
    /// # Errors
    ///
    /// The first broken rule.
    pub const fn check_wire(&self) -> Result<(), GuaranteeError> {
        use Acknowledgement::{Replicated, Stored};
        if self.durability.is_some() && !matches!(self.acknowledgement, Stored | Replicated) {
            return Err(GuaranteeError::DurabilityWithoutStore);
        }
        if let Some(replicas) = self.replicas {
            if !matches!(self.acknowledgement, Replicated) {
                return Err(GuaranteeError::ReplicasWithoutReplication);
            }
            if replicas < 2 {
                return Err(GuaranteeError::TooFewReplicas { replicas });
            }
        }
        match (self.deduplication, self.dedup_window_ms) {
            (Deduplication::Bounded, None) => Err(GuaranteeError::WindowMissing),
            (Deduplication::None | Deduplication::Durable, Some(_)) => {
                Err(GuaranteeError::WindowWithoutBound)
            }
            _ => Ok(()),
        }
    }

    /// Checks a set that is configured here: the wire's rules and what makes sense at all.
    /// [weida GS-3, GS-10]
    ///
    /// # Errors
    ///
    /// The first broken rule.
    pub const fn validate(&self) -> Result<(), GuaranteeError> {
        if let Err(error) = self.check_wire() {
            return Err(error);
        }
        if matches!(self.backpressure, Backpressure::Coalesce)
            && matches!(self.ordering, OrderingMode::PerProducerReassemble)
        {
            return Err(GuaranteeError::CoalesceWithReassemble);
        }
        if matches!(self.acknowledgement, Acknowledgement::None) {
            return Err(GuaranteeError::BelowCore {
                dimension: "acknowledgement",
            });
        }
        Ok(())
    }

    /// Checks that every level is one the runtime implements. [weida GS-9]
    ///
    /// # Errors
    ///
    /// [`GuaranteeError::NotImplemented`] with the first level it cannot honour.
    pub const fn check_implemented(&self) -> Result<(), GuaranteeError> {
        let level = match self {
            Self {
                delivery: DeliveryLevel::AtMostOnce,
                ..
            } => "delivery at most once",
            Self {
                delivery: DeliveryLevel::AtLeastOnce,
                ..
            } => "delivery at least once",
            Self {
                acknowledgement: Acknowledgement::Accepted,
                ..
            } => "acknowledgement accepted",
            Self {
                acknowledgement: Acknowledgement::Stored,
                ..
            } => "acknowledgement stored",
            Self {
                acknowledgement: Acknowledgement::Replicated,
                ..
            } => "acknowledgement replicated",
            Self {
                acknowledgement: Acknowledgement::Processed,
                ..
            } => "acknowledgement processed",
            Self {
                ordering: OrderingMode::PerKey,
                ..
            } => "ordering per key",
            Self {
                ordering: OrderingMode::Total,
                ..
            } => "total ordering",
            Self {
                deduplication: Deduplication::Durable,
                ..
            } => "durable deduplication",
            Self {
                backpressure: Backpressure::Spill,
                ..
            } => "backpressure spill",
            Self {
                backpressure: Backpressure::Coalesce,
                ..
            } => "backpressure coalesce",
            Self {
                producer_naming: ProducerNaming::Stable,
                ..
            } => "stable producer names",
            Self {
                control_isolated: true,
                ..
            } => "control isolation",
            _ => return Ok(()),
        };
        Err(GuaranteeError::NotImplemented { level })
    }

    /// The weaker of two offers, dimension by dimension. [wire 9.3]
    ///
    /// # Errors
    ///
    /// [`GuaranteeError::Incomparable`] when a dimension without a weaker of two differs.
    pub fn intersect(&self, other: &Self) -> Result<Self, GuaranteeError> {
        let acknowledgement = self.acknowledgement.min(other.acknowledgement);
        let stored = matches!(
            acknowledgement,
            Acknowledgement::Stored | Acknowledgement::Replicated
        );
        let replicated = acknowledgement == Acknowledgement::Replicated;
        let deduplication = self.deduplication.min(other.deduplication);
        let window = match (self.dedup_window_ms, other.dedup_window_ms) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (stated, None) | (None, stated) => stated,
        };
        Ok(Self {
            delivery: self.delivery.min(other.delivery),
            acknowledgement,
            durability: equal_if_both(self.durability, other.durability, "durability")?
                .filter(|_| stored),
            replicas: equal_if_both(self.replicas, other.replicas, "replicas")?
                .filter(|_| replicated),
            ordering: self.ordering.min(other.ordering),
            deduplication,
            dedup_window_ms: window.filter(|_| deduplication == Deduplication::Bounded),
            backpressure: equal(self.backpressure, other.backpressure, "backpressure")?,
            producer_naming: equal(
                self.producer_naming,
                other.producer_naming,
                "producer_naming",
            )?,
            control_isolated: self.control_isolated && other.control_isolated,
        })
    }

    /// Whether this set is at least `required` in every dimension. [wire 9.3]
    pub fn reaches(&self, required: &Self) -> bool {
        self.delivery >= required.delivery
            && self.acknowledgement >= required.acknowledgement
            && self.ordering >= required.ordering
            && self.deduplication >= required.deduplication
            && self.backpressure == required.backpressure
            && self.producer_naming == required.producer_naming
            && self.control_isolated >= required.control_isolated
            // `None` is smaller than any stated value, so an unstated one never reaches.
            && self.durability >= required.durability
            && self.replicas >= required.replicas
            && self.dedup_window_ms >= required.dedup_window_ms
    }
}

impl From<GuaranteeError> for Error {
    fn from(error: GuaranteeError) -> Self {
        Self::Negotiation(error.to_string())
    }
}

fn equal<T: PartialEq>(ours: T, theirs: T, dimension: &'static str) -> Result<T, GuaranteeError> {
    if ours == theirs {
        Ok(ours)
    } else {
        Err(GuaranteeError::Incomparable { dimension })
    }
}

/// Both state it: equal or an error. One states it: it does not survive.
fn equal_if_both<T: PartialEq>(
    ours: Option<T>,
    theirs: Option<T>,
    dimension: &'static str,
) -> Result<Option<T>, GuaranteeError> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => equal(ours, theirs, dimension).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
