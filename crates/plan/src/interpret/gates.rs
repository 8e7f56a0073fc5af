//! The operations that cost a comparison, on cleartext.

use crate::element::Element;
use crate::ir::{Op, Type};
use crate::ops;
use crate::tournament::{self, Tournament};
use privet_ring::Ring;

/// The value of a comparison-like operation of a checked plan.
pub(super) fn apply<E: Element>(op: &Op, types: &[&Type], output: &Type, xs: &[&[E]]) -> Vec<E> {
    let (from, to) = (Ring::new(types[0].bits), Ring::new(output.bits));
    let bit = |b: bool| E::whole(b as u64);
    match op {
        Op::Relu => xs[0].iter().map(|&x| if x.is_negative(from) { E::ZERO } else { x }).collect(),
        Op::Extend => xs[0].iter().map(|&x| x.extend(from, to)).collect(),
        Op::IsNegative => xs[0].iter().map(|&x| bit(x.is_negative(from))).collect(),
        Op::Equal => xs[0].iter().zip(xs[1]).map(|(x, y)| bit(x == y)).collect(),
        Op::Max => xs[0].iter().zip(xs[1]).map(|(&x, &y)| E::max(x, y, from)).collect(),
        Op::Choose => {
            let zip = xs[0].iter().zip(xs[1]);
            zip.map(|(&b, &x)| if b == E::ZERO { E::ZERO } else { x }).collect()
        }
        Op::ChooseEvery => {
            let (bits, x) = xs.split_at(xs.len() - 1);
            let every = |i: usize| bits.iter().all(|b| b[i] != E::ZERO);
            x[0].iter().enumerate().map(|(i, &x)| if every(i) { x } else { E::ZERO }).collect()
        }
        Op::Select => {
            let pairs = xs[1].iter().zip(xs[2]);
            xs[0].iter().zip(pairs).map(|(&c, (&x, &y))| if c == E::ZERO { y } else { x }).collect()
        }
        Op::MaxPool2d { window } => {
            let [rows, columns] = tournament::max_pool(window, &types[0].shape);
            play(&columns, play(&rows, xs[0].to_vec(), from), from)
        }
        Op::Argmax { dim } => argmax(xs[0].to_vec(), &types[0].shape, *dim, from),
        ops!(source) | ops!(local) | ops!(bilinear) | ops!(public) | ops!(rounding) | ops!(table) => {
            unreachable!("{op:?} compares nothing")
        }
    }
}

fn play<E: Element>(tournament: &Tournament, mut current: Vec<E>, ring: Ring) -> Vec<E> {
    for level in &tournament.levels {
        let winners = level.meet(&current, |left, right| E::max(left, right, ring));
        current = level.next(&current, &winners, |_, winner| winner);
    }
    current
}

/// In every game the left one wins unless `left - right mod 2^k` is negative.
fn argmax<E: Element>(mut values: Vec<E>, shape: &[usize], dim: usize, ring: Ring) -> Vec<E> {
    let mut indices = tournament::positions(shape, dim);
    for level in &tournament::argmax(shape, dim).levels {
        let both: Vec<(E, u64)> = values.into_iter().zip(indices).collect();
        let winners =
            level.meet(&both, |left, right| if left.0.sub(right.0).is_negative(ring) { right } else { left });
        (values, indices) = level.next(&both, &winners, |_, winner| winner).into_iter().unzip();
    }
    indices.into_iter().map(E::whole).collect()
}
