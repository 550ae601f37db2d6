//! `flatout compare --noise`: how far runs of this machine differ with nothing changed.
//!
//! From files, or from whole runs of `flatout bench`, made as those are that will be compared.

use std::collections::BTreeMap;

use flatout_measure::comparison::DEFAULT_THRESHOLD_RATIO;
use flatout_measure::comparison::noise::{Learned, Noise, learn as learn_from};
use flatout_measure::record::Record;
use flatout_measure::statistics::extremes;
use flatout_report::{Format, quantity, text};
use flatout_sys::cancel::CancelToken;

use super::making::Recipe;
use super::{Failure, noise_file, read_all};
use crate::arguments::compare::Compare as Arguments;
use crate::output;

/// Runs from which noise is learned unless another number is given.
const USUAL_RUNS: u32 = 3;

/// Learns, saves and shows.
///
/// Errors: nothing was learned or saved; the text says why.
pub fn learn(arguments: &Arguments, cancel: CancelToken) -> Result<(), Failure> {
    noise_file::FILE.check()?;
    let records = match arguments.files.is_empty() {
        true => made(arguments, cancel)?,
        false => read_all(&arguments.files)?,
    };
    let learned = learn_from(&records).map_err(|error| error.to_string())?;
    if learned.runs == 2 {
        output::notice("two runs know little of the noise: three or more are better");
    }
    if let Some(share) = learned.busy_share() {
        let share = quantity::percent(share);
        output::notice(&format!(
            "others had up to {share} of the CPUs beside these runs: bench uses what is assumed \
             instead; learn again when the machine is quiet"
        ));
    }
    let path = noise_file::save(&learned)?;
    let shown = match arguments.format() {
        Format::Json => flatout_report::json::line(&learned),
        _ => table(&learned),
    };
    output::put(arguments.output.as_deref(), shown.as_bytes())?;
    let rows = quantity::counted(learned.rows.len(), "row");
    output::notice(&format!("the noise of {rows} is saved in {path:?}; compare uses it"));
    Ok(())
}

/// Runs made now.
fn made(arguments: &Arguments, cancel: CancelToken) -> Result<Vec<Record>, Failure> {
    let recipe = Recipe::own(arguments);
    let count = arguments.runs.unwrap_or(USUAL_RUNS);
    let mut records = Vec::new();
    for run in 1..=count {
        output::notice(&format!("run {run} of {count}"));
        records.push(recipe.run(cancel)?.record);
    }
    Ok(records)
}

/// By how much runs differ, by test, and how many it takes to see a change.
fn table(learned: &Learned) -> String {
    let noise = Noise::of(learned);
    let mut tests: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in &learned.rows {
        if let Some(difference) = noise.difference_ratio(row) {
            tests.entry(&row.id).or_default().push(difference);
        }
    }
    let mut out = format!(
        "Noise from {}: two runs of this machine with nothing changed differ by up to (95 %)\n",
        quantity::counted(learned.runs as usize, "run")
    );
    let width = tests.keys().map(|id| text::visible(id).chars().count()).max().unwrap_or(0);
    for (id, within) in tests {
        let Some((least, most)) = extremes(&within) else { continue };
        let id = text::visible(id);
        let range = match within.len() {
            1 => quantity::percent(least),
            count => {
                format!("{} to {}, {count} rows", quantity::percent(least), quantity::percent(most))
            }
        };
        out.push_str(&format!("  {id:<width$}  {range}\n"));
    }
    let change = quantity::percent(DEFAULT_THRESHOLD_RATIO);
    out.push_str(&match noise.runs_recommended(learned, DEFAULT_THRESHOLD_RATIO) {
        Some(runs) => format!(
            "A comparison finds a change of {change} in 80 % of these rows with about {runs} runs of each side.\n"
        ),
        None => format!("No 100 runs of each side find a change of {change} in 80 % of these rows.\n"),
    });
    out
}
