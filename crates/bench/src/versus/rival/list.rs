//! Every rival that flatout knows.

use super::{Discipline, Rival};

const NO_CPU: &str = "cannot be raced: see flatout bench cpu";
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
    copier("cpx", "cpx", "cargo install cpx"),
    copier("pxs", "pxs", "cargo install pxs"),
    copier("rcp", "rcp", "cargo install rcp-tools-rcp"),
    Rival { version: &["version"], ..copier("rclone", "rclone", "rclone") },
    digester("b3sum", "b3sum", "flatout sum"),
    digester("xxhsum", "xxhash", "flatout sum --digest xxh3"),
    digester("sha256sum", "coreutils", "flatout sum --digest sha256"),
    disk_meter("fio", "fio", VERSION),
    disk_meter("iozone", "iozone3", &["-v"]),
    network_meter("iperf3"),
    network_meter("sockperf"),
    Rival {
        name: "openblas",
        program: "libopenblas.so.0",
        package: "libopenblas0-pthread",
        version: &[],
        discipline: Discipline::Matrix,
        counterpart: "the kernels of flatout bench cpu",
    },
    // They print results at once and know no option that makes them say a version.
    streamer("stream", "stream", "stream.c, compiled"),
    streamer("stream-loops", "", "flatout itself"),
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

const fn streamer(name: &'static str, program: &'static str, package: &'static str) -> Rival {
    let counterpart = "the streams of flatout bench memory";
    Rival { name, program, package, version: &[], discipline: Discipline::Stream, counterpart }
}

const fn to_come(
    name: &'static str,
    package: &'static str,
    version: &'static [&'static str],
    counterpart: &'static str,
) -> Rival {
    Rival { name, program: name, package, version, discipline: Discipline::ToCome, counterpart }
}
