//! Every rival that flatout knows.

use super::{Discipline, Rival};

const NO_MEMORY: &str = "cannot be raced: flatout bench memory measures memory";
const NO_CPU: &str = "cannot be raced: flatout bench cpu measures the CPU";
const VERSION: &[&str] = &["--version"];

/// All rivals, in the order in which they are listed.
pub const ALL: &[Rival] = &[
    Rival {
        name: "dd",
        program: "dd",
        package: "coreutils",
        version: VERSION,
        discipline: Discipline::Blocks,
        counterpart: "flatout, block by block; flatout read",
    },
    copier("cp-r", "cp", "coreutils"),
    copier("cp-a", "cp", "coreutils"),
    copier("rsync-a", "rsync", "rsync"),
    copier("rsync-r", "rsync", "rsync"),
    copier("tar", "tar", "tar"),
    copier("xcp", "xcp", "cargo install xcp"),
    copier("cpz", "cpz", "cargo install cpz"),
    copier("fcp", "fcp", "cargo install fcp"),
    copier("rcp", "rcp", "cargo install rcp-tools-rcp"),
    Rival { version: &["version"], ..copier("rclone", "rclone", "rclone") },
    digester("b3sum", "b3sum", "flatout sum"),
    digester("xxhsum", "xxhash", "flatout sum --digest xxh3"),
    digester("sha256sum", "coreutils", "flatout sum --digest sha256"),
    disk_meter("fio", "fio", VERSION),
    disk_meter("iozone", "iozone3", &["-v"]),
    network_meter("iperf3"),
    network_meter("sockperf"),
    // Both print results at once and know no option that makes them say a version.
    to_come("stream", "hpcc (or stream.c)", &[], NO_MEMORY),
    to_come("linpack", "hpcc (or Intel's benchmark)", &[], NO_CPU),
];

const fn copier(name: &'static str, program: &'static str, package: &'static str) -> Rival {
    Rival {
        name,
        program,
        package,
        version: VERSION,
        discipline: Discipline::Copy,
        counterpart: "flatout copy",
    }
}

const fn digester(name: &'static str, package: &'static str, counterpart: &'static str) -> Rival {
    let discipline = Discipline::Digest;
    Rival { name, program: name, package, version: VERSION, discipline, counterpart }
}

const fn disk_meter(
    name: &'static str,
    package: &'static str,
    version: &'static [&'static str],
) -> Rival {
    let (discipline, counterpart) = (Discipline::Disk, "flatout bench disk");
    Rival { name, program: name, package, version, discipline, counterpart }
}

const fn network_meter(name: &'static str) -> Rival {
    let (discipline, counterpart) = (Discipline::Network, "flatout bench network");
    Rival { name, program: name, package: name, version: VERSION, discipline, counterpart }
}

const fn to_come(
    name: &'static str,
    package: &'static str,
    version: &'static [&'static str],
    counterpart: &'static str,
) -> Rival {
    Rival { name, program: name, package, version, discipline: Discipline::ToCome, counterpart }
}
