//! Every rival that flatout knows.

use super::{Discipline, Rival};

const NO_CPU: &str = "cannot be raced: see flatout bench cpu";
const SHA256: &str = "flatout sum --digest sha256";
const STREAMS: &str = "the streams of flatout bench memory";

/// All rivals, in the order in which they are listed.
pub const ALL: &[Rival] = &[
    rival("dd", "coreutils", Discipline::Blocks, "flatout, block by block; flatout read"),
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
    copier("dd-1m", "dd", "coreutils"),
    rival("b3sum", "b3sum", Discipline::Digest, "flatout sum"),
    rival("xxhsum", "xxhash", Discipline::Digest, "flatout sum --digest xxh3"),
    rival("sha256sum", "coreutils", Discipline::Digest, SHA256),
    Rival { version: &["version"], ..rival("openssl", "openssl", Discipline::Digest, SHA256) },
    rival("fio", "fio", Discipline::Disk, "flatout bench disk"),
    Rival {
        version: &["-v"],
        ..rival("iozone", "iozone3", Discipline::Disk, "flatout bench disk")
    },
    rival("iperf3", "iperf3", Discipline::Network, "flatout bench network"),
    rival("sockperf", "sockperf", Discipline::Network, "flatout bench network"),
    Rival {
        program: "libopenblas.so.0",
        version: &[],
        ..rival(
            "openblas",
            "libopenblas0-pthread",
            Discipline::Matrix,
            "the kernels of flatout bench cpu",
        )
    },
    // They print results at once and know no option that makes them say a version.
    Rival { version: &[], ..rival("stream", "stream.c, compiled", Discipline::Stream, STREAMS) },
    Rival {
        program: "",
        version: &[],
        ..rival("stream-loops", "flatout itself", Discipline::Stream, STREAMS)
    },
    Rival {
        version: &[],
        ..rival("linpack", "hpcc (or Intel's benchmark)", Discipline::ToCome, NO_CPU)
    },
];

/// One that is called like its program.
const fn rival(
    name: &'static str,
    package: &'static str,
    discipline: Discipline,
    counterpart: &'static str,
) -> Rival {
    Rival { name, program: name, package, version: &["--version"], discipline, counterpart }
}

const fn copier(name: &'static str, program: &'static str, package: &'static str) -> Rival {
    Rival { program, ..rival(name, package, Discipline::Copy, "flatout copy") }
}
