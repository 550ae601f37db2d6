//! Digests of real files, by several threads.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;

use flatout_io::digest::{Algorithm, Hasher};

use super::*;
use crate::item::{Place, Wanted};

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    flatout_sys::generator::fill_random(&mut bytes, seed, 0);
    bytes
}

fn whole(algorithm: Algorithm, bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new(algorithm);
    hasher.update(bytes);
    hasher.finish()
}

fn item(path: &Path, wanted: Wanted) -> Item {
    Item { place: Place::Path(path.to_owned()), shown: path.as_os_str().to_owned(), wanted }
}

fn run(threads: u32, items: Vec<Item>) -> Vec<Summed> {
    run_until(
        SumOptions { threads, profile: None, cancel: CancelToken::manual() },
        items,
        usize::MAX,
    )
}

fn run_until(options: SumOptions, items: Vec<Item>, most: usize) -> Vec<Summed> {
    let sum = Sum::new(options);
    let mut answers = Vec::new();
    std::thread::scope(|scope| {
        let hire = |threads| {
            for _ in 0..threads {
                scope.spawn(|| sum.work());
            }
            threads
        };
        sum.feed(items.into_iter().map(Ok), hire, |answer| {
            answers.push(answer);
            if answers.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    });
    answers
}

fn files(directory: &Path, count: usize) -> Vec<(PathBuf, Vec<u8>)> {
    let file = |index: usize| {
        let bytes = noise(index * 37 % 9000, index as u64);
        let path = directory.join(format!("{index}"));
        fs::write(&path, &bytes).unwrap();
        (path, bytes)
    };
    (0..count).map(file).collect()
}

#[test]
fn answers_come_in_the_order_of_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), 700);
    for threads in [0, 1, 3] {
        for algorithm in [Algorithm::Blake3, Algorithm::Xxh3] {
            let items = files.iter().map(|(path, _)| item(path, Wanted::Digest(algorithm)));
            let answers = run(threads, items.collect());
            assert_eq!(answers.len(), files.len());
            for (answer, (path, bytes)) in answers.iter().zip(&files) {
                assert_eq!(answer.shown, path.as_os_str());
                let found = answer.result.as_ref().unwrap();
                assert_eq!(found.digest, whole(algorithm, bytes), "{}", path.display());
                assert_eq!(found.length_bytes, bytes.len() as u64);
                assert!(found.matches);
            }
        }
    }
}

#[test]
fn where_no_thread_comes_the_caller_reads() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = files(directory.path(), 300);
    let large = (directory.path().join("large"), noise((5 << 20) + 1, 3));
    fs::write(&large.0, &large.1).unwrap();
    files.insert(7, large);
    for (threads, algorithm) in [(0, Algorithm::Blake3), (1, Algorithm::Sha256)] {
        let items = files.iter().map(|(path, _)| Ok(item(path, Wanted::Digest(algorithm))));
        let sum = Sum::new(SumOptions { threads, profile: None, cancel: CancelToken::manual() });
        let mut digests = Vec::new();
        sum.feed(
            items,
            |_| 0,
            |answer| {
                digests.push(answer.result.unwrap().digest);
                ControlFlow::Continue(())
            },
        );
        let expected: Vec<_> = files.iter().map(|(_, bytes)| whole(algorithm, bytes)).collect();
        assert_eq!(digests, expected);
    }
}

#[test]
fn large_files_are_the_same_in_the_cache_and_around_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large");
    for length in [4 << 20, (4 << 20) + 1, (19 << 20) + 4321] {
        let bytes = noise(length, 9);
        fs::write(&path, &bytes).unwrap();
        for algorithm in Algorithm::ALL {
            for cold in [false, true] {
                if cold {
                    let file = File::open(&path).unwrap();
                    file.sync_all().unwrap();
                    flatout_sys::page_cache::evict(file.as_fd(), length as u64).unwrap();
                }
                for threads in [1, 4] {
                    let answers = run(threads, vec![item(&path, Wanted::Digest(algorithm))]);
                    let found = answers[0].result.as_ref().unwrap();
                    assert_eq!(found.digest, whole(algorithm, &bytes), "{length} {cold} {threads}");
                }
            }
        }
    }
}

