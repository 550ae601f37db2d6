//! Speed of the kernels through which every byte of a digest or a generated file goes.
//!
//! One thread, one buffer that stays where it is: 4 KiB lie in the first-level cache, 256 KiB in
//! the second, 16 MiB in the last or in memory. No system call is timed. The copy of whole files
//! is in `file_copy.rs`.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use flatout_benches::print_machine;
use flatout_io::digest::{Algorithm, Cut, Cutter, Fold, Hasher};
use flatout_report::quantity;
use flatout_sys::buffer::AlignedBuffer;
use flatout_sys::generator::fill_random;
use flatout_sys::view::ByteView;
use flatout_sys::xor::xor32;

const LENGTHS_BYTES: [usize; 3] = [4 << 10, 256 << 10, 16 << 20];

fn main() {
    print_machine();
    // The command line comes last, so that it wins.
    let mut criterion = Criterion::default()
        .sample_size(50)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    over_lengths(&mut criterion, "xor32", |bytes| {
        black_box(xor32(black_box(bytes)));
    });
    over_lengths(&mut criterion, "fill_random", |bytes| fill_random(black_box(bytes), 1, 0));
    for algorithm in Algorithm::ALL {
        over_lengths(&mut criterion, algorithm.name(), |bytes| {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(black_box(bytes));
            black_box(hasher.finish());
        });
    }
    in_parts(&mut criterion);
    criterion.final_summary();
}

/// Times digests of 16 MiB in segments of 1 MiB, as they are computed of large files; one thread.
fn in_parts(criterion: &mut Criterion) {
    const LENGTH_BYTES: usize = 16 << 20;
    let mut buffer = vec![0; LENGTH_BYTES];
    fill_random(&mut buffer, 1, 0);
    let mut group = criterion.benchmark_group("in parts of 1 MiB");
    group.throughput(Throughput::Bytes(LENGTH_BYTES as u64));
    for algorithm in Algorithm::ALL {
        let Some(cut) = Cut::new(algorithm, LENGTH_BYTES as u64, 1 << 20) else { continue };
        let mut cutter = Cutter::default();
        group.bench_function(algorithm.name(), |bencher| {
            bencher.iter(|| {
                let mut fold = Fold::new(&cut);
                for index in 0..cut.segments() {
                    let (offset, length) = cut.segment(index);
                    let segment = &black_box(&buffer)[offset as usize..offset as usize + length];
                    fold.take(index, cutter.part(&cut, index, ByteView::of(segment)));
                }
                black_box(fold.finish())
            });
        });
    }
    group.finish();
}

/// Times `kernel` on buffers of each length.
fn over_lengths(criterion: &mut Criterion, name: &str, kernel: impl Fn(&mut [u8])) {
    let mut group: BenchmarkGroup<'_, WallTime> = criterion.benchmark_group(name);
    for length_bytes in LENGTHS_BYTES {
        group.throughput(Throughput::Bytes(length_bytes as u64));
        group.bench_function(quantity::size(length_bytes as u64), |bencher| {
            let mut buffer = AlignedBuffer::new(length_bytes)
                .expect("16 MiB of memory are there on any machine that builds this");
            fill_random(buffer.as_mut_slice(), 1, 0);
            bencher.iter(|| kernel(buffer.as_mut_slice()));
        });
    }
    group.finish();
}
