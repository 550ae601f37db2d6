//! `flatout write`: one row, with a figure to cache and a durable one.

use flatout_bench::write::Writer;
use flatout_sys::cancel::CancelToken;

use crate::arguments::write::Write;
use crate::conclusion::{Conclusion, Draft, FAILED, INTERRUPTED};
use crate::profile;

/// Writes the file. One that was made and could not be completed is removed again.
pub fn run(arguments: &Write, cancel: CancelToken) -> Conclusion {
    let mut draft = Draft::begin(arguments.seed);
    match Writer::open(arguments.job(profile::load(), cancel)) {
        Ok(writer) => write(writer, &mut draft, cancel),
        Err(error) => draft.refuse(&error),
    }
    draft.conclude()
}

fn write(writer: Writer, draft: &mut Draft, cancel: CancelToken) {
    match writer.run() {
        Ok(measured) => {
            draft.add(writer.outcome(&measured));
            if !measured.stopped {
                if cancel.is_cancelled() {
                    let text = "interrupted when all was written: the file stays";
                    draft.fail(INTERRUPTED, text.to_owned());
                }
                return;
            }
            draft.fail(INTERRUPTED, writer.how_far(&measured));
        }
        Err(error) => draft.fail(FAILED, error.to_string()),
    }
    if let Err(error) = writer.discard() {
        draft.fail(FAILED, error.to_string());
    }
}
