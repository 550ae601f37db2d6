//! What is looked at: pictures and their values, hover, switches, colours, widths, paper.

use flatout_measure::record::Record;
use serde_json::{Value, json};

use super::Browser;

/// Pictures that have switches or values, as an expression.
const FIGURES: &str = "[...document.querySelectorAll('figure[data-chart]')]";
/// The least contrast of text that people with weak eyes can read (WCAG 2, level AA).
const LEAST_CONTRAST: f64 = 4.5;

/// Pictures that a page of everything must have, by the beginning of their names.
const WANTED: [&str; 27] = [
    "cache/block-sweep by block_bytes",
    "cache/thread-sweep by threads",
    "cache/series by block_bytes",
    "bars-passes",
    "disk/sequential-read by threads",
    "bars-operations",
    "latency Latency percentiles",
    "curve sequential-write",
    "memory/latency by working_set_bytes",
    "memory/working-set by working_set_bytes",
    "memory/sequential-copy by threads",
    "memory/roofline by flop_per_byte",
    "cpu/scaling by threads",
    "network/tcp-throughput by streams",
    "network/tcp-latency by streams",
    "bars-calls",
    "copy/by-count by files",
    "copy/by-pieces by files",
    "copy/by-depth by tree_depth",
    "bars-trees",
    "runs Each run: deviation",
    "versus/dd-copy by bytes",
    "versus/dd-copy-speed by bytes",
    "bars-race-copy",
    "versus/copy by files",
    "versus/copy by tree_depth",
    "runs Each run: copy",
];

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// As many fields as the figure promises, inside of it; and as many as the record has rows.
pub fn every_picture_has_its_values(browser: &mut Browser, url: &str, record: &Record) {
    let found = browser.value(&format!(
        "{FIGURES}.map(figure => {{
            const plot = figure.querySelector('.plot:not(.other)');
            const fields = [...figure.querySelectorAll('.plot:not(.other) i, .bar-row:not(.bar-axis)')];
            const own = figure.getBoundingClientRect();
            const drawn = plot ? plot.querySelectorAll('svg path.run, svg path.marker').length
                : figure.querySelectorAll('.bar-fill').length;
            return {{name: figure.dataset.chart, promised: +figure.dataset.points, count: fields.length, drawn,
                told: fields.every(field => /[0-9]/.test(field.dataset.v)),
                inside: fields.every(field => {{ const b = field.getBoundingClientRect();
                    return b.x >= own.x - 1 && b.right <= own.right + 1 && b.y >= own.y && b.bottom <= own.bottom; }}),
                rises: [...figure.querySelectorAll('.plot:not(.col)')].every(drawing => {{
                    const exact = /exactly ([-+.e0-9]+)/;
                    const known = [...drawing.querySelectorAll('i:not(.col)')].filter(i => exact.test(i.dataset.v));
                    const at = known.map(i => [+i.dataset.v.match(exact)[1], parseFloat(i.style.top)]);
                    at.sort((a, b) => a[0] - b[0]);
                    return at.every(([, top], n) => n === 0 || top <= at[n - 1][1] + 0.02); }}),
                axes: figure.querySelectorAll('.axis text.y, .bar-tick').length,
                named: !plot || figure.querySelectorAll('.axis text.name').length >= 2}};
        }})"
    ));
    let found = list(&found);
    for picture in &found {
        assert_eq!(picture["promised"], picture["count"], "{picture}");
        assert!(picture["count"].as_u64() > Some(0), "{picture}");
        assert!(picture["drawn"].as_u64() > Some(0), "{picture}");
        assert!(picture["axes"].as_u64() > Some(1), "{picture}");
        for sign in ["told", "inside", "named", "rises"] {
            assert_eq!(picture[sign], true, "{sign}: {picture}");
        }
    }
    for chart in &record.charts {
        let of_chart = record.results.iter().filter(|row| {
            row.id == chart.id
                && row.median.is_some()
                && row.parameters.get(&chart.x_parameter).is_some_and(Value::is_number)
        });
        let name = format!("{} by {}", chart.id, chart.x_parameter);
        if let Some(picture) = found.iter().find(|picture| picture["name"] == *name) {
            assert_eq!(picture["count"], of_chart.count(), "{name}");
        }
    }
    if url.ends_with("/everything.html") {
        for wanted in WANTED {
            let is_there = |picture: &Value| {
                picture["name"].as_str().is_some_and(|name| name.starts_with(wanted))
            };
            assert!(found.iter().any(is_there), "no picture {wanted}");
        }
    }
}

