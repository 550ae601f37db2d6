//! Against OpenBLAS and STREAM: products and factorisations of matrices, streams through memory.
//!
//! A library is no program: both sides of its races are `flatout compute`, which has our kernels or
//! the library do the same work with the same matrices, and checks either result. STREAM is a
//! program where there is one; `stream-loops` are its loops as a compiler makes them.

use std::ffi::OsString;

use flatout_measure::{Facts, Parameters, Unit, Warning, warning};
use flatout_sys::affinity;
use flatout_sys::instruction_set::{self, Extension};
use flatout_sys::process::Account;

use crate::Error;
use crate::compute::{Figure, Job, Work};
use crate::versus::race::{Argv, Checked, Race, Run, Workload};
use crate::versus::rival::{Discipline, Found};
use crate::versus::{Extent, Ground, fact, printed};

/// Orders of matrices.
const ORDERS: [u64; 5] = [500, 1000, 2000, 4000, 6000];
const QUICK_ORDERS: [u64; 2] = [500, 1000];
/// Elements of an array of a stream: three of them are beyond the caches of one socket.
const ELEMENTS: u64 = 40_000_000;
const QUICK_ELEMENTS: u64 = 10_000_000;
/// Bytes per second with which the plan of the time counts; operations, where no product can be tried.
const PLANNED_BYTES_PER_S: f64 = 10e9;
const PLANNED_FLOP_PER_S: f64 = 30e9;
/// Order of the product that is tried for the plan, for how long, and how often: in a moment in which others
/// have the core a product takes twice as long, and the longest race would be left out.
const TRIED_ORDER: u64 = 384;
const TRIED_NS: u64 = 4_000_000;
const TRIED_TIMES: usize = 5;
/// Kernels by the words of STREAM's table, with the arrays that each goes through.
const STREAMS: [(&str, &str, f64); 4] = [
    ("copy", "Copy:", 2.0),
    ("scale", "Scale:", 2.0),
    ("add", "Add:", 3.0),
    ("triad", "Triad:", 3.0),
];

/// Which kernels of OpenBLAS are of the level that ours are held down to.
fn core_type(limit: Option<Extension>) -> Option<&'static str> {
    match limit? {
        Extension::Avx512 => None,
        Extension::Avx2 => Some("OPENBLAS_CORETYPE=Haswell"),
        Extension::Sse41 => Some("OPENBLAS_CORETYPE=Nehalem"),
        Extension::Sse2 => Some("OPENBLAS_CORETYPE=Core2"),
    }
}

/// Numbers of threads that are raced: one, and one for each CPU.
pub(super) fn threads() -> Vec<u32> {
    let mut threads = vec![1, affinity::allowed_cpu_count()];
    threads.dedup();
    threads
}

/// Operations per second of a thread with which the plan of the time counts.
///
/// Cost: some 50 ms.
fn planned_flop_per_s() -> f64 {
    let work = Work::Product;
    let product = Job {
        work,
        order: TRIED_ORDER,
        threads: 1,
        seed: 0,
        time_ns: TRIED_NS,
        library: None,
        plain: false,
    };
    let tried = (0..TRIED_TIMES).filter_map(|_| Some(product.run().ok()?.figure));
    tried.reduce(f64::max).unwrap_or(PLANNED_FLOP_PER_S)
}

/// What a run is expected to take: one piece of work, or as many as take so long, and what comes before and
/// after it.
fn run_s(once_s: f64, duration_s: f64) -> f64 {
    once_s + once_s.min(duration_s) + 1.0
}

