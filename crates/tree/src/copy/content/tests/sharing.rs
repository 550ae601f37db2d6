//! A large file copied by several threads.

use super::large::copy;
use super::*;

const LENGTH: u64 = (33 << 20) + 12_345;

/// Copies a file as a shared one, whatever the table says of it.
fn share(
    (source, target): (&File, &File),
    method: Method,
    facts: &Stat,
    help: &dyn Fn(Arc<Large>),
) -> Result<(u64, Tally), Refusal> {
    let (methods, moved) = (Methods::default(), AtomicU64::new(0));
    // Its ranges are begun to be written, which changes nothing of what is there.
    let options = CopyOptions { durability: Durability::Durable, ..options() };
    let mut content = Content::new(&options, &methods);
    let job = FileJob { share: help, ..job(source, target, (facts, &moved)) };
    let pair = content.pair(&job)?;
    let mut tally = Tally::default();
    let reached = copy(&mut content, &job, &pair, Task::Move(method), &mut tally)?;
    // A mapping goes on to the end of its last page; what lay behind the file is taken back.
    assert!(moved.load(Ordering::Relaxed) >= tally.bytes());
    Ok((reached, tally))
}

#[test]
fn helpers_do_all_where_the_owner_comes_late() {
    let (source, target) = (random(LENGTH), tempfile::tempfile().unwrap());
    let facts = rustix::fs::fstat(&source).unwrap();
    for method in [Method::Sync, Method::Mmap, Method::CopyFileRange, Method::Splice] {
        let help = |large: Arc<Large>| {
            let (options, methods) = (options(), Methods::default());
            assert!(large.has_more());
            large.help(&mut Content::new(&options, &methods), None);
            assert!(!large.has_more());
        };
        target.set_len(0).unwrap();
        let (reached, tally) = share((&source, &target), method, &facts, &help).unwrap();
        assert_eq!((reached, tally.bytes()), (LENGTH, LENGTH));
        assert_eq!(tally.most(), Some(method), "it had the file for itself");
        assert_same(&source, &target);
    }
}

#[test]
fn threads_copy_one_file_together() {
    let (source, target) = (random(LENGTH), tempfile::tempfile().unwrap());
    let facts = rustix::fs::fstat(&source).unwrap();
    for method in [Method::Sync, Method::Mmap, Method::CopyFileRange, Method::Splice] {
        target.set_len(0).unwrap();
        let (send, receive) = std::sync::mpsc::channel::<Arc<Large>>();
        let (reached, _) = std::thread::scope(|scope| {
            scope.spawn(move || {
                let (options, methods) = (options(), Methods::default());
                for large in receive {
                    large.help(&mut Content::new(&options, &methods), None);
                }
            });
            let result =
                share((&source, &target), method, &facts, &|large| send.send(large).unwrap());
            drop(send);
            result.unwrap()
        });
        assert_eq!(reached, LENGTH);
        assert_same(&source, &target);
    }
}

#[test]
fn a_shared_file_that_was_cut_ends_where_it_ends() {
    for method in [Method::Sync, Method::Mmap, Method::CopyFileRange, Method::Splice] {
        let (source, target) = (random(LENGTH), tempfile::tempfile().unwrap());
        let facts = rustix::fs::fstat(&source).unwrap();
        source.set_len(5_000_001).unwrap();
        let (reached, _) = share((&source, &target), method, &facts, &|_| {}).unwrap();
        assert_eq!(reached, 5_000_001);
    }
}

/// There are two thousand million ranges behind it.
#[test]
fn nothing_is_looked_for_far_behind_the_end() {
    let (source, target) = (random(LENGTH), tempfile::tempfile().unwrap());
    let mut facts = rustix::fs::fstat(&source).unwrap();
    facts.st_size = 1 << 53;
    let (reached, tally) = share((&source, &target), Method::Sync, &facts, &|_| {}).unwrap();
    assert_eq!((reached, tally.bytes()), (LENGTH, LENGTH));
    assert_same(&source, &target);
}

#[test]
fn one_failure_ends_a_shared_file() {
    let (source, folder) = (random(LENGTH), tempfile::tempdir().unwrap());
    let facts = rustix::fs::fstat(&source).unwrap();
    let name = folder.path().join("target");
    std::fs::write(&name, b"").unwrap();
    let target = File::open(name).unwrap();
    let refusal = share((&source, &target), Method::Sync, &facts, &|_| {}).unwrap_err();
    assert_eq!(refusal, Refusal::of(WRITE)(Errno::BADF));
}

#[test]
fn large_cached_files_are_shared_out_by_the_table() {
    let (source, target) = (random(choice::SHARE_FROM_BYTES), tempfile::tempfile().unwrap());
    let home = flatout_sys::filesystem::of(target.as_fd()).unwrap();
    if !matches!(home.name, "ext4" | "xfs") {
        eprintln!("skipped: temporary files lie on {}", home.name);
        return;
    }
    let (options, methods) = (CopyOptions { threads: 2, ..options() }, Methods::default());
    let (facts, moved) = (rustix::fs::fstat(&source).unwrap(), AtomicU64::new(0));
    let shared = AtomicU64::new(0);
    let share = |_| {
        shared.fetch_add(1, Ordering::Relaxed);
    };
    let job = FileJob { share: &share, ..job(&source, &target, (&facts, &moved)) };
    let refused = CopyOptions { reflink: When::Never, ..options };
    Content::new(&refused, &methods).copy(job, || ()).unwrap();
    assert_eq!(shared.load(Ordering::Relaxed), 1);
    assert_same(&source, &target);
}
