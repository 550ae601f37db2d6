//! Every kernel at every width against its definition, element by element.

use super::arena::Arena;
use super::*;

const VALUE: f64 = 1.75;

/// Numbers with mantissas of all kinds, between 1 and 2.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mix = |index: u64| (index ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
    let bits = |index: u64| 0x3ff0_0000_0000_0000 | (mix(index).wrapping_mul(mix(index)) >> 12);
    (0..count as u64).map(|index| f64::from_bits(bits(index))).collect()
}

/// What the definition makes of one element, and by how much a kernel may differ: a fused
/// multiply-add rounds once, the two instructions round twice.
fn expected(kernel: Kernel, first: f64, second: f64) -> (f64, f64) {
    match kernel {
        Kernel::Read => (-1.0, 0.0),
        Kernel::Write | Kernel::NtWrite => (VALUE, 0.0),
        Kernel::Copy | Kernel::NtCopy | Kernel::RepMovsb | Kernel::Memcpy => (first, 0.0),
        Kernel::Scale => (VALUE * first, 0.0),
        Kernel::Add => (first + second, 0.0),
        Kernel::Triad | Kernel::NtTriad => {
            let sum = first + VALUE * second;
            (sum, 2.0 * f64::EPSILON * sum)
        }
    }
}

fn all() -> Vec<Stream> {
    let pairs = Kernel::ALL.into_iter().flat_map(|kernel| Level::ALL.map(|level| (kernel, level)));
    let near: Vec<_> = pairs.filter_map(|(kernel, level)| Stream::new(kernel, level)).collect();
    let far = near.iter().map(|stream| stream.far()).filter(|stream| stream.reach() == Reach::Far);
    near.iter().copied().chain(far).collect()
}

/// Three arrays within an arena, each with a granule before and after it.
struct Fixture(Arena, usize);

impl Fixture {
    fn new(elements: usize) -> Self {
        let mut arena = Arena::new(3 * (elements + 2 * GRANULE_ELEMENTS) * 8).unwrap();
        arena.as_mut_slice().fill(-1.0);
        Self(arena, elements)
    }

    /// Target with its margins, first and second.
    fn parts(&mut self) -> (&mut [f64], &mut [f64], &mut [f64]) {
        let (target, rest) = self.0.as_mut_slice().split_at_mut(self.1 + 2 * GRANULE_ELEMENTS);
        let (first, rest) = rest.split_at_mut(self.1);
        (target, first, &mut rest[..self.1])
    }
}

#[test]
fn every_kernel_does_what_it_is_called_and_nothing_beside() {
    for stream in all() {
        for elements in [32, 64, 96, 1024, 4096, 4096 + 32, 3 * 4096 + 64] {
            for passes in [1, 3] {
                let mut fixture = Fixture::new(elements);
                let (target, first, second) = fixture.parts();
                first.copy_from_slice(&numbers(elements, 1));
                second.copy_from_slice(&numbers(elements, 2));
                let inner = GRANULE_ELEMENTS..GRANULE_ELEMENTS + elements;
                let arrays = &mut Arrays { target: &mut target[inner.clone()], first, second };
                let sum = stream.run(arrays, VALUE, passes);
                let name = format!("{stream:?}, {elements} elements, {passes} passes");
                let words = first.iter().map(|number| number.to_bits());
                let words = words.fold(0, u64::wrapping_add).wrapping_mul(passes);
                let wanted = if stream.kernel() == Kernel::Read { words } else { 0 };
                assert_eq!(sum, wanted, "{name}");
                for (index, &element) in target.iter().enumerate() {
                    let (value, tolerance) = match index.checked_sub(inner.start) {
                        Some(at) if at < elements => {
                            expected(stream.kernel(), first[at], second[at])
                        }
                        _ => (-1.0, 0.0),
                    };
                    let is_near = (element - value).abs() <= tolerance;
                    assert!(is_near, "{name}: {element} at {index}, not {value}");
                }
            }
        }
    }
}

#[test]
fn blocks_are_done_in_any_order_and_only_those_named() {
    for stream in all() {
        // Ten blocks of 64 elements and a short one.
        let elements = 672;
        let mut fixture = Fixture::new(elements);
        let (target, first, second) = fixture.parts();
        first.copy_from_slice(&numbers(elements, 3));
        second.copy_from_slice(&numbers(elements, 4));
        let target = &mut target[..elements];
        let order = [10, 3, 0, 7];
        let sum = stream.run_blocks(&mut Arrays { target, first, second }, VALUE, 64, &order);
        let is_named = |index: usize| order.contains(&((index / 64) as u32));
        let words = (0..elements).filter(|&index| is_named(index));
        let words = words.fold(0, |sum: u64, index| sum.wrapping_add(first[index].to_bits()));
        assert_eq!(sum, if stream.kernel() == Kernel::Read { words } else { 0 }, "{stream:?}");
        for index in 0..elements {
            let (value, tolerance) = match is_named(index) {
                true => expected(stream.kernel(), first[index], second[index]),
                false => (-1.0, 0.0),
            };
            assert!((target[index] - value).abs() <= tolerance, "{stream:?} at {index}");
        }
    }
}

#[test]
fn nothing_to_do_is_done() {
    for stream in all() {
        let arrays = &mut Arrays { target: &mut [], first: &[], second: &[] };
        assert_eq!(stream.run(arrays, VALUE, 5), 0);
        assert_eq!(stream.run_blocks(arrays, VALUE, 64, &[]), 0);
    }
    let mut fixture = Fixture::new(32);
    let (target, first, second) = fixture.parts();
    let target = &mut target[..32];
    let stream = Stream::best(Kernel::Copy).unwrap();
    assert_eq!(stream.run(&mut Arrays { target, first, second }, VALUE, 0), 0);
    assert!(target.iter().all(|&element| element == -1.0));
}

#[test]
fn misshapen_arrays_are_refused() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    let copy = Stream::best(Kernel::Copy).unwrap();
    let refuses = |target: &mut [f64], first: &[f64], block: usize, order: &[u32]| {
        let arrays = &mut Arrays { target, first, second: &[] };
        catch_unwind(AssertUnwindSafe(|| copy.run_blocks(arrays, VALUE, block, order))).is_err()
    };
    let mut fixture = Fixture::new(128);
    let (target, first, _) = fixture.parts();
    assert!(refuses(&mut target[..96], first, 32, &[0]), "different lengths");
    assert!(refuses(&mut target[..33], &first[..33], 32, &[0]), "no whole step");
    assert!(refuses(&mut target[1..129], first, 32, &[0]), "not aligned");
    assert!(refuses(&mut target[..128], first, 0, &[0]), "no block");
    assert!(refuses(&mut target[..128], first, 33, &[0]), "no whole block");
    assert!(refuses(&mut target[..128], first, 32, &[4]), "beyond the end");
    assert!(!refuses(&mut target[..128], first, 32, &[3, 0]));
}

#[test]
fn each_kernel_has_a_form_on_every_cpu_or_none_at_all() {
    assert!(Level::best().is_available());
    for kernel in Kernel::ALL {
        let is_special = kernel.is_non_temporal() || kernel == Kernel::RepMovsb;
        let is_x86 = cfg!(target_arch = "x86_64");
        assert_eq!(Stream::best(kernel).is_some(), is_x86 || !is_special, "{kernel:?}");
        if let Some(stream) = Stream::best(kernel) {
            assert_eq!((stream.kernel(), stream.level()), (kernel, Level::best()));
        }
    }
}
