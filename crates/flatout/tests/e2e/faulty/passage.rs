//! What has gone through, whether more may, and how long that takes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fuser::Errno;

use super::{Begin, Bucket, Fault, Faults};

/// What the page cache asks for at least.
const PAGE_BYTES: u64 = 4096;

/// Bytes of one node, asked for in one request.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    pub node: u64,
    pub offset: u64,
    pub length: u64,
}

/// What has gone through.
pub struct Passage {
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Node and index of the pages that have been read before.
    seen: BTreeSet<(u64, u64)>,
    /// When the first request came.
    began: Option<Instant>,
    /// When the empty bucket was looked at last, and how many bytes it lacked then.
    bucket: (Instant, f64),
}

impl Passage {
    /// Nothing yet.
    pub fn new() -> Self {
        let bucket = (Instant::now(), 0.0);
        Self { read_bytes: 0, written_bytes: 0, seen: BTreeSet::new(), began: None, bucket }
    }

    /// Counts a read, or says how it fails.
    pub fn read(&mut self, faults: &Faults, stretch: Stretch) -> Result<(), Errno> {
        self.read_bytes = through(faults.read, stretch, self.read_bytes)?;
        Ok(())
    }

    /// Counts a write, or says how it fails.
    pub fn write(&mut self, faults: &Faults, stretch: Stretch) -> Result<(), Errno> {
        self.written_bytes = through(faults.write, stretch, self.written_bytes)?;
        Ok(())
    }

    /// How long a read takes.
    pub fn read_delay(&mut self, faults: &Faults, stretch: Stretch) -> Duration {
        let mut delay = self.write_delay(faults, stretch.length);
        if !faults.first_delay.is_zero() {
            let pages =
                stretch.offset / PAGE_BYTES..(stretch.offset + stretch.length).div_ceil(PAGE_BYTES);
            let new = pages.filter(|&page| self.seen.insert((stretch.node, page))).count();
            delay += faults.first_delay * new as u32;
        }
        delay
    }

    /// How long a write takes.
    pub fn write_delay(&mut self, faults: &Faults, length: u64) -> Duration {
        let Some(Bucket { burst, bytes_per_s }) = faults.bucket else { return faults.delay };
        let now = Instant::now();
        if now.duration_since(*self.began.get_or_insert(now)) < burst {
            return faults.delay;
        }
        let refilled = now.duration_since(self.bucket.0).as_secs_f64() * bytes_per_s as f64;
        let lacking = (self.bucket.1 - refilled).max(0.0) + length as f64;
        self.bucket = (now, lacking);
        let missing = lacking / bytes_per_s as f64;
        faults.delay.max(Duration::from_secs_f64(missing))
    }
}

/// How many bytes have gone through after this request, or its failure.
fn through(fault: Option<Fault>, stretch: Stretch, before: u64) -> Result<u64, Errno> {
    let after = before + stretch.length;
    match fault {
        Some(Fault { errno, begins: Begin::AtByte(byte) })
            if stretch.offset + stretch.length > byte =>
        {
            Err(errno)
        }
        Some(Fault { errno, begins: Begin::AfterBytes(bytes) }) if after > bytes => Err(errno),
        _ => Ok(after),
    }
}

#[test]
fn a_bucket_lets_a_burst_through_and_then_makes_wait() {
    let faults = |burst| {
        let bucket = Some(Bucket { burst, bytes_per_s: 1 << 10 });
        Faults { bucket, ..Faults::default() }
    };
    let mut passage = Passage::new();
    assert_eq!(passage.write_delay(&faults(Duration::from_secs(900)), 1 << 30), Duration::ZERO);
    assert!(passage.write_delay(&faults(Duration::ZERO), 1 << 20) > Duration::from_secs(900));
}

#[test]
fn only_pages_that_nobody_has_read_take_longer() {
    let faults = Faults { first_delay: Duration::from_secs(1), ..Faults::default() };
    let mut passage = Passage::new();
    let mut delay =
        |offset, length| passage.read_delay(&faults, Stretch { node: 2, offset, length }).as_secs();
    assert_eq!((delay(0, 8192), delay(4096, 8192), delay(0, 12_288)), (2, 1, 0));
}
