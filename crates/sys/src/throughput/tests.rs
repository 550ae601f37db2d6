//! Tests of the loops against their scalar counterparts.

use super::*;
use crate::core_clock::{self, Chain};

const NUMBERS: [Number; 6] =
    [Number::F32, Number::F64, Number::I32, Number::I64, Number::I8, Number::Bf16];

fn all() -> Vec<Kernel> {
    let pairs = NUMBERS.into_iter().flat_map(|number| {
        [Operation::MultiplyAdd, Operation::Add].map(|operation| Kernel::levels(number, operation))
    });
    pairs.flatten().collect()
}

/// The workloads that can be made here; others are said.
fn possible() -> Vec<Workload> {
    let mut workloads = Vec::new();
    for kernel in all() {
        for form in [Form::Work, Form::PortCount] {
            match Workload::new(kernel, form, 7) {
                Ok(workload) => workloads.push(workload),
                Err(error) => eprintln!("skipped: {kernel:?}: {error}"),
            }
        }
    }
    workloads
}

#[test]
fn every_loop_ends_where_scalar_code_ends() {
    for workload in possible() {
        let name = format!("{:?} {:?}", workload.kernel(), workload.form);
        for passes in [1, 3] {
            let checked = workload.run(passes);
            assert!(checked.is_right, "{name}, {passes} passes");
            let registers = passes * workload.steps_per_pass * workload.rows_per_step;
            let each = workload.kernel.lanes() * workload.kernel.operation.count();
            assert_eq!(checked.operations, registers * each);
        }
    }
}

#[test]
fn a_chain_beside_a_loop_changes_neither() {
    for workload in possible() {
        let name = format!("{:?} {:?}", workload.kernel(), workload.form);
        for chain in [Chain::Add, Chain::Multiply, Chain::Load] {
            for links in [1, 7, chain.most_links(), chain.most_links() + 1] {
                let stretch = core_clock::beside(&workload, chain, links, 2);
                assert!(stretch.is_right, "{name}, {links} links of {chain:?}");
                let count = links.min(chain.most_links());
                let count = workload.fixed_links(chain).unwrap_or(count);
                let all = 2 * workload.turns_per_pass() * count;
                assert_eq!(stretch.links, all);
            }
        }
    }
}

#[test]
fn a_wrong_result_is_seen() {
    for mut workload in possible() {
        workload.expected ^= 1 << 40;
        assert!(!workload.run(1).is_right, "{:?}", workload.kernel());
    }
}

#[test]
fn every_number_of_pairs_gives_another_result() {
    // A loop that left out a turn, or took one too many, would end elsewhere.
    for kernel in all().into_iter().filter(|kernel| kernel.level != Level::Amx) {
        for form in [Form::Work, Form::PortCount] {
            let program = Program::of(kernel, form);
            let frame = Frame::new(kernel, program, 3);
            let result = |pairs| program.result(kernel, &frame, pairs).sum(kernel);
            let pairs = pass_pairs(kernel);
            let right = result(pairs);
            for wrong in [0, 1, pairs / 2, pairs - 4, pairs - 1] {
                assert_ne!(result(wrong), right, "{kernel:?} {form:?} {wrong}");
            }
        }
    }
}

#[test]
fn floating_numbers_stay_near_one() {
    for kernel in all().into_iter().filter(|kernel| kernel.level != Level::Amx) {
        if kernel.number != Number::F64 {
            continue;
        }
        for form in [Form::Work, Form::PortCount] {
            let program = Program::of(kernel, form);
            let frame = Frame::new(kernel, program, 11);
            for pairs in [0, 1, 100, pass_pairs(kernel)] {
                let end = program.result(kernel, &frame, pairs);
                for register in &end.0 {
                    for word in register[..kernel.level.register_bytes()].as_chunks::<8>().0 {
                        let value = f64::from_ne_bytes(*word);
                        assert!((0.1..4.0).contains(&value), "{kernel:?} {form:?}: {value}");
                    }
                }
            }
        }
    }
}

#[test]
fn operations_are_counted_by_lane_and_kind() {
    let count = |number, operation, level| {
        let kernel = Kernel { number, operation, level };
        (kernel.lanes() * kernel.operation.count(), kernel.instructions())
    };
    assert_eq!(count(Number::F64, Operation::MultiplyAdd, Level::Avx512), (16, 1));
    assert_eq!(count(Number::F32, Operation::MultiplyAdd, Level::Sse2), (8, 2));
    assert_eq!(count(Number::I32, Operation::MultiplyAdd, Level::Avx2), (16, 2));
    assert_eq!(count(Number::I64, Operation::Add, Level::Sse2), (2, 1));
    assert_eq!(count(Number::F64, Operation::MultiplyAdd, Level::Neon), (4, 1));
    assert_eq!(count(Number::I8, Operation::MultiplyAdd, Level::Avx512Vnni), (128, 1));
    // A row of 64 bytes meets 16 columns: 16 rows make 32768 operations of an instruction.
    assert_eq!(count(Number::I8, Operation::MultiplyAdd, Level::Amx), (2048, 1));
    assert_eq!(count(Number::Bf16, Operation::MultiplyAdd, Level::Amx), (1024, 1));
}

#[test]
fn the_levels_that_exist_are_listed() {
    let levels = |number, operation| -> Vec<&str> {
        Kernel::levels(number, operation).iter().map(|kernel| kernel.level.word()).collect()
    };
    if cfg!(target_arch = "x86_64") {
        assert_eq!(levels(Number::F64, Operation::Add), ["sse2", "avx2", "avx512"]);
        assert_eq!(levels(Number::I64, Operation::MultiplyAdd), ["scalar", "avx512"]);
        assert_eq!(levels(Number::I8, Operation::MultiplyAdd), ["avx-vnni", "avx512-vnni", "amx"]);
        assert_eq!(levels(Number::Bf16, Operation::MultiplyAdd), ["amx"]);
    } else {
        assert_eq!(levels(Number::F64, Operation::Add), ["neon"]);
        assert_eq!(levels(Number::I64, Operation::MultiplyAdd), ["scalar"]);
        assert!(levels(Number::I8, Operation::MultiplyAdd).is_empty());
    }
    assert!(levels(Number::Bf16, Operation::Add).is_empty());
    let odd = Kernel { number: Number::F32, operation: Operation::Add, level: Level::Amx };
    assert_eq!(odd.lacks().as_deref(), Some("amx has no f32"));
    assert!(Workload::new(odd, Form::Work, 1).is_err());
}