/// The text of a field appears with the pointer on it, and not before.
pub fn hover_shows_the_value(browser: &mut Browser, _: &str, _: &Record) {
    let count = browser.value(&format!("{FIGURES}.length")).as_u64().expect("a count");
    for at in 0..count {
        let field = format!(
            "(() => {{ const f = [...{FIGURES}[{at}].querySelectorAll('.plot:not(.other) i, .bar-row:not(.bar-axis)')]; \
             return f[f.length - 1]; }})()"
        );
        if browser.value(&format!("{field}.closest('details:not([open])') !== null")) == true {
            continue;
        }
        let shown = format!("getComputedStyle({field}, '::after').content");
        assert_eq!(browser.value(&shown), "none");
        browser.hover(&field);
        let text = browser.value(&format!("{field}.dataset.v"));
        let text = text.as_str().expect("a field has a text").to_owned();
        let seen = browser.value(&shown);
        assert_eq!(seen, format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
        let widened = browser.value("document.scrollingElement.scrollWidth > innerWidth");
        assert_eq!(widened, false, "{text}");
    }
}

/// A switch hides the lines of its value, and brings them back.
pub fn switches_hide_and_show(browser: &mut Browser, url: &str, _: &Record) {
    let count = browser.value(&format!("{FIGURES}.length")).as_u64().expect("a count");
    let mut switched = 0;
    for at in 0..count {
        let figure = format!("{FIGURES}[{at}]");
        let switch = format!("{figure}.querySelector('.k0')");
        let is_hidden = format!("{figure}.closest('details:not([open])') !== null");
        if browser.value(&format!("{switch} === null || {is_hidden}")) == true {
            continue;
        }
        let shown = |class: &str| {
            format!(
                "[...{figure}.querySelectorAll('.plot:not(.other) {class}')]\
                 .filter(e => getComputedStyle(e).display !== 'none').length"
            )
        };
        let mut counts = || (browser.value(&shown(".v0")), browser.value(&shown("g, i")));
        let before = counts();
        browser.click(&switch);
        let mut counts = || (browser.value(&shown(".v0")), browser.value(&shown("g, i")));
        let off = counts();
        assert_eq!(off.0, 0, "{at}");
        assert!(off.1.as_u64() > Some(1) && off.1.as_u64() < before.1.as_u64(), "{at}: {off:?}");
        browser.click(&switch);
        let mut counts = || (browser.value(&shown(".v0")), browser.value(&shown("g, i")));
        assert_eq!(counts(), before);
        switched += 1;
    }
    assert!(switched > 5 || !url.ends_with("/everything.html"), "{switched}");
}

/// The same figures on the other axis: one drawing is shown at a time, with all its fields.
pub fn the_axis_can_be_changed(browser: &mut Browser, url: &str, _: &Record) {
    let shown = "[...figure.querySelectorAll('.plot')].filter(e => getComputedStyle(e).display !== 'none')\
                 .map(e => [e.className, e.querySelectorAll('i').length])";
    let figures = browser.value(&format!(
        "{FIGURES}.map((figure, at) => [figure, at]).filter(([f]) => f.querySelector('.to-log')\
         && !f.closest('details:not([open])')).map(([f, at]) => at)"
    ));
    let figures = list(&figures);
    assert!(figures.len() > 3 || !url.ends_with("/everything.html"), "{figures:?}");
    for at in figures {
        let figure = format!("{FIGURES}[{at}]");
        let mut after = |word: &str| {
            browser.click(&format!("{figure}.querySelector('.to-{word}')"));
            let found = browser.value(&format!("(figure => {shown})({figure})"));
            assert_eq!(list(&found).len(), 1, "{found}");
            let class = found[0][0].as_str().expect("a class");
            assert!(class.ends_with(word), "{found}");
            found[0][1].clone()
        };
        assert_eq!(after("log"), after("linear"));
    }
}

/// Text stands out from what is behind it, in both colours; and the colours differ.
pub fn colours_can_be_read(browser: &mut Browser, _: &str, _: &Record) {
    let mut grounds = Vec::new();
    for colours in ["light", "dark"] {
        browser.set_media("screen", colours);
        grounds.push(browser.value("getComputedStyle(document.body).backgroundColor"));
        let worst = browser.value(include_str!("contrast.js"));
        let ratio = worst["ratio"].as_f64().expect("a page has text");
        assert!(ratio >= LEAST_CONTRAST, "{colours}: {worst}");
        assert!(worst["count"].as_u64() > Some(5), "{worst}");
    }
    assert_ne!(grounds[0], grounds[1]);
}

/// At 360 pixels nothing but tables and commands scrolls sideways, and text is not tiny; at 800 no table whose
/// rows can be cards does.
pub fn a_small_screen_has_no_scroll_bar(browser: &mut Browser, _: &str, _: &Record) {
    browser.set_width(360);
    let wide = browser.value("document.scrollingElement.scrollWidth");
    assert!(wide.as_f64() <= Some(360.0), "{wide}");
    let smallest = browser.value(
        "Math.min(99, ...[...document.querySelectorAll('.chart text')].filter(e => e.checkVisibility())\
         .map(e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a))",
    );
    assert!(smallest.as_f64() >= Some(9.0), "{smallest} px");
    let beyond = browser.value(
        "[...document.querySelectorAll('.rows th, .rows td, .changes th, .changes td, .summary th, .summary td')].filter(e => e.checkVisibility())\
         .filter(e => e.getBoundingClientRect().right > 360).map(e => e.textContent.slice(0, 40))",
    );
    assert_eq!(beyond, json!([]), "figure, interval and limit are seen without scrolling");
    browser.set_width(800);
    let scrolled = browser.value(
        "[...document.querySelectorAll('.scroll:has(.cards)')].filter(e => e.scrollWidth > e.clientWidth)\
         .map(e => e.textContent.slice(0, 40))",
    );
    assert_eq!(scrolled, json!([]), "half a screen wide");
}

/// The texts of a picture lie inside of it and not on each other, on a large screen and a small one.
pub fn no_label_lies_on_another(browser: &mut Browser, _: &str, _: &Record) {
    for width in [1200, 360] {
        browser.set_width(width);
        let colliding = browser.value(
            "[...document.querySelectorAll('figure[data-chart]')].flatMap(figure => {\
             const own = figure.getBoundingClientRect();\
             const all = [...figure.querySelectorAll('.bar-tick, .chart text')].filter(e => e.checkVisibility())\
             .map(e => [e.getBoundingClientRect(), e.textContent]);\
             const out = all.filter(([r]) => r.x < own.x || r.right > own.right);\
             const over = (a, b) => a.x + 1 < b.right && b.x + 1 < a.right && a.y + 2 < b.bottom && b.y + 2 < a.bottom;\
             const on = all.filter(([r], n) => all.slice(0, n).some(([other]) => over(r, other)));\
             return [...out, ...on].map(([, text]) => figure.dataset.chart + ': ' + text); })",
        );
        assert_eq!(colliding, json!([]), "at {width} pixels");
    }
}

/// On paper there is nothing to click, answers are whole, and nothing is wider than the sheet.
pub fn paper_has_everything(browser: &mut Browser, _: &str, record: &Record) {
    // A4 without its margins.
    browser.set_width(718);
    browser.set_media("print", "light");
    let clickable = "[...document.querySelectorAll('nav, .switches')]\
                     .filter(e => getComputedStyle(e).display !== 'none').length";
    assert_eq!(browser.value(clickable), 0);
    let answers = browser.value(
        "[...document.querySelectorAll('.verdict p:not(.rests)')]\
         .filter(e => e.getBoundingClientRect().height > 5).length",
    );
    assert_eq!(answers, record.end.verdict.len());
    let sheet = browser.call("Page.printToPDF", json!({"printBackground": true}));
    let bytes = sheet["data"].as_str().map_or(0, str::len);
    assert!(bytes > 1000, "a sheet of {bytes} characters");
}
