//! Runs the built program the way a user or a script does, and keeps what came back.
//!
//! Each run has its own folder as current directory, no input unless a test gives some, and a
//! time limit after which it is killed. A run that leaves a file behind that the test has not
//! announced fails the test.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

pub use crate::folder::Folder;

/// Longer than anything here may take, on a machine where others take most of the CPUs; a run that
/// reaches it hangs. The longest takes twenty seconds of a machine of its own.
pub const LIMIT: Duration = Duration::from_secs(900);

/// How often a test looks whether something is so; it costs no CPU in between.
pub const POLL: Duration = Duration::from_millis(2);

/// Waits until something is so that no run of the test tells.
#[track_caller]
pub fn wait_for(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() <= LIMIT, "it did not happen");
        std::thread::sleep(POLL);
    }
}

/// The program under test.
pub fn executable() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_flatout"))
}

/// A run that has not begun.
pub struct Flatout<'a> {
    command: Command,
    folder: &'a Folder,
    announced: BTreeSet<String>,
}

impl<'a> Flatout<'a> {
    pub fn new(command: Command, folder: &'a Folder) -> Self {
        Self { command, folder, announced: BTreeSet::new() }
    }

    /// Gives the run an input.
    pub fn stdin(mut self, input: impl Into<Stdio>) -> Self {
        self.command.stdin(input);
        self
    }

    /// Sends its output elsewhere; [`Ran::stdout`] is empty then.
    pub fn stdout(mut self, output: impl Into<Stdio>) -> Self {
        self.command.stdout(output);
        self
    }

    /// Changes how it is started.
    pub fn with(mut self, change: impl FnOnce(&mut Command)) -> Self {
        change(&mut self.command);
        self
    }

    /// Announces that the run will create this name in its folder.
    pub fn leaves(mut self, name: &str) -> Self {
        self.announced.insert(name.to_owned());
        self
    }

    /// Starts it and comes back at once.
    pub fn start(mut self) -> Running<'a> {
        let mut expected = self.folder.names();
        expected.append(&mut self.announced);
        let said = format!("{:?}", self.command);
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("{said}: {error}"));
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        // The command holds the ends of pipes that were given to it.
        drop(self.command);
        Running {
            child,
            said,
            expected,
            folder: self.folder,
            stdout,
            stderr,
            begun: Instant::now(),
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> Ran {
        self.start().wait()
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        pipe.read_to_end(&mut all).unwrap();
        all
    })
}

/// A run that has begun.
pub struct Running<'a> {
    pub child: Child,
    said: String,
    expected: BTreeSet<String>,
    folder: &'a Folder,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    begun: Instant,
}

