//! Products of tiles (AMX): the permission, the numbers, the loop.
//!
//! An instruction multiplies 16 rows of 64 bytes by 16 columns of 64 bytes and adds the products
//! to 16 × 16 sums. All numbers are whole and small enough that single precision holds every sum
//! exactly, so the result is worked out by multiplying integers. Source: Intel's "Architecture
//! Instruction Set Extensions", chapter on AMX; the kernel's `Documentation/arch/x86/xstate.rst`.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};

use super::frame::Random;
use super::{Form, Links, Number};
use crate::cause::{answered, cause_text};
use crate::core_clock::Chain;
use crate::instruction_set::allows;

/// Sums side by side: the unit takes a tile every 16 cycles and gives it back after some 52.
const ACCUMULATORS: usize = 4;
pub(super) const ROWS: usize = 16;
const COLUMNS: usize = 16;
const ROW_BYTES: usize = 64;
const TILE_BYTES: usize = ROWS * ROW_BYTES;
/// Every sum gets one product with each of the two right-hand tiles.
pub(super) const STEPS_PER_ITERATION: u64 = 2 * ACCUMULATORS as u64;
/// 8 × 16 cycles each: 7 µs, half of it too short against the loading and storing of tiles.
pub(super) const ITERATIONS: u64 = 128;

/// `ARCH_REQ_XCOMP_PERM` of arch_prctl(2), Linux 5.16.
const REQUEST_PERMISSION: libc::c_ulong = 0x1023;
/// `XFEATURE_XTILEDATA`.
const TILE_DATA: libc::c_ulong = 18;

/// What is missing for products of tiles of such numbers. Asks the kernel to let this process
/// use tiles, which needs no privilege.
pub(super) fn lacks(number: Number) -> Option<String> {
    const TILE_BIT: u32 = 1 << 24;
    let (wanted, name) = match number {
        Number::Bf16 => (TILE_BIT | 1 << 22, "AMX-BF16"),
        _ => (TILE_BIT | 1 << 25, "AMX-INT8"),
    };
    if !allows("amx-tile") {
        return Some(format!("{name} is beyond the limit that was set"));
    }
    let edx = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).edx } else { 0 };
    if edx & wanted != wanted {
        return Some(format!("the CPU has no {name}, or the hypervisor hides it"));
    }
    // SAFETY: arch_prctl(2) takes two integers here and touches no memory of ours.
    let answer = unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) };
    let error = answered(answer).err()?;
    Some(format!(
        "the kernel does not let this process use tiles (arch_prctl: {})",
        cause_text(&error)
    ))
}

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Tile([u8; TILE_BYTES]);

/// Palette 1 with seven tiles of full size; see LDTILECFG.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Configuration([u8; 64]);

impl Configuration {
    fn new() -> Self {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        for tile in 0..ACCUMULATORS + 3 {
            bytes[16 + 2 * tile] = ROW_BYTES as u8;
            bytes[48 + tile] = ROWS as u8;
        }
        Self(bytes)
    }
}

/// Which instruction multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Product {
    /// TDPBUSD: unsigned by signed bytes.
    UnsignedBytes,
    /// TDPBSSD: signed bytes.
    SignedBytes,
    /// TDPBF16PS.
    Bf16,
}

/// Tiles with their numbers.
pub(super) struct Tiles {
    product: Product,
    configuration: Configuration,
    left: Tile,
    right: [Tile; 2],
    start: [Tile; ACCUMULATORS],
}

impl Tiles {
    /// Random numbers. The loop that counts the units multiplies signed bytes: the same units
    /// do that.
    pub(super) fn new(number: Number, form: Form, seed: u64) -> Self {
        let product = match (number, form) {
            (_, Form::PortCount) => Product::SignedBytes,
            (Number::Bf16, Form::Work) => Product::Bf16,
            (_, Form::Work) => Product::UnsignedBytes,
        };
        let mut random = Random::new(seed);
        let mut tiles = Self {
            product,
            configuration: Configuration::new(),
            left: Tile([0; TILE_BYTES]),
            right: [Tile([0; TILE_BYTES]); 2],
            start: [Tile([0; TILE_BYTES]); ACCUMULATORS],
        };
        if product == Product::Bf16 {
            tiles.fill_floating(&mut random);
        } else {
            let all = [&mut tiles.left].into_iter().chain(&mut tiles.right).chain(&mut tiles.start);
            all.for_each(|tile| tile.0.iter_mut().for_each(|byte| *byte = random.byte()));
        }
        tiles
    }

