//! `flatout bench --live` in a terminal of the test's own, which is given back on every way out.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::bin::{Flatout, Folder, POLL, Ran, Running};
use crate::skip::skip;

/// The alternate screen, and the normal one again.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// What stands once in each whole drawing, and what any row begins with. Later drawings write only
/// what differs, so that the name of one row may never be written whole.
const FOOT: &str = "q stops";
const ROW: &str = "syscall/";

/// A terminal: the end that programs have, and the one of who sits before it.
struct Terminal {
    theirs: OwnedFd,
    ours: File,
    seen: String,
}

impl Terminal {
    fn new(columns: u16, lines: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap();
        let theirs = open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        fcntl_setfl(&ours, OFlags::NONBLOCK).unwrap();
        let terminal = Self { theirs, ours: File::from(ours), seen: String::new() };
        terminal.resize(columns, lines);
        terminal
    }

    fn resize(&self, columns: u16, lines: u16) {
        let size = Winsize { ws_col: columns, ws_row: lines, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.theirs, size).unwrap();
    }

    fn start<'a>(&self, flatout: Flatout<'a>) -> Running<'a> {
        let end = || self.theirs.try_clone().unwrap();
        flatout
            .stdin(end())
            .with(|command| {
                command.stderr(end()).env("TERM", "xterm");
            })
            .start()
    }

    fn types(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// What was written to it so far.
    fn look(&mut self) -> &str {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = self.ours.read(&mut bytes) {
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        &self.seen
    }

    /// Waits until this was written so often; `meanwhile` is done between two looks.
    fn wait_for(&mut self, text: &str, times: usize, running: &Running<'_>, meanwhile: impl Fn()) {
        while self.look().matches(text).count() < times {
            assert!(running.is_in_time(), "{text:?} was not written: {:?}", self.seen);
            meanwhile();
            std::thread::sleep(POLL);
        }
    }

    /// Waits for the end of the run, and fails unless the screen was given back.
    #[track_caller]
    fn is_given_back(&mut self, mut running: Running<'_>) -> Ran {
        // A program waits for a terminal that nobody reads.
        while running.step().is_none() {
            self.look();
        }
        let ran = running.wait();
        self.look();
        let (entered, left) = (self.seen.matches(ENTER), self.seen.matches(LEAVE));
        assert_eq!(entered.count(), left.count(), "{:?}", self.seen);
        assert!(self.seen.rfind(LEAVE) > self.seen.rfind(ENTER), "{:?}", self.seen);
        let modes = tcgetattr(&self.theirs).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{modes:?}");
        ran
    }
}

/// Whether programs that are started from here ignore this signal, as `SigIgn` of proc(5) has it.
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    (mask >> (signal.as_raw() - 1)) & 1 == 1
}

const ENDLESS: &str = "bench syscall --runs 10000 --live --format json";

fn endless(folder: &Folder) -> Flatout<'_> {
    folder.flatout(ENDLESS.split(' '))
}

/// Also where a shell without job control, or nohup(1), had signals of a terminal ignored.
#[test]
fn q_ends_the_run_as_an_interrupt_does_whoever_started_it() {
    q_ends(endless);
    q_ends(|folder| {
        let words: Vec<&str> = ENDLESS.split(' ').collect();
        folder.under(&["sh", "-c", "trap '' INT HUP TERM; exec \"$@\"", "sh"], &words)
    });
}

fn q_ends(begin: impl Fn(&Folder) -> Flatout<'_>) {
    let folder = Folder::new();
    let mut terminal = Terminal::new(80, 24);
    let running = terminal.start(begin(&folder));
    terminal.wait_for(ROW, 1, &running, || ());
    terminal.types("xq");
    let ran = terminal.is_given_back(running);
    let document = ran.died_of(Signal::INT).document();
    let rows = document["results"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["status"] == "interrupted"), "{ran}");
    let said = terminal.seen.rsplit(LEAVE).next().unwrap();
    assert!(said.contains("interrupted"), "what was to be said comes after the view: {said:?}");
}