/// The races against each rival that is there.
pub fn races(ground: &Ground) -> Vec<Race<'static>> {
    let is_quick = ground.extent != Extent::Full;
    let (duration, duration_s) = if is_quick { ("200ms", 0.2) } else { ("500ms", 0.5) };
    let workload = |found: &Found, what, order, threads, table_word| {
        let [flatout, rival] = [&ground.flatout, &found.path].map(|path| path.clone().into());
        ComputeWorkload { what, order, threads, duration, table_word, flatout, rival }
    };
    let mut races = Vec::new();
    let mut flop_per_s = None;
    for found in ground.of(Discipline::Matrix) {
        let flop_per_s = *flop_per_s.get_or_insert_with(planned_flop_per_s);
        let usual = if is_quick { &QUICK_ORDERS[..] } else { &ORDERS };
        let orders = if ground.orders.is_empty() { usual } else { &ground.orders };
        let works = [("product", "matrix-product", 2.0), ("factor", "matrix-factor", 2.0 / 3.0)];
        for (what, test, operations) in works {
            for (&order, threads) in
                orders.iter().flat_map(|order| threads().into_iter().map(move |n| (order, n)))
            {
                let work = workload(found, what, order, threads, None);
                let all = operations * (order as f64).powi(3);
                let expected_s = run_s(all / flop_per_s / f64::from(threads), duration_s);
                let parameters =
                    Parameters::default().with("order", order).with("threads", threads);
                let printed = Some(Unit::FlopPerSecond);
                let race = Race::against(ground, found, (test, parameters), expected_s, work);
                races.push(Race { printed, ..race });
            }
        }
    }
    for found in ground.of(Discipline::Stream) {
        for (what, word, arrays) in STREAMS {
            let order = if is_quick { QUICK_ELEMENTS } else { ELEMENTS };
            let threads = affinity::allowed_cpu_count();
            let work = workload(found, what, order, threads, Some(word));
            let once_s = arrays * 8.0 * order as f64 / PLANNED_BYTES_PER_S;
            let parameters = Parameters::default().with("kernel", what).with("threads", threads);
            let printed = Some(Unit::BytesPerSecond);
            let race =
                Race::against(ground, found, ("stream", parameters), 2.0 * once_s + 1.5, work);
            races.push(Race { printed, ..race });
        }
    }
    races
}

/// What is computed, and by whom.
struct ComputeWorkload {
    /// The word of `flatout compute`.
    what: &'static str,
    order: u64,
    threads: u32,
    duration: &'static str,
    /// Of a stream: the first word of its line in STREAM's table.
    table_word: Option<&'static str>,
    flatout: OsString,
    /// A library, a program, or nothing: our own loops.
    rival: OsString,
}

impl ComputeWorkload {
    fn argv(&self, index: usize) -> Argv {
        let Self { what, order, threads, duration, table_word, .. } = *self;
        let is_stream = table_word.is_some();
        // Whatever the user's environment holds OpenBLAS down to; STREAM takes its threads from it.
        if index > 0 && is_stream && !self.rival.is_empty() {
            let threads = format!("OMP_NUM_THREADS={threads}");
            return vec!["env".into(), threads.into(), self.rival.clone()];
        }
        let mut argv = Argv::new();
        if index > 0 && !is_stream {
            let words = ["env", "-u", "OPENBLAS_CORETYPE", "-u", "OPENBLAS_L2_SIZE"];
            argv.extend(words.map(OsString::from));
            argv.extend(core_type(instruction_set::limit()).map(OsString::from));
        }
        argv.push(self.flatout.clone());
        let words =
            format!("compute {what} --order {order} --threads {threads} --duration {duration}");
        argv.extend(words.split(' ').map(OsString::from));
        match (index, is_stream) {
            (0, _) => {}
            (_, true) => argv.push("--plain".into()),
            (_, false) => argv.extend(["--library".into(), self.rival.clone()]),
        }
        argv
    }
}

impl Workload for ComputeWorkload {
    fn invocation(&mut self, run: &Run<'_>) -> Result<Argv, Error> {
        Ok(self.argv(run.index))
    }

    fn check(&mut self, run: &Run<'_>, account: &Account) -> Result<Checked, Error> {
        let text = printed::output(&run.contestant.name, account)?;
        let is_foreign = run.index > 0 && !self.rival.is_empty();
        let checked = match self.table_word.filter(|_| is_foreign) {
            Some(word) => of_stream(text, word, (self.threads, self.order)),
            None => of_compute(text),
        };
        Ok(checked.unwrap_or_default())
    }
}

/// What `flatout compute` prints.
fn of_compute(text: &str) -> Option<Checked> {
    let Figure { figure, repetitions, by, normalised_residual } =
        serde_json::from_str(text).ok()?;
    let repetitions = repetitions as f64;
    let mut facts = Facts::default().with("by", by).with(fact::REPETITIONS, repetitions);
    facts.set_known(fact::NORMALISED_RESIDUAL, normalised_residual);
    Some(Checked { figure: Some(figure), facts, ..Checked::default() })
}

