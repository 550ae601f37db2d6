//! The thread that starts a program, stops it at its first and at its last instruction, and reaps
//! it. ptrace(2) obeys the thread that started the program, and PR_SET_PDEATHSIG kills the program
//! when that thread ends; hence a thread of its own.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, waitid};

use super::memory::Peaks;
use super::{Account, Program};
use crate::cause::{answered, cause_text};
use crate::clock::monotonic_ns;
use crate::lock::lock;
use crate::memory::{process_bytes, room_for_thread};
use crate::usage::Usage;

/// A program that runs.
pub(super) struct Started {
    pub(super) birth: Birth,
    /// Becomes readable, at its end, when the program has ended.
    pub(super) ended: OwnedFd,
    pub(super) result: Receiver<io::Result<Account>>,
}

/// The first process of a group: as long as it is not reaped, its number means nobody else.
#[derive(Debug, Clone)]
pub(super) struct Leader {
    process: libc::pid_t,
    is_reaped: Arc<Mutex<bool>>,
}

impl Leader {
    /// Sends a signal to all processes of the group. Those that are gone need none.
    pub(super) fn signal(&self, signal: libc::c_int) {
        let is_reaped = lock(&self.is_reaped);
        if !*is_reaped {
            // SAFETY: kill(2) touches no memory. The group is the program's: its leader is not
            // reaped, so the number cannot have been given to another.
            unsafe { libc::kill(-self.process, signal) };
        }
    }
}

/// What the thread says once the program runs.
pub(super) struct Birth {
    pub(super) leader: Leader,
    pub(super) stdout: File,
    pub(super) stderr: File,
}

/// What a program reads.
const NOTHING: &str = "/dev/null";

/// Starts a program in a thread of its own, which reports its end.
///
/// Errors: the program or the thread cannot be started.
pub(super) fn start(program: &Program<'_>) -> io::Result<Started> {
    let shell = program.argv.first().is_some_and(|name| name == "sh" || name == "/bin/sh");
    let command = command(program)?;
    let (ended, end_of_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let (born, birth) = channel();
    let (done, result) = channel();
    room_for_thread()?;
    std::thread::Builder::new().name("versus-run".to_owned()).spawn(move || {
        live(command, shell, &born, &done);
        // From now on the other end can be read. Not before: the result has been sent.
        drop(end_of_end);
    })?;
    Ok(Started { birth: birth.recv().map_err(io::Error::other)??, ended, result })
}

fn command(program: &Program<'_>) -> io::Result<Command> {
    let Some((name, arguments)) = program.argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named"));
    };
    // Left to the library, a system without it would be one without the program.
    let nothing = File::open(NOTHING).map_err(|error| {
        io::Error::new(error.kind(), format!("it is to read {NOTHING}: {}", cause_text(&error)))
    })?;
    let mut command = Command::new(name);
    command
        .args(arguments)
        .stdin(nothing)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    Ok(command)
}

/// The whole life of a program, as its thread sees it.
fn live(
    command: Command,
    is_shell: bool,
    born: &Sender<io::Result<Birth>>,
    done: &Sender<io::Result<Account>>,
) {
    let before = Before { parent_bytes: parent_bytes(), forked_ns: monotonic_ns(), is_shell };
    let (mut child, is_traced) = match spawn(command) {
        Ok(child) => child,
        Err(error) => {
            let _ = born.send(Err(error));
            return;
        }
    };
    let process = child.id() as libc::pid_t;
    let leader = Leader { process, is_reaped: Arc::new(Mutex::new(false)) };
    let before = Before { parent_bytes: before.parent_bytes.max(parent_bytes()), ..before };
    let piped = "it was started with pipes";
    let stdout = OwnedFd::from(child.stdout.take().expect(piped)).into();
    let stderr = OwnedFd::from(child.stderr.take().expect(piped)).into();
    // Should nobody listen, the result goes nowhere either; the program is reaped all the same.
    let _ = born.send(Ok(Birth { leader: leader.clone(), stdout, stderr }));
    let watched = watch(process, is_traced, &before);
    let _ = done.send(conclude(&leader, watched, &before));
}

/// Ends and reaps the process however the watching went.
fn conclude(leader: &Leader, watched: io::Result<Life>, before: &Before) -> io::Result<Account> {
    match watched {
        Ok(life) => reap(leader, life, before),
        Err(error) => {
            // What it would say of a life that was cut off here is no account of the program.
            let _ = reap(leader, Life { elapsed_ns: 0, own_bytes: None }, before);
            let text = format!("it ran, and was ended because watching it failed: {error}");
            Err(io::Error::new(error.kind(), text))
        }
    }
}

