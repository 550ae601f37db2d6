//! Both loops of each kind of step, as `table` names them: macros around those of the parent.

/// One instruction for each step, with vectors; the operands behind `x` of even and of odd steps.
macro_rules! single {
    ($name:ident, $register:literal, $even:expr, $odd:expr) => {
        loops!($name, "4", $register, "vmovups", "vzeroupper", $even, $odd);
    };
}

/// `op x, y, z`: `x` is the chain, and `y` too where it is not named.
macro_rules! three {
    ($op:literal, $register:literal, $last:literal) => {
        concat!($op, " ", $register, "\\c, ", $register, "\\c, ", $register, $last)
    };
    ($op:literal, $register:literal, $middle:literal, $last:literal) => {
        concat!($op, " ", $register, "\\c, ", $register, $middle, ", ", $register, $last)
    };
}

/// `op x, x, summand`.
macro_rules! with_summand {
    ($name:ident, $register:literal, $op:literal) => {
        single!($name, $register, three!($op, $register, "13"), three!($op, $register, "15"));
    };
}

/// `op x, x, multiplier`.
macro_rules! with_multiplier {
    ($name:ident, $register:literal, $op:literal) => {
        single!($name, $register, three!($op, $register, "12"), three!($op, $register, "14"));
    };
}

/// `op x, multiplier, summand`, where x is an operand as well.
macro_rules! with_both {
    ($name:ident, $register:literal, $op:literal) => {
        single!(
            $name,
            $register,
            three!($op, $register, "12", "13"),
            three!($op, $register, "14", "15")
        );
    };
}

/// `multiply x, x, multiplier` and `add x, x, summand`, with the numbers of their registers.
macro_rules! both {
    ($register:literal, $multiply:literal, $multiplier:literal, $add:literal, $summand:literal) => {
        concat!(three!($multiply, $register, $multiplier), "\n", three!($add, $register, $summand))
    };
}

/// `multiply x, x, multiplier`, then `add x, x, summand`.
macro_rules! product_and_sum {
    ($name:ident, $register:literal, $multiply:literal, $add:literal) => {
        loops!(
            $name,
            "1",
            $register,
            "vmovups",
            "vzeroupper",
            both!($register, $multiply, "12", $add, "13"),
            both!($register, $multiply, "14", $add, "15")
        );
    };
}

/// The same with 24 chains, one after the other. The loop with a row of links in it has twelve chains, half
/// of them at a time: of 24 the core does not see far enough ahead to go on beside the links.
macro_rules! wide_product_and_sum {
    ($name:ident, $multiply:literal, $add:literal) => {
        mod $name {
            use super::*;

            plain!(
                load!("zmm", "vmovups", all_24!(), "28,29,30,31"),
                concat!(
                    each!(all_24!(), both!("zmm", $multiply, "28", $add, "29")),
                    each!(all_24!(), both!("zmm", $multiply, "30", $add, "31")),
                ),
                store!("zmm", "vmovups", "vzeroupper", all_24!())
            );
            chained!(
                "1",
                load!("zmm", "vmovups"),
                pair!(
                    both!("zmm", $multiply, "12", $add, "13"),
                    both!("zmm", $multiply, "14", $add, "15")
                ),
                store!("zmm", "vmovups", "vzeroupper")
            );
        }
    };
}

/// SSE: the first operand is the result. `op x, summand`.
macro_rules! sse_sum {
    ($name:ident, $op:literal) => {
        loops!(
            $name,
            "4",
            "xmm",
            "movups",
            "",
            concat!($op, " xmm\\c, xmm13"),
            concat!($op, " xmm\\c, xmm15")
        );
    };
}

/// `multiply x, multiplier`, then `add x, summand`.
macro_rules! sse_product_and_sum {
    ($name:ident, $multiply:literal, $add:literal) => {
        loops!(
            $name,
            "1",
            "xmm",
            "movups",
            "",
            concat!($multiply, " xmm\\c, xmm12\n", $add, " xmm\\c, xmm13"),
            concat!($multiply, " xmm\\c, xmm14\n", $add, " xmm\\c, xmm15")
        );
    };
}
