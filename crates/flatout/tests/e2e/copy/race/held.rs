//! A run that stops before each of its calls until the test lets it go on.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use flatout_sys::launcher::calls::{OF_PATHS, PathCall};
use flatout_sys::launcher::supervisor::{Expected, Listener, Stop, supervise};

use crate::bin::{Flatout, LIMIT, Ran, Running};

/// A call that looks a name up and has not happened yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: &'static str,
    /// Where the path begins; empty: in the working directory.
    pub directory: String,
    pub path: String,
}

impl Call {
    /// The call that a stop is of, if it looks up a name of the trees. These are relative to the
    /// working directory or to a descriptor; what the program reads elsewhere has absolute paths.
    pub fn of(stop: &Stop) -> Option<Self> {
        let call = OF_PATHS.iter().find(|call| call.number == stop.number)?;
        let path = path(stop, call);
        let is_ours = !path.starts_with('/') || path.starts_with("/proc/self/fd/");
        if path.is_empty() || !is_ours {
            return None;
        }
        Some(Self { name: call.name, directory: directory(stop, call), path })
    }

    /// Whether it looks up what the user wrote.
    pub fn is_of_operand(&self) -> bool {
        self.directory.is_empty() && !self.path.starts_with('/')
    }
}

fn path(stop: &Stop, call: &PathCall) -> String {
    let mut bytes = vec![0; 4096];
    let read = File::open(format!("/proc/{}/mem", stop.thread))
        .and_then(|memory| memory.read_at(&mut bytes, stop.arguments[call.path]));
    bytes.truncate(read.unwrap_or(0));
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn directory(stop: &Stop, call: &PathCall) -> String {
    // The kernel takes the lower half of the register: AT_FDCWD is negative.
    let number = call.directory.map(|argument| stop.arguments[argument] as i32);
    let Some(number) = number.filter(|number| *number >= 0) else { return String::new() };
    let held = fs::read_link(format!("/proc/{}/fd/{number}", stop.thread));
    held.map_or_else(|error| error.to_string(), |path| path.to_string_lossy().into_owned())
}

/// A run under supervision.
pub struct Held<'a> {
    running: Running<'a>,
    listener: Listener,
}

impl<'a> Held<'a> {
    /// Starts a run that stops at all calls which look names up, and at these; or says why that
    /// cannot be had here.
    pub fn start(flatout: Flatout<'a>, more: &[i64]) -> Result<Self, String> {
        let calls: Vec<_> = OF_PATHS.iter().map(|call| call.number).chain(more.to_vec()).collect();
        let mut expected: Option<std::io::Result<Expected>> = None;
        let flatout = flatout.with(|command| expected = Some(supervise(command, &calls)));
        let expected = expected.unwrap().map_err(|error| error.to_string())?;
        let running = flatout.start();
        let listener = expected.attach(&running.child).map_err(|error| error.to_string())?;
        Ok(Self { running, listener })
    }

    /// The next call; none: the program has ended, or hangs, as will be found by whoever waits.
    pub fn next(&mut self) -> Option<Stop> {
        self.listener.next(LIMIT).unwrap()
    }

    /// Lets a call happen.
    pub fn go_on(&self, stop: Stop) {
        self.listener.go_on(stop).unwrap();
    }

    pub fn running(&self) -> &Running<'a> {
        &self.running
    }

    /// Lets everything happen, and waits for the end.
    pub fn finish(mut self) -> Ran {
        while let Some(stop) = self.next() {
            self.go_on(stop);
        }
        self.running.wait()
    }

    /// Kills it where it stands.
    pub fn kill(self) -> Ran {
        self.running.signal(rustix::process::Signal::KILL);
        self.running.wait()
    }
}
