//! What the help of `flatout bench` and of its areas says besides the options.

/// `flatout bench --help`.
pub const BENCH: &str = "\
Examples:
  flatout bench                         some 60 rows in 90 s; leaves a page
  flatout bench disk /data --quick      the disk behind a directory
  flatout bench cpu memory --live       two areas, seen as they converge
  flatout bench network -c HOST         to a machine where flatout serve runs
  flatout bench cache --help            the options of an area";

/// `flatout bench cache --help`.
pub const CACHE: &str = "\
The rate over block sizes 1 B … 4 MiB and over threads, warm and cold, with the engines sync, mmap and \
uring; and the series first read, again, after clearing.

Cold rows: the file is written back (fsync), dropped from the page cache (POSIX_FADV_DONTNEED), \
and that it is gone is proved (cachestat). --drop-caches also drops the caches of the whole system \
by writing to /proc/sys/vm/drop_caches, which needs root and slows everybody down for a while:
  1  drops clean page-cache pages: file contents
  2  drops dentries and inodes: names, attributes, and what hangs on them
  3  drops both, as a cold read in real life finds it: neither the contents nor
     the block map that the inode holds. Hence 3.
None of them drops dirty pages: those are synced first.

Examples:
  flatout bench cache                     the whole grid
  flatout bench cache --quick             a coarse one
  flatout bench cache --directory /data   with the test files on another filesystem";

/// `flatout bench disk --help`.
pub const DISK: &str = "\
PLACE is a directory (flatout makes its own files there), a file (only read, unless --overwrite) or \
a block device (only read, always). A directory with the name of an area is written ./cache.

The figures carry proof of what reached the disk, what limits it, and fio command lines to check \
them with. A write has two: until the device or the cache has the bytes, and until they are durable. \
Latencies are of a closed loop (the next request begins when one has ended); with --rate of an open \
one, counted from the intended start.
--matrix: copy file to file, sequential and random reads and writes at 8 KiB, 8 MiB and 80 MiB, \
latency at 8 B, with 1, 2, 4 and 8 threads; rewrite, reread, backward and strided; over 5 GB.

Examples:
  flatout bench disk                      the disk behind the current directory
  flatout bench disk /dev/nvme0n1         a disk, only read
  flatout bench disk /data --rw randread -b 4K,16K,64K --iodepth 1,16,64
  flatout bench disk /data --rw randread --rate 5000 -t 10
  flatout bench disk /data --rw randrw --rwmixread 50 --size 4G -j 4";

/// `flatout bench syscall --help`.
pub const SYSCALL: &str = "\
Nanoseconds per system call, over an empty function call and a bare kernel entry, with private and \
shared descriptors.

Examples:
  flatout bench syscall                   the whole grid
  flatout bench syscall -b 4K             read, pread and write of 4 KiB
  flatout bench syscall --format json --output syscall.json";

/// `flatout bench cpu --help`.
pub const CPU: &str = "\
Operations per second of the arithmetic units, for each data type and vector extension, held against \
clock × ports × lanes, all measured here; Linpack and DGEMM.

Examples:
  flatout bench cpu                       the whole grid
  flatout bench cpu -j 1,2                with one thread and with two
  flatout bench cpu --order 5000 -n 3     Linpack of that order, three times";

/// `flatout bench memory --help`.
pub const MEMORY: &str = "\
Bytes per second over working sets, block sizes and threads; STREAM; nanoseconds per access; the cache \
levels that follow from them.

Examples:
  flatout bench memory                    the whole grid
  flatout bench memory --quick -j 1       a coarse one, with one thread";

/// `flatout bench network --help`.
pub const NETWORK: &str = "\
Bytes per second and round trips over TCP and UDP, between this machine and one where `flatout serve` \
runs, or over loopback.

Examples:
  flatout bench network                   over loopback
  flatout bench network -c fast           to the machine fast, port 7878
  flatout bench network -c fast:9999 --token-file t -P 1,4 -R
  flatout bench network -c fast --protocol udp --rate 12.5MB -t 10";

/// `flatout bench copy --help`.
pub const COPY: &str = "\
The time of `flatout copy` by number of files of each size, by number of pieces of one total, by depth \
of the tree; large files, memory, spread.

The program is run as whoever types its name runs it, and its start is part of the time. Its sources \
and copies lie in PLACE/.flatout-copy until the end. A copy counts when the program has ended (until \
cache); with --durable there is a second figure. It is compared with its source, and emptied before \
the next one. The grid is cut to what room, memory and time allow, and says so: --max-write and \
--max-time allow more.

Examples:
  flatout bench copy /data                the grid, on another filesystem
  flatout bench copy /data --files 1,10,100,900 --file-size 128K,1M -n 10
  flatout bench copy --corpus single -n 2 --max-write 120G   4, 8, 16 and 2 × 4 GiB";
