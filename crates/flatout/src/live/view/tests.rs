//! The view at the sizes of usual, large and tiny terminals.

use flatout_measure::comparison::RowName;
use flatout_measure::guard::UseOfCpus;
use flatout_measure::progress::{Event, Standing};
use serde_json::{Map, Value, json};

use super::super::board::Eta;
use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn parameters(row: u64) -> Map<String, Value> {
    json!({"threads": row + 1, "block_bytes": 4096}).as_object().cloned().unwrap()
}

fn name(id: &str, row: u64) -> RowName {
    RowName { id: id.to_owned(), parameters: parameters(row) }
}

/// A trial of a row after which its figure is known to so much.
fn ended(id: &str, row: u64, trials: u64, half: f64) -> Event {
    let standing = Standing {
        unit: "bytes/s",
        trials,
        discarded: u64::from(row == 1),
        median: Some(1e9),
        ci95: Some([1e9 * (1.0 - half), 1e9 * (1.0 + half)]),
        refused: None,
    };
    let use_of_cpus = UseOfCpus {
        elapsed_ns: SECOND_NS,
        others_ns: SECOND_NS.cast_signed() / 4,
        stolen_ns: SECOND_NS / 50,
        ..UseOfCpus::default()
    };
    Event::Ended { row: name(id, row), standing, use_of_cpus }
}

fn closed(id: &str, row: u64, refused: Option<(Status, String)>) -> Event {
    let Event::Ended { row, standing, .. } = ended(id, row, 8, 0.01) else {
        unreachable!("it was made above")
    };
    let standing = Standing { refused, ..standing };
    Event::Closed { row, standing, left_ns: None }
}

/// A run in the middle: one row done, one refused, one at work and many not far.
fn board() -> Board {
    let mut board = Board::new(2);
    let eta = Eta { left_ns: 41 * SECOND_NS + 1, share: 0.3 };
    let begun = |id: &str, row| Event::Trial { row: name(id, row), left_ns: None };
    for half in [0.4, 0.2, 0.1, 0.01] {
        board.take(&ended("disk/sequential-read", 0, 8, half), Some(eta));
    }
    board.take(&closed("disk/sequential-read", 0, None), None);
    let refused = (Status::Unsupported, "this kernel cannot: RWF_ATOMIC".to_owned());
    board.take(&closed("disk/atomic-write", 0, Some(refused)), None);
    for row in 1..40 {
        board.take(&ended("disk/random-read", row, 3, 0.3), None);
    }
    board.take(&begun("disk/random-read", 2), None);
    board
}

/// What stands on the screen, without its emphases.
fn drawn(board: &Board, width: u16, height: u16, terminal: Terminal) -> Vec<String> {
    let drawn = lines(board, &terminal, "q stops and shows what there is", (width, height));
    let plain = |line: &String| {
        let parts = line.split("\x1b[");
        let parts = parts
            .enumerate()
            .map(|(at, part)| if at == 0 { part } else { part.split_once('m').unwrap().1 });
        parts.collect::<String>().trim_end().to_owned()
    };
    drawn.iter().map(plain).collect()
}

#[test]
fn a_usual_terminal_shows_row_figure_interval_time_left_and_load() {
    let shown = drawn(&board(), 80, 24, Terminal::default());
    let expected = [
        "flatout bench: 2 rows done                                             42 s left",
        "██████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  30 %",
        "now disk/random-read 4 KiB, 3 threads",
        "",
        "  row                                            figure       ±  ± so far trials",
        "✓ disk/sequential-read 4 KiB, 1 thread        954 MiB/s   1.0 %  █▄▂▁          8",
        "- disk/atomic-write 4 KiB, 1 thread         this kernel cannot: RWF_ATOMIC",
        "  disk/random-read 4 KiB, 2 threads           954 MiB/s    30 %  █             3",
        "▸ disk/random-read 4 KiB, 3 threads           954 MiB/s    30 %  █             3",
    ];
    assert_eq!(shown[..expected.len()], expected);
    assert_eq!(shown[22], "load: others 0.2 of 2 CPUs, steal 1.0 %, 1 trial discarded");
    assert_eq!(shown[23], "q stops and shows what there is");
}

#[test]
fn an_interval_that_says_nothing_leaves_room_for_the_figure() {
    let mut board = board();
    board.take(&ended("disk/random-read", 41, 3, 225.75), None);
    let shown = drawn(&board, 80, 60, Terminal { unicode: true, ..Terminal::default() });
    let row = shown.iter().find(|line| line.contains('>')).unwrap();
    assert!(row.contains("954 MiB/s  >999 %"), "{row}");
}

#[test]
fn a_large_terminal_has_room_for_long_names() {
    let shown = drawn(&board(), 120, 40, Terminal::default());
    assert_eq!(shown[0].chars().count(), 120);
    assert!(shown[5].ends_with("  █▄▂▁          8"), "{shown:#?}");
    assert_eq!(shown[37], "");
    assert_eq!(shown[39], "q stops and shows what there is");
}

#[test]
fn a_narrow_terminal_shows_figures_and_half_widths() {
    let shown = drawn(&board(), 40, 10, Terminal::default());
    let expected = [
        "flatout bench: 2 rows done     42 s left",
        "██████████░░░░░░░░░░░░░░░░░░░░░░░░  30 %",
        "now disk/random-read 4 KiB, 3 threads",
        "  row                     figure       ±",
        "- disk/atomic-…      this kernel…",
        "  disk/random-read…    954 MiB/s    30 %",
        "▸ disk/random-read…    954 MiB/s    30 %",
        "  disk/random-read…    954 MiB/s    30 %",
        "load: others 0.2 of 2 CPUs, steal 1.0…",
        "q stops and shows what there is",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn figures_have_the_units_that_people_say() {
    let mut board = Board::new(1);
    board.take(&ended("network/tcp", 0, 3, 0.1), None);
    assert_eq!(board.lines[0].figure().as_deref(), Some("8.00 Gbit/s"));
}

#[test]
fn ascii_is_all_that_some_terminals_show() {
    let terminal = Terminal { unicode: false, ..Terminal::default() };
    for line in drawn(&board(), 80, 24, terminal) {
        assert!(line.is_ascii(), "{line}");
    }
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in (0..45).flat_map(|width| (0..12).map(move |height| (width, height))) {
        drawn(&board(), width, height, Terminal::default());
        drawn(&Board::new(1), width, height, Terminal::default());
    }
}

#[test]
fn rows_that_are_done_make_room_and_the_last_stay() {
    let mut board = board();
    assert_eq!(shown(&board, 10), 0..10);
    for row in 1..40 {
        assert_eq!(shown(&board, 12).len(), 12);
        board.take(&closed("disk/random-read", row, None), None);
    }
    assert_eq!(shown(&board, 10), 31..41);
    assert_eq!(shown(&board, 100), 0..41);
}

#[test]
fn what_is_prepared_stands_where_a_row_would() {
    let mut board = board();
    let what = "writing the test file\x1b[2J".to_owned();
    board.take(&Event::Preparing { what }, None);
    let shown = drawn(&board, 80, 24, Terminal::default());
    assert_eq!(shown[2], "now writing the test file\\x1b[2J");
    assert!(!shown.iter().any(|line| line.contains('▸')));
}