    /// Whole numbers of seven bits and a sign. The second tile on the right is the first one's
    /// opposite but for ones in its first row, so that sums stay below 2^24, where single
    /// precision ends to be exact, and still tell the number of products.
    fn fill_floating(&mut self, random: &mut Random) {
        let mut whole = || f32::from(i16::from(random.byte().cast_signed().max(-127)));
        for at in 0..TILE_BYTES / 2 {
            put_bf16(&mut self.left, at, whole());
            let (right, first) = (whole(), at < COLUMNS * 2 && at % 2 == 0);
            put_bf16(&mut self.right[0], at, right);
            put_bf16(&mut self.right[1], at, if first { 1.0 - right } else { -right });
        }
        for tile in &mut self.start {
            for word in tile.0.as_chunks_mut::<4>().0 {
                *word = (whole() * 127.0 + 0.0).to_ne_bytes();
            }
        }
    }

    /// The sum of all words after a pass.
    pub(super) fn expected(&self) -> u64 {
        let mut sum = 0_u64;
        for tile in &self.start {
            let mut end = *tile;
            for at in 0..ROWS * COLUMNS {
                let dots = self.right.iter().map(|right| self.dot(right, at));
                let total = dots.fold(0_i64, i64::wrapping_add) * ITERATIONS as i64;
                let word = &mut end.0.as_chunks_mut::<4>().0[at];
                *word = match self.product {
                    Product::Bf16 => (f32::from_ne_bytes(*word) + total as f32).to_ne_bytes(),
                    _ => i32::from_ne_bytes(*word).wrapping_add(total as i32).to_ne_bytes(),
                };
            }
            sum = sum.wrapping_add(sum_of(&end));
        }
        sum
    }

    /// The product of a row on the left and a column on the right.
    fn dot(&self, right: &Tile, at: usize) -> i64 {
        let (row, column) = (at / COLUMNS, at % COLUMNS);
        let left = &self.left.0[row * ROW_BYTES..][..ROW_BYTES];
        // Four bytes of a column lie side by side in each row on the right.
        let right = (0..ROWS).flat_map(|k| &right.0[k * ROW_BYTES + 4 * column..][..4]);
        let right: Vec<u8> = right.copied().collect();
        match self.product {
            Product::Bf16 => {
                let wide = |bytes: &[u8]| -> Vec<i64> {
                    bytes.as_chunks::<2>().0.iter().map(|half| whole_of(*half)).collect()
                };
                wide(left).iter().zip(wide(&right)).map(|(a, b)| a * b).sum()
            }
            Product::SignedBytes => {
                let signed = |byte: &u8| i64::from(byte.cast_signed());
                left.iter().map(signed).zip(right.iter().map(signed)).map(|(a, b)| a * b).sum()
            }
            Product::UnsignedBytes => {
                let pairs = left.iter().zip(&right);
                pairs.map(|(a, b)| i64::from(*a) * i64::from(b.cast_signed())).sum()
            }
        }
    }

    /// Sets the shape of the tile registers of this thread, which takes as long as a hundredth of a pass.
    ///
    /// # Safety
    /// The CPU must have tiles, and the kernel must have granted them ([`lacks`]).
    pub(super) unsafe fn shape(&self) {
        // SAFETY: the caller's promise; the configuration is 64 bytes long and valid.
        unsafe {
            asm!(
                "ldtilecfg [{configuration}]",
                configuration = in(reg) &raw const self.configuration,
                options(nostack, readonly),
            );
        }
    }

    /// One pass: the sum of all words, and the end of the chain beside it.
    ///
    /// # Safety
    /// This thread must have called [`Self::shape`], and not [`release`] since. What the links
    /// load must be a ring that outlives the call.
    pub(super) unsafe fn pass(&self, links: Option<Links>) -> (u64, u64) {
        let mut end = [Tile([0; TILE_BYTES]); ACCUMULATORS];
        // SAFETY: the caller's promise.
        let value = unsafe {
            match self.product {
                Product::UnsignedBytes => unsigned_bytes(self, &mut end, links),
                Product::SignedBytes => signed_bytes(self, &mut end, links),
                Product::Bf16 => bf16(self, &mut end, links),
            }
        };
        let sum = end.iter().fold(0_u64, |sum, tile| sum.wrapping_add(sum_of(tile)));
        (sum, value)
    }
}

/// Gives the tile registers of this thread back, so that no switch between threads carries them.
///
/// # Safety
/// As for [`Tiles::shape`].
pub(super) unsafe fn release() {
    // SAFETY: the caller's promise.
    unsafe { asm!("tilerelease", options(nostack, nomem)) };
}

