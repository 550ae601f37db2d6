//! `flatout copy`: trees copied, with what went wrong said as it happens and figures at the end.
//!
//! The story: what is named becomes a plan of operands, threads copy them, a witness says and logs
//! what happens, and an account is given at the end. Nothing goes to standard output but the
//! figures and with `--verbose` what is made: whoever replaces cp by this sees what cp shows, nothing.

mod account;
mod aside;
mod changes;
mod demand;
pub(super) mod disguise;
mod document;
mod inquiry;
mod limit;
mod log;
mod manifest;
#[cfg(feature = "mpi")]
pub mod members;
mod pace;
mod processes;
mod restraint;
mod resume;
mod snapshot;
mod survey;
mod terminal;
mod threads;
mod witness;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use flatout_io::quote;
use flatout_io::transfer::Method;
use flatout_report::quantity;
use flatout_sys::cancel::CancelToken;
use flatout_sys::clock::monotonic_ns;
use flatout_sys::usage;
use flatout_tree::copy::operand::{self, Plan};
use flatout_tree::copy::options::{CopyOptions, Durability};
use flatout_tree::copy::reference::References;
use flatout_tree::copy::{Copy, Ended, Operand};
use flatout_tree::selection::Selection;

use crate::arguments::copy::{Copy as Arguments, CopyFormat};
use crate::conclusion::{self, Refused};
use crate::output::place::{Place, identity};
use crate::{output, profile};
use account::Account;
use aside::Kept;
use changes::Changes;
use document::Document;
use inquiry::{Answers, End};
use limit::Limits;
use log::Log;
use manifest::Listing;
use processes::{Alone, Processes};
use terminal::Terminal;
use threads::Threads;
pub(super) use threads::in_threads;
use witness::{Told, Witness};

/// Copies all that is named. What cannot be copied does not stop the rest.
pub fn run(arguments: &Arguments, cancel: CancelToken) -> ExitCode {
    lead(arguments, cancel, Box::new(Alone))
}

/// Copies, and tells the user.
fn lead(arguments: &Arguments, cancel: CancelToken, processes: Box<dyn Processes>) -> ExitCode {
    let Own { selection, references, output, log, manifest } = match own(arguments) {
        Ok(own) => own,
        Err(refused) => {
            let wants_json = arguments.figures() == Some(CopyFormat::Json);
            return output::cannot_begin(refused, wants_json);
        }
    };
    let document = arguments.figures().map(Document::begin);
    let begun_ns = monotonic_ns();
    let terminal = Terminal::find().filter(|_| !arguments.quiet);
    // Standard output may be where figures and log go.
    let is_free = document.is_none() && log.is_none() && manifest.is_none();
    let told = match arguments.mirror.itemize {
        true => Told::Changes(Changes::new(&arguments.operands().1)),
        false if arguments.verbose && is_free => Told::Everything,
        false => Told::Failures,
    };
    let mut witness = Witness::new(log, terminal.as_ref(), told);
    let plan = plan(arguments, &witness);
    witness.manifest = manifest.map(|file| Listing::begin(file, &plan));
    if let Some(listed) = &selection.listed {
        demand::look_for(listed, &plan, arguments.wording(), &witness);
    }
    let is_told = arguments.verbose || terminal.is_some() || document.is_some();
    let is_worth_it = is_told || !resume::is_small_new_file(&plan);
    let limits = is_worth_it.then(|| limits(&plan)).flatten();
    let fetched_before = limits.as_ref().map_or(0, |_| fetched_bytes());
    let options = CopyOptions {
        tuned: limits.as_ref().map(|limits| limits.tuned).unwrap_or_default(),
        ..arguments.options(cancel)
    };
    let goes_into_itself = account::goes_into_itself(arguments, &plan);
    let is_alone = processes.size() == 1;
    let (ended, copy) =
        copy(arguments, (options, plan), (selection, references), &witness, processes);
    let (refused_ways, has_one_pair) =
        (copy.methods().refused_lines(), copy.methods().pairs() <= 1);
    let has_storage = !copy.methods().fills_memory_only() && !arguments.mirror.dry_run;
    copy.finish();
    terminal.iter().for_each(|terminal| terminal.bar.finish_and_clear());
    let mut account = Account::new(&ended, witness.objections(), monotonic_ns() - begun_ns);
    account.deletes = options.deletion.is_some();
    account.is_plan = arguments.mirror.dry_run;
    account.goes_into_itself = goes_into_itself;
    let is_measured = has_one_pair
        && !ended.interrupted
        && !account.is_plan
        && account.elapsed_ns >= limit::LEAST_NS;
    let limits = limits.filter(|_| is_measured);
    if (is_told || limits.is_some()) && has_storage && is_alone {
        account.look_what_is_unwritten();
    }
    if (arguments.sync || arguments.verify) && has_storage {
        account.all_is_written();
    }
    let is_whole = account.exit_code() == conclusion::DONE && account.totals.files > 0;
    account.is_verified = arguments.verify && has_storage && is_whole;
    if let Some(limits) = limits {
        let fetched_bytes = fetched_bytes().saturating_sub(fetched_before);
        account.hold_against(&limits, fetched_bytes, arguments.verify.into());
    }
    conclude(
        arguments,
        document.map(|document| (document, output)),
        &account,
        witness,
        &refused_ways,
    )
}

