//! One pass each: a set of diagonals over the whole depth, with its accumulators in registers.
//!
//! A product takes 16 cycles but its result 52, so consecutive products go to different accumulators, and a
//! short pass spreads its longest diagonal over two.

use std::arch::asm;

/// What to bring into the second-level cache meanwhile: `lines` cache lines a step.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    pub(super) start: *const u8,
    pub(super) lines: usize,
}

impl Ahead {
    pub(super) const NOTHING: Ahead = Ahead { start: std::ptr::null(), lines: 0 };
}

/// Bytes of a packed step of A and of B.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) a: usize,
    pub(super) b: usize,
}

/// Load limb `l` of A into tmm`t`.
macro_rules! a {
    ($t:literal, $l:literal) => {
        concat!("tileloadd tmm", $t, ", [{a} + {row} + 1024*", $l, "]")
    };
}
/// Load limb `l` of B into tmm7.
macro_rules! b {
    ($l:literal) => {
        concat!("tileloadd tmm7, [{b} + {row} + 1024*", $l, "]")
    };
}
/// tmm`c` += tmm`a` * tmm7.
macro_rules! mul {
    ($c:literal, $a:literal) => {
        concat!("tdpbuud tmm", $c, ", tmm", $a, ", tmm7")
    };
}
macro_rules! zero {
    ($c:literal) => {
        concat!("tilezero tmm", $c)
    };
}
macro_rules! store {
    ($c:literal) => {
        concat!("tilestored [{out} + {row} + 1024*", $c, "], tmm", $c)
    };
}

