//! The rows of a race: what each contestant did, and how many times as good it is as another.

use flatout_measure::{Label, Parameters, Row, Unit};

use super::Contestant;
use crate::versus::finish;

/// The figure of one contestant.
#[derive(Debug, Clone)]
pub(in crate::versus) struct ContestantRow {
    pub(in crate::versus) test: &'static str,
    pub(in crate::versus) parameters: Parameters,
    pub(in crate::versus) contestant: Contestant,
    pub(in crate::versus) unit: Unit,
}

impl Row for ContestantRow {
    fn label(&self) -> Label {
        Label::new(format!("versus/{}", self.test), self.unit)
            .of(self.parameters.clone())
            .with("contestant", self.contestant.name.clone())
    }
}

/// How many times as good one contestant is as another.
#[derive(Debug, Clone)]
pub(in crate::versus) struct RatioRow {
    pub(in crate::versus) test: &'static str,
    pub(in crate::versus) parameters: Parameters,
    pub(in crate::versus) subject: usize,
    pub(in crate::versus) against: usize,
    pub(in crate::versus) names: [String; 2],
}

impl Row for RatioRow {
    fn label(&self) -> Label {
        let [subject, against] = self.names.clone();
        Label::new(finish::RATIO, Unit::Ratio)
            .of(self.parameters.clone())
            .with("test", self.test)
            .with("subject", subject)
            .with("against", against)
    }
}
