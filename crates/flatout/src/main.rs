//! flatout: how fast a Linux machine really is, and moving data that fast.
//!
//! The story: arguments become a job, the job leaves a record, the record is shown, and the
//! record's end is the exit code. A command that a signal stopped ends in order and then dies of
//! that signal, as a shell expects it. Glue only; the only room that prints.

#![forbid(unsafe_code)]
#![cfg_attr(all(not(test), target_env = "gnu"), no_main)]

mod announcement;
mod arguments;
mod command;
mod conclusion;
#[cfg(feature = "mpi")]
mod group;
mod launched;
mod live;
mod output;
mod own_file;
mod profile;
mod progress;
mod watchdog;
mod zone;

use std::path::PathBuf;
use std::process::ExitCode;

use flatout_sys::cancel::CancelToken;
use flatout_sys::instruction_set;
use flatout_sys::resource_limit::{Resource, soft_limit};

use arguments::Command;
use arguments::refusal::Refusal;
use arguments::shared::{Output, Talk};
use conclusion::Conclusion;
use launched::Launched;
use watchdog::Watchdog;

#[cfg(all(not(test), target_env = "gnu"))]
flatout_sys::begin_with!(main);

fn main() -> ExitCode {
    flatout_sys::cancel::outlive_file_limit();
    if let Some(version) = arguments::version(std::env::args_os())
        && Launched::find().is_none()
    {
        return output::deliver(None, version.as_bytes(), conclusion::DONE);
    }
    end_at_panic();
    // Before the first thread, whose reservation is never given back.
    flatout_sys::memory::share_addresses_of_threads();
    let code = output::finish(on_enough_stack(run));
    flatout_sys::cancel::die_of_signal();
    code
}

/// A fault of this program ends all of it at once, as if it had been killed, whichever thread finds
/// it: nothing that goes on could be trusted, and nobody waits for a thread that is no more. The
/// next run takes away what it leaves. Hence optimised builds need no code for unwinding.
fn end_at_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            tell(panic);
        }
        output::complain_of_fault(panic);
        std::process::exit(conclusion::FAULT);
    }));
}

/// What the definition of the command line takes, with much to spare: 0.3 MB, twice that without
/// optimisation (2026-11-27).
const LEAST_STACK_BYTES: usize = 2 << 20;

/// Does the work here, or on a thread that has enough stack where `ulimit -s` gives less. Where there
/// is no thread for it, what there is may do.
fn on_enough_stack(work: fn() -> ExitCode) -> ExitCode {
    let limit = soft_limit(Resource::Stack);
    if limit.is_none_or(|bytes| bytes >= LEAST_STACK_BYTES as u64) {
        return work();
    }
    let thread = std::thread::Builder::new().stack_size(LEAST_STACK_BYTES).spawn(work);
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        // A panic ends the process at once.
        Ok(Err(_)) => ExitCode::FAILURE,
        Err(_) => work(),
    }
}

/// The variable that limits the vector extensions of our kernels.
const INSTRUCTION_SET: &str = "FLATOUT_INSTRUCTION_SET";

/// Takes over the limit that the environment sets.
fn instruction_limit() -> Result<(), String> {
    let Some(word) = std::env::var_os(INSTRUCTION_SET).filter(|word| !word.is_empty()) else {
        return Ok(());
    };
    let limit = word.to_string_lossy().parse();
    limit.map(instruction_set::limit_to).map_err(|why| format!("{INSTRUCTION_SET}: {why}"))
}

/// Whether processes that were started together are not in each other's way. Whoever calls cp knows
/// that each of them copies.
fn works_together(command: &Command) -> bool {
    let is_shared = match command {
        Command::Copy(_) => true,
        Command::Sum(sum) => sum.is_of_trees(),
        Command::Bench(bench) => bench.among_processes().is_some(),
        _ => false,
    };
    cfg!(feature = "mpi") && is_shared || matches!(command, Command::Cp(_))
}

/// Says once what is wrong with words that all processes of a launcher have.
fn refuse(refusal: &Refusal) -> ExitCode {
    if refusal.is_of_cp() {
        output::speak_as(arguments::CP);
    }
    match Launched::find() {
        Some(launched) if !launched.is_first() => launched.end_silently(refusal.error.exit_code()),
        _ => output::refuse(refusal),
    }
}

