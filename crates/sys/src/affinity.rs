//! Which CPUs this process may use, and tying a thread to one of them.

use std::io;
use std::sync::OnceLock;

use crate::cause::answered;
use crate::{attribute, numa};

/// Units: CPUs; Linux has up to 8192 (`NR_CPUS` of x86-64). Masks of the C library end at 1024,
/// and a kernel with more CPUs than a mask has room for tells none.
const MOST: usize = 1 << 16;
const WORD: usize = usize::BITS as usize;

/// One bit for each CPU.
type Mask = [usize; MOST / WORD];

/// The CPUs that the calling thread may run on, ascending; never empty on a sane kernel.
///
/// # Errors
/// The error of `sched_getaffinity`, where /proc does not tell them either.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = |mask: Mask| {
        mask.iter().enumerate().filter(|(_, bits)| **bits != 0).flat_map(set_bits).collect()
    };
    // A filter that refuses the call leaves the list.
    mask().map(set).or_else(|error| listed().ok_or(error))
}

fn listed() -> Option<Vec<usize>> {
    let status = attribute::whole("/proc/thread-self/status".as_ref())?;
    numa::parse_cpu_list(attribute::after(&status, "Cpus_allowed_list:")?)
}

/// Where the calling thread may run.
fn mask() -> io::Result<Mask> {
    let mut mask: Mask = [0; _];
    // SAFETY: the kernel writes no more than the length that it is told.
    answered(unsafe { libc::sched_getaffinity(0, size_of::<Mask>(), mask.as_mut_ptr().cast()) })?;
    Ok(mask)
}

/// Has the calling thread run there.
fn allow(mask: &Mask) -> io::Result<()> {
    // SAFETY: the kernel reads no more than the length that it is told.
    answered(unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), mask.as_ptr().cast()) })
        .map(drop)
}

/// The bits that are set in one word of a mask, as numbers: most words of one have none.
pub(crate) fn set_bits((index, &bits): (usize, &usize)) -> impl Iterator<Item = usize> {
    (0..WORD).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| index * WORD + bit)
}

/// Number of CPUs that the calling thread may run on; 1 when the kernel does not say.
///
/// This is what more threads are held against to be called oversubscribed. A CPU quota of the
/// control group takes away time, not CPUs; it stands in the environment of the record.
pub fn allowed_cpu_count() -> u32 {
    allowed_cpus().map_or(1, |cpus| cpus.len().max(1) as u32)
}

/// Why no thread can be tied to a CPU: a sandbox refuses the call, whatever is asked.
///
/// Cost: a system call, once.
pub fn refusal() -> Option<io::Error> {
    static REFUSED: OnceLock<Option<i32>> = OnceLock::new();
    // Nobody can be tied to no CPU: who looks at that says so.
    let refused = || allow(&[0; _]).err()?.raw_os_error().filter(|&error| error != libc::EINVAL);
    REFUSED.get_or_init(refused).map(io::Error::from_raw_os_error)
}

/// Ties the calling thread to one CPU, for good. Where that is refused altogether ([`refusal`]), nothing is
/// done: work that means nothing without it asks before.
///
/// # Errors
/// The error of `sched_setaffinity`, `InvalidInput` for a CPU that is not allowed or cannot be.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    let mut mask: Mask = [0; _];
    let word = mask.get_mut(cpu / WORD).ok_or(io::ErrorKind::InvalidInput)?;
    *word = 1 << (cpu % WORD);
    if refusal().is_some() { Ok(()) } else { allow(&mask) }
}

/// Brings the calling thread to a CPU, from where the kernel may move it as before.
///
/// # Errors
/// Those of [`pin_to`]; the thread may run where it might before.
pub fn move_to(cpu: usize) -> io::Result<()> {
    let before = mask()?;
    pin_to(cpu)?;
    allow(&before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_one_cpu_only() {
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        let pinned = move || pin_to(cpu).map(|()| (allowed_cpus(), allowed_cpu_count()));
        let (cpus, count) = std::thread::spawn(pinned).join().unwrap().unwrap();
        assert_eq!((cpus.unwrap(), count), (vec![cpu], 1));
    }

    #[test]
    fn proc_tells_the_same() {
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        let pinned = move || pin_to(cpu).map(|()| listed());
        assert_eq!(listed(), allowed_cpus().ok());
        assert_eq!(std::thread::spawn(pinned).join().unwrap().unwrap(), Some(vec![cpu]));
    }

    #[test]
    fn a_thread_that_was_moved_may_run_where_it_might_before() {
        let all = allowed_cpus().unwrap();
        for &cpu in &all {
            move_to(cpu).unwrap();
            assert_eq!(allowed_cpus().unwrap(), all);
        }
        assert!(move_to(MOST).is_err());
        assert_eq!(allowed_cpus().unwrap(), all);
    }

    #[test]
    fn a_cpu_that_cannot_be_is_refused() {
        for cpu in [MOST - 1, MOST, usize::MAX] {
            assert_eq!(pin_to(cpu).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{cpu}");
        }
    }
}
