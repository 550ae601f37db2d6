//! `flatout report`.

use std::path::PathBuf;

use clap::Args;

use super::shared::Output;

const AFTER: &str = "\
FILE is a JSON document or a page of flatout, whatever its name; - is standard input.

Forms (--format):
  table        for a terminal
  markdown     for a pull request or an issue
  html         one page for a browser, with the record inside
  csv          one row per result, all digits
  json         the record itself; of a page the one that it holds
  openmetrics  metrics for node_exporter's textfile collector
  go-bench     lines of Go benchmarks, for benchstat
  fio-json     the rows of a disk as fio writes them, for fio-plot
Of several FILEs, table, markdown and go-bench come one after the other, and csv is one table with
a column more, record. The others hold one record: one FILE. What a form leaves out stands in
docs/formats.md.

Host name, serial numbers and paths stay out of html, openmetrics, go-bench and fio-json, unless
--identify is given. With fio-json, --output may name a directory: it gets a file per row, as
fio-plot wants it.

Examples:
  flatout report flatout-2026-11-21T213433.html
  flatout report --verbose result.json                   everything, not the summary alone
  flatout report result.json --history records           what is usual here, beside each figure
  flatout report result.json --format html --identify --output page.html
  flatout bench disk --format json | flatout report - --format markdown
  flatout report result.json --format openmetrics --output /var/lib/node_exporter/flatout.prom
  flatout report monday.json tuesday.json --format go-bench > new.txt; benchstat old.txt new.txt
  flatout report result.json --format fio-json --output plots";

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER)]
pub struct Report {
    /// What a run left; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub output: Output,
    /// Say what is usual here: the range of the records of this machine in DIR, beside each figure
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub history: Option<PathBuf>,
}
