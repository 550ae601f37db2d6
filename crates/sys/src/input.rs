//! A file or standard input that is read until somebody wants to stop: a pipe whose writer does
//! not come must not hold back a signal.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::cancel::{CancelToken, Ready, wait_readable};
use crate::standard;

/// Bytes read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// A file whose reads end when the user wants to stop.
pub struct Input {
    file: File,
    cancel: CancelToken,
}

/// Opens a file; `-` is standard input.
///
/// Errors: those of open(2).
pub fn open(path: &Path, cancel: CancelToken) -> io::Result<BufReader<Input>> {
    let file = if path.as_os_str() == "-" { standard::input()? } else { open_at_once(path)? };
    Ok(BufReader::with_capacity(BUFFER_BYTES, Input { file, cancel }))
}

/// Opens a file; a named pipe too, whether or not anybody writes to it. Its writer is waited for
/// in `read`, where the wait can be given up.
fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags | OFlags::NONBLOCK, Mode::empty())?;
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file.into())
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let ready = wait_readable(self.file.as_fd(), None)?;
            if self.cancel.is_cancelled() {
                return Err(io::Error::other("interrupted"));
            }
            // A signal that asks nobody to stop ends the wait as well.
            if ready != Ready::Readable {
                continue;
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Others may read there, too, and have taken what there was.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn who_shares_a_pipe_that_does_not_wait_reads_what_others_leave() {
        const BYTES: usize = 50_000;
        let (reader, mut writer) = io::pipe().unwrap();
        rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
        let read = |reader: io::PipeReader| {
            let file = File::from(std::os::fd::OwnedFd::from(reader));
            let mut input = Input { file, cancel: CancelToken::manual() };
            std::thread::spawn(move || {
                let (mut all, mut byte) = (0, [0]);
                while input.read(&mut byte).unwrap() > 0 {
                    all += 1;
                }
                all
            })
        };
        let readers = [read(reader.try_clone().unwrap()), read(reader)];
        for _ in 0..BYTES {
            writer.write_all(&[1]).unwrap();
        }
        drop(writer);
        assert_eq!(readers.map(|reader| reader.join().unwrap()).iter().sum::<usize>(), BYTES);
    }
}
