//! Whether a launcher (mpirun, srun) has started this program several times, as one job.
//!
//! Each process would do all of the work: a copy would be made sixty-four times, at one time, to one
//! place. So who was started like that works together with the others, or refuses to work.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use flatout_sys::cancel;

use crate::{conclusion, output};

/// Where launchers say how many processes they have started, and which this one is.
const LAUNCHERS: [(&str, &str, &str); 3] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"),
    ("PMI_SIZE", "PMI_RANK", "mpirun"),
];

/// How long the others leave the first one to speak and to end.
const FIRST_WORD_NS: u64 = 3_000_000_000;

/// One of several processes that were started together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    by: &'static str,
    processes: u64,
    rank: Option<u64>,
}

impl Launched {
    /// What the environment says; `None`: this process was started alone.
    pub fn find() -> Option<Self> {
        Self::of(|name| env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name| variable(name)?.trim().parse::<u64>().ok();
        LAUNCHERS.iter().find_map(|&(size, rank, by)| {
            let processes = number(size).filter(|&processes| processes > 1)?;
            Some(Self { by, processes, rank: number(rank) })
        })
    }

    /// Begins this program anew as one that was started alone, so that what it starts is so, too.
    /// Returns where that fails.
    pub fn leave() {
        let mut argv = env::args_os();
        let mut again = Command::new("/proc/self/exe");
        again.arg0(argv.next().unwrap_or_default()).args(argv);
        for (size, rank, _) in LAUNCHERS {
            again.env_remove(size).env_remove(rank);
        }
        let _error = again.exec();
    }

    /// Whether this one speaks for all.
    pub fn is_first(&self) -> bool {
        self.rank.unwrap_or(0) == 0
    }

    /// Ends each of them with an exit code; one says why.
    pub fn refuse(&self, why: &str, code: i32) -> ExitCode {
        if !self.is_first() {
            return self.end_silently(code);
        }
        output::complain(why);
        output::exit(code)
    }

    /// Ends one of those that do not speak. mpirun ends all as soon as one has failed, and what the
    /// first one says would be lost: it has time to fail before.
    pub fn end_silently(&self, code: i32) -> ExitCode {
        debug_assert!(!self.is_first());
        if code != conclusion::DONE {
            // A signal ends it at once.
            let _ = cancel::wait_any_readable(&[], Some(FIRST_WORD_NS));
        }
        output::exit(code)
    }

    /// Why nothing is copied where MPI does not know the others.
    #[cfg(feature = "mpi")]
    pub fn is_not_joined(&self) -> String {
        let Self { by, processes, .. } = self;
        format!(
            "{by} started this {processes} times, and the MPI library that it was built with knows \
             one process: start it by the launcher of that library (srun: see --mpi=list)"
        )
    }

    /// Why nothing is done.
    pub fn refusal(&self) -> String {
        let Self { by, processes, .. } = self;
        let copies = match cfg!(feature = "mpi") {
            true => {
                "they share copies, sum -r, bench disk and network, and measure each host with bench cpu and memory"
            }
            false => {
                "built with the feature mpi, flatout shares copies, sum -r and bench among them"
            }
        };
        format!(
            "{by} started this {processes} times, and each would do all of the work: \
             {copies}; with --single each does it"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Launched> {
        Launched::of(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn several_processes_are_told_from_one() {
        let first = |launched: Option<Launched>| launched.map(|it| (it.processes, it.is_first()));
        let open = [("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "0")];
        assert_eq!(first(of(&open)), Some((4, true)));
        let slurm = [("SLURM_STEP_NUM_TASKS", "64"), ("SLURM_PROCID", "63")];
        assert_eq!(first(of(&slurm)), Some((64, false)));
        assert_eq!(first(of(&[("PMI_SIZE", " 2 "), ("PMI_RANK", "1")])), Some((2, false)));
        assert_eq!(first(of(&[("PMI_SIZE", "2")])), Some((2, true)), "all would speak");
        // One process, a batch script that starts nothing, and words that are no numbers.
        for alone in [("PMI_SIZE", "1"), ("SLURM_NTASKS", "64"), ("OMPI_COMM_WORLD_SIZE", "x")] {
            assert_eq!(of(&[alone]), None, "{alone:?}");
        }
    }
}