#[test]
fn holes_are_digested_and_get_no_room() {
    const AT: usize = 5_000_000;
    let places = [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")];
    for place in places.iter().flatten() {
        let path = place.path().join("sparse");
        for data in [1000, 20 << 20] {
            let mut bytes = vec![0; (33 << 20) + 4321];
            bytes[AT..][..data].copy_from_slice(&noise(data, 7));
            let file = File::create(&path).unwrap();
            file.set_len(bytes.len() as u64).unwrap();
            file.write_all_at(&bytes[AT..][..data], AT as u64).unwrap();
            file.sync_all().unwrap();
            let room = || file.metadata().unwrap().blocks();
            let before = room();
            for algorithm in Algorithm::ALL {
                for threads in [1, 4] {
                    let answers = run(threads, vec![item(&path, Wanted::Digest(algorithm))]);
                    let found = answers[0].result.as_ref().unwrap();
                    assert_eq!(found.digest, whole(algorithm, &bytes), "{path:?} {data} {threads}");
                }
            }
            assert_eq!(room(), before, "{path:?}");
        }
    }
}

#[test]
fn an_open_algorithm_is_found_by_what_matches() {
    let directory = tempfile::tempdir().unwrap();
    let (path, bytes) = files(directory.path(), 4).pop().unwrap();
    let [blake3, sha256] = [Algorithm::Blake3, Algorithm::Sha256].map(|a| whole(a, &bytes));
    let wrong = Digest::new(Algorithm::Blake3, sha256.as_bytes());
    let check = |expected: &[Digest]| {
        let answers = run(2, vec![item(&path, Wanted::Match(expected.to_vec()))]);
        let found = answers[0].result.as_ref().unwrap();
        (found.digest, found.matches)
    };
    assert_eq!(check(&[blake3]), (blake3, true));
    assert_eq!(check(&[wrong, sha256]), (sha256, true));
    assert_eq!(check(&[wrong]), (blake3, false));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (good, bytes) = files(directory.path(), 3).pop().unwrap();
    let wanted = || Wanted::Digest(Algorithm::Blake3);
    let missing = directory.path().join("missing");
    let items =
        vec![item(&missing, wanted()), item(directory.path(), wanted()), item(&good, wanted())];
    let answers = run(2, items);
    let said = |index: usize| match &answers[index].result {
        Err(failure) => failure.to_string(),
        Ok(found) => format!("{found:?}"),
    };
    assert!(answers[0].result.as_ref().is_err_and(Failure::is_missing), "{}", said(0));
    assert!(said(1).starts_with("cannot open ") && said(1).ends_with(": Is a directory"));
    let found = answers[2].result.as_ref().unwrap();
    assert_eq!(found.digest, whole(Algorithm::Blake3, &bytes));
}

#[test]
fn a_name_of_a_tree_that_became_something_else_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    fs::write(&target, "x").unwrap();
    std::os::unix::fs::symlink(&target, directory.path().join("link")).unwrap();
    let fifo = directory.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let held: Arc<std::os::fd::OwnedFd> = Arc::new(File::open(directory.path()).unwrap().into());
    let items = ["link", "fifo", "target"].map(|name| Item {
        place: Place::In { directory: Arc::clone(&held), name: name.into() },
        shown: name.into(),
        wanted: Wanted::Digest(Algorithm::Blake3),
    });
    let results: Vec<bool> =
        run(1, items.to_vec()).iter().map(|answer| answer.result.is_ok()).collect();
    assert_eq!(results, [false, false, true]);
}

#[test]
fn a_file_that_is_written_meanwhile_has_no_digest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("growing");
    let go_on = AtomicU32::new(1);
    fs::write(&path, noise(64 << 20, 1)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            while go_on.load(Ordering::Relaxed) == 1 {
                file.write_all(b"more").unwrap();
            }
        });
        // The writer may have no CPU all the while that a digest is made.
        let is_seen = |algorithm| {
            (0..100).any(|_| {
                let answers = run(2, vec![item(&path, Wanted::Digest(algorithm))]);
                matches!(answers[0].result, Err(Failure::Changed { .. }))
            })
        };
        let are_seen = [Algorithm::Blake3, Algorithm::Sha256].map(is_seen);
        go_on.store(0, Ordering::Relaxed);
        assert_eq!(are_seen, [true; 2]);
    });
}

