//! `flatout compute`: times one product, factorisation or stream, checks its result, and prints a
//! line of JSON.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::{env, io};

use serde_json::json;

use crate::arguments::compute::Compute;
use crate::{conclusion, output};

/// Which kernels OpenBLAS is to take.
const CORE: &str = "OPENBLAS_CORETYPE";

/// Begins this program anew, with such kernels; returns where that fails.
fn again_with(core: &str) -> io::Error {
    Command::new("/proc/self/exe").args(env::args_os().skip(1)).env(CORE, core).exec()
}

/// Does the work.
pub fn run(arguments: &Compute) -> ExitCode {
    let job = arguments.job();
    // A library chooses its kernels as it is loaded: it is loaded anew.
    if env::var_os(CORE).is_none()
        && let Some(core) = job.better_core()
    {
        let error = output::cannot("start this program again")(again_with(core));
        return output::give_up(conclusion::FAILED, &error);
    }
    match job.run() {
        Ok(found) => output::print(format!("{}\n", json!(found)).as_bytes(), conclusion::DONE),
        Err(text) => output::give_up(conclusion::FAILED, &text),
    }
}
