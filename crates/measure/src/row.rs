//! What a row of a record is: a name, what tells it from its like, and the unit of its figure.
//!
//! An area whose rows tell what is done or what bounds them has a type for them, which stays typed
//! from the plan to the finished figure; others have a [`Label`]. The record gets its words through
//! [`Row`] alone.

use std::borrow::Cow;

use crate::fact::{Key, Value};
use crate::record::Better;

/// A row of an area, before and after it is measured.
pub trait Row {
    /// What the record says of it.
    fn label(&self) -> Label;

    /// `area/test` of the record.
    fn id(&self) -> Cow<'static, str> {
        self.label().id
    }

    /// What tells the row from others of the same id, in base units.
    fn parameters(&self) -> Parameters {
        self.label().parameters
    }

    /// What its figure is.
    fn unit(&self) -> Unit {
        self.label().unit
    }

    /// What this machine lacks for it, where that is known without a trial.
    fn lacks(&self) -> Option<String> {
        None
    }
}

/// What a record says of a row besides its figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// `area/test` of the record, for example `cache/block-sweep`; stable between versions.
    pub id: Cow<'static, str>,
    /// What its figure is.
    pub unit: Unit,
    /// What tells the row from others of the same id, in base units.
    pub parameters: Parameters,
    /// What runs of it usually differ by beyond what its trials show: the standard deviation of the
    /// logarithm of its figure. Whole runs tell (docs/measuring.md).
    pub deviation_between_runs: f64,
    /// Whether the figure is what the hardware is, whoever has the CPUs meanwhile: a clock is read in
    /// moments in which its thread ran. Other programs do not limit such a row.
    pub is_of_hardware: bool,
    /// Whether it is one of those that people compare: where time is short, it is for these first.
    pub is_headline: bool,
}

impl Label {
    /// A row without parameters, whose trials show what runs of it differ by.
    pub fn new(id: impl Into<Cow<'static, str>>, unit: Unit) -> Self {
        let parameters = Parameters::default();
        Self {
            id: id.into(),
            unit,
            parameters,
            deviation_between_runs: 0.0,
            is_of_hardware: false,
            is_headline: false,
        }
    }

    /// The same row with these parameters.
    #[must_use]
    pub fn of(self, parameters: Parameters) -> Self {
        Self { parameters, ..self }
    }

    /// The same row with one more parameter.
    #[must_use]
    pub fn with(self, name: impl Into<Key>, value: impl Into<Value>) -> Self {
        Self { parameters: self.parameters.with(name, value), ..self }
    }

    /// The same row and, if there is a value, one more parameter.
    #[must_use]
    pub fn with_known(self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        Self { parameters: self.parameters.with_known(name, value), ..self }
    }

    /// The same row, whose runs differ by this beyond what trials show.
    #[must_use]
    pub fn deviating_by(self, deviation_between_runs: f64) -> Self {
        Self { deviation_between_runs, ..self }
    }

    /// The same row, whose figure others do not limit.
    #[must_use]
    pub fn of_hardware(self) -> Self {
        Self { is_of_hardware: true, ..self }
    }

    /// The same row, which is measured before others where this holds.
    #[must_use]
    pub fn headline_if(self, is_headline: bool) -> Self {
        Self { is_headline, ..self }
    }
}

/// A row of which nothing is known but what the record says of it.
impl Row for Label {
    fn label(&self) -> Label {
        self.clone()
    }
}

/// The parameters of a row: what tells it from others of the same id, in base units.
pub use crate::fact::Facts as Parameters;

flatout_sys::words! {
    /// Unit of a figure, and with it how amount and time become the figure.
    pub enum Unit: name {
        /// Bytes ÷ seconds.
        BytesPerSecond = "bytes/s",
        /// Operations ÷ seconds.
        OperationsPerSecond = "operations/s",
        /// Files ÷ seconds.
        FilesPerSecond = "files/s",
        /// Floating-point operations ÷ seconds.
        FlopPerSecond = "flop/s",
        /// Operations on integers ÷ seconds.
        OpPerSecond = "op/s",
        /// Cycles ÷ seconds.
        Hertz = "Hz",
        /// A number of CPUs.
        Cpus = "CPUs",
        /// How many times as good one figure is as another.
        Ratio = "ratio",
        /// Nanoseconds ÷ operations.
        Nanoseconds = "ns",
    }
}

impl Unit {
    /// The direction of improvement.
    pub fn better(self) -> Better {
        match self {
            Self::Nanoseconds => Better::Lower,
            _ => Better::Higher,
        }
    }

    /// The figure of a trial; `None` when time or amount cannot be true.
    pub fn figure(self, amount: f64, elapsed_ns: u64) -> Option<f64> {
        let elapsed_ns = elapsed_ns as f64;
        let figure = match self.better() {
            Better::Higher => amount / (elapsed_ns / 1e9),
            Better::Lower => elapsed_ns / amount,
        };
        (figure.is_finite() && figure > 0.0).then_some(figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_cannot_be_are_none() {
        let rate = |amount, elapsed_ns| Unit::BytesPerSecond.figure(amount, elapsed_ns);
        let time = |amount, elapsed_ns| Unit::Nanoseconds.figure(amount, elapsed_ns);
        assert_eq!(rate(4.0, 2_000_000_000), Some(2.0));
        assert_eq!(time(4.0, 20), Some(5.0));
        assert_eq!(rate(4.0, 0), None);
        assert_eq!(time(0.0, 20), None);
        assert_eq!(time(4.0, 0), None);
        assert_eq!(rate(f64::NAN, 9), None);
        assert_eq!(rate(-1.0, 9), None);
    }
}
