//! Calls on an open file: position, bytes, attributes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::path::Attributes;
use super::{raw, repeat};

/// Sets the position to 1, 2, … `calls`, each by one `lseek` from the start of the file.
///
/// # Errors
/// The kernel's error, at the first call that fails or answers another position.
#[inline(never)]
pub fn lseek(file: BorrowedFd<'_>, calls: u64) -> io::Result<()> {
    let descriptor = file.as_raw_fd() as usize;
    for offset in 1..=calls {
        // SAFETY: lseek takes no pointer.
        let result = unsafe {
            raw::call3(libc::SYS_lseek, descriptor, offset as usize, libc::SEEK_SET as usize)
        };
        if result != offset as isize {
            return Err(super::surprise("lseek", result));
        }
    }
    Ok(())
}

/// Reads `buffer.len()` bytes at the file's position, `calls` times; the position moves on.
///
/// # Errors
/// The kernel's error, or `UnexpectedEof` at the first call that gives fewer bytes.
#[inline(never)]
pub fn read(file: BorrowedFd<'_>, buffer: &mut [u8], calls: u64) -> io::Result<()> {
    let (descriptor, length) = (file.as_raw_fd() as usize, buffer.len());
    let start = buffer.as_mut_ptr() as usize;
    // SAFETY: the kernel writes at most `length` bytes into `buffer`, which is borrowed
    // for the whole loop.
    let call = || unsafe { raw::call3(libc::SYS_read, descriptor, start, length) };
    repeat("read", calls, call, |result| result == length as isize)
}

/// Reads `buffer.len()` bytes `calls` times, block after block of the first `span_bytes`, and from
/// the start again: the same walk as that of [`read`], so that the two can be compared. The
/// position stays.
///
/// # Errors
/// The kernel's error, or `UnexpectedEof` at the first call that gives fewer bytes.
#[inline(never)]
pub fn pread(
    file: BorrowedFd<'_>,
    buffer: &mut [u8],
    span_bytes: u64,
    calls: u64,
) -> io::Result<()> {
    let (descriptor, length) = (file.as_raw_fd() as usize, buffer.len());
    let start = buffer.as_mut_ptr() as usize;
    let last = (span_bytes as usize).saturating_sub(length);
    let mut next = 0;
    let call = || {
        let offset = next;
        next = if offset + length > last { 0 } else { offset + length };
        // SAFETY: the kernel writes at most `length` bytes into `buffer`, which is borrowed
        // for the whole loop.
        unsafe { raw::call4(libc::SYS_pread64, descriptor, start, length, offset) }
    };
    repeat("pread", calls, call, |result| result == length as isize)
}

/// Writes `bytes` at the file's position, `calls` times; the position moves on.
///
/// # Errors
/// The kernel's error, or `UnexpectedEof` at the first call that takes fewer bytes.
#[inline(never)]
pub fn write(file: BorrowedFd<'_>, bytes: &[u8], calls: u64) -> io::Result<()> {
    let (descriptor, length) = (file.as_raw_fd() as usize, bytes.len());
    let start = bytes.as_ptr() as usize;
    // SAFETY: the kernel reads `length` bytes from `bytes`, borrowed for the whole loop.
    let call = || unsafe { raw::call3(libc::SYS_write, descriptor, start, length) };
    repeat("write", calls, call, |result| result == length as isize)
}

/// Reads the attributes of an open file.
///
/// # Errors
/// The kernel's error at the first call that fails.
#[inline(never)]
pub(super) fn fstat(
    file: BorrowedFd<'_>,
    attributes: &mut Attributes,
    calls: u64,
) -> io::Result<()> {
    let (descriptor, start) = (file.as_raw_fd() as usize, attributes.next_address());
    // SAFETY: the kernel writes one `struct stat` into `attributes`, which is larger.
    let call = || unsafe { raw::call2(libc::SYS_fstat, descriptor, start) };
    repeat("fstat", calls, call, |result| result == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Seek, Write};
    use std::os::fd::AsFd;

    fn file_of(length: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; length]).unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn each_read_moves_the_position_by_its_length() {
        let mut file = file_of(1000);
        let mut buffer = [0; 3];
        read(file.as_fd(), &mut buffer, 111).unwrap();
        assert_eq!(file.stream_position().unwrap(), 333);
        assert_eq!(buffer, [7; 3]);
    }

    #[test]
    fn a_read_past_the_end_is_an_error_and_not_a_fast_call() {
        let file = file_of(10);
        let error = read(file.as_fd(), &mut [0], 11).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(pread(file.as_fd(), &mut [0; 20], 10, 1).is_err());
    }

    #[test]
    fn pread_leaves_the_position_and_fills_the_buffer() {
        let mut file = file_of(10);
        let mut buffer = [0; 4];
        pread(file.as_fd(), &mut buffer, 10, 50).unwrap();
        assert_eq!(file.stream_position().unwrap(), 0);
        assert_eq!(buffer, [7; 4]);
        // Beyond the file there is nothing to read: the walk reaches the end of its span.
        pread(file.as_fd(), &mut buffer, 14, 2).unwrap();
        assert!(pread(file.as_fd(), &mut buffer, 14, 3).is_err());
    }

    #[test]
    fn each_write_extends_the_file() {
        let file = tempfile::tempfile().unwrap();
        write(file.as_fd(), b"ab", 500).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1000);
    }

    #[test]
    fn lseek_ends_at_the_number_of_calls() {
        let mut file = file_of(1);
        lseek(file.as_fd(), 777).unwrap();
        assert_eq!(file.stream_position().unwrap(), 777);
    }

    #[test]
    fn fstat_works_on_any_descriptor() {
        fstat(file_of(1).as_fd(), &mut Attributes::new(), 10).unwrap();
    }

    #[test]
    fn a_descriptor_that_does_not_fit_the_call_is_an_error() {
        // Write-only and path-only descriptors stand in for a closed one, whose number another
        // test could own by now.
        let null = File::options().write(true).open("/dev/null").unwrap();
        let error = read(null.as_fd(), &mut [0], 5).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        let (reader, _writer) = io::pipe().unwrap();
        let error = lseek(reader.as_fd(), 5).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESPIPE));
    }
}
