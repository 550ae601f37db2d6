//! How often something is done so that all of it takes a time.

/// Most of it.
const MOST: u64 = 1 << 40;

/// How often it fills `target_ns`, at least once: it is run ever more often, from `first` on, until that
/// takes `told_ns`, which is long enough to tell. `run` says what so many take.
///
/// Errors: those of `run`.
pub(crate) fn filling<E>(
    target_ns: u64,
    (first, told_ns): (u64, u64),
    mut run: impl FnMut(u64) -> Result<u64, E>,
) -> Result<u64, E> {
    let mut count = first;
    loop {
        let elapsed_ns = run(count)?.max(1);
        if elapsed_ns >= told_ns || count >= MOST {
            let wanted = u128::from(count) * u128::from(target_ns) / u128::from(elapsed_ns);
            return Ok(u64::try_from(wanted).unwrap_or(MOST).clamp(1, MOST));
        }
        // Short runs mislead (a cold start looks dear), so the next one grows within bounds.
        count *= (2 * told_ns / elapsed_ns).clamp(2, 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_extrapolates_from_a_run_that_is_long_enough() {
        let mut runs = 0;
        // Something of exactly 100 ns.
        let count = filling(30_000_000, (8, 4_000_000), |count| {
            runs += 1;
            Ok::<_, ()>(count * 100)
        });
        assert_eq!(count, Ok(300_000));
        assert!(runs < 10, "{runs}");
        let dear = |count| Ok::<_, ()>(count * 1_000_000_000);
        assert_eq!(filling(30_000_000, (8, 4_000_000), dear), Ok(1));
        assert_eq!(filling(30_000_000, (8, 4_000_000), |_| Ok::<_, ()>(0)), Ok(MOST));
        assert_eq!(filling(30_000_000, (8, 4_000_000), |_| Err("why")), Err("why"));
    }
}