#[test]
fn a_wish_to_stop_ends_it_and_so_does_the_sink() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path(), 300);
    let items = || -> Vec<Item> {
        files.iter().map(|(path, _)| item(path, Wanted::Digest(Algorithm::Blake3))).collect()
    };
    let options = SumOptions { threads: 2, profile: None, cancel: CancelToken::manual() };
    assert_eq!(run_until(options.clone(), items(), 5).len(), 5);
    options.cancel.cancel();
    let answers = run_until(options, items(), usize::MAX);
    assert!(answers.iter().all(|a| matches!(a.result, Err(Failure::Interrupted))));
}

#[test]
fn what_nobody_waits_for_any_more_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = &files(directory.path(), 1)[0];
    let sum = Sum::new(SumOptions { threads: 1, profile: None, cancel: CancelToken::manual() });
    let next = || item(path, Wanted::Digest(Algorithm::Blake3));
    assert!(Reader::new(&sum).read(next()).result.is_ok());
    sum.feed(std::iter::once(Ok(next())), |_| 0, |_| ControlFlow::Break(()));
    assert!(matches!(Reader::new(&sum).read(next()).result, Err(Failure::Interrupted)));
}

#[test]
fn files_that_are_made_up_as_they_are_read_have_digests_too() {
    let path = Path::new("/proc/version");
    let bytes = fs::read(path).unwrap();
    let answers = run(1, vec![item(path, Wanted::Digest(Algorithm::Blake3))]);
    let found = answers[0].result.as_ref().unwrap();
    assert_eq!(
        (found.digest, found.length_bytes),
        (whole(Algorithm::Blake3, &bytes), bytes.len() as u64)
    );
}

#[test]
fn what_can_be_read_only_once_is_checked_against_all_candidates_at_once() {
    let bytes = noise(100_000, 3);
    let of_nothing = whole(Algorithm::Sha256, b"");
    let right = whole(Algorithm::Sha256, &bytes);
    for (sha256, matches) in [(right, true), (of_nothing, false)] {
        let blake3 = Digest::new(Algorithm::Blake3, sha256.as_bytes());
        let (reader, mut writer) = std::io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let answers = std::thread::scope(|scope| {
            let bytes = &bytes;
            scope.spawn(move || writer.write_all(bytes).unwrap());
            run(2, vec![item(&path, Wanted::Match(vec![blake3, sha256]))])
        });
        assert_eq!(answers[0].result.as_ref().unwrap().matches, matches);
    }
}

#[test]
fn few_directories_are_held_open_however_far_ahead_the_walk_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut held: Vec<std::sync::Weak<std::os::fd::OwnedFd>> = Vec::new();
    let mut most = 0;
    let items: Vec<PathBuf> = (0..600).map(|n| directory.path().join(format!("{n:03}"))).collect();
    for path in &items {
        fs::create_dir(path).unwrap();
        fs::write(path.join("file"), noise(20_000, 1)).unwrap();
    }
    let options = SumOptions { threads: 2, profile: None, cancel: CancelToken::manual() };
    let sum = Sum::new(options);
    let mut answers = 0;
    std::thread::scope(|scope| {
        let hire = |threads| {
            (0..threads).for_each(|_| _ = scope.spawn(|| sum.work()));
            threads
        };
        let items = items.iter().map(|path| {
            let open = Arc::new(std::os::fd::OwnedFd::from(File::open(path).unwrap()));
            held.push(Arc::downgrade(&open));
            most = most.max(held.iter().filter(|held| held.strong_count() > 0).count());
            let place = Place::In { directory: open, name: "file".into() };
            let shown = path.as_os_str().to_owned();
            Ok(Item { place, shown, wanted: Wanted::Digest(Algorithm::Xxh3) })
        });
        sum.feed(items, hire, |answer| {
            answers += u32::from(answer.result.is_ok());
            ControlFlow::Continue(())
        });
    });
    assert_eq!(answers, 600);
    assert!(most <= 64 + 32, "{most} directories at once");
}
