//! The rows that IOzone does, too: how it is called, what it prints, what it cannot be held
//! against.
//!
//! The program was not at hand: its options are those of its manual, and the table is read as the
//! manual and published outputs of 3.492 show it. It always writes its file first, since its
//! manual asks for that, and takes the file away at its end.

use std::path::Path;

use flatout_io::{Caching, Engine};

use super::seen::Seen;
use super::work::{Trial, Work};
use crate::disk::Pattern;
use crate::disk::duel::Extents;
use crate::versus::printed::{output, wrong};
use crate::versus::race::{Argv, Checked};
use crate::{Error, KIB, MIB};
use flatout_measure::Unit;
use flatout_sys::process::Account;

const NAME: &str = "iozone";
/// The file that it makes.
pub(super) const FILE_NAME: &str = "iozone.tmp";

/// A figure of its table is so wide.
const COLUMN: usize = 9;
/// Words of its heads that are looked for.
const HEADS: [&str; 4] = ["kB", "reclen", "write", "rewrite"];

const STREAM: Work = Work {
    pattern: Pattern::SequentialRead,
    block_bytes: MIB,
    depth: 1,
    threads: 1,
    engine: Engine::Sync,
    caching: Caching::Direct,
    extents: Extents::Written,
};
const WRITE: Work = Work { pattern: Pattern::SequentialWrite, ..STREAM };
const BUFFERED_WRITE: Work = Work { caching: Caching::Buffered, ..WRITE };
/// Its file is written in the same blocks before, one at a time: 4 KiB would take minutes.
const RANDOM: Work = Work { pattern: Pattern::RandomRead, block_bytes: 64 * KIB, ..STREAM };

/// What it does otherwise in all rows.
pub(super) const NOTE: &str = "iozone goes once over a file of its own, whose blocks are all alike";

/// The rows, in the order of the record.
pub(super) const WORKS: [Work; 10] = [
    Work { extents: Extents::Fresh, ..WRITE },
    WRITE,
    STREAM,
    RANDOM,
    Work { pattern: Pattern::RandomWrite, ..RANDOM },
    Work { pattern: Pattern::BackwardRead, ..STREAM },
    Work { pattern: Pattern::StridedRead, ..STREAM },
    Work { extents: Extents::Fresh, ..BUFFERED_WRITE },
    BUFFERED_WRITE,
    Work { pattern: Pattern::Reread, caching: Caching::Buffered, ..STREAM },
];

/// Rows of `bench disk` that cannot be raced against it, each with the reason.
pub(super) const INCOMPARABLE: [(&str, &str); 8] = [
    ("rows with more than one request in flight", "iozone has one request in flight per thread"),
    ("rows of several threads", "iozone's threads have a file each, flatout's have one together"),
    ("sequential-copy", "iozone has nothing that copies from file to file"),
    ("mixed, sequential-mixed", "iozone mixes reads and writes only among several processes"),
    ("cold-blocks", "iozone writes its file first, so that its blocks are never cold"),
    (
        "buffered reads of a cold cache",
        "iozone reads what it has just written, from the page cache",
    ),
    ("metadata", "iozone makes no names; its companion fileop does, with files of its own kind"),
    ("rows until durable", "iozone ends with fsync, flatout with fdatasync"),
];

/// Number of the test (`-i`), and place of its figure in the table.
fn test(work: &Work) -> Option<(u8, usize)> {
    match (work.pattern, work.extents) {
        (Pattern::SequentialWrite, Extents::Fresh) => Some((0, 0)),
        (Pattern::SequentialWrite, Extents::Written) => Some((0, 1)),
        (Pattern::SequentialRead, _) => Some((1, 2)),
        (Pattern::Reread, _) => Some((1, 3)),
        (Pattern::RandomRead, _) => Some((2, 4)),
        (Pattern::RandomWrite, _) => Some((2, 5)),
        (Pattern::BackwardRead, _) => Some((3, 6)),
        (Pattern::StridedRead, _) => Some((5, 8)),
        _ => None,
    }
}

