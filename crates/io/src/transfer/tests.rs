//! Ranges moved by each method.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use super::*;

fn route<'a>(source: &'a File, target: &'a File, moved: &'a AtomicU64) -> Route<'a> {
    Route {
        source: source.as_fd(),
        target: target.as_fd(),
        offset_bytes: 0,
        length_bytes: u64::MAX,
        moved,
    }
}

fn written(length: usize) -> (File, Vec<u8>) {
    let source = tempfile::tempfile().unwrap();
    let bytes: Vec<u8> = (0..length).map(|index| (index >> 3) as u8 | 1).collect();
    source.write_all_at(&bytes, 0).unwrap();
    (source, bytes)
}

const MOVERS: [Method; 5] =
    [Method::CopyFileRange, Method::Splice, Method::Sync, Method::Mmap, Method::Uring];

#[test]
fn a_range_arrives_where_it_was_and_nothing_else_does() {
    let (source, bytes) = written(100_000);
    for method in MOVERS {
        for (offset, length) in [(0, 100_000), (1, 4096), (4096, 50_001), (99_999, 1)] {
            for block in [0, 1000, 4096, 1 << 20] {
                let (target, moved) = (tempfile::tempfile().unwrap(), AtomicU64::new(0));
                let mut transfer = Transfer::new(block, 4);
                let route = Route {
                    offset_bytes: offset,
                    length_bytes: length,
                    ..route(&source, &target, &moved)
                };
                let result = transfer.run(method, route, &mut Stop::never()).unwrap();
                if let End::Cannot(errno) = result.end {
                    eprintln!("skipped: {method}: {errno}");
                    continue;
                }
                assert_eq!(result, Moved { bytes: length, end: End::Whole }, "{method} {block}");
                assert_eq!(moved.load(Ordering::Relaxed), length);
                let mut copy = vec![0; (offset + length) as usize];
                target.read_exact_at(&mut copy, 0).unwrap();
                assert!(copy[offset as usize..] == bytes[offset as usize..][..length as usize]);
                assert!(copy[..offset as usize].iter().all(|&byte| byte == 0));
                assert_eq!(target.metadata().unwrap().len(), offset + length);
            }
        }
    }
}

#[test]
fn what_a_pipe_brings_in_short_pieces_is_the_same() {
    let (source, bytes) = written(3_000_001);
    let mut transfer = Transfer::new(0, 0);
    // More of them than come before those that are tried in short pieces.
    for _ in 0..4 {
        let (target, moved) = (tempfile::tempfile().unwrap(), AtomicU64::new(0));
        let route = Route { length_bytes: 3_000_001, ..route(&source, &target, &moved) };
        let result = transfer.run(Method::Splice, route, &mut Stop::never()).unwrap();
        if let End::Cannot(errno) = result.end {
            return eprintln!("skipped: {errno}");
        }
        assert_eq!(result, Moved { bytes: 3_000_001, end: End::Whole });
        assert_eq!(moved.load(Ordering::Relaxed), 3_000_001);
        let mut copy = vec![0; bytes.len()];
        target.read_exact_at(&mut copy, 0).unwrap();
        assert!(copy == bytes);
    }
}

#[test]
fn what_a_failed_write_left_in_the_pipe_comes_into_no_other_file() {
    let (source, bytes) = written(300_000);
    let mut transfer = Transfer::new(0, 0);
    let (read_only, moved) = (File::open("/proc/self/exe").unwrap(), AtomicU64::new(0));
    let into_nothing = Route { length_bytes: 300_000, ..route(&source, &read_only, &moved) };
    match transfer.run(Method::Splice, into_nothing, &mut Stop::never()) {
        Ok(Moved { bytes: 0, end: End::Cannot(errno) }) if errno != Errno::BADF => {
            return eprintln!("skipped: {errno}");
        }
        ended => assert_eq!(ended, Ok(Moved { bytes: 0, end: End::Cannot(Errno::BADF) })),
    }
    let target = tempfile::tempfile().unwrap();
    let route = Route { offset_bytes: 1, length_bytes: 1000, ..route(&source, &target, &moved) };
    let result = transfer.run(Method::Splice, route, &mut Stop::never());
    assert_eq!(result, Ok(Moved { bytes: 1000, end: End::Whole }));
    let mut copy = [0; 1001];
    target.read_exact_at(&mut copy, 0).unwrap();
    assert_eq!((copy[0], &copy[1..]), (0, &bytes[1..1001]));
}

