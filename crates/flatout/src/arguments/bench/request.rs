//! What was asked of `flatout bench`, as areas that can be planned.

use flatout_bench::cache::{self, Clearing};
use flatout_bench::copy::{self, Copying};
use flatout_bench::disk::{self, Disk, Grid, Overwriting};
use flatout_bench::network::{self, token::Key};
use flatout_bench::{Area, Error, Extent, cpu, memory, syscall};
use flatout_sys::cancel::CancelToken;

use super::{Bench, Name};

/// What all areas of a run have in common.
pub struct Request<'a> {
    /// The command line.
    pub arguments: &'a Bench,
    /// Seed of orders and data.
    pub seed: u64,
    /// The wish to stop.
    pub cancel: CancelToken,
    /// Which rows.
    pub extent: Extent,
    /// Trials that every row gets at least.
    pub least_trials: u32,
    /// The areas that are measured.
    pub areas: &'a [Name],
}

impl Request<'_> {
    /// An area with the options that were given; nothing is looked at yet.
    ///
    /// # Errors
    /// Options that mean nothing, or a file with a key that cannot be read.
    pub fn area(&self, name: Name) -> Result<Box<dyn Area>, Error> {
        Ok(match name {
            Name::Cache => Box::new(self.cache()),
            Name::Disk => Box::new(Disk::new(self.disk())),
            Name::Syscall => Box::new(self.syscall()),
            Name::Cpu => Box::new(self.cpu()),
            Name::Memory => Box::new(self.memory()),
            Name::Network => Box::new(self.network()?),
            Name::Copy => Box::new(Copying::new(self.copy()?)),
        })
    }

    /// What an area may write: the syscall area needs little and no choice, the others share the
    /// rest.
    fn max_write_bytes(&self) -> Option<u64> {
        let has = |area: &Name| self.areas.contains(area);
        let needed = if has(&Name::Syscall) { self.syscall().file_bytes() } else { 0 };
        let shares = [Name::Cache, Name::Disk, Name::Copy].iter().filter(|area| has(area)).count();
        self.arguments.max_write.map(|most| most.saturating_sub(needed) / (shares as u64).max(1))
    }

    fn clearing(&self) -> Clearing {
        if self.arguments.drop_caches { Clearing::System } else { Clearing::File }
    }

    /// The block sizes that were asked for. Those of bare `bench` are of system calls.
    fn block_bytes(&self) -> &[u64] {
        if self.extent == Extent::Few { &[] } else { &self.arguments.block_size }
    }

    fn cache(&self) -> cache::Options {
        cache::Options {
            directory: self.arguments.directory.clone(),
            extent: self.extent,
            max_write_bytes: self.max_write_bytes(),
            clearing: self.clearing(),
            seed: self.seed,
            cancel: self.cancel,
        }
    }

    fn disk(&self) -> disk::Options {
        let chosen = &self.arguments.disk;
        disk::Options {
            path: self.arguments.place().clone(),
            overwriting: match chosen.overwrite {
                true => Overwriting::Allowed,
                false => Overwriting::Refused,
            },
            grid: match (chosen.matrix, self.extent) {
                (true, _) => Grid::Matrix,
                (false, Extent::Few) => Grid::Few,
                (false, Extent::Quick) => Grid::Quick,
                (false, Extent::Full) => Grid::Short,
            },
            selection: chosen.selection(self.block_bytes(), &self.arguments.threads),
            bytes: self.arguments.bytes,
            runtime_ns: chosen.runtime,
            max_write_bytes: self.max_write_bytes(),
            clearing: self.clearing(),
            seed: self.seed,
            cancel: self.cancel,
        }
    }

    fn syscall(&self) -> syscall::Options {
        syscall::Options {
            extent: self.extent,
            block_bytes: self.arguments.block_size.first().copied().unwrap_or(1),
            directory: self.arguments.directory.clone(),
            cancel: self.cancel,
        }
    }

    fn cpu(&self) -> cpu::Options {
        cpu::Options {
            extent: self.extent,
            threads: self.arguments.threads.clone(),
            order: self.arguments.cpu.order,
            trials: self.arguments.cpu.trials,
            seed: self.seed,
            cancel: self.cancel,
        }
    }

    fn memory(&self) -> memory::Options {
        memory::Options {
            extent: self.extent,
            threads: self.arguments.threads.clone(),
            bytes: self.arguments.bytes,
            seed: self.seed,
            cancel: self.cancel,
        }
    }

    fn network(&self) -> Result<network::Options, Error> {
        let chosen = &self.arguments.network;
        let key = chosen.token_file.as_deref().map(Key::from_file).transpose();
        Ok(network::Options {
            extent: self.extent,
            connect: chosen.connect.clone(),
            key: key.map_err(Error::Network)?,
            family: chosen.family(),
            selection: chosen
                .selection(self.block_bytes(), self.arguments.bytes, self.arguments.disk.rate)
                .map_err(Error::Usage)?,
            window_ns: chosen.duration,
            cancel: self.cancel,
            notice: crate::output::complain,
        })
    }

    fn copy(&self) -> Result<copy::Options, Error> {
        let (arguments, chosen) = (self.arguments, &self.arguments.copy);
        let flatout = std::env::current_exe()
            .map_err(flatout_io::Error::system("find the program of", "flatout".as_ref()))?;
        let is_alone = self.areas.len() == 1;
        Ok(copy::Options {
            directory: arguments.place().clone(),
            flatout,
            extent: self.extent,
            selection: chosen.selection(),
            state: chosen.state(),
            until: chosen.until(),
            rounds: chosen.rounds,
            least_rounds: self.least_trials,
            time_ns: arguments.max_time.filter(|_| is_alone),
            max_write_bytes: self.max_write_bytes(),
            clearing: self.clearing(),
            seed: self.seed,
            cancel: self.cancel,
        })
    }
}