/// What was measured for the filesystems of all that is to be copied.
fn limits(plan: &Plan) -> Option<Limits> {
    Limits::of(&*profile::load()?, plan.rounds.iter().flatten())
}

/// Bytes that devices were asked for by this process so far; 0 where nobody knows.
fn fetched_bytes() -> u64 {
    usage::process_io().map_or(0, |totals| totals.device_read_bytes)
}

/// Files of our own, and what was read.
struct Own {
    selection: Selection,
    /// Snapshots that have files already.
    references: Option<References>,
    /// For the figures.
    output: Option<Place>,
    log: Option<Log>,
    manifest: Option<Log>,
}

/// Looks before anything is copied whether it can be, and at the places for results; begins the
/// log.
fn own(arguments: &Arguments) -> Result<Own, Refused> {
    if let Some(error) = disguise::obstacle() {
        return Err(error.into());
    }
    let references = snapshot::open(arguments)?;
    let found = |path: &Path| match path.as_os_str() == "-" {
        true => Ok(Place::standard_output()),
        false => Place::find(path),
    };
    let find = |path: &Option<PathBuf>| path.as_deref().map(found).transpose();
    let places = [find(&arguments.output)?, find(&arguments.log)?, find(&arguments.manifest)?];
    let selection = arguments.selection.selected()?;
    let deletes = arguments.mirror.deletion().is_some();
    if places.iter().all(Option::is_none) && !deletes {
        return Ok(Own { selection, references, output: None, log: None, manifest: None });
    }
    let (sources, destination) = arguments.operands();
    // What cannot be planned is said later.
    let plan = operand::plan(sources, &destination, arguments.reach(), arguments.wording());
    let snapshots = arguments.snapshots();
    if let Some(error) =
        deletes.then(|| demand::mirror_obstacle(&plan, arguments.wording(), &snapshots)).flatten()
    {
        return Err(error.into());
    }
    let operands: Vec<Operand> = plan.rounds.into_iter().flatten().collect();
    let read = [arguments.selection.files(), snapshots].concat();
    let kept = Kept { sources, read: &read, operands: &operands, reach: arguments.reach() };
    for place in places.iter().flatten() {
        if let Some(error) = kept.obstacle(place) {
            return Err(error.into());
        }
        place.check()?;
    }
    let names = ["--output", "--log", "--manifest"];
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        if let (Some(first), Some(second)) = (&places[one], &places[other])
            && first.is_same(second)
        {
            return Err(format!("{} and {} name the same file", names[one], names[other]).into());
        }
    }
    let [output, log, manifest] = places;
    let durability = if arguments.sync { Durability::Durable } else { Durability::Cached };
    let begin = |place: Place| begin(place, &kept, durability);
    let [log, manifest] = [log.map(begin).transpose()?, manifest.map(begin).transpose()?];
    Ok(Own { selection, references, output, log, manifest })
}

fn begin(place: Place, kept: &Kept<'_>, durability: Durability) -> Result<Log, String> {
    let file = place.open()?;
    let facts = rustix::fs::fstat(&file).map_err(|errno| place.failure(&errno.into()))?;
    match kept.mistaken(identity(&facts)).filter(|_| !place.is_special()) {
        Some(error) => {
            place.withdraw();
            Err(error)
        }
        None => Ok(Log::new(place, file, durability)),
    }
}

/// Finds out what goes where, and says what does not.
fn plan(arguments: &Arguments, witness: &Witness<'_>) -> Plan {
    let (sources, destination) = arguments.operands();
    let plan = operand::plan(sources, &destination, arguments.reach(), arguments.wording());
    for source in &plan.repeated {
        witness.remark(&format!("{} is named more than once", quote(source)));
    }
    plan.objections.iter().for_each(|objection| witness.object(objection));
    plan
}

