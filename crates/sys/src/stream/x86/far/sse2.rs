//! The far kernels of SSE2: 16 bytes at a time, multiplication and addition are two instructions.
//!
//! The macros are those of `stream/x86/far.rs`.

use std::arch::asm;

use super::super::sse2 as near;
use super::{Body, Kernel, Run, split};

/// The four vectors of a line of each page.
macro_rules! each_line {
    ($pieces:tt) => {
        unrolled!([
            0 16 32 48 4096 4112 4128 4144 8192 8208 8224 8240 12288 12304 12320 12336 16384 16400
            16416 16432 20480 20496 20512 20528 24576 24592 24608 24624 28672 28688 28704 28720
        ] $pieces)
    };
}

far_bodies!();

far_kernel!(
    read,
    near::read,
    "pxor xmm0, xmm0",
    concat!(ahead!("f"), each_line!(["paddq xmm0, [{f} + ", "]"]), advance!(64 t f s)),
    "movups [{sums}], xmm0"
);
far_kernel!(
    write,
    near::write,
    "unpcklpd xmm15, xmm15",
    concat!(ahead!(owned "t"), each_line!(["movaps [{t} + ", "], xmm15"]), advance!(64 t f s)),
    ""
);
far_kernel!(
    nt_write,
    near::nt_write,
    "unpcklpd xmm15, xmm15",
    concat!(each_line!(["movntps [{t} + ", "], xmm15"]), advance!(64 t f s)),
    ""
);
far_kernel!(
    copy,
    near::copy,
    "",
    concat!(
        ahead!("f"),
        ahead!(owned "t"),
        each_line!([
            "movaps xmm0, [{f} + ", "]";
            "movaps [{t} + ", "], xmm0"
        ]),
        advance!(64 t f s)
    ),
    ""
);
far_kernel!(
    nt_copy,
    near::nt_copy,
    "",
    concat!(
        ahead!("f"),
        each_line!([
            "movaps xmm0, [{f} + ", "]";
            "movntps [{t} + ", "], xmm0"
        ]),
        advance!(64 t f s)
    ),
    ""
);
far_kernel!(
    scale,
    near::scale,
    "unpcklpd xmm15, xmm15",
    concat!(
        ahead!("f"),
        ahead!(owned "t"),
        each_line!([
            "movaps xmm0, [{f} + ", "]\nmulpd xmm0, xmm15";
            "movaps [{t} + ", "], xmm0"
        ]),
        advance!(64 t f s)
    ),
    ""
);
far_kernel!(
    add,
    near::add,
    "",
    concat!(
        ahead!("f"),
        ahead!("s"),
        ahead!(owned "t"),
        each_line!([
            "movaps xmm0, [{f} + ", "]";
            "addpd xmm0, [{s} + ", "]";
            "movaps [{t} + ", "], xmm0"
        ]),
        advance!(64 t f s)
    ),
    ""
);
far_kernel!(
    triad,
    near::triad,
    "unpcklpd xmm15, xmm15",
    concat!(
        ahead!("f"),
        ahead!("s"),
        ahead!(owned "t"),
        each_line!([
            "movaps xmm0, [{s} + ", "]\nmulpd xmm0, xmm15";
            "addpd xmm0, [{f} + ", "]";
            "movaps [{t} + ", "], xmm0"
        ]),
        advance!(64 t f s)
    ),
    ""
);
far_kernel!(
    nt_triad,
    near::nt_triad,
    "unpcklpd xmm15, xmm15",
    concat!(
        ahead!("f"),
        ahead!("s"),
        each_line!([
            "movaps xmm0, [{s} + ", "]\nmulpd xmm0, xmm15";
            "addpd xmm0, [{f} + ", "]";
            "movntps [{t} + ", "], xmm0"
        ]),
        advance!(64 t f s)
    ),
    ""
);
