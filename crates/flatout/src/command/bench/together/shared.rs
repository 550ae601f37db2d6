//! `flatout bench disk|network` by all processes: the first one measures as one that is alone would, and
//! the others do what it tells them.

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use flatout_bench::cluster::{self, Dismissal, Shared, disk, network};
use flatout_bench::{Area, Error};
use flatout_mpi::World;
use flatout_report::Format;
use flatout_sys::cancel::CancelToken;

use crate::arguments::bench::{Bench as Arguments, Name};
use crate::arguments::refusal;
use crate::conclusion::{self, Conclusion, Draft, Keep};
use crate::group::Group;
use crate::watchdog::Watchdog;
use crate::{command::bench::run_with, output};

/// Leads, or follows.
pub(super) fn run(arguments: &Arguments, cancel: CancelToken, group: Group) -> ExitCode {
    let is_first = group.is_first();
    let hosts = group.hosts();
    let world = Rc::new(RefCell::new(group.world));
    let conclusion = match is_first {
        true => Some(lead(arguments, cancel, &world, &hosts)),
        false => follow(arguments, cancel, &world),
    };
    // Whoever is gone would be waited for.
    let is_orderly = !cancel.is_cancelled() && conclusion.is_some() == is_first;
    let code = match conclusion {
        Some(conclusion) => tell(conclusion, arguments),
        None => output::exit(if is_orderly { conclusion::DONE } else { conclusion::FAILED }),
    };
    match is_orderly {
        // MPI ends when all end it, and would wait for ever for one that is stopped.
        true => drop(world.borrow().gather(&[0], Duration::ZERO)),
        false => std::mem::forget(world),
    }
    code
}

/// Shows what was found; people see a matrix of the pairs of processes, too.
fn tell(conclusion: Conclusion, arguments: &Arguments) -> ExitCode {
    let is_shown = arguments.output.format() == Format::Table && arguments.output.output.is_none();
    let rows = if is_shown { conclusion.record.results.clone() } else { Vec::new() };
    let exit_code = conclusion.record.end.exit_code;
    let code = output::conclude(conclusion, &arguments.output);
    match flatout_report::pairs_text(&rows, output::is_unicode()) {
        text if text.is_empty() => code,
        text => output::deliver(None, text.as_bytes(), exit_code),
    }
}

fn lead(
    arguments: &Arguments,
    cancel: CancelToken,
    world: &Rc<RefCell<World>>,
    hosts: &[String],
) -> Conclusion {
    let make = |name: Name| -> Result<Box<dyn Area>, Error> {
        let (wire, hosts): (Shared, _) = (world.clone(), hosts.to_vec());
        let wrong = |error| Error::Usage(refusal::one_line(&error));
        let areas = &arguments.areas;
        Ok(match name {
            Name::Disk => Box::new(disk::Disk::new(wire, hosts, areas.options().map_err(wrong)?)),
            _ => Box::new(network::Network::new(wire, hosts, areas.options().map_err(wrong)?)),
        })
    };
    let over = Dismissal(world.clone());
    let mut conclusion = run_with(arguments, cancel, &make, Draft::measure_in_job);
    drop(over);
    conclusion.keep = Keep::Nothing;
    conclusion
}

/// None of what it returns is told: `None` where all went well.
fn follow(
    arguments: &Arguments,
    cancel: CancelToken,
    world: &Rc<RefCell<World>>,
) -> Option<Conclusion> {
    let wire: Shared = world.clone();
    let asked = arguments.areas.options::<network::Options>().ok();
    let asked_ns = asked.and_then(|options| options.exchange_ns).unwrap_or(0);
    // A phase takes twice the time that was asked for, and others wait for it.
    let most_ns = arguments.max_time.unwrap_or(0).max(asked_ns.saturating_mul(8));
    // The first one, which waits as long for each, is to name who is silent.
    let watchdog = Watchdog::over(Duration::from_nanos(most_ns) + Duration::from_secs(60));
    let beat = || watchdog.beat("the last word of the first process");
    if let Err(error) = cluster::follow(&wire, cancel, beat) {
        output::complain(&error);
        world.borrow().abort(conclusion::FAILED);
    }
    None
}