/// Has the operands copied by threads of ours.
fn copy<'w>(
    arguments: &Arguments,
    (options, plan): (CopyOptions, Plan),
    (selection, references): (Selection, Option<References>),
    witness: &'w Witness<'_>,
    mut processes: Box<dyn Processes>,
) -> (Ended, Copy<'w>) {
    let mut ended = Ended::default();
    let evidence = resume::evidence(arguments, &options, &plan, processes.hosts());
    let repeats = arguments.rules().is_some() || plan.repeats_names();
    processes.begin((repeats, &plan), witness, (&selection, &evidence));
    let limits = restraint::limits(arguments, processes.size(), &|line| witness.remark(line));
    let mut copy = processes.share(Copy::new(options, witness).with_limits(limits));
    (copy.evidence, copy.references, copy.selection) = (evidence, references, selection);
    copy.backups = arguments.backups();
    if repeats {
        copy = copy.with_repeated_names();
    }
    copy = copy.with_rounds(&plan.rounds);
    for round in plan.rounds {
        // The totals are those of all rounds so far.
        ended = match run_round(arguments, (&copy, round), witness, &mut *processes) {
            Ok(ended) => ended,
            Err(error) => {
                witness.give_up(&error);
                break;
            }
        };
        if ended.interrupted {
            break;
        }
    }
    if arguments.verbose {
        for (rank, part) in copy.contributions().into_iter().enumerate() {
            let Some((own, messages)) = part else { continue };
            let (done, bytes) =
                (own.files + own.linked, quantity::rounded_size(own.bytes_accepted));
            witness.remark(&format!("process {rank}: {done} names, {bytes}, {messages} messages"));
        }
    }
    if arguments.verbose && arguments.verify && copy.methods().fills_memory() {
        witness.remark("a filesystem of the target lives in memory: no device was read back");
    }
    ended.interrupted |= options.cancel.is_cancelled();
    (ended, copy)
}

fn run_round(
    arguments: &Arguments,
    (copy, operands): (&Copy<'_>, Vec<Operand>),
    witness: &Witness<'_>,
    processes: &mut dyn Processes,
) -> Result<Ended, String> {
    let sources = || operands.iter().map(|operand| operand.source.clone()).collect::<Vec<_>>();
    let shown = witness.terminal.map(|terminal| (terminal, sources()));
    let answers = Answers::listen((copy, &operands), witness, arguments);
    let answers = answers.as_ref();
    std::thread::scope(|scope| {
        let _until_here = answers.map(End);
        if let Some(answers) = answers {
            answers.prepare(scope);
        }
        let threads = Threads { scope, copy, answers };
        let work = || processes.run(copy, operands, &threads);
        match shown {
            Some((terminal, sources)) => terminal.during(copy, &sources, work),
            None => work(),
        }
    })
}

/// Says how it ended, and returns the exit code.
fn conclude(
    arguments: &Arguments,
    document: Option<(Document, Option<Place>)>,
    account: &Account,
    witness: Witness<'_>,
    refused_ways: &[(Method, String)],
) -> ExitCode {
    // What was asked for by name and could not be had is said in any case; of files whose extents
    // were to be shared, each was.
    let asked = arguments.engine.filter(|engine| *engine != Method::Reflink);
    for (method, way) in refused_ways {
        if arguments.verbose || asked == Some(*method) {
            output::complain(way);
        }
    }
    if let Some(hint) = account.hint(arguments) {
        output::complain(&hint);
    }
    if let Some(text) = account.spared_text().filter(|_| document.is_none()) {
        output::complain(&text);
    }
    // The figures say it all where they go to the same terminal.
    let is_told = arguments.verbose || witness.terminal.is_some();
    if account.is_plan && document.is_none() && arguments.log.is_none() {
        output::say(&account.closing_line());
    } else if is_told && document.is_none() {
        output::complain(&account.closing_line());
    }
    let mut code = account.exit_code();
    let errors = witness.finish(&mut code);
    if let Some((document, place)) = document {
        let written = document.end(account, errors, code, place.as_ref());
        let durable = place.as_ref().filter(|_| arguments.sync);
        let ended = written.and_then(|()| durable.map_or(Ok(()), Place::sync));
        if let Err(error) = ended {
            output::complain(&error);
            code = code.max(conclusion::FAILED);
        }
    }
    output::exit(code)
}
