//! `flatout report`: what runs left, in another form.
//!
//! All files are read before anything is written, so that a wrong one leaves no half of a result.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flatout_measure::record::Record;
use flatout_report::{Format, Style, csv, fio_json, text};

use crate::arguments::report::Report;
use crate::command::cp::complaint::word;
use crate::command::history;
use crate::conclusion::{self, Refused};
use crate::output;

/// Reads the files and shows them.
pub fn run(arguments: &Report) -> ExitCode {
    let shown = check(arguments).and_then(|()| records(&arguments.files));
    let done = shown.and_then(|records| deliver(&records, arguments));
    match done {
        Ok(()) => output::exit(conclusion::DONE),
        Err(refused) => {
            output::cannot_begin(refused, arguments.output.wanted == Some(Format::Json))
        }
    }
}

/// Refuses what can be seen without reading.
fn check(arguments: &Report) -> Result<(), Refused> {
    let Report { files, output, .. } = arguments;
    let holds_one = match output.format() {
        Format::Table | Format::Markdown | Format::Csv | Format::GoBench => None,
        Format::Json => Some("a document holds one record; --format csv takes several"),
        Format::Html => Some("a page holds one record; flatout compare holds several together"),
        Format::OpenMetrics => Some("a metric has one value"),
        Format::FioJson => Some("its jobs would be one run"),
    };
    if let Some(reason) = holds_one.filter(|_| files.len() > 1) {
        let format = output.format();
        return Err(Refused::wrong_use(format!("--format {format} takes one FILE: {reason}")));
    }
    let history = arguments.history.as_deref();
    output.check_history(history).map_err(Refused::wrong_use)?;
    if into_folder(arguments).is_some() {
        return Ok(());
    }
    Ok(output::check(output.output.as_deref(), files)?)
}

/// The folder that gets a file per row.
fn into_folder(arguments: &Report) -> Option<&Path> {
    let output = arguments.output.output.as_deref()?;
    (arguments.output.format() == Format::FioJson && output.is_dir()).then_some(output)
}

fn records(files: &[PathBuf]) -> Result<Vec<(String, Record)>, Refused> {
    let named = |file: &PathBuf| Ok((history::name(file), history::document(file)?));
    files.iter().map(named).collect()
}

fn deliver(records: &[(String, Record)], arguments: &Report) -> Result<(), Refused> {
    if let Some(folder) = into_folder(arguments) {
        for (_, record) in records {
            fill(folder, &fio_json::files(record, arguments.output.identity()))?;
        }
        return Ok(());
    }
    let earlier = history::read(arguments.history.as_deref())?;
    let shown = shown(records, &earlier, arguments);
    Ok(output::put(arguments.output.output.as_deref(), shown.as_bytes())?)
}

/// Writes the files into folders of their own below this one.
fn fill(folder: &Path, files: &[(String, String)]) -> Result<(), String> {
    if files.is_empty() {
        return Err("the record has no row that has a place in fio's shape".to_owned());
    }
    for (name, text) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            let made = std::fs::create_dir_all(parent);
            made.map_err(output::cannot(format_args!("make {parent:?}")))?;
        }
        output::replace(&path, text.as_bytes())?;
    }
    output::notice(&format!(
        "left {} in {folder:?}",
        flatout_report::quantity::counted(files.len(), "file")
    ));
    Ok(())
}

fn shown(records: &[(String, Record)], earlier: &[Record], arguments: &Report) -> String {
    let format = arguments.output.format();
    if let (Format::Csv, 2..) = (format, records.len()) {
        let named = records.iter().map(|(name, record)| (Some(name.as_str()), record));
        return csv::document(&named.collect::<Vec<_>>());
    }
    let mut all = String::new();
    for (index, (name, record)) in records.iter().enumerate() {
        let name = text::visible(name);
        let gap = if index > 0 { "\n" } else { "" };
        all += &match (format, records.len()) {
            (Format::Table, 2..) => format!("{gap}==> {name} <==\n"),
            (Format::Markdown, 2..) => format!("{gap}Record `{}`:\n\n", name.replace('`', "'")),
            _ => String::new(),
        };
        let shown = output::shown(record, earlier, &arguments.output);
        all += &match shown.is_empty() {
            // Where no row was measured the page says why.
            true => flatout_report::render(record, format, &Style::default()),
            false => shown,
        };
        if format == Format::Table && records.len() == 1 && !arguments.output.verbose {
            all.push_str(&more(&arguments.files[0], record));
        }
    }
    all
}

/// How to see the rest; nothing where there is none.
fn more(file: &Path, record: &Record) -> String {
    match output::is_in_pairs(record) || record.results.is_empty() {
        true => String::new(),
        false => {
            format!("\n{}: flatout report --verbose {}\n", output::all_rows(record), word(file))
        }
    }
}
