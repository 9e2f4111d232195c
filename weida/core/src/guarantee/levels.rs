//! The levels of each dimension, in wire order. [wire 9.1]

/// An enum whose variants are wire values, ordered by them.
macro_rules! wire_levels {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $value:literal,)* }
     default $default:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// The wire value.
            pub const fn to_wire(self) -> u64 {
                match self { $(Self::$variant => $value,)* }
            }

            /// The level of a wire value, if this version defines one.
            pub const fn from_wire(value: u64) -> Option<Self> {
                match value { $($value => Some(Self::$variant),)* _ => None }
            }
        }

        impl Default for $name {
            /// The core level.
            fn default() -> Self {
                Self::$default
            }
        }
    };
}
pub(crate) use wire_levels;

wire_levels! {
    /// How often a message may arrive. A ladder.
    DeliveryLevel {
        /// No retries; losses are reported.
        BestEffort = 0,
        /// Never twice.
        AtMostOnce = 1,
        /// Again until it is acknowledged.
        AtLeastOnce = 2,
    } default BestEffort
}

wire_levels! {
    /// What the sender hears about completion. A ladder.
    Acknowledgement {
        /// Nothing.
        None = 0,
        /// The peer's transport holds every byte.
        TransportReceipt = 1,
        /// A hop took responsibility in memory.
        Accepted = 2,
        /// A hop stored it.
        Stored = 3,
        /// Several nodes stored it.
        Replicated = 4,
        /// The consumer is done with it.
        Processed = 5,
    } default TransportReceipt
}

wire_levels! {
    /// What a stored message survives.
    Durability {
        /// The end of the process.
        Written = 0,
        /// The loss of power.
        Flushed = 1,
    } default Written
}

wire_levels! {
    /// What is kept in order. A ladder.
    OrderingMode {
        /// Nothing.
        None = 0,
        /// Gaps are reported, arrivals delivered as they come.
        PerProducerDetect = 1,
        /// Later arrivals are held, up to a bound.
        PerProducerReassemble = 2,
        /// Per key.
        PerKey = 3,
        /// All of it.
        Total = 4,
    } default None
}

wire_levels! {
    /// How repeats are suppressed. A ladder.
    Deduplication {
        /// They are not.
        None = 0,
        /// Within a time window.
        Bounded = 1,
        /// For good.
        Durable = 2,
    } default None
}

wire_levels! {
    /// What a full queue does. Behaviours, not strengths.
    Backpressure {
        /// The sender waits.
        Block = 0,
        /// The sender is refused.
        Reject = 1,
        /// The message is dropped and counted.
        Drop = 2,
        /// The message goes to a store.
        Spill = 3,
        /// The newer replaces the older.
        Coalesce = 4,
    } default Block
}

wire_levels! {
    /// How the producer of a numbered transfer is named. Not a ladder.
    ProducerNaming {
        /// By the key its connection proved.
        Fingerprint = 0,
        /// By a name of its own in DATA key 7.
        Stable = 1,
    } default Fingerprint
}