/// What STREAM prints: the best rate in MB/s behind the kernel's name; and whether it found its own
/// results right. Its threads and the length of its arrays are its own affair: where they are not
/// those of flatout, or it does not say them, it is a row of something else.
fn of_stream(text: &str, word: &str, (threads, elements): (u32, u64)) -> Option<Checked> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(word))?;
    let rate: f64 = line.split_whitespace().next()?.parse().ok()?;
    let is_right = text.contains("Solution Validates");
    let said = |words: &str| -> Option<u64> {
        text.split_once(words)?.1.split_whitespace().next()?.parse().ok()
    };
    let own = ["Threads counted =", "Array size ="].map(said);
    let is_alike = own[0] == Some(threads.into()) && own[1] >= Some(elements);
    let own = own.map(|number| number.map_or("?".to_owned(), |number| number.to_string()));
    let otherwise = format!(
        "it had {} threads (one if compiled without OpenMP) and arrays of {} numbers, where flatout has \
         {threads} and {elements}: caches hold short arrays",
        own[0], own[1]
    );
    let warnings = [Warning::new(warning::DONE_OTHERWISE, otherwise)].into_iter();
    let warnings = warnings.filter(|_| !is_alike).collect();
    is_right.then(|| Checked { figure: Some(rate * 1e6), warnings, ..Checked::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(
        what: &'static str,
        table_word: Option<&'static str>,
        rival: &str,
    ) -> ComputeWorkload {
        let (flatout, rival) = ("flatout".into(), rival.into());
        let (order, threads, duration) = (500, 2, "200ms");
        ComputeWorkload { what, order, threads, duration, table_word, flatout, rival }
    }

    fn text(workload: &ComputeWorkload, index: usize) -> String {
        workload.argv(index).join(std::ffi::OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn both_sides_do_the_same_work() {
        let matrix = workload("product", None, "/lib/libopenblas.so.0");
        let same = "flatout compute product --order 500 --threads 2 --duration 200ms";
        assert_eq!(text(&matrix, 0), same);
        let theirs = text(&matrix, 1);
        assert!(theirs.ends_with(&format!("{same} --library /lib/libopenblas.so.0")), "{theirs}");
        assert!(theirs.starts_with("env -u OPENBLAS_CORETYPE"), "{theirs}");
        assert!(text(&workload("triad", Some("Triad:"), ""), 1).ends_with("200ms --plain"));
        let stream = workload("triad", Some("Triad:"), "/bin/stream");
        assert_eq!(text(&stream, 1), "env OMP_NUM_THREADS=2 /bin/stream");
        assert_eq!(core_type(Some(Extension::Avx2)), Some("OPENBLAS_CORETYPE=Haswell"));
        assert_eq!((core_type(None), core_type(Some(Extension::Avx512))), (None, None));
    }

    #[test]
    fn a_run_is_expected_to_take_what_products_take_here() {
        assert!(planned_flop_per_s() > 1e7, "{}", planned_flop_per_s());
        // Long work is done once, short work as often as takes so long.
        assert_eq!((run_s(8.0, 0.5), run_s(0.125, 0.5)), (9.5, 1.25));
    }

    #[test]
    fn what_is_printed_is_read() {
        let line =
            r#"{"figure": 4e10, "repetitions": 7, "by": "OpenBLAS", "normalised_residual": 0.01}"#;
        let checked = of_compute(line).unwrap();
        assert_eq!(checked.figure, Some(4e10));
        assert_eq!(of_compute("cannot load it"), None);
        let table = "Function    Best Rate MB/s  Avg time\nCopy:           12345.5     0.03\n\
                     Triad:          10000.0     0.04\nSolution Validates: avg error\n";
        let alike = (2, 10);
        assert_eq!(of_stream(table, "Triad:", alike).unwrap().figure, Some(1e10));
        assert_eq!(of_stream(&table.replace("Validates", "fails"), "Triad:", alike), None);
        assert_eq!(of_stream("", "Triad:", alike), None);
    }

    #[test]
    fn other_threads_and_shorter_arrays_of_stream_are_said() {
        let said = |lines: &str| {
            let table = format!("{lines}Triad: 10000.0 0.04\nSolution Validates: avg error\n");
            let checked = of_stream(&table, "Triad:", (2, 40)).unwrap();
            checked.warnings.into_iter().map(|warning| warning.text).collect::<String>()
        };
        let lines = |elements: u64, threads: u32| {
            format!("Array size = {elements} (elements)\nNumber of Threads counted = {threads}\n")
        };
        assert_eq!([said(&lines(40, 2)), said(&lines(80, 2))], ["", ""]);
        assert!(said(&lines(40, 1)).starts_with("it had 1 threads ("), "{}", said(&lines(40, 1)));
        assert!(said(&lines(10, 2)).contains("arrays of 10 numbers, where flatout has 2 and 40"));
        assert!(said("").starts_with("it had ? threads (one if"), "without OpenMP it says nothing");
    }
}
