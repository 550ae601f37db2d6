//! flatout: how fast a Linux machine really is, and moving data that fast.
//!
//! The story: arguments become a job, the job leaves a record, the record is shown, and the
//! record's end is the exit code. A command that a signal stopped ends in order and then dies of
//! that signal, as a shell expects it. Glue only; the only room that prints.

#![forbid(unsafe_code)]

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

use std::process::ExitCode;

use flatout_io::cause_text;
use flatout_sys::instruction_set;

use arguments::refusal::Refusal;
use arguments::shared::Talk;
use arguments::{Command, Recorded};
use conclusion::Conclusion;
use launched::Launched;

fn main() -> ExitCode {
    let code = run();
    let code = output::finish(code);
    flatout_sys::cancel::die_of_signal();
    code
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
        Command::Recorded(command) => match command.as_ref() {
            Recorded::Bench(bench) => bench.among_processes().is_some(),
            _ => false,
        },
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
        Some(launched) if !launched.is_first() => output::exit(refusal.error.exit_code()),
        _ => output::refuse(refusal),
    }
}

fn run() -> ExitCode {
    if let Err(refusal) = instruction_limit() {
        output::complain(&refusal);
        return ExitCode::from(conclusion::WRONG_USE as u8);
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
    // These are over at once: they die of a signal as anything does.
    match &arguments.command {
        Command::Completions(completions) => return command::completions::run(completions),
        Command::Compute(compute) => return command::compute::run(compute),
        Command::Help(help) => return command::help::run(help),
        Command::Man(man) => return command::man::run(man),
        Command::Report(report) => return command::report::run(report),
        _ => {}
    }
    if let Some(launched) = &launched
        && !works_together(&arguments.command)
    {
        return launched.refuse(&launched.refusal(), conclusion::WRONG_USE);
    }
    let cancel = match flatout_sys::cancel::listen_for_signals() {
        Ok(cancel) => cancel,
        Err(error) => {
            output::complain(&format!("cannot listen for signals: {}", cause_text(&error)));
            return ExitCode::FAILURE;
        }
    };
    let command = match &arguments.command {
        Command::Recorded(command) => command.as_ref(),
        Command::Compare(compare) => return command::compare::run(compare, cancel),
        Command::Copy(copy) => return command::copy::run(copy, cancel, launched.as_ref()),
        Command::Cp(cp) => return command::cp::run(cp, cancel),
        // Its rows are written as they come: there may be millions of them.
        Command::Sum(sum) => {
            #[cfg(feature = "mpi")]
            if let Some(launched) = &launched {
                return command::sum::together::run(sum, cancel, launched);
            }
            return command::sum::run(sum, cancel);
        }
        Command::Serve(serve) => return command::serve::run(serve, cancel),
        Command::Transfer(transfer) => return command::transfer::run(transfer, cancel),
        Command::Completions(_)
        | Command::Compute(_)
        | Command::Help(_)
        | Command::Man(_)
        | Command::Report(_) => unreachable!("they were run above"),
    };
    if let Recorded::Versus(versus) = command
        && let Some(code) = command::versus::without_race(versus, cancel)
    {
        return code;
    }
    if let Err(error) = output::check(command.output(), &command.files()) {
        return output::conclude(conclusion::ended(conclusion::FAILED, error), &command.shown());
    }
    #[cfg(feature = "mpi")]
    if let (Recorded::Bench(bench), Some(launched)) = (command, &launched) {
        return command::bench::together::run(bench, cancel, launched);
    }
    let conclusion: Conclusion = match command {
        Recorded::Read(read) => command::read::run(read, cancel),
        Recorded::Tune(tune) => command::tune::run(tune, cancel),
        Recorded::Versus(versus) => command::versus::run(versus, cancel),
        Recorded::Write(write) => command::write::run(write, cancel),
        Recorded::Bench(bench) => command::bench::run(bench, cancel),
    };
    output::conclude(conclusion, command.output())
}