/// How IOzone is called for one trial, with a file of its own at `file`.
pub(super) fn invocation(program: &Path, work: &Work, file: &Path, trial: Trial) -> Option<Argv> {
    let (number, _) = test(work)?;
    let mut words = "-i 0".to_owned();
    if number != 0 {
        words += &format!(" -i {number}");
    }
    words += &format!(" -s {}k -r {}k", trial.length_bytes / KIB, work.block_bytes / KIB);
    if work.caching == Caching::Direct {
        words += " -I";
    }
    let words = words.split(' ').chain(["-f"]).map(Into::into);
    Some(std::iter::once(program.into()).chain(words).chain([file.into()]).collect())
}

/// The figure of a trial.
///
/// Errors: IOzone failed, printed no table, or one without this figure, or of another file.
pub(super) fn check(
    account: &Account,
    work: &Work,
    trial: Trial,
    unit: Unit,
) -> Result<Checked, Error> {
    let text = output(NAME, account)?;
    let (_, column) = test(work).ok_or_else(|| wrong(format!("{NAME} has no such test")))?;
    let row = row(text).ok_or_else(|| wrong(format!("{NAME} printed no table")))?;
    let kib_per_s =
        row.figures.iter().find(|(place, _)| *place == column).map(|(_, figure)| *figure);
    let kib_per_s = kib_per_s.ok_or_else(|| wrong(format!("{NAME}'s table lacks the figure")))?;
    let bytes = row.file_kib * KIB;
    if bytes != trial.length_bytes {
        return Err(wrong(format!("{NAME} used {bytes} bytes instead of {}", trial.length_bytes)));
    }
    let seen = Seen {
        bytes_per_s: kib_per_s as f64 * KIB as f64,
        operations_per_s: None,
        bytes,
        block_bytes: (row.block_kib * KIB) as f64,
        elapsed_s: None,
    };
    seen.checked(NAME, work.block_bytes, unit)
}

/// The one row of the table: sizes, and figures in kB (of 1024 bytes) per second, by place.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    file_kib: u64,
    block_kib: u64,
    figures: Vec<(usize, u64)>,
}

/// The row below the heads. Tests that were not asked for leave their places blank, so the place
/// of a figure follows from where it ends.
fn row(text: &str) -> Option<Row> {
    let mut lines = text.lines();
    lines.find(|line| line.split_whitespace().take(HEADS.len()).eq(HEADS))?;
    let line = lines.find(|line| !line.trim().is_empty())?;
    let mut numbers = numbers(line)?.into_iter();
    let (file_kib, _) = numbers.next()?;
    let (block_kib, begin) = numbers.next()?;
    let figures = numbers.map(|(figure, end)| {
        let place = ((end - begin) as f64 / COLUMN as f64).round() as usize;
        (place.saturating_sub(1), figure)
    });
    Some(Row { file_kib, block_kib, figures: figures.collect() })
}

