//! The numbers that streams run over: random mantissas between 1 and 2, each known by its place.
//!
//! They are normal and stay so under every kernel. Because a number depends on seed and place
//! alone, what a kernel left can be checked without a second copy of what it read.

use crate::generator::{WEYL, mix};

/// The exponent of the numbers from 1 to 2.
const ONE: u64 = 0x3ff0_0000_0000_0000;

/// The number at place `index` of stream `seed`.
///
/// Source: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014) over a Weyl sequence.
#[inline(always)]
pub fn number(seed: u64, index: u64) -> f64 {
    f64::from_bits(ONE | (mix(seed.wrapping_add(index.wrapping_mul(WEYL))) >> 12))
}

/// Fills `target` with the numbers from place `first_index` on, and gives the wrapping sum of their
/// words. It is summed up before they are stored: nothing is read back.
pub fn fill(target: &mut [f64], seed: u64, first_index: u64) -> u64 {
    let mut sum = 0_u64;
    for (index, element) in (first_index..).zip(target) {
        let number = number(seed, index);
        sum = sum.wrapping_add(number.to_bits());
        *element = number;
    }
    sum
}

/// The wrapping sum of the words of `count` numbers from place `first_index` on: what
/// [`super::Kernel::Read`] must find there.
pub fn sum(seed: u64, first_index: u64, count: u64) -> u64 {
    let words = (first_index..first_index + count).map(|index| number(seed, index).to_bits());
    words.fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_between_one_and_two_and_differ() {
        let numbers: Vec<f64> = (0..10_000).map(|index| number(7, index)).collect();
        assert!(numbers.iter().all(|number| (1.0..2.0).contains(number)));
        let mean = numbers.iter().sum::<f64>() / 1e4;
        assert!((mean - 1.5).abs() < 0.02, "{mean}");
        let mut words: Vec<u64> = numbers.iter().map(|number| number.to_bits()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 10_000);
        assert_ne!(number(7, 3), number(8, 3));
    }

    #[test]
    fn parts_are_filled_and_summed_as_the_whole() {
        let mut whole = vec![0.0; 1000];
        let filled = fill(&mut whole, 9, 50);
        let mut part = vec![0.0; 100];
        fill(&mut part, 9, 250);
        assert_eq!(part, whole[200..300]);
        let words = whole.iter().map(|number| number.to_bits()).fold(0, u64::wrapping_add);
        assert_eq!((sum(9, 50, 1000), filled), (words, words));
        assert_eq!(sum(9, 50, 400).wrapping_add(sum(9, 450, 600)), words);
        assert_eq!(sum(9, 50, 0), 0);
    }
}
