//! Records shown: terminal table and chart, HTML page, JSON, CSV, Markdown.
//!
//! Rule: this room measures nothing and prints nothing; it turns records into strings. Here, and
//! only here, base units get prefixes and numbers lose digits. Text that comes from data reaches
//! no reader raw: see [`text`].
//!
//! Start reading at [`mod@format`].

#![forbid(unsafe_code)]

mod audit;
mod axis;
mod bars;
pub mod chart;
mod commands;
pub mod csv;
mod facts;
pub mod format;
mod grid;
mod headline;
pub mod html;
pub mod identity;
pub mod json;
mod label;
mod latency;
mod machine;
pub mod markdown;
mod markup;
mod matrix;
mod notes;
pub mod plot;
pub mod quantity;
mod sparkline;
mod storage;
pub mod style;
pub mod summary;
pub mod svg;
pub mod sweep;
pub mod table;
pub mod text;
mod versus;
mod view;

pub use format::{Format, UnknownFormat, render, write};
pub use identity::Identity;
pub use label::parameters as parameters_text;
pub use style::Style;
pub use summary::summary;
pub use table::table;
