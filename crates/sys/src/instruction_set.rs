//! Which vector extensions our kernels use: those that the CPU has, up to a limit that a user or a
//! test sets. Libraries (BLAKE3 away from mappings, SHA-256, CRC-32C) choose for themselves.

use std::sync::atomic::{AtomicU8, Ordering};

crate::words! {
    /// Vector extensions of x86-64, from the narrowest to the widest.
    #[derive(PartialOrd, Ord)]
    #[repr(u8)]
    pub enum Extension: word, ALL, text {
        /// What every such CPU has.
        Sse2 = "sse2",
        /// SSE4.1.
        Sse41 = "sse4.1",
        /// AVX2 with FMA.
        Avx2 = "avx2",
        /// AVX-512 and tiles.
        Avx512 = "avx512",
    }
}

/// The widest one that is used.
static LIMIT: AtomicU8 = AtomicU8::new(Extension::Avx512 as u8);

impl Extension {
    /// The one that a feature of the CPU belongs to, by the name that `is_x86_feature_detected!` has
    /// for it.
    #[cfg(any(test, target_arch = "x86_64"))]
    const fn of(feature: &str) -> Self {
        match feature.as_bytes() {
            [b'a', b'v', b'x', b'5', b'1', b'2', ..] | [b'a', b'm', b'x', ..] => Self::Avx512,
            [b'a', b'v', b'x', ..] | b"fma" => Self::Avx2,
            [b's', b's', b'e', b'4', ..] => Self::Sse41,
            _ => Self::Sse2,
        }
    }
}

/// Uses nothing wider from now on. To be called before other threads run: kernels that were chosen
/// stay chosen.
pub fn limit_to(extension: Extension) {
    LIMIT.store(extension as u8, Ordering::Relaxed);
}

/// The limit that was set; `None` where everything is used.
pub fn limit() -> Option<Extension> {
    let limit = LIMIT.load(Ordering::Relaxed);
    let limit = Extension::ALL.into_iter().find(|one| *one as u8 == limit)?;
    (limit != Extension::Avx512).then_some(limit)
}

/// Whether the limit allows a feature of the CPU.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(crate) fn allows(feature: &str) -> bool {
    Extension::of(feature) as u8 <= LIMIT.load(Ordering::Relaxed)
}

/// Whether this CPU has a feature, and the limit allows it.
#[cfg(target_arch = "x86_64")]
macro_rules! cpu_has {
    ($($feature:tt),+) => {
        ($(std::arch::is_x86_feature_detected!($feature)
            && $crate::instruction_set::allows($feature))&&+)
    };
}
#[cfg(target_arch = "x86_64")]
pub(crate) use cpu_has;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_belong_to_extensions() {
        for (feature, extension) in [
            ("avx512f", Extension::Avx512),
            ("avx512vnni", Extension::Avx512),
            ("amx-tile", Extension::Avx512),
            ("avx2", Extension::Avx2),
            ("fma", Extension::Avx2),
            ("avxvnni", Extension::Avx2),
            ("sse4.1", Extension::Sse41),
            ("sse2", Extension::Sse2),
        ] {
            assert_eq!(Extension::of(feature), extension, "{feature}");
        }
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for extension in Extension::ALL {
            assert_eq!(extension.word().parse(), Ok(extension));
        }
        let refusal = "avx9".parse::<Extension>().unwrap_err();
        assert_eq!(refusal, "\"avx9\" is none of sse2, sse4.1, avx2, avx512");
    }
}
