//! Two contenders in alternating pairs, and the median of their ratios.

use std::fmt;
use std::future::Future;

use super::{Machine, Run};

/// Runs both contenders `pairs` times, alternating who goes first, so that a machine that gets slower or faster meanwhile
/// hurts both alike.
pub async fn alternate<A, B>(
    name: &str,
    pairs: usize,
    mut ours: impl FnMut() -> A,
    mut theirs: impl FnMut() -> B,
) -> Comparison
where
    A: Future<Output = Run>,
    B: Future<Output = Run>,
{
    let mut runs = Vec::with_capacity(pairs);
    let machine = Machine::look();
    for pair in 0..pairs.max(1) {
        if pair % 2 == 0 {
            let first = ours().await;
            runs.push((first, theirs().await));
        } else {
            let first = theirs().await;
            runs.push((ours().await, first));
        }
    }
    Comparison {
        name: name.to_owned(),
        runs,
        machine,
    }
}

/// What alternating pairs gave.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// What was compared.
    pub name: String,
    /// Ours and theirs, pair by pair.
    pub runs: Vec<(Run, Run)>,
    /// Where, and under which load.
    pub machine: Machine,
}

impl Comparison {
    /// Median over the pairs of our rate over theirs: above 1 is faster. `NaN` when a contender did nothing, or anything failed: a
    /// comparison with errors is none.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let idle = self
            .runs
            .iter()
            .any(|(ours, theirs)| ours.operations == 0 || theirs.operations == 0);
        if idle || self.errors() > 0 {
            return f64::NAN;
        }
        median(self.ratios())
    }

    /// Smallest and largest ratio of a pair.
    #[must_use]
    pub fn spread(&self) -> (f64, f64) {
        let ratios = self.ratios();
        (
            ratios.iter().copied().fold(f64::NAN, f64::min),
            ratios.iter().copied().fold(f64::NAN, f64::max),
        )
    }

    /// Operations of both sides that failed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.runs
            .iter()
            .map(|(ours, theirs)| ours.errors + theirs.errors)
            .sum()
    }

    /// For a report file.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let (lowest, highest) = self.spread();
        let pairs: Vec<_> = self
            .runs
            .iter()
            .map(|(ours, theirs)| serde_json::json!({"ours": ours.to_json(), "theirs": theirs.to_json()}))
            .collect();
        serde_json::json!({
            "name": self.name,
            "ratio": self.ratio(),
            "lowest": lowest,
            "highest": highest,
            "errors": self.errors(),
            "machine": self.machine.to_json(),
            "pairs": pairs,
        })
    }

    fn ratios(&self) -> Vec<f64> {
        self.runs
            .iter()
            .map(|(ours, theirs)| ours.per_second() / theirs.per_second())
            .collect()
    }

    fn median_rate(&self, side: fn(&(Run, Run)) -> &Run) -> f64 {
        median(
            self.runs
                .iter()
                .map(|pair| side(pair).per_second())
                .collect(),
        )
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lowest, highest) = self.spread();
        write!(
            f,
            "{}: ratio {:.2} ({lowest:.2} to {highest:.2}, median of {}), ours {:.0}/s, theirs {:.0}/s",
            self.name,
            self.ratio(),
            self.runs.len(),
            self.median_rate(|pair| &pair.0),
            self.median_rate(|pair| &pair.1),
        )?;
        if self.errors() > 0 {
            write!(f, ", {} FAILED", self.errors())?;
        }
        write!(f, "\n  {}", self.machine)
    }
}

/// The middle one, or the mean of the two in the middle; `NaN` when one of them is.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), values.len() % 2) {
        (None, _) => f64::NAN,
        (Some(value), 1) => *value,
        (Some(value), _) => (values[middle - 1] + value) / 2.0,
    }
}