/// What is known before the program runs.
struct Before {
    parent_bytes: u64,
    forked_ns: u64,
    is_shell: bool,
}

/// Our resident set, which a child inherits as its high-water mark.
fn parent_bytes() -> u64 {
    process_bytes("self", "VmRSS:").unwrap_or(u64::MAX / 2)
}

/// Starts the program; tells whether it waits, traced, before its first instruction.
fn spawn(command: Command) -> io::Result<(std::process::Child, bool)> {
    spawn_for(command, std::process::id())
}

/// The same for this parent, which may be gone by the time the child runs.
fn spawn_for(mut command: Command, parent: u32) -> io::Result<(std::process::Child, bool)> {
    let (answer, question) = pipe_with(PipeFlags::CLOEXEC)?;
    let descriptor = question.as_raw_fd();
    // SAFETY: what runs between fork and exec makes only system calls on integers and on memory
    // of its own stack; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(move || prepare(descriptor, parent)) };
    let child = command.spawn()?;
    drop(question);
    let mut word = [0; 1];
    let is_traced = matches!(rustix::io::read(&answer, &mut word), Ok(1));
    Ok((child, is_traced))
}

/// In the child, before execve(2): dies with its parent, forgets what we ignore, asks to be
/// traced, and tells through the pipe whether that was granted.
fn prepare(descriptor: RawFd, parent: u32) -> io::Result<()> {
    // SAFETY: plain system calls on integers; write(2) reads one byte of a live array.
    unsafe {
        answered(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        // A parent that died before sends no signal, and init would trace the program: it would
        // stop at execve(2) for ever.
        if libc::getppid().cast_unsigned() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        let none = ptr::null_mut::<libc::c_void>();
        if libc::ptrace(libc::PTRACE_TRACEME, 0, none, none) == 0 {
            libc::write(descriptor, [1_u8].as_ptr().cast(), 1);
        }
    }
    Ok(())
}

/// What was seen of a life until its end; the process is not reaped yet.
struct Life {
    elapsed_ns: u64,
    own_bytes: Option<u64>,
}

/// Watches a process until it has ended.
fn watch(process: libc::pid_t, is_traced: bool, before: &Before) -> io::Result<Life> {
    let mut life = Life { elapsed_ns: 0, own_bytes: None };
    let (mut started_ns, mut held_ns, mut is_first) = (before.forked_ns, 0, true);
    loop {
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        let seen = wait(process, options)?;
        let stopped_ns = monotonic_ns();
        if seen.is_some_and(|seen| seen.exited() || seen.killed() || seen.dumped()) {
            life.elapsed_ns = stopped_ns.saturating_sub(started_ns).saturating_sub(held_ns);
            return Ok(life);
        }
        let Some(stop) = take_stop(process)?.filter(|_| is_traced) else { continue };
        if is_first {
            is_first = false;
            set_options(process);
            started_ns = monotonic_ns();
            resume(process, 0);
            continue;
        }
        if stop >> 8 == libc::PTRACE_EVENT_EXIT {
            life.own_bytes = process_bytes(&process.to_string(), "VmHWM:");
        }
        let signal = passed_on(process, stop);
        held_ns += monotonic_ns().saturating_sub(stopped_ns);
        resume(process, signal);
    }
}

/// Takes a stop in without reaping; its signal and event. `None`: the process was killed in this very
/// moment.
fn take_stop(process: libc::pid_t) -> io::Result<Option<libc::c_int>> {
    match wait(process, WaitIdOptions::STOPPED | WaitIdOptions::NOHANG) {
        Ok(seen) => Ok(seen.and_then(|seen| seen.trapping_signal().or(seen.stopping_signal()))),
        // A zombie can stop no more, so to whom asks for stops alone it is no child.
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The signal that a stopped process is to get.
fn passed_on(process: libc::pid_t, status: libc::c_int) -> libc::c_int {
    let is_event = status >> 8 != 0;
    let signal = status & 0xff;
    let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    // A process that stands still because of an earlier signal has no signal to be told about
    // (ptrace(2), "Group-stop"); told again, it would stop again.
    if is_event || (stops.contains(&signal) && !has_signal(process)) { 0 } else { signal }
}

fn has_signal(process: libc::pid_t) -> bool {
    let mut information = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let none = ptr::null_mut::<libc::c_void>();
    // SAFETY: the kernel writes one siginfo_t through the pointer, which is valid for that.
    unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, process, none, information.as_mut_ptr()) == 0 }
}

/// Stops at exec and at exit from now on; kills the process should this thread end.
fn set_options(process: libc::pid_t) {
    let options = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_EXITKILL;
    let none = ptr::null_mut::<libc::c_void>();
    // SAFETY: takes integers only. It fails when the process was killed just now, which the next
    // wait tells.
    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, process, none, libc::c_long::from(options)) };
}