macro_rules! passes {
    ($($(#[$doc:meta])* $name:ident: accumulators [$($c:literal)*], $($op:expr),* $(,)?;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for `Amx::passes`.
        pub(super) unsafe fn $name(a: *const u8, b: *const u8, step: Step, steps: usize, ahead: Ahead, out: *mut u32) {
            // SAFETY: reads `steps` steps from a and b, writes the accumulators to out;
            // prefetching is harmless at any address.
            unsafe {
                asm!(
                    $(zero!($c),)*
                    "2:",
                    $($op,)*
                    "mov {line}, {lines}",
                    "test {line}, {line}",
                    "jz 4f",
                    "3:",
                    "prefetcht1 [{ahead}]",
                    "add {ahead}, 64",
                    "dec {line}",
                    "jnz 3b",
                    "4:",
                    "add {a}, {a_step}",
                    "add {b}, {b_step}",
                    "dec {steps}",
                    "jnz 2b",
                    $(store!($c),)*
                    a = inout(reg) a => _,
                    b = inout(reg) b => _,
                    steps = inout(reg) steps => _,
                    a_step = in(reg) step.a,
                    b_step = in(reg) step.b,
                    row = in(reg) 64usize,
                    ahead = inout(reg) ahead.start => _,
                    lines = in(reg) ahead.lines,
                    line = out(reg) _,
                    out = in(reg) out,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    )*};
}

passes! {
    /// Diagonal 0 of one limb.
    low_1: accumulators [0], a!(6, 0), b!(0), mul!(0, 6);
    /// Diagonals 0, 1, 1.
    low_2: accumulators [0 1 2],
        a!(5, 0), a!(6, 1),
        b!(0), mul!(0, 5), mul!(2, 6),
        b!(1), mul!(1, 5);
    /// Diagonals 2, 2, 1, 1, 0.
    low_3: accumulators [0 1 2 3 4],
        a!(5, 0), a!(6, 1),
        b!(0), mul!(4, 5), mul!(3, 6),
        b!(1), mul!(2, 5), mul!(0, 6),
        a!(6, 2),
        b!(2), mul!(0, 5),
        b!(0), mul!(1, 6);
    /// Diagonals 0, 1, 2, 3, 3.
    low_4: accumulators [0 1 2 3 4],
        a!(5, 0), a!(6, 1),
        b!(0), mul!(0, 5), mul!(1, 6),
        b!(2), mul!(2, 5), mul!(3, 6),
        b!(1), mul!(1, 5), mul!(2, 6),
        b!(3), mul!(4, 5),
        a!(5, 2), a!(6, 3),
        b!(0), mul!(2, 5), mul!(3, 6),
        b!(1), mul!(4, 5);
    /// Diagonals 0 to 4.
    low_5: accumulators [0 1 2 3 4],
        a!(5, 0), a!(6, 1),
        b!(0), mul!(0, 5), mul!(1, 6),
        b!(2), mul!(2, 5), mul!(3, 6),
        b!(4), mul!(4, 5),
        b!(1), mul!(1, 5), mul!(2, 6),
        b!(3), mul!(3, 5), mul!(4, 6),
        a!(5, 2), a!(6, 3),
        b!(0), mul!(2, 5), mul!(3, 6),
        b!(2), mul!(4, 5),
        b!(1), mul!(3, 5), mul!(4, 6),
        a!(5, 4),
        b!(0), mul!(4, 5);
    /// Diagonals 0 to 5.
    low_6: accumulators [0 1 2 3 4 5],
        a!(6, 0),
        b!(0), mul!(0, 6), b!(1), mul!(1, 6), b!(2), mul!(2, 6),
        b!(3), mul!(3, 6), b!(4), mul!(4, 6), b!(5), mul!(5, 6),
        a!(6, 1),
        b!(0), mul!(1, 6), b!(1), mul!(2, 6), b!(2), mul!(3, 6), b!(3), mul!(4, 6), b!(4), mul!(5, 6),
        a!(6, 2),
        b!(0), mul!(2, 6), b!(1), mul!(3, 6), b!(2), mul!(4, 6), b!(3), mul!(5, 6),
        a!(6, 3),
        b!(0), mul!(3, 6), b!(1), mul!(4, 6), b!(2), mul!(5, 6),
        a!(6, 4),
        b!(0), mul!(4, 6), b!(1), mul!(5, 6),
        a!(6, 5),
        b!(0), mul!(5, 6);
    /// Diagonals 2 to 6 of seven limbs.
    high_7: accumulators [0 1 2 3 4],
        a!(5, 0), a!(6, 1),
        b!(2), mul!(0, 5), mul!(1, 6),
        b!(4), mul!(2, 5), mul!(3, 6),
        b!(6), mul!(4, 5),
        b!(1), mul!(0, 6),
        b!(3), mul!(1, 5), mul!(2, 6),
        b!(5), mul!(3, 5), mul!(4, 6),
        a!(5, 2), a!(6, 3),
        b!(0), mul!(0, 5), mul!(1, 6),
        b!(2), mul!(2, 5), mul!(3, 6),
        b!(4), mul!(4, 5),
        b!(1), mul!(1, 5), mul!(2, 6),
        b!(3), mul!(3, 5), mul!(4, 6),
        a!(5, 4), a!(6, 5),
        b!(0), mul!(2, 5), mul!(3, 6),
        b!(2), mul!(4, 5),
        b!(1), mul!(3, 5), mul!(4, 6),
        a!(5, 6),
        b!(0), mul!(4, 5);
    /// Diagonals 3 to 7 of eight limbs.
    high_8: accumulators [0 1 2 3 4],
        a!(5, 0), a!(6, 1),
        b!(3), mul!(0, 5), mul!(1, 6),
        b!(5), mul!(2, 5), mul!(3, 6),
        b!(7), mul!(4, 5),
        b!(2), mul!(0, 6),
        b!(4), mul!(1, 5), mul!(2, 6),
        b!(6), mul!(3, 5), mul!(4, 6),
        a!(5, 2), a!(6, 3),
        b!(1), mul!(0, 5), mul!(1, 6),
        b!(3), mul!(2, 5), mul!(3, 6),
        b!(5), mul!(4, 5),
        b!(0), mul!(0, 6),
        b!(2), mul!(1, 5), mul!(2, 6),
        b!(4), mul!(3, 5), mul!(4, 6),
        a!(5, 4), a!(6, 5),
        b!(0), mul!(1, 5), mul!(2, 6),
        b!(2), mul!(3, 5), mul!(4, 6),
        b!(1), mul!(2, 5), mul!(3, 6),
        b!(3), mul!(4, 5),
        a!(5, 6), a!(6, 7),
        b!(0), mul!(3, 5), mul!(4, 6),
        b!(1), mul!(4, 5);
}

/// `rounds` times six independent products of the same two tiles, without a load between them.
///
/// # Safety
/// The tiles are configured with 16 rows.
pub(super) unsafe fn registers_only(operands: &[u8; 2048], rounds: usize) {
    // SAFETY: reads two tiles.
    unsafe {
        asm!(
            "tileloadd tmm6, [{operands} + {row}]",
            "tileloadd tmm7, [{operands} + {row} + 1024]",
            "2:",
            mul!(0, 6), mul!(1, 6), mul!(2, 6), mul!(3, 6), mul!(4, 6), mul!(5, 6),
            "dec {rounds}",
            "jnz 2b",
            rounds = inout(reg) rounds => _,
            operands = in(reg) operands.as_ptr(),
            row = in(reg) 64usize,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, readonly),
        );
    }
}
