//! Rows of a finished heat: one per contestant, one per speed, one per pair.

use flatout_measure::case::Plan;
use flatout_measure::record::{Better, Outcome, Status, Warning};
use flatout_measure::{statistics, warning};
use serde_json::{Map, Value, json};

use crate::versus::heat::{Figure, Heat};
use crate::versus::race::{Raced, Round, Taken, pairs, ratios};

/// The rows of pairs.
pub const RATIO: &str = "versus/ratio";
/// Rounds below which there is no 95 % interval.
const INTERVAL_LEAST: usize = 6;
/// Facts that say how much of the source the page cache held.
const CACHED: [&str; 2] = ["source_cached_bytes", "cached_bytes_before"];

/// All rows of a heat.
pub(super) fn rows(heat: &Heat<'_>, result: &Raced, plan: &Plan) -> Vec<Outcome> {
    let finish = Finish { heat, result, plan };
    let mut rows = Vec::new();
    for index in 0..heat.contestants.len() {
        rows.push(finish.contestant(index));
    }
    if heat.with_speed && heat.bytes > 0 {
        rows.extend((0..heat.contestants.len()).map(|index| finish.speed(index)));
    }
    rows.extend(pairs(heat).into_iter().map(|pair| finish.pair(pair)));
    if let (Some(text), Some(first)) = (&result.leftovers, rows.first_mut()) {
        let text = format!("what the race made is still there: {text}");
        first.warnings.push(Warning::new(warning::FAILED, text));
    }
    rows
}

struct Finish<'a, 'h> {
    heat: &'a Heat<'h>,
    result: &'a Raced,
    plan: &'a Plan,
}

impl Finish<'_, '_> {
    fn runs(&self, index: usize) -> Vec<&Taken> {
        self.result.rounds.iter().filter_map(|round: &Round| round[index].as_ref()).collect()
    }

    fn contestant(&self, index: usize) -> Outcome {
        let (unit, better) = match self.heat.figure {
            Figure::Time => ("ns", Better::Lower),
            Figure::Printed { unit, better } => (unit, better),
        };
        let id = format!("versus/{}", self.heat.test);
        let figures = self.runs(index).iter().map(|run| run.figure).collect();
        let row = Outcome { id, unit: unit.to_owned(), better, ..Outcome::default() };
        self.of_contestant(row, index, figures)
    }

    fn speed(&self, index: usize) -> Outcome {
        let bytes = self.heat.bytes as f64;
        let runs = self.runs(index);
        let figures = runs.iter().map(|run| bytes / (run.elapsed_ns as f64 / 1e9)).collect();
        let row = Outcome {
            id: format!("versus/{}-speed", self.heat.test),
            unit: "bytes/s".to_owned(),
            ..Outcome::default()
        };
        self.of_contestant(row, index, figures)
    }

    fn of_contestant(&self, mut row: Outcome, index: usize, figures: Vec<f64>) -> Outcome {
        let contestant = &self.heat.contestants[index];
        let runs = self.runs(index);
        row.parameters = self.heat.parameters.clone();
        row.parameters.insert("contestant".to_owned(), contestant.name.clone().into());
        row.audit = self.audit(&runs, index);
        for run in &runs {
            for doubt in &run.warnings {
                warning::add(&mut row.warnings, doubt.clone());
            }
        }
        if let Some(text) = &self.result.failures[index] {
            row.status = Status::Failed;
            row.warnings.insert(0, Warning::new(warning::FAILED, text.clone()));
            return row;
        }
        self.conclude(row, figures)
    }

    /// What is known about the runs besides the figure. Of numbers that a course tells the worst
    /// is kept, what is true is true of all runs, and of anything else the last counts.
    fn audit(&self, runs: &[&Taken], index: usize) -> Map<String, Value> {
        let mut audit = Map::new();
        for run in runs {
            for (name, value) in &run.audit {
                let value = match audit.get(name) {
                    Some(known) => self.worse(name, known, value),
                    None => value.clone(),
                };
                audit.insert(name.clone(), value);
            }
        }
        audit.insert("version".to_owned(), self.heat.contestants[index].version.clone().into());
        audit.insert("command".to_owned(), self.result.commands[index].clone().into());
        audit.insert("runs".to_owned(), json!(runs.len()));
        let median = |figure: fn(&Taken) -> u64| {
            let figures: Vec<f64> = runs.iter().map(|run| figure(run) as f64).collect();
            statistics::median(&figures)
        };
        audit.insert("user_ns".to_owned(), json!(median(|run| run.spent.user_ns)));
        audit.insert("system_ns".to_owned(), json!(median(|run| run.spent.system_ns)));
        let cpu_ns = median(|run| run.spent.user_ns.saturating_add(run.spent.system_ns));
        audit.insert("cpu_ns".to_owned(), json!(cpu_ns));
        let largest = runs.iter().max_by_key(|run| run.spent.peak_memory_bytes);
        if let Some(Taken { spent, .. }) = largest {
            audit.insert("peak_memory_bytes".to_owned(), json!(spent.peak_memory_bytes));
            audit.insert("peak_memory_of".to_owned(), spent.peak_memory_of.into());
        }
        if self.result.spoiled + self.result.disturbed > 0 {
            audit.insert("rounds_spoiled".to_owned(), json!(self.result.spoiled));
            audit.insert("rounds_disturbed".to_owned(), json!(self.result.disturbed));
            audit.insert("spoil_reasons".to_owned(), json!(self.result.reasons));
        }
        audit
    }

