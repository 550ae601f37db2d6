//! Sources that become shorter while they are copied.

use std::sync::atomic::AtomicBool;

use super::*;

const METHODS: [Option<Method>; 6] = [
    None,
    Some(Method::CopyFileRange),
    Some(Method::Splice),
    Some(Method::Sync),
    Some(Method::Mmap),
    Some(Method::Uring),
];

#[test]
fn a_source_cut_after_it_was_examined_ends_where_it_ends() {
    const LENGTH: u64 = 10 << 20;
    for method in METHODS {
        for cut_to in [0, 1, 4096, 10_000, 65_536, (2 << 20) + 1, LENGTH - 1] {
            for sparse in [When::Auto, When::Always] {
                let options = CopyOptions { method, sparse, ..options() };
                let (source, target) = (random(LENGTH), tempfile::tempfile().unwrap());
                let facts = rustix::fs::fstat(&source).unwrap();
                source.set_len(cut_to).unwrap();
                let moved = AtomicU64::new(0);
                let copied =
                    copy_as(&source, &target, &options, &Methods::default(), (&facts, &moved));
                assert_eq!(copied.unwrap().length_bytes, cut_to, "{method:?}");
                assert_same(&source, &target);
            }
        }
    }
}

#[test]
fn a_file_with_holes_cut_after_it_was_examined_ends_where_it_ends() {
    for method in METHODS {
        for cut_to in [0, 10_000, (1 << 20) + 5, 3 << 20] {
            let source = tempfile::tempfile().unwrap();
            source.set_len(4 << 20).unwrap();
            source.write_all_at(&[7; 20_000], 0).unwrap();
            source.write_all_at(&[8; 20_000], 2 << 20).unwrap();
            let facts = rustix::fs::fstat(&source).unwrap();
            source.set_len(cut_to).unwrap();
            let target = tempfile::tempfile().unwrap();
            let options = CopyOptions { method, ..options() };
            let moved = AtomicU64::new(0);
            let copied = copy_as(&source, &target, &options, &Methods::default(), (&facts, &moved));
            assert_eq!(copied.unwrap().length_bytes, cut_to, "{method:?}");
            assert_same(&source, &target);
        }
    }
}

#[test]
fn a_source_cut_in_the_middle_of_the_copy_ends_it() {
    const LENGTH: u64 = 48 << 20;
    for method in METHODS {
        let (source, target) = (random(LENGTH), tempfile::tempfile().unwrap());
        let facts = rustix::fs::fstat(&source).unwrap();
        let (moved, done) = (AtomicU64::new(0), AtomicBool::new(false));
        let options = CopyOptions { method, block_bytes: 4096, ..options() };
        let copied = std::thread::scope(|scope| {
            scope.spawn(|| {
                while moved.load(Ordering::Relaxed) == 0 && !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                source.set_len(1_000_001).unwrap();
            });
            let copied = copy_as(&source, &target, &options, &Methods::default(), (&facts, &moved));
            done.store(true, Ordering::Relaxed);
            copied.unwrap()
        });
        // Where the cut met it is not known; that nothing lies behind the end is.
        assert!(copied.length_bytes >= 1_000_001, "{method:?}");
        assert_eq!(target.metadata().unwrap().len(), copied.length_bytes, "{method:?}");
        assert_eq!(source.metadata().unwrap().len(), 1_000_001);
        let (mut expected, mut found) = (vec![0; 1_000_001], vec![0; 1_000_001]);
        source.read_exact_at(&mut expected, 0).unwrap();
        target.read_exact_at(&mut found, 0).unwrap();
        assert!(expected == found, "{method:?}");
    }
}