#[test]
fn the_end_of_the_source_ends_a_transfer() {
    let (source, _) = written(10_000);
    for method in MOVERS {
        let (target, moved) = (tempfile::tempfile().unwrap(), AtomicU64::new(0));
        let route = Route { length_bytes: 1 << 20, ..route(&source, &target, &moved) };
        let result = Transfer::new(4096, 4).run(method, route, &mut Stop::never()).unwrap();
        match result.end {
            End::Cannot(errno) => eprintln!("skipped: {method}: {errno}"),
            End::Unclear => {
                let by_kernel = matches!(method, Method::CopyFileRange | Method::Splice);
                assert_eq!((by_kernel, result.bytes), (true, 10_000), "{method}");
            }
            end => assert_eq!((end, result.bytes), (End::SourceEnded, 10_000), "{method}"),
        }
    }
}

#[test]
fn the_failing_side_is_named() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let (file, _) = written(10);
    let (file, moved) = (&file, AtomicU64::new(0));
    let ends =
        |source, target| Route { source, target, offset_bytes: 0, length_bytes: 1, moved: &moved };
    let mut transfer = Transfer::new(16, 0);
    let stop = &mut Stop::never();
    let into = ends(reader.as_fd(), file.as_fd());
    let source = transfer.run(Method::Sync, into, stop).unwrap_err();
    assert_eq!(source, TransferError::Source(Errno::SPIPE));
    let out = ends(file.as_fd(), writer.as_fd());
    let target = transfer.run(Method::Sync, out, stop).unwrap_err();
    assert_eq!(target, TransferError::Target(Errno::SPIPE));
}

#[test]
fn a_read_that_fails_writes_nothing() {
    let folder = File::open("/").unwrap();
    for method in [Method::Sync, Method::Uring] {
        let (target, moved) = (tempfile::tempfile().unwrap(), AtomicU64::new(0));
        let route = Route { length_bytes: 4096, ..route(&folder, &target, &moved) };
        match Transfer::new(4096, 1).run(method, route, &mut Stop::never()) {
            Ok(Moved { end: End::Cannot(errno), .. }) => eprintln!("skipped: {method}: {errno}"),
            answer => assert_eq!(answer, Err(TransferError::Source(Errno::ISDIR)), "{method}"),
        }
        assert_eq!(target.metadata().unwrap().len(), 0);
        assert_eq!(moved.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn methods_stand_at_their_places() {
    for method in Method::ALL {
        assert_eq!(Method::ALL[method.index()], method);
    }
}

#[test]
fn the_buffer_is_as_long_as_the_longest_small_file() {
    let mut transfer = Transfer::new(0, 0);
    for (file_bytes, buffer_bytes) in [
        (0, 4 << 10),
        (5_000, 8 << 10),
        (100, 8 << 10),
        (64 << 10, 64 << 10),
        ((64 << 10) + 1, MIDDLE_BUFFER_BYTES),
        (1, MIDDLE_BUFFER_BYTES),
        (LARGE_BYTES, BUFFER_BYTES),
        (1, BUFFER_BYTES),
    ] {
        assert_eq!(transfer.buffer(file_bytes).unwrap().len(), buffer_bytes, "{file_bytes}");
    }
    let mut one_of_many = Transfer::new(0, 0);
    one_of_many.be_one_of_many();
    assert_eq!(one_of_many.buffer(u64::MAX).unwrap().len(), MIDDLE_BUFFER_BYTES);
}