    /// The one of two values of a fact that counts against the row: of bytes in the cache the
    /// fewer where all should be there.
    fn worse(&self, name: &str, known: &Value, new: &Value) -> Value {
        let is_cold = self.heat.parameters.get("cache_state").is_some_and(|state| state == "cold");
        let (known_number, new_number) = match (known, new) {
            (Value::Bool(known), Value::Bool(new)) => return json!(*known && *new),
            _ => (known.as_f64(), new.as_f64()),
        };
        let is_kept = known_number.zip(new_number).is_some_and(|(known, new)| {
            if CACHED.contains(&name) && !is_cold { known < new } else { known > new }
        });
        if is_kept { known.clone() } else { new.clone() }
    }

    fn pair(&self, pair: (usize, usize)) -> Outcome {
        let name = |index: usize| self.heat.contestants[index].name.as_str();
        let mut row = Outcome {
            id: RATIO.to_owned(),
            unit: "ratio".to_owned(),
            parameters: self.heat.parameters.clone(),
            ..Outcome::default()
        };
        for (member, value) in
            [("test", self.heat.test), ("subject", name(pair.0)), ("against", name(pair.1))]
        {
            row.parameters.insert(member.to_owned(), value.into());
        }
        let out: Vec<_> = [pair.0, pair.1]
            .into_iter()
            .filter(|&index| self.result.failures[index].is_some())
            .map(name)
            .collect();
        if !out.is_empty() {
            row.status = Status::Failed;
            let text = format!("no ratio: {} failed", out.join(" and "));
            row.warnings.push(Warning::new(warning::FAILED, text));
            return row;
        }
        let ratios = ratios(self.heat.figure, &self.result.rounds, pair);
        let rounds = ratios.len();
        let width = statistics::relative_half_width(&ratios);
        let mut row = self.conclude(row, ratios);
        let result = row.ci95.map(|[low, high]| match (low > 1.0, high < 1.0) {
            (true, _) => "win",
            (_, true) => "loss",
            _ => "tie",
        });
        // Without an interval nobody has won or lost.
        row.audit.insert("result".to_owned(), result.unwrap_or("tie").into());
        row.audit.insert("rounds".to_owned(), json!(rounds));
        row.audit.insert("half_width".to_owned(), json!(width));
        // Who keeps less has less to do: a reader must see it beside the ratio.
        for (member, index) in [("fidelity", pair.0), ("fidelity_against", pair.1)] {
            let last = self.runs(index).last().and_then(|run| run.audit.get("fidelity").cloned());
            row.audit.extend(last.map(|fidelity| (member.to_owned(), fidelity)));
        }
        let kept = |member: &str| row.audit.get(member).and_then(Value::as_str).unwrap_or_default();
        let (subject, against) = (kept("fidelity"), kept("fidelity_against"));
        if subject != against {
            let (first, second) = (name(pair.0), name(pair.1));
            let text = format!(
                "{first} keeps {subject}, {second} {against}: who keeps less has less to do"
            );
            warning::add(&mut row.warnings, Warning::new(warning::KEEPS_LESS, text));
        }
        row
    }

    /// Gives a row its figures, its status and what these say against themselves.
    fn conclude(&self, mut row: Outcome, figures: Vec<f64>) -> Outcome {
        let width = statistics::relative_half_width(&figures);
        let is_precise = width.is_some_and(|width| width <= self.plan.half_width);
        row.status = match self.result {
            Raced { is_interrupted: true, .. } => Status::Interrupted,
            _ if !is_precise => Status::Unstable,
            Raced { disturbed: 1.., .. } => Status::Degraded,
            _ => Status::Ok,
        };
        row.median = statistics::median(&figures);
        row.ci95 = statistics::median_interval(&figures);
        row.n = figures.len() as u64;
        self.note_doubts(&mut row, &figures, width);
        row.samples = figures;
        row
    }

    fn note_doubts(&self, row: &mut Outcome, figures: &[f64], width: Option<f64>) {
        let mut add = |code, text| warning::add(&mut row.warnings, Warning::new(code, text));
        let rounds = figures.len();
        if self.result.is_interrupted {
            add(warning::INTERRUPTED, format!("interrupted after {rounds} rounds that count"));
        }
        if rounds < INTERVAL_LEAST {
            let text = format!("{rounds} trials count; a 95 % interval needs {INTERVAL_LEAST}");
            add(warning::FEW_TRIALS, text);
        } else if let Some(width) = width.filter(|&width| width > self.plan.half_width) {
            let (width, asked) = (width * 100.0, self.plan.half_width * 100.0);
            add(
                warning::UNSTABLE,
                format!(
                    "the 95 % interval is ±{width:.1} % after {rounds} rounds; ±{asked:.1} % was asked for"
                ),
            );
        }
        if self.result.disturbed > 0 {
            let reasons: Vec<&str> = self.result.reasons.keys().copied().collect();
            let (disturbed, reasons) = (self.result.disturbed, reasons.join(", "));
            let text = format!("{disturbed} rounds were disturbed from outside ({reasons})");
            add(warning::DISTURBED, text);
        }
        let far = statistics::outliers(figures);
        if !far.is_empty() {
            let text = format!("{} of {rounds} samples lie far from the others", far.len());
            add(warning::OUTLIERS, text);
            row.audit.insert("outlier_indices".to_owned(), json!(far));
        }
    }
}
