//! The rows of a race: what each contestant did, and how many times as good it is as another.

use std::borrow::Cow;

use flatout_measure::row::{Parameters, Row, Unit};

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
    fn id(&self) -> Cow<'static, str> {
        format!("versus/{}", self.test).into()
    }

    fn parameters(&self) -> Parameters {
        self.parameters.clone().with("contestant", self.contestant.name.clone())
    }

    fn unit(&self) -> Unit {
        self.unit
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
    fn id(&self) -> Cow<'static, str> {
        finish::RATIO.into()
    }

    fn parameters(&self) -> Parameters {
        let [subject, against] = self.names.clone();
        let parameters = self.parameters.clone().with("test", self.test);
        parameters.with("subject", subject).with("against", against)
    }

    fn unit(&self) -> Unit {
        Unit::Ratio
    }
}
