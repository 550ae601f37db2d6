//! `flatout compute`: times one product, factorisation or stream, checks its result, and prints a
//! line of JSON.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use flatout_bench::compute::Job;
use serde_json::json;

use crate::conclusion::{DONE, FAILED};
use crate::output;

/// Which kernels OpenBLAS is to take.
const CORE: &str = "OPENBLAS_CORETYPE";

/// Does the work.
pub fn run(job: &Job) -> ExitCode {
    // A library chooses its kernels as it is loaded: it is loaded anew, by this program.
    if env::var_os(CORE).is_none()
        && let Some(core) = job.better_core()
    {
        let mut again = Command::new("/proc/self/exe");
        let error = again.args(env::args_os().skip(1)).env(CORE, core).exec();
        let error = output::cannot("start this program again")(error);
        return output::give_up(FAILED, &error);
    }
    match job.run() {
        Ok(found) => output::deliver(None, format!("{}\n", json!(found)).as_bytes(), DONE),
        Err(error) => output::give_up(FAILED, &error.to_string()),
    }
}