fn resume(process: libc::pid_t, signal: libc::c_int) {
    let none = ptr::null_mut::<libc::c_void>();
    // SAFETY: takes integers only. It fails when the process was killed just now, which the next
    // wait tells.
    unsafe { libc::ptrace(libc::PTRACE_CONT, process, none, libc::c_long::from(signal)) };
}

/// What waitid(2) tells; `None` when there is nothing to tell.
fn wait(process: libc::pid_t, options: WaitIdOptions) -> io::Result<Option<WaitIdStatus>> {
    let process = Pid::from_raw(process).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::io::retry_on_intr(|| waitid(WaitId::Pid(process), options))?)
}

/// Ends what the program left in its group, then takes its account.
fn reap(leader: &Leader, life: Life, before: &Before) -> io::Result<Account> {
    leader.signal(libc::SIGKILL);
    let mut is_reaped = lock(&leader.is_reaped);
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let waited = loop {
        // SAFETY: the kernel writes one int and one `struct rusage`, for which zeros are valid.
        let waited = unsafe { libc::wait4(leader.process, &mut status, 0, usage.as_mut_ptr()) };
        let interrupted = io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if waited >= 0 && libc::WIFSTOPPED(status) {
            // One that was killed unwatched stops once more at its exit.
            resume(leader.process, 0);
        } else if waited >= 0 || !interrupted {
            break waited;
        }
    };
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    *is_reaped = true;
    // SAFETY: zeroed above, and written by wait4.
    let Usage { user_ns, system_ns, peak_memory_bytes: usage_bytes, .. } =
        unsafe { usage.assume_init() }.into();
    let &Before { parent_bytes, is_shell, .. } = before;
    let (peak_memory_bytes, peak_memory_of) =
        Peaks { own_bytes: life.own_bytes, usage_bytes, parent_bytes, is_shell }.judge();
    let exit_code = match libc::WIFSIGNALED(status) {
        true => 128 + libc::WTERMSIG(status),
        false => libc::WEXITSTATUS(status),
    };
    Ok(Account {
        exit_code,
        elapsed_ns: life.elapsed_ns,
        user_ns,
        system_ns,
        peak_memory_bytes,
        peak_memory_of,
        ..Account::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader(argv: &[&str]) -> (Leader, Before) {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).process_group(0);
        let (child, _) = spawn(command).unwrap();
        let process = child.id() as libc::pid_t;
        let before = Before { parent_bytes: 0, forked_ns: monotonic_ns(), is_shell: false };
        (Leader { process, is_reaped: Arc::new(Mutex::new(false)) }, before)
    }

    #[test]
    fn a_zombie_has_no_stop_and_that_is_no_error() {
        let (leader, before) = leader(&["sleep", "1000"]);
        leader.signal(libc::SIGKILL);
        wait(leader.process, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(take_stop(leader.process).unwrap().is_none());
        let life = watch(leader.process, true, &before);
        assert_eq!(conclude(&leader, life, &before).unwrap().exit_code, 128 + 9);
    }

    #[test]
    fn a_program_whose_parent_is_gone_does_not_wait_to_be_traced() {
        let started = spawn_for(Command::new("true"), u32::MAX);
        let error = started.map(|_| ()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn a_program_that_cannot_be_watched_leaves_no_zombie() {
        let (leader, before) = leader(&["sleep", "1000"]);
        // Where it was traced it is left in a stop, and stops again when it is killed.
        let either = WaitIdOptions::STOPPED | WaitIdOptions::EXITED;
        let stopped = wait(leader.process, either | WaitIdOptions::NOWAIT);
        if stopped.is_ok() {
            set_options(leader.process);
        }
        let failed = Err(io::Error::other("no reason"));
        let error = conclude(&leader, failed, &before).unwrap_err();
        assert!(error.to_string().ends_with("failed: no reason"), "{error}");
        let gone =
            wait(leader.process, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).err().unwrap();
        assert_eq!(gone.raw_os_error(), Some(libc::ECHILD));
    }
}
