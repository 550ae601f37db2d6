//! Records shown: terminal table and chart, HTML page, JSON, CSV, Markdown, OpenMetrics, Go's
//! benchmark lines, fio's JSON; and read back.
//!
//! Rule: this room measures nothing and prints nothing; it turns records into strings. Here, and
//! only here, base units get prefixes and numbers lose digits. Text that comes from data reaches
//! no reader raw: see [`text`].
//!
//! A record or a comparison becomes a `page` of blocks, once; `terminal`, `html` and `markdown` render
//! blocks, and `export` writes records for programs. Start reading at [`mod@format`]; for the way
//! back at [`document`].

#![forbid(unsafe_code)]

mod chart;
pub mod comparison;
pub mod document;
mod export;
pub mod format;
pub mod html;
pub mod identity;
mod label;
mod markdown;
mod order;
mod page;
pub mod quantity;
pub mod sign;
mod style;
pub mod summary;
mod terminal;
pub mod text;

pub use export::{csv, fio_json, json};
pub use format::{Format, render, render_beside};
pub use identity::Identity;
pub use label::parameters as parameters_text;
pub use page::pair_matrix::text as pairs_text;
pub use page::units::unit;
pub use style::{Extent, Style};
pub use summary::summary;
pub use terminal::sparkline;
