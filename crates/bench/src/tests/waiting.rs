//! For tests: whether it is seen that the threads of a trial wait for a CPU.

use std::hint;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use flatout_sys::{affinity, run_queue};

/// Set in the process that runs one test alone: threads of other tests wait, too.
const ALONE: &str = "FLATOUT_TEST_WAITING_ALONE";
/// Busy loops on each CPU.
const LOOPS: usize = 2;
/// Trials until one must have been seen to wait.
const TRIALS: u32 = 500;

/// Ends the loops however the trials end.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs each of `trials` beside busy loops on every CPU until it was seen that its threads waited.
/// `test` is the name of the test that asks, from the crate on.
pub(crate) fn is_seen(test: &str, mut trials: Vec<Box<dyn FnMut() + '_>>) {
    if std::env::var_os(ALONE).is_none() {
        let mut own = Command::new(std::env::current_exe().unwrap());
        let output = own.args(["--exact", "--nocapture", test]).env(ALONE, "1").output().unwrap();
        let texts = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success() && texts[0].contains("1 passed"), "{texts:?}");
        return eprint!("{}", texts[1]);
    }
    if run_queue::waited_ns().is_none() {
        return eprintln!("skipped: this kernel counts no waiting (CONFIG_SCHED_INFO)");
    }
    let is_over = AtomicBool::new(false);
    let busy = |cpu| {
        affinity::pin_to(cpu).unwrap();
        while !is_over.load(Ordering::Relaxed) {
            hint::spin_loop();
        }
    };
    thread::scope(|scope| {
        let _ending = Ending(&is_over);
        let busy = &busy;
        for cpu in affinity::allowed_cpus().unwrap().repeat(LOOPS) {
            // Not counted: these are the others.
            scope.spawn(move || busy(cpu));
        }
        trials.iter_mut().for_each(|trial| run_until_seen(trial));
    });
}

fn run_until_seen(trial: &mut dyn FnMut()) {
    let before_ns = run_queue::workers_waited_ns();
    for _ in 0..TRIALS {
        trial();
        if run_queue::workers_waited_ns() > before_ns {
            return;
        }
    }
    panic!("no thread of {TRIALS} trials beside busy loops is seen to wait");
}
