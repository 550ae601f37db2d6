//! Storage that does not answer is said while it is waited for, and slow storage is not.

use std::time::Duration;

use crate::bin::Folder;
use crate::faulty::{Faults, Faulty};
use crate::skip::needs;

#[test]
fn a_request_that_stands_still_is_named_and_many_slow_ones_are_not() {
    let folder = Folder::new();
    let delayed = |ms| {
        let delay = Duration::from_millis(ms);
        Faulty::new(Faults { delay, is_uncached: true, ..Faults::default() })
    };
    let (still, slow) = (needs!(delayed(8000)), needs!(delayed(300)));
    still.put("file", &[1; 4096]);
    slow.put("file", &[1; 30 * 4096]);
    let [still_file, slow_file] =
        [&still, &slow].map(|faulty| faulty.path().join("file").into_os_string());
    let run =
        |words: &str, file| folder.flatout(words.split(' ').map(Into::into).chain([file])).start();
    let running = [run("read --engine sync", still_file.clone()), run("sum", still_file)];
    let slow_one = run("read --engine sync --threads 1 --block-size 4096", slow_file);
    for running in running {
        let ran = running.wait();
        assert!(ran.stderr.contains("waiting for storage: one request to read"), "{ran}");
        assert!(ran.stderr.contains(" has taken 5 s so far"), "{ran}");
    }
    let ran = slow_one.wait();
    assert!(!ran.exits(0).stderr.contains("waiting for storage"), "{ran}");
    slow.finish();
    still.finish();
}
