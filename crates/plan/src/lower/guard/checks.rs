//! The part of a plan that compares what is watched, and its one result.

use crate::ir::{Node, Op, Output, Plan, Type, ValueId};
use crate::lower::RECEIVER;
use std::collections::BTreeMap;

/// Sums under signs of each chunk. A value beyond its limit is missed by each with probability 1/2 at most.
const SUMS: usize = 20;
/// Up to so many values of a row are compared themselves.
const DIRECT: usize = 2 * SUMS;
/// Bits of the number of sums out of range.
const COUNT_BITS: u32 = 32;
/// Bits of the answer.
const ANSWER_BITS: u32 = 8;

/// Distances from limits, which must not be negative.
struct Distances {
    id: ValueId,
    count: usize,
    rowed: bool,
}

/// A plan that is copied, and what it watches.
pub(super) struct Checks {
    plan: Plan,
    /// Log2 of the square root of a chunk's length.
    root_bits: u32,
    by_ring: BTreeMap<u32, Vec<Distances>>,
    made: u32,
}

impl Checks {
    /// Sums are of at most `4^root_bits` values.
    pub fn new(plan: Plan, root_bits: u32) -> Checks {
        Checks { plan, root_bits, by_ring: BTreeMap::new(), made: 0 }
    }

    pub fn push(&mut self, node: Node) -> ValueId {
        self.plan.nodes.push(node);
        self.plan.nodes.len() - 1
    }

    /// Watch value `x`: each element, or sums of them, in `[-limit, limit)`. `rowed`: whether dimension 0 is in blocks of rows.
    pub fn watch(&mut self, x: ValueId, limit: i64, rowed: bool) {
        let ty = &self.plan.nodes[x].ty;
        let (bits, len) = (ty.bits, ty.len());
        let rows = if rowed { self.plan.batch } else { 1 };
        let n = len / rows;
        let most = 1usize << (2 * self.root_bits).min(40);
        let flat = self.add(x, Op::Reshape, vec![x], &[rows, n]);
        let (values, count) =
            if n <= DIRECT || most == 1 { (flat, n) } else { self.sums(flat, [rows, n], most) };
        let whole = self.add(values, Op::Rescale, vec![values], &[rows, count]);
        self.plan.nodes[whole].ty.frac = 0;
        let above = self.add(whole, Op::AddConst { value: limit }, vec![whole], &[rows, count]);
        let turned = self.add(whole, Op::Neg, vec![whole], &[rows, count]);
        let below = self.add(whole, Op::AddConst { value: limit - 1 }, vec![turned], &[rows, count]);
        let id = self.add(whole, Op::Concat { dim: 1 }, vec![above, below], &[rows, 2 * count]);
        self.by_ring.entry(bits).or_default().push(Distances { id, count: 2 * count, rowed });
    }

    /// [`SUMS`] sums under signs of every chunk of at most `most` of a row's values.
    fn sums(&mut self, flat: ValueId, [rows, n]: [usize; 2], most: usize) -> (ValueId, usize) {
        let chunks = n.div_ceil(most);
        let length = n.div_ceil(chunks);
        let amounts = vec![[0, 0], [0, chunks * length - n]];
        let even = match chunks * length - n {
            0 => flat,
            _ => self.add(flat, Op::Pad { amounts }, vec![flat], &[rows, chunks * length]),
        };
        let turn = Op::Permute { dims: vec![1, 0, 2] };
        let cut = self.add(flat, Op::Reshape, vec![even], &[rows, length, chunks]);
        let first = self.add(flat, turn.clone(), vec![cut], &[length, rows, chunks]);
        let mixed = Op::Mix { rows: signs(self.made, length) };
        self.made += 1;
        let sums = self.add(flat, mixed, vec![first], &[SUMS, rows, chunks]);
        let back = self.add(flat, turn, vec![sums], &[rows, SUMS, chunks]);
        let count = SUMS * chunks;
        (self.add(flat, Op::Reshape, vec![back], &[rows, count]), count)
    }

    /// A node of `like`'s numbers.
    fn add(&mut self, like: ValueId, op: Op, inputs: Vec<ValueId>, shape: &[usize]) -> ValueId {
        let ty = Type { shape: shape.to_vec(), ..self.plan.nodes[like].ty.clone() };
        self.push(Node { op, inputs, ty, layer: super::GUARD.into(), form: None })
    }

    fn whole(&mut self, op: Op, inputs: Vec<ValueId>, shape: &[usize], bits: u32) -> ValueId {
        let ty = Type { shape: shape.to_vec(), bits, frac: 0 };
        self.push(Node { op, inputs, ty, layer: super::GUARD.into(), form: None })
    }

    /// The plan with `outputs`, and a 1 for each row of which every distance is at least 0.
    pub fn finish(mut self, outputs: Vec<Output>) -> Plan {
        let rows = self.plan.batch;
        let mut counts: Vec<ValueId> = Vec::new();
        for (bits, distances) in std::mem::take(&mut self.by_ring) {
            for rowed in [true, false] {
                let these: Vec<&Distances> = distances.iter().filter(|d| d.rowed == rowed).collect();
                let total = these.iter().map(|d| d.count).sum::<usize>();
                if total == 0 {
                    continue;
                }
                let lines = if rowed { rows } else { 1 };
                let ids = these.iter().map(|d| d.id).collect();
                let all = self.whole(Op::Concat { dim: 1 }, ids, &[lines, total], bits);
                let negative = self.whole(Op::IsNegative, vec![all], &[lines, total], COUNT_BITS);
                let count = self.whole(Op::Sum { dims: vec![1] }, vec![negative], &[lines], COUNT_BITS);
                counts.push(match lines == rows {
                    true => count,
                    // what mixes rows counts for each
                    false => self.whole(Op::Expand, vec![count], &[rows], COUNT_BITS),
                });
            }
        }
        self.plan.outputs = outputs;
        let Some(mut all) = counts.pop() else { return self.plan };
        for count in counts {
            all = self.whole(Op::Add, vec![all, count], &[rows], COUNT_BITS);
        }
        let before = self.whole(Op::AddConst { value: -1 }, vec![all], &[rows], COUNT_BITS);
        let value = self.whole(Op::IsNegative, vec![before], &[rows], ANSWER_BITS);
        let mut name = super::GUARD.to_owned();
        while self.plan.outputs.iter().any(|o| o.name == name) {
            name.push('_');
        }
        self.plan.outputs.push(Output { value, name, to: RECEIVER.into() });
        self.plan
    }
}

/// Signs of the sums of the `index`-th watched value: as good as random, and the same on every machine.
fn signs(index: u32, length: usize) -> Vec<Vec<i64>> {
    let mut hasher = blake3::Hasher::new_derive_key("privet 2026 signs of a guard's sums");
    hasher.update(&index.to_le_bytes());
    let mut stream = vec![0; SUMS * length.div_ceil(8)];
    hasher.finalize_xof().fill(&mut stream);
    let sign = |line: &[u8], i: usize| 1 - 2 * i64::from(line[i / 8] >> (i % 8) & 1);
    stream.chunks_exact(length.div_ceil(8)).map(|line| (0..length).map(|i| sign(line, i)).collect()).collect()
}
