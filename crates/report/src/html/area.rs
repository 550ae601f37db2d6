//! The section of an area: pictures first, then the tables that they are made from.

use flatout_measure::record::{Outcome, Record};

use super::{
    Page,
    weight::{self, Folded},
};
use crate::{
    bars, label,
    markup::escaped,
    plot::Plot,
    sweep::{self, Sweep},
    table, versus as race,
    view::{self, Derived},
};

/// Rows with percentiles that one picture takes; more get a picture per test.
const MOST_LATENCY_LINES: usize = 8;
/// Pictures of runs that stand open; more are folded.
const MOST_OPEN_RUNS: usize = 4;

impl Page {
    pub(super) fn areas(&mut self, record: &Record) {
        let sweeps = sweep::sweeps(record);
        let rows_left = sweep::rows_left(record, &sweeps);
        let derived = view::derived(record);
        let storage_area = table::storage_area(record);
        if storage_area.is_empty() {
            self.storage(record);
        }
        for (index, area) in table::areas(record).into_iter().enumerate() {
            let in_area = |outcome: &&Outcome| label::area(&outcome.id) == area;
            let rows: Vec<&Outcome> =
                rows_left.iter().map(|at| &record.results[*at]).filter(in_area).collect();
            self.line(format_args!("<section id=\"area-{index}\">\n<h2>{}</h2>", escaped(area)));
            if area == storage_area {
                self.storage(record);
            }
            let own: Vec<&Sweep<'_>> =
                sweeps.iter().filter(|sweep| label::area(&sweep.chart.id) == area).collect();
            let views: Vec<&Derived> =
                derived.iter().filter(|view| label::area(&view.chart.id) == area).collect();
            self.pictures(record, area, &own, &views);
            if area == race::AREA {
                self.versus(&table::rows_of(record, area));
            } else {
                self.tables(&rows, &own);
            }
            self.line(format_args!("</section>"));
        }
        if record.results.is_empty() {
            self.line(format_args!("<p>No results.</p>"));
        }
    }

    fn tables(&mut self, rows: &[&Outcome], sweeps: &[&Sweep<'_>]) {
        let shown = self.bounded(rows, self.detail.rows, weight::ROWS);
        if !shown.is_empty() {
            self.rows(shown);
            self.latencies(shown);
        }
        let sweeps = self.bounded(sweeps, self.detail.charts, weight::CHARTS);
        self.audit(shown, sweeps);
        if self.detail.folded == Folded::Shown {
            self.commands(rows, sweeps);
            self.facts(rows);
        } else {
            self.left_out.insert(weight::FOLDED);
        }
    }

    /// Everything that is drawn of an area.
    fn pictures(&mut self, record: &Record, area: &str, sweeps: &[&Sweep<'_>], views: &[&Derived]) {
        let rows = table::rows_of(record, area);
        self.line(format_args!("<div class=\"gallery\">"));
        let mut room = self.detail.charts;
        let mut bars = bars::of_area(record, area);
        let race = race::race(if area == race::AREA { &rows } else { &[] });
        bars.extend(bars::of_race(&race));
        for bars in self.some(&bars, &mut room) {
            self.bar_figure(bars);
        }
        self.line(format_args!("</div>\n<div class=\"gallery\">"));
        for sweep in self.some(sweeps, &mut room) {
            self.sweep(sweep, record);
        }
        for view in self.some(views, &mut room) {
            if let Some(sweep) = sweep::of(&view.results, &view.chart) {
                self.sweep(&sweep, record);
            }
        }
        let latencies = latency_plots(&rows);
        for (title, plot) in self.some(&latencies, &mut room) {
            self.plot_figure("latency", title, plot);
        }
        self.curves(&rows);
        self.line(format_args!("</div>"));
        let mut runs = runs_of_race(&race);
        runs.extend(runs_of_rows(&rows));
        self.runs(&runs, room);
    }

    /// As many of a list as there is room for, which gets less.
    fn some<'a, T>(&mut self, list: &'a [T], room: &mut usize) -> &'a [T] {
        let some = self.bounded(list, *room, weight::CHARTS);
        *room = room.saturating_sub(some.len());
        some
    }

    /// Each run of each row, folded where there are many pictures.
    fn runs(&mut self, plots: &[(String, Plot)], room: usize) {
        if plots.is_empty() {
            return;
        }
        let is_folded = plots.len() > MOST_OPEN_RUNS;
        if is_folded {
            let count = plots.len();
            self.line(format_args!("<details>\n<summary>Each run: {count} charts</summary>"));
        }
        self.line(format_args!("<div class=\"gallery\">"));
        for (title, plot) in self.bounded(plots, room, weight::CHARTS) {
            self.plot_figure("runs", title, plot);
        }
        self.line(format_args!("</div>"));
        if is_folded {
            self.line(format_args!("</details>"));
        }
    }
}

/// Each run of each contestant, a picture per heat.
fn runs_of_race(race: &race::Race<'_>) -> Vec<(String, Plot)> {
    let mut plots: Vec<(String, Plot)> = Vec::new();
    for test in &race.tests {
        for heat in &test.heats {
            let entries = heat.entries.iter();
            let rows: Vec<(&str, &Outcome)> =
                entries.map(|entry| (entry.contestant, entry.outcome)).collect();
            let words = std::iter::once(test.title()).chain(heat.words.iter().cloned());
            let title = format!("Each run: {}", words.collect::<Vec<_>>().join(", "));
            plots.extend(Plot::of_runs(&rows).map(|plot| (title, plot)));
        }
    }
    plots
}

/// Tests whose single runs are worth a picture: the same work again and again.
const RUNS: [&str; 4] = ["copy/deviation", "copy/single", "copy/memory", "copy/tree"];

fn runs_of_rows(rows: &[&Outcome]) -> Vec<(String, Plot)> {
    let of_test = |id: &str| {
        let own: Vec<&Outcome> = rows.iter().copied().filter(|row| row.id == id).collect();
        let names = label::short_names(&own);
        let named: Vec<(&str, &Outcome)> =
            names.iter().map(String::as_str).zip(own.iter().copied()).collect();
        let title = format!("Each run: {}", label::test(id));
        Plot::of_runs(&named).map(|plot| (title, plot))
    };
    RUNS.into_iter().filter_map(of_test).collect()
}

/// Percentiles of an area: one picture, or one per test where there are many rows.
fn latency_plots(rows: &[&Outcome]) -> Vec<(String, Plot)> {
    let timed: Vec<&Outcome> =
        rows.iter().copied().filter(|outcome| outcome.latency.is_some()).collect();
    if timed.len() <= MOST_LATENCY_LINES {
        let plot = Plot::of_latencies(&timed);
        return plot.map(|plot| ("Latency percentiles".to_owned(), plot)).into_iter().collect();
    }
    let mut ids: Vec<&str> = Vec::new();
    timed.iter().for_each(|row| {
        if !ids.contains(&row.id.as_str()) {
            ids.push(&row.id);
        }
    });
    let of_test = |id: &&str| {
        let own: Vec<&Outcome> = timed.iter().copied().filter(|row| row.id == **id).collect();
        let title = format!("Latency percentiles: {}", label::test(id).replace('-', " "));
        Plot::of_latencies(&own).map(|plot| (title, plot))
    };
    ids.iter().filter_map(of_test).collect()
}
