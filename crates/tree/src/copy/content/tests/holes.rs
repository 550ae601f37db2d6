//! Holes kept, made and filled.

use super::*;

/// A file with data at the given places, as long as is said.
fn sparse(length_bytes: u64, data: &[(u64, u64)]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(length_bytes).unwrap();
    for &(offset, length) in data {
        let mut bytes = vec![0; length as usize];
        fill_random(&mut bytes, 7, offset);
        file.write_all_at(&bytes, offset).unwrap();
    }
    file
}

/// The data segments of a file, as lseek(2) tells them.
fn segments(file: &File) -> Vec<(u64, u64)> {
    use rustix::fs::{SeekFrom, seek};
    let mut found = Vec::new();
    let mut place = 0;
    while let Ok(data) = seek(file, SeekFrom::Data(place)) {
        place = seek(file, SeekFrom::Hole(data)).unwrap();
        found.push((data, place));
    }
    found
}

fn assert_same_data(source: &File, target: &File) {
    assert_eq!(target.metadata().unwrap().len(), source.metadata().unwrap().len());
    assert_eq!(segments(target), segments(source));
    for (start, end) in segments(source) {
        let (mut expected, mut found) =
            (vec![0; (end - start) as usize], vec![0; (end - start) as usize]);
        source.read_exact_at(&mut expected, start).unwrap();
        target.read_exact_at(&mut found, start).unwrap();
        assert!(expected == found, "the data from {start} on differs");
    }
}

const MIB: u64 = 1 << 20;

/// Name, length, data.
type Layout = (&'static str, u64, &'static [(u64, u64)]);

const LAYOUTS: [Layout; 7] = [
    ("a hole at the start", 3 * MIB, &[(2 * MIB, MIB)]),
    ("a hole at the end", 3 * MIB, &[(0, MIB)]),
    ("a hole at both", 3 * MIB, &[(MIB, MIB)]),
    ("nothing but a hole", 3 * MIB + 1, &[]),
    ("a hole at the end that ends oddly", 3 * MIB + 5, &[(0, 100)]),
    ("one terabyte with data at its ends", 1 << 40, &[(0, 4096), ((1 << 40) - 5, 5)]),
    ("data behind two gigabytes", (2 << 30) + 5 * MIB, &[((2 << 30) - 4096, 5 * MIB + 4096)]),
];

#[test]
fn holes_stay_where_they_are_by_each_method() {
    for method in [None, Some(Method::CopyFileRange), Some(Method::Splice), Some(Method::Uring)] {
        for (name, length, data) in LAYOUTS {
            let (source, target) = (sparse(length, data), tempfile::tempfile().unwrap());
            let options = CopyOptions { method, ..options() };
            let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
            assert_same_data(&source, &target);
            assert_eq!(copied.length_bytes, length, "{name} by {method:?}");
            let moved: u64 = segments(&source).iter().map(|(start, end)| end - start).sum();
            assert_eq!(copied.bytes_moved, moved, "{name} by {method:?}");
        }
    }
}

#[test]
fn holes_throughout_stay() {
    let data: Vec<(u64, u64)> = (0..500).map(|index| (index * 16_384, 4096)).collect();
    let (source, target) = (sparse(500 * 16_384, &data), tempfile::tempfile().unwrap());
    let copied = copy(&source, &target, &options(), &Methods::default()).unwrap();
    assert_same_data(&source, &target);
    assert_eq!(copied.bytes_moved, 500 * 4096);
}

#[test]
fn zeros_become_holes_where_that_is_wanted() {
    let options = CopyOptions { sparse: When::Always, ..options() };
    let length = 3 * MIB + 17;
    let source = random(length);
    source.write_all_at(&vec![0; MIB as usize], 4096).unwrap();
    source.write_all_at(&[0; 17], 3 * MIB).unwrap();
    let target = tempfile::tempfile().unwrap();
    let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
    assert_same(&source, &target);
    assert_eq!(copied.bytes_moved, 2 * MIB);
    assert_eq!(segments(&target), [(0, 4096), (MIB + 4096, 3 * MIB)]);
    // Odd blocks find the same.
    let options = CopyOptions { block_bytes: 10_000, ..options };
    let target = tempfile::tempfile().unwrap();
    copy(&source, &target, &options, &Methods::default()).unwrap();
    assert_same(&source, &target);
}

#[test]
fn a_sparse_terabyte_is_looked_through_only_where_it_has_data() {
    let options = CopyOptions { sparse: When::Always, ..options() };
    let source = sparse(1 << 40, &[(1 << 39, 8192)]);
    source.write_all_at(&[0; 4096], 1 << 39).unwrap();
    let target = tempfile::tempfile().unwrap();
    let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
    assert_eq!((copied.bytes_moved, copied.length_bytes), (4096, 1 << 40));
    assert_eq!(segments(&target), [((1 << 39) + 4096, (1 << 39) + 8192)]);
}

#[test]
fn holes_are_filled_where_that_is_wanted() {
    for method in [None, Some(Method::CopyFileRange), Some(Method::Splice), Some(Method::Uring)] {
        let options = CopyOptions { sparse: When::Never, method, ..options() };
        let (_, length, data) = LAYOUTS[2];
        let (source, target) = (sparse(length, data), tempfile::tempfile().unwrap());
        let copied = copy(&source, &target, &options, &Methods::default()).unwrap();
        assert_same(&source, &target);
        assert_eq!(copied.bytes_moved, length);
        assert_eq!(segments(&target), [(0, length)], "{method:?}");
    }
}