impl Running<'_> {
    /// Sends SIGINT, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends any signal.
    pub fn signal(&self, signal: Signal) {
        // A process that has ended stays a zombie until `wait`, so the id is still its own.
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends SIGINT to it and to what it has started, as a terminal does.
    pub fn interrupt_group(&self) {
        kill_process_group(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Lets all its threads run on one CPU only, as `taskset -a -p` does.
    pub fn confine(&self, cpu: usize) {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu);
        let tasks = format!("/proc/{}/task", self.child.id());
        for task in fs::read_dir(tasks).into_iter().flatten().flatten() {
            let number = task.file_name().to_string_lossy().parse().ok();
            if let Some(thread) = number.and_then(Pid::from_raw) {
                // One that has just ended needs no CPU.
                let _ = rustix::thread::sched_setaffinity(Some(thread), &set);
            }
        }
    }

    /// Whether it has not run longer than anything here may take.
    pub fn is_in_time(&self) -> bool {
        self.begun.elapsed() <= LIMIT
    }

    /// Waits until the process is in a state that can be seen in a file of its /proc folder.
    pub fn wait_until(&mut self, proc_file: &str, is_reached: impl Fn(&str) -> bool) {
        let path = format!("/proc/{}/{proc_file}", self.child.id());
        loop {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if is_reached(&text) {
                return;
            }
            if let Some(status) = self.step() {
                let said = self.stderr.take().map(|thread| thread.join().unwrap());
                panic!(
                    "{}: ended with {status} before {proc_file} showed what it should: {}",
                    self.said,
                    String::from_utf8_lossy(&said.unwrap_or_default())
                );
            }
        }
    }

    /// Waits until the process has read this many bytes by system calls.
    pub fn wait_until_read(&mut self, bytes: u64) {
        self.wait_until("io", |text| {
            let count = text.lines().find_map(|line| line.strip_prefix("rchar: "));
            count.is_some_and(|count| count.parse::<u64>().unwrap() >= bytes)
        });
    }

    /// Waits for the end and collects everything.
    pub fn wait(mut self) -> Ran {
        let status = loop {
            if let Some(status) = self.step() {
                break status;
            }
        };
        let text = |pipe: Option<JoinHandle<Vec<u8>>>| {
            let bytes = pipe.map_or_else(Vec::new, |thread| thread.join().unwrap());
            String::from_utf8(bytes).expect("output is UTF-8")
        };
        let ran = Ran {
            code: status.code(),
            signal: status.signal(),
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
            said: self.said.clone(),
        };
        let left: Vec<String> = self.folder.names().difference(&self.expected).cloned().collect();
        assert!(left.is_empty(), "{ran} left behind {left:?}");
        ran
    }

    /// Waits a little; its status, once it has ended.
    pub fn step(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().unwrap();
        if status.is_none() && self.begun.elapsed() > LIMIT {
            panic!("{}: killed, not done after {LIMIT:?}", self.said);
        }
        if status.is_none() {
            std::thread::sleep(POLL);
        }
        status
    }
}

/// A test that fails in the middle leaves no process behind.
impl Drop for Running<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// A run that has ended.
pub struct Ran {
    /// Exit code; none when a signal ended it.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    said: String,
}

/// What `run` finds in the time it is told: so many seconds, which do where little else runs, else
/// three, ten or fifty times as many.
pub fn in_enough_time<T>(seconds: u32, run: impl Fn(&str) -> Option<T>) -> T {
    let found = [1, 3, 10, 50].into_iter().find_map(|times| run(&format!("{}s", seconds * times)));
    found.unwrap_or_else(|| panic!("nothing in {} s", seconds * 50))
}

impl Ran {
    /// None if it was over before anything was measured, as beside others.
    pub fn if_measured(self) -> Option<Self> {
        let nothing = [
            ("was measured", "\"time_short\""),
            ("could be measured", "\"time_short\""),
            ("can be copied", "no time"),
        ];
        let is_over = self.code == Some(1)
            && nothing.iter().any(|(what, why)| {
                self.stderr.contains(&format!("nothing {what}"))
                    && (self.stdout.contains(why) || self.stderr.contains(why))
            });
        (!is_over).then_some(self)
    }

    /// Fails unless it ended with this code.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!((self.code, self.signal), (Some(code), None), "{self}");
        self
    }

    /// Fails unless it ended by this signal, as a shell has to be told.
    #[track_caller]
    pub fn died_of(&self, signal: Signal) -> &Self {
        assert_eq!((self.code, self.signal), (None, Some(signal.as_raw())), "{self}");
        self
    }

    /// Fails unless it failed with this code and one line that contains all of these words.
    #[track_caller]
    pub fn complains(&self, code: i32, words: &[&str]) -> &Self {
        self.exits(code).says(words)
    }

    /// Fails unless it said one line that contains all of these words.
    #[track_caller]
    pub fn says(&self, words: &[&str]) -> &Self {
        assert_eq!(self.stderr.trim_end().lines().count(), 1, "one line: {self}");
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is missing: {self}");
        }
        assert!(!self.stderr.contains("panicked"), "{self}");
        self
    }

    /// Lines on standard error but those that say that the engine asked for gave way.
    pub fn complaints(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| !line.contains(" is not possible: ")).collect()
    }

    /// The value behind a key of the text output, which has lines of `key  value`.
    #[track_caller]
    pub fn field(&self, key: &str) -> &str {
        let mut lines = self.stdout.lines().map(str::trim);
        let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix("  "));
        found.unwrap_or_else(|| panic!("no line `{key}  …`: {self}")).trim()
    }

    /// The whole of stdout as one document of the schema, which agrees with the exit code.
    #[track_caller]
    pub fn document(&self) -> Value {
        let document: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is no JSON document: {error}: {self}"));
        assert_eq!(document["schema"], "flatout/1", "{self}");
        assert!(document["start"]["seed"].is_u64(), "{self}");
        assert!(document["results"].is_array(), "{self}");
        // What a signal stopped says 130 and then dies of the signal.
        let code = self.signal.map_or(self.code, |_| Some(130));
        assert_eq!(document["end"]["exit_code"].as_i64(), code.map(i64::from), "{self}");
        let record = serde_json::from_value::<flatout_measure::record::Record>(document.clone());
        assert!(record.is_ok(), "{record:?}: {self}");
        document
    }

    /// The only result of the document.
    #[track_caller]
    pub fn result(&self) -> Value {
        let document = self.document();
        let results = document["results"].as_array().unwrap();
        assert_eq!(results.len(), 1, "{self}");
        results[0].clone()
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { code, signal, stdout, stderr, said } = self;
        write!(formatter, "\n{said}\ncode {code:?} signal {signal:?}\n")?;
        write!(formatter, "--- stderr\n{stderr}\n--- stdout\n{stdout}\n---\n")
    }
}

/// The codes of a result's warnings.
pub fn warnings(result: &Value) -> Vec<&str> {
    let warnings = result["warnings"].as_array().expect("a result has warnings");
    warnings.iter().map(|warning| warning["code"].as_str().expect("a warning has a code")).collect()
}

/// Fails unless the result has a warning with this code and a sentence for people.
#[track_caller]
pub fn assert_warned(result: &Value, code: &str) {
    assert!(warnings(result).contains(&code), "no warning {code}: {result:#}");
    let all = result["warnings"].as_array().unwrap();
    let warning = all.iter().find(|warning| warning["code"] == code).unwrap();
    assert!(!warning["text"].as_str().unwrap().is_empty(), "{warning}");
}

/// A pipe for output whose reader has gone away.
pub fn closed_pipe() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

/// A file opened for reading, as an input.
pub fn input(path: &Path) -> File {
    File::open(path).unwrap()
}
