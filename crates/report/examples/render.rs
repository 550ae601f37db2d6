//! Shows a stored record: `render FILE [FORMAT [WIDTH [color|ascii|summary]]]`; the format
//! `summary` shows the first result as `flatout read` would.

#![forbid(unsafe_code)]

use std::{env, error::Error, io, path::Path};

use flatout_report::{Extent, Style, document, render, summary};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let path = arguments.first().ok_or("which file?")?;
    let format = arguments.get(1).map_or("table", String::as_str);
    let look = arguments.get(3).map_or("", String::as_str);
    let style = Style {
        width_columns: arguments.get(2).map_or(Ok(80), |width| width.parse())?,
        color: look == "color",
        unicode: look != "ascii",
        extent: if look == "summary" { Extent::Summary } else { Extent::Full },
    };
    let record = document::read(Path::new(path))?;
    let mut out = io::stdout().lock();
    match (format, record.results.first()) {
        ("summary", Some(first)) => io::Write::write_all(&mut out, summary(first).as_bytes())?,
        _ => io::Write::write_all(&mut out, render(&record, format.parse()?, &style).as_bytes())?,
    }
    Ok(())
}
