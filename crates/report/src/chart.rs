//! Pictures as data, whoever draws them: lines ([`plot`]), bars, axes, and which rows belong together.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod plot;
pub(crate) mod sweep;
pub(crate) mod view;
pub(crate) mod words;