#[test]
fn a_run_that_is_stopped_leaves_the_normal_screen_and_comes_back() {
    let folder = Folder::new();
    let mut terminal = Terminal::new(80, 24);
    let running = terminal.start(endless(&folder));
    terminal.wait_for(ROW, 1, &running, || ());
    running.signal(Signal::TSTP);
    terminal.wait_for(LEAVE, 1, &running, || ());
    // Until it was noticed: one that comes before the stop is lost.
    terminal.wait_for(ENTER, 2, &running, || running.signal(Signal::CONT));
    terminal.wait_for(FOOT, 2, &running, || ());
    running.interrupt();
    terminal.is_given_back(running).died_of(Signal::INT).document();
}

#[test]
fn a_signal_that_ends_the_run_at_once_gives_the_screen_back() {
    // As in what a shell without job control starts in the background.
    if is_ignored(Signal::QUIT) {
        skip!("SIGQUIT is ignored where the tests run");
    }
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).unwrap();
    let folder = Folder::new();
    let mut terminal = Terminal::new(80, 24);
    let running = terminal.start(endless(&folder));
    terminal.wait_for(ROW, 1, &running, || ());
    running.signal(Signal::QUIT);
    terminal.is_given_back(running).died_of(Signal::QUIT);
}

#[test]
fn the_view_follows_the_size_of_the_terminal() {
    let folder = Folder::new();
    let mut terminal = Terminal::new(120, 40);
    let running = terminal.start(endless(&folder));
    terminal.wait_for("+- so far", 1, &running, || ());
    for (columns, lines) in [(40, 10), (1, 1), (80, 24)] {
        let drawn = terminal.look().matches("\x1b[2J").count();
        terminal.resize(columns, lines);
        terminal.wait_for("\x1b[2J", drawn + 1, &running, || ());
    }
    terminal.types("q");
    terminal.is_given_back(running).died_of(Signal::INT).document();
}

#[test]
fn the_summary_stands_on_the_normal_screen() {
    let folder = Folder::new();
    let mut terminal = Terminal::new(80, 24);
    let little = "bench syscall --runs 1 --quick --live --seed 1";
    let output = terminal.theirs.try_clone().unwrap();
    let running = terminal.start(folder.flatout(little.split(' ')).stdout(output));
    terminal.is_given_back(running).exits(0);
    let said = terminal.seen.rsplit(LEAVE).next().unwrap();
    assert!(said.contains("bottleneck") && said.contains("system call"), "{said:?}");
}

#[test]
fn without_a_terminal_it_is_refused_before_anything_is_measured() {
    let folder = Folder::new();
    let ran = folder.flatout(["bench", "syscall", "--live"]).run();
    ran.complains(2, &["--live needs a terminal on standard error"]);
    assert!(ran.stdout.is_empty(), "{ran}");
    let quiet = folder.flatout(["bench", "syscall", "--live", "--quiet"]).run();
    quiet.complains(2, &["--live", "--quiet"]);
    let mut terminal = Terminal::new(80, 24);
    let dumb = folder.flatout(["bench", "syscall", "--live"]).with(|command| {
        command.stderr(terminal.theirs.try_clone().unwrap()).env("TERM", "dumb");
    });
    dumb.run().exits(2);
    assert!(!terminal.look().contains(ENTER) && terminal.seen.contains("TERM"));
}

#[test]
fn a_page_that_a_full_disk_does_not_take_is_no_page_on_the_terminal() {
    let folder = Folder::new();
    std::fs::write(folder.join("data"), [7; 5000]).unwrap();
    let mut terminal = Terminal::new(80, 24);
    let words = ["read", "data", "--format", "html", "--output", "/dev/full"];
    let ran = folder.flatout(words).stdout(terminal.theirs.try_clone().unwrap()).run();
    ran.complains(1, &["cannot write \"/dev/full\": No space left"]);
    let shown = terminal.look();
    assert!(shown.contains("digest") && !shown.contains("</"), "{shown}");
}
