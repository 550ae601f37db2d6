//! What a row of a record is: a name, what tells it from its like, and the unit of its figure.
//!
//! Every area has a type for its rows, which stays typed from the plan to the finished figure;
//! the record gets its words through [`Row`] alone.

use std::borrow::Cow;

use serde_json::Map;

use crate::fact::Value;
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
}

impl Label {
    /// A row without parameters, whose trials show what runs of it differ by.
    pub fn new(id: impl Into<Cow<'static, str>>, unit: Unit) -> Self {
        let parameters = Parameters::default();
        let (deviation_between_runs, is_of_hardware) = (0.0, false);
        Self { id: id.into(), unit, parameters, deviation_between_runs, is_of_hardware }
    }

    /// The same row with these parameters.
    #[must_use]
    pub fn of(self, parameters: Parameters) -> Self {
        Self { parameters, ..self }
    }

    /// The same row with one more parameter.
    #[must_use]
    pub fn with(self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
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
}

/// The parameters of a row: names and values, each name once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters(Vec<(Cow<'static, str>, Value)>);

impl Parameters {
    /// The same parameters and one more; one of that name is replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a parameter; one of that name is replaced.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    /// The same parameters and, if there is a value, one more.
    #[must_use]
    pub fn with_known(mut self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        self.set_known(name, value);
        self
    }

    /// Sets a parameter that not every row has.
    pub fn set_known(&mut self, name: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// The value of a parameter.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// As the members of a record.
    pub fn to_json(&self) -> Map<String, serde_json::Value> {
        self.0.iter().map(|(name, value)| (name.to_string(), value.to_json())).collect()
    }
}

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

    #[test]
    fn a_parameter_that_is_set_again_is_replaced() {
        let mut parameters = Parameters::default().with("until", "device").with("threads", 2_u32);
        parameters.set_known("depth", None::<u32>);
        parameters.set("until", "durable");
        assert_eq!(parameters.value("until"), Some(&"durable".into()));
        let expected = serde_json::json!({"until": "durable", "threads": 2});
        assert_eq!(serde_json::Value::Object(parameters.to_json()), expected);
    }
}
