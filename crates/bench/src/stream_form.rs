//! Which form of a stream kernel is the fastest here: widths and orders are raced on the arrays
//! that are to be measured, before they are.
//!
//! No table knows it for the next CPU. On two virtual CPUs of an AMD EPYC (Zen 4, 2026-11-26) a
//! triad of one thread over arrays in memory moved 34 GB/s in plain order by 16 or 32 bytes at a
//! time, 27 by 64, and 21 with eight pages side by side, which is the fastest on Sapphire Rapids
//! (`sys::stream`).

use flatout_sys::monotonic_ns;
use flatout_sys::stream::{Arrays, GRANULE_ELEMENTS, Level, Reach, Stream};

/// Parts of the arrays that the forms go through in turn: what comes back has left the caches.
const SLICES: usize = 8;
/// Times that each form runs; the fastest counts.
const ROUNDS: usize = 3;
/// Most elements of a slice, of all threads together, which bounds what a race takes.
const MOST_ELEMENTS: usize = 4 << 20;
/// Elements that a form goes through at least, pass by pass: shorter runs are lost in the clock.
const LEAST_ELEMENTS: usize = 1 << 19;
/// What the second operand is multiplied by: no trial takes it, so that what is left by a race is
/// never taken for a trial's work.
const FACTOR: f64 = 2.5;

/// What a race goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// Arrays that no cache holds, a slice at a time; so many threads share the memory.
    Slices { threads: u32 },
    /// All of the arrays, again and again.
    Whole,
}

/// The forms that could be faster than this one: what the compiler makes and all widths in plain
/// order, and its own order if it is another. Itself alone where there is no choice.
pub(crate) fn forms(stream: Stream) -> Vec<Stream> {
    let plain = |level| Stream::new(stream.kernel(), level).filter(|form| form.has_widths());
    let mut forms: Vec<Stream> = Level::ALL.into_iter().filter_map(plain).collect();
    if forms.is_empty() || stream.reach() == Reach::Far {
        forms.push(stream);
    }
    forms
}

/// The least time that each form took, in one thread.
pub(crate) fn race(forms: &[Stream], arrays: &mut Arrays<'_>, ground: Ground) -> Vec<u64> {
    let length = arrays.target.len().max(arrays.first.len());
    let step = length / SLICES / GRANULE_ELEMENTS * GRANULE_ELEMENTS;
    let slice = match ground {
        Ground::Slices { threads } => {
            let most = MOST_ELEMENTS / threads.max(1) as usize / GRANULE_ELEMENTS;
            step.min(most * GRANULE_ELEMENTS)
        }
        Ground::Whole => length,
    };
    let mut least = vec![u64::MAX; forms.len()];
    if slice == 0 {
        return least;
    }
    let passes = match ground {
        Ground::Slices { .. } => 1,
        Ground::Whole => LEAST_ELEMENTS.div_ceil(slice) as u64,
    };
    for turn in 0..forms.len() * ROUNDS {
        let start = if slice == length { 0 } else { turn % SLICES * step };
        let part = |array: &[f64]| if array.is_empty() { 0..0 } else { start..start + slice };
        let (target, first, second) =
            (part(arrays.target), part(arrays.first), part(arrays.second));
        let mut arrays = Arrays {
            target: &mut arrays.target[target],
            first: &arrays.first[first],
            second: &arrays.second[second],
        };
        let form = turn % forms.len();
        let begun_ns = monotonic_ns();
        std::hint::black_box(forms[form].run(&mut arrays, FACTOR, passes));
        least[form] = least[form].min(monotonic_ns() - begun_ns);
    }
    least
}

/// The form that all threads together were done with first; `None` where the arrays were too small to
/// race any.
pub(crate) fn fastest(forms: &[Stream], lanes: &[Vec<u64>]) -> Option<Stream> {
    let all_ns = |form: usize| lanes.iter().map(|lane| u128::from(lane[form])).sum::<u128>();
    let best = (0..forms.len()).min_by_key(|&form| all_ns(form))?;
    (all_ns(best) < u128::from(u64::MAX)).then(|| forms[best])
}

#[cfg(test)]
mod tests {
    use flatout_sys::stream::Kernel;
    use flatout_sys::stream::arena::Arena;

    use super::*;

    #[test]
    fn every_width_is_tried_and_what_has_none_stays_as_it_is() {
        for kernel in Kernel::ALL {
            let Some(near) = Stream::best(kernel) else { continue };
            let exists = |&level: &Level| Stream::new(kernel, level).is_some();
            let widths = Level::ALL.into_iter().filter(exists).count();
            let has_widths = near.has_widths() && widths > 0;
            assert_eq!(forms(near).len(), if has_widths { widths } else { 1 }, "{kernel:?}");
            let far = near.far();
            let orders = usize::from(has_widths && far.reach() != near.reach());
            assert_eq!(forms(far).len(), forms(near).len() + orders, "{kernel:?}");
        }
    }

    #[test]
    fn each_form_gets_a_time_on_either_ground() {
        let mut arenas = [(); 3].map(|()| Arena::new(1 << 20).unwrap());
        let forms = forms(Stream::best(Kernel::Add).unwrap().far());
        for (length, ground) in [
            (1 << 16, Ground::Slices { threads: 2 }),
            (GRANULE_ELEMENTS, Ground::Whole),
            (1 << 16, Ground::Whole),
        ] {
            let [target, first, second] = &mut arenas;
            target.as_mut_slice().fill(0.0);
            first.as_mut_slice().fill(2.0);
            let mut arrays = Arrays {
                target: &mut target.as_mut_slice()[..length],
                first: &first.as_slice()[..length],
                second: &second.as_slice()[..length],
            };
            let times = race(&forms, &mut arrays, ground);
            assert!(times.iter().all(|&ns| ns < u64::MAX), "{times:?}");
            // Four turns at least: the first slices were gone through.
            assert!(arrays.target[..length / SLICES].iter().all(|&sum| sum == 2.0));
        }
    }

    #[test]
    fn the_sum_of_all_threads_decides() {
        let forms = forms(Stream::best(Kernel::Add).unwrap());
        if forms.len() < 2 {
            return;
        }
        let lane = |first, second| [vec![first, second], vec![900; forms.len() - 2]].concat();
        let best = fastest(&forms, &[lane(10, 60), lane(80, 20)]).unwrap();
        assert_eq!(best.level(), forms[1].level());
        assert!(fastest(&[], &[]).is_none());
        assert!(fastest(&forms, &[vec![u64::MAX; forms.len()]]).is_none(), "none was raced");
    }
}