fn run() -> ExitCode {
    if let Err(refusal) = instruction_limit() {
        return output::give_up(conclusion::WRONG_USE, &refusal);
    }
    let arguments = match arguments::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(refusal) => return refuse(&refusal),
    };
    if matches!(arguments.command, Command::Cp(_)) {
        output::speak_as(arguments::CP);
    }
    let launched = Launched::find();
    if launched.is_some() && arguments.single {
        Launched::leave();
    }
    let launched = launched.filter(|_| !arguments.single);
    if let Some(talk) = arguments.command.talk() {
        // The first one tells what all do.
        let is_first = launched.as_ref().is_none_or(Launched::is_first);
        output::settle(&Talk { quiet: talk.quiet || !is_first, ..talk.clone() });
    }
    let command = &arguments.command;
    if !command.is_brief() {
        if let Some(launched) = &launched
            && !works_together(command)
        {
            return launched.refuse(&launched.refusal(), conclusion::WRONG_USE);
        }
        if let Err(error) = flatout_sys::cancel::listen_for_signals() {
            let why = output::cannot("listen for signals")(error);
            return output::give_up(conclusion::FAILED, &why);
        }
    }
    command_of(command, launched.as_ref())
}

/// Does what is asked for.
fn command_of(command: &Command, launched: Option<&Launched>) -> ExitCode {
    let cancel = CancelToken::signals();
    // Where progress is shown that has one, and who calls cp expects no word.
    let _watchdog = match command {
        Command::Read(_) | Command::Write(_) | Command::Copy(_) | Command::Sum(_) => {
            Some(Watchdog::of_requests())
        }
        _ => None,
    };
    match command {
        Command::Bench(bench) => checked(&bench.output, &bench.files(), || match launched {
            #[cfg(feature = "mpi")]
            Some(launched) => command::bench::together::run(bench, cancel, launched),
            _ => output::conclude(command::bench::run(bench, cancel), &bench.output),
        }),
        Command::Read(read) => {
            recorded(&read.output, &read.files, || command::read::run(read, cancel))
        }
        Command::Write(write) => {
            let files = std::slice::from_ref(&write.file);
            recorded(&write.output, files, || command::write::run(write, cancel))
        }
        Command::Copy(copy) => match launched {
            #[cfg(feature = "mpi")]
            Some(launched) => command::copy::members::run(copy, cancel, launched),
            _ => command::copy::run(copy, cancel),
        },
        Command::Cp(cp) => command::cp::run(cp, cancel),
        // Its rows are written as they come: there may be millions of them.
        Command::Sum(sum) => match launched {
            #[cfg(feature = "mpi")]
            Some(launched) => command::sum::together::run(sum, cancel, launched),
            _ => command::sum::run(sum, cancel),
        },
        Command::Versus(versus) => {
            command::versus::without_race(versus, cancel).unwrap_or_else(|| {
                recorded(&versus.output, &[], || command::versus::run(versus, cancel))
            })
        }
        Command::Compare(compare) => command::compare::run(compare, cancel),
        Command::Tune(tune) => recorded(&tune.output, &[], || command::tune::run(tune, cancel)),
        Command::Report(report) => command::report::run(report),
        Command::Serve(serve) => command::serve::run(serve, cancel),
        Command::Completions(completions) => command::completions::run(completions),
        Command::Help(help) => command::help::run(help),
        Command::Man(man) => command::man::run(man),
        Command::Compute(compute) => command::compute::run(compute),
        Command::Transfer(transfer) => command::transfer::run(transfer, cancel),
    }
}

/// What leaves a record that is shown when it is complete.
fn recorded(output: &Output, files: &[PathBuf], work: impl FnOnce() -> Conclusion) -> ExitCode {
    checked(output, files, || output::conclude(work(), output))
}

/// Work whose results can go where they are wanted; else the record says why they cannot.
fn checked(output: &Output, files: &[PathBuf], work: impl FnOnce() -> ExitCode) -> ExitCode {
    match output::check(output.output.as_deref(), files) {
        Ok(()) => work(),
        // On standard output then, in the form that was asked for and not meant by the file alone.
        Err(error) => output::conclude(
            conclusion::ended(conclusion::FAILED, error),
            &Output { output: None, ..output.clone() },
        ),
    }
}