/// The numbers of a line and where each ends; none if it has anything else.
fn numbers(line: &str) -> Option<Vec<(u64, usize)>> {
    let mut found = Vec::new();
    let mut at = 0;
    for piece in line.split(' ') {
        at += piece.len();
        if !piece.is_empty() {
            found.push((piece.trim_end().parse().ok()?, at));
        }
        at += 1;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 256 * MIB;
    const TRIAL: Trial = Trial { length_bytes: LENGTH, runtime_ns: 1 };

    /// A table as the manual describes it, with these figures at their places.
    fn output(file_kib: u64, block_kib: u64, figures: &[(usize, u64)]) -> Account {
        let mut row = format!("{file_kib:16}{block_kib:8}");
        for place in 0..13 {
            match figures.iter().find(|(own, _)| *own == place) {
                Some((_, figure)) => row.push_str(&format!("{figure:9}")),
                None => row.push_str("         "),
            }
        }
        let text = format!(
            "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.492 $\n\n\
             \tRecord Size 1024 kB\n\tOutput is in kBytes/sec\n{:62}random    random     bkwd    record    stride\n\
             {:>16}{:>8}{:>9}{:>9}{:>8}{:>10}{:>8}{:>10}\n{row}\n\niozone test complete.\n",
            "", "kB", "reclen", "write", "rewrite", "read", "reread", "read", "write"
        );
        Account { stdout: text.into_bytes(), ..Account::default() }
    }

    fn of(work: Work, figures: &[(usize, u64)]) -> Result<Checked, Error> {
        let account = output(LENGTH / KIB, work.block_bytes / KIB, figures);
        check(&account, &work, TRIAL, Unit::BytesPerSecond)
    }

    #[test]
    fn a_figure_is_known_by_its_place() {
        let table = [(0, 360_823), (1, 362_512), (4, 378_122), (5, 364_339)];
        let random = Work { block_bytes: MIB, ..RANDOM };
        assert_eq!(of(random, &table).unwrap().figure, Some(378_122.0 * 1024.0));
        let write = Work { pattern: Pattern::RandomWrite, ..random };
        assert_eq!(of(write, &table).unwrap().figure, Some(364_339.0 * 1024.0));
        assert_eq!(of(WRITE, &table).unwrap().figure, Some(362_512.0 * 1024.0));
        assert!(of(STREAM, &table).unwrap_err().to_string().contains("lacks the figure"));
        let wide = [(0, 12_345_678), (1, 12_345_679), (8, 23_456_789)];
        let strided = Work { pattern: Pattern::StridedRead, ..STREAM };
        assert_eq!(of(strided, &wide).unwrap().figure, Some(23_456_789.0 * 1024.0));
    }

    #[test]
    fn operations_follow_from_the_block() {
        let account = output(LENGTH / KIB, 64, &[(0, 1), (1, 1), (4, 64_000)]);
        let checked = check(&account, &RANDOM, TRIAL, Unit::OperationsPerSecond).unwrap();
        assert_eq!(checked.figure, Some(1000.0));
    }

    #[test]
    fn a_published_line_is_read() {
        let text = "              kB  reclen    write  rewrite    read    reread    read     write\n\
                    \x20         102400    1024   360823   362512                     378122   364339\n";
        let row = row(text).unwrap();
        assert_eq!((row.file_kib, row.block_kib), (102_400, 1024));
        assert_eq!(row.figures, [(0, 360_823), (1, 362_512), (4, 378_122), (5, 364_339)]);
    }

    #[test]
    fn what_is_no_such_table_is_an_error() {
        let table = [(0, 100), (1, 100), (2, 100)];
        let other = output(1024, 1024, &table);
        assert!(
            check(&other, &STREAM, TRIAL, Unit::BytesPerSecond).is_err(),
            "a file of another length"
        );
        let other = output(LENGTH / KIB, 4, &table);
        assert!(
            check(&other, &STREAM, TRIAL, Unit::BytesPerSecond).is_err(),
            "blocks of another size"
        );
        assert!(of(STREAM, &[(2, 0)]).unwrap_err().to_string().contains("cannot be"));
        for text in
            ["", "iozone: interrupted", "kB reclen write rewrite\n", "kB reclen write rewrite\n1 x"]
        {
            let account = Account { stdout: text.into(), ..Account::default() };
            let error =
                check(&account, &STREAM, TRIAL, Unit::BytesPerSecond).unwrap_err().to_string();
            assert_eq!(error, "iozone printed no table", "{text:?}");
        }
    }

    #[test]
    fn each_work_is_a_test_of_the_manual() {
        for work in WORKS {
            let file = Path::new("/d/iozone.tmp");
            let invocation = invocation(Path::new("/bin/iozone"), &work, file, TRIAL).unwrap();
            let words: Vec<&str> = invocation.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(words[..3], ["/bin/iozone", "-i", "0"]);
            assert!(words.windows(2).any(|pair| pair == ["-s", "262144k"]), "{words:?}");
            assert_eq!(words.contains(&"-I"), work.caching == Caching::Direct);
            assert_eq!(words[words.len() - 2..], ["-f", "/d/iozone.tmp"]);
        }
    }
}