fn sum_of(tile: &Tile) -> u64 {
    let (words, _) = tile.0.as_chunks::<8>();
    words.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}

/// The upper half of a single-precision number; whole numbers of eight bits lose nothing.
fn put_bf16(tile: &mut Tile, at: usize, value: f32) {
    let half = (value.to_bits() >> 16) as u16;
    tile.0[2 * at..][..2].copy_from_slice(&half.to_ne_bytes());
}

fn whole_of(half: [u8; 2]) -> i64 {
    f32::from_bits(u32::from(u16::from_ne_bytes(half)) << 16) as i64
}

macro_rules! load {
    () => {
        "tileloadd tmm0, [{start} + {stride}]
        add {start}, 1024
        tileloadd tmm1, [{start} + {stride}]
        add {start}, 1024
        tileloadd tmm2, [{start} + {stride}]
        add {start}, 1024
        tileloadd tmm3, [{start} + {stride}]
        tileloadd tmm4, [{left} + {stride}]
        tileloadd tmm5, [{right} + {stride}]
        add {right}, 1024
        tileloadd tmm6, [{right} + {stride}]"
    };
}

macro_rules! store {
    () => {
        "tilestored [{end} + {stride}], tmm0
        add {end}, 1024
        tilestored [{end} + {stride}], tmm1
        add {end}, 1024
        tilestored [{end} + {stride}], tmm2
        add {end}, 1024
        tilestored [{end} + {stride}], tmm3"
    };
}

/// Links after each product in the chained loops: half as long again as the 16 cycles of a product,
/// with loads of five cycles, as all CPUs with tiles have them.
pub(super) const fn links(chain: Chain) -> u64 {
    let each = match chain {
        Chain::Add => 24,
        Chain::Multiply => 8,
        Chain::Load => 5,
    };
    each * STEPS_PER_ITERATION
}

/// Every sum by one product with each right-hand tile, and what follows each product: few of them
/// are in flight, so the links stand between them and not behind.
macro_rules! products {
    ($op:literal, $link:literal) => {
        concat!(
            ".irp c,0,1,2,3\n",
            $op,
            " tmm\\c, tmm4, tmm5\n",
            $link,
            "\n.endr\n",
            ".irp c,0,1,2,3\n",
            $op,
            " tmm\\c, tmm4, tmm6\n",
            $link,
            "\n.endr\n",
        )
    };
}

/// One loop; `value` and `operand` are the chain's, where there is one.
macro_rules! turns {
    ($op:literal, $link:literal, $tiles:ident, $end:ident, $value:expr, $operand:expr) => {
        asm!(
            load!(),
            ".p2align 6",
            "2:",
            products!($op, $link),
            "dec {n}",
            "jnz 2b",
            store!(),
            start = inout(reg) &raw const $tiles.start => _,
            left = in(reg) &raw const $tiles.left,
            right = inout(reg) &raw const $tiles.right => _,
            end = inout(reg) $end => _,
            stride = in(reg) ROW_BYTES,
            n = inout(reg) ITERATIONS => _,
            inout("r10") $value,
            in("r11") $operand,
            options(nostack),
        )
    };
}

macro_rules! loops {
    ($name:ident, $op:literal) => {
        /// Leaves the sums in `end`, and gives the end of the chain.
        ///
        /// The CPU must have the instruction, and the kernel must have granted tiles. What the
        /// links load must be a ring.
        unsafe fn $name(
            tiles: &Tiles,
            end: &mut [Tile; ACCUMULATORS],
            links: Option<Links>,
        ) -> u64 {
            let mut value = links.map_or(0, |links| links.start);
            let chain = links.map(|links| links.chain);
            let operand = chain.map_or(0, Chain::operand);
            // SAFETY: the caller promises the instructions, and the ring. Reads and writes whole
            // tiles, as many as the types hold; nothing of ours is kept in tile registers.
            unsafe {
                match chain {
                    None => turns!($op, "", tiles, end, value, operand),
                    Some(Chain::Add) => {
                        turns!($op, ".rept 24\nadd r10, r11\n.endr", tiles, end, value, operand);
                    }
                    Some(Chain::Multiply) => {
                        turns!($op, ".rept 8\nimul r10d, r11d\n.endr", tiles, end, value, operand);
                    }
                    Some(Chain::Load) => {
                        turns!($op, ".rept 5\nmov r10, [r10]\n.endr", tiles, end, value, operand);
                    }
                }
            }
            value
        }
    };
}

loops!(unsigned_bytes, "tdpbusd");
loops!(signed_bytes, "tdpbssd");
loops!(bf16, "tdpbf16ps");
