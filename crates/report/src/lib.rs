//! Records shown: terminal table and chart, HTML page, JSON, CSV, Markdown, OpenMetrics, Go's
//! benchmark lines, fio's JSON; and read back.
//!
//! Rule: this room measures nothing and prints nothing; it turns records into strings. Here, and
//! only here, base units get prefixes and numbers lose digits. Text that comes from data reaches
//! no reader raw: see [`text`].
//!
//! Start reading at [`mod@format`]; for the way back at [`document`].

#![forbid(unsafe_code)]

mod audit;
mod axis;
mod bars;
pub mod chart;
mod commands;
pub mod comparison;
pub mod csv;
pub mod document;
mod facts;
pub mod fio_json;
pub mod format;
pub mod go_bench;
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
pub mod openmetrics;
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

pub use format::{Format, UnknownFormat, render, render_with, write};
pub use identity::Identity;
pub use label::parameters as parameters_text;
pub use style::Style;
pub use summary::summary;
pub use table::table;
