//! Levels a cursor reports and how often it does. [wire 14]

use std::cmp::Ordering;

use crate::guarantee::{Acknowledgement, wire_levels};

/// A level a cursor names: one of weida's own, or a stage of the application.
///
/// The space is open: 0..=5 are [`Acknowledgement`], 16 and above are carried and never
/// interpreted, 6..=15 are reserved and a violation on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CursorLevel {
    /// A level this version defines.
    Known(Acknowledgement),
    /// An application stage, at least [`Self::APPLICATION_FLOOR`].
    Application(u64),
}

impl CursorLevel {
    /// First wire value an application may name.
    pub const APPLICATION_FLOOR: u64 = 16;

    /// The wire value.
    pub const fn to_wire(self) -> u64 {
        match self {
            Self::Known(level) => level.to_wire(),
            Self::Application(value) => value,
        }
    }

    /// The level of a wire value; `None` in the reserved range.
    pub const fn from_wire(value: u64) -> Option<Self> {
        if value >= Self::APPLICATION_FLOOR {
            return Some(Self::Application(value));
        }
        match Acknowledgement::from_wire(value) {
            Some(level) => Some(Self::Known(level)),
            None => None,
        }
    }

    /// An application stage; `None` below the floor, which is not an application's to name.
    pub const fn application(value: u64) -> Option<Self> {
        if value >= Self::APPLICATION_FLOOR {
            Some(Self::Application(value))
        } else {
            None
        }
    }
}

impl From<Acknowledgement> for CursorLevel {
    fn from(level: Acknowledgement) -> Self {
        Self::Known(level)
    }
}

impl PartialOrd for CursorLevel {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CursorLevel {
    /// By wire value, which is the order the wire demands.
    fn cmp(&self, other: &Self) -> Ordering {
        self.to_wire().cmp(&other.to_wire())
    }
}

wire_levels! {
    /// How often a reporter emits a record. Two shapes of one report, not two strengths.
    ReportMode {
        /// As the level advances, at the reporter's own granularity.
        Progress = 0,
        /// One record per level, at the end.
        FinalOnly = 1,
    } default Progress
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_14_level_space() {
        for value in 0..40 {
            let level = CursorLevel::from_wire(value);
            assert_eq!(level.is_none(), (6..=15).contains(&value), "{value}");
            assert!(level.is_none_or(|level| level.to_wire() == value));
            assert_eq!(CursorLevel::application(value).is_some(), value >= 16);
        }
    }
}
