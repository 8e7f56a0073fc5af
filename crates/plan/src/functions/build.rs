use super::Function;
use crate::cost::{Aim, Network, Prices, choose_forms, estimate};
use crate::ir::{Node, Op, PLAN_VERSION, Plan, Rounding, Type, ValueId};
use crate::lower::overlapped;

/// Adds nodes to a plan on behalf of one layer.
pub struct Build<'p> {
    plan: &'p mut Plan,
    layer: String,
    prices: Option<(&'p dyn Prices, Network)>,
}

/// One of several ways to make a value of another one.
pub(super) type Way<'w> = dyn Fn(&mut Build<'_>, Value) -> Value + 'w;
/// One of several ways to make a value of others.
pub(super) type WayOf<'w> = dyn Fn(&mut Build<'_>, &[Value]) -> Value + 'w;

/// A plan value and its numbers: ring bits and fraction bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The node.
    pub id: ValueId,
    /// k.
    pub bits: u32,
    /// f.
    pub frac: u32,
}

/// The word of products whose result is wanted in full.
pub(super) const WORD: u32 = 64;

impl<'p> Build<'p> {
    /// New nodes of `plan` belong to `layer`. Where there are several ways, the first is taken, which every family has.
    pub fn new(plan: &'p mut Plan, layer: &str) -> Build<'p> {
        Build { plan, layer: layer.into(), prices: None }
    }

    /// Where there are several ways, the one that is predicted to be fastest under these prices on this network is taken.
    pub fn priced(self, prices: &'p dyn Prices, network: Network) -> Build<'p> {
        Build { prices: Some((prices, network)), ..self }
    }

    /// Whether the family has an operation; where none is known, it has all.
    pub(super) fn has(&self, op: &Op) -> bool {
        self.prices.is_none_or(|(prices, _)| prices.has(op))
    }

    /// What the cheapest way makes of x; the first of those that cost the same.
    pub(super) fn cheapest(&mut self, x: Value, ways: &[&Way<'_>]) -> Value {
        fn of_one<'w>(way: &'w Way<'_>) -> impl Fn(&mut Build<'_>, &[Value]) -> Value + 'w {
            move |b, xs| way(b, xs[0])
        }
        let ways: Vec<_> = ways.iter().map(|way| of_one(*way)).collect();
        let ways: Vec<&WayOf<'_>> = ways.iter().map(|way| way as &WayOf<'_>).collect();
        self.cheapest_of(&[x], &ways)
    }

    /// The same of ways that differ in what they were made with.
    pub(super) fn cheapest_among<W>(&mut self, x: Value, ways: impl IntoIterator<Item = W>) -> Value
    where
        W: Fn(&mut Build<'_>, Value) -> Value,
    {
        let ways: Vec<W> = ways.into_iter().collect();
        let ways: Vec<&Way<'_>> = ways.iter().map(|way| way as &Way<'_>).collect();
        self.cheapest(x, &ways)
    }

    /// The same of several values.
    pub(super) fn cheapest_of(&mut self, xs: &[Value], ways: &[&WayOf<'_>]) -> Value {
        let cost = |way: &&WayOf<'_>| {
            self.prices.map_or(0.0, |(prices, network)| self.seconds(xs, way, prices, network))
        };
        let costs: Vec<f64> = ways.iter().map(cost).collect();
        let best = (0..ways.len()).reduce(|best, i| if costs[i] < costs[best] { i } else { best });
        ways[best.unwrap_or(0)](self, xs)
    }

    /// Predicted seconds of a way, alone; infinite where the family does not have all of its operations.
    fn seconds(&self, xs: &[Value], way: &WayOf<'_>, prices: &dyn Prices, network: Network) -> f64 {
        let operand = |x: &Value| {
            let op = Op::Input { name: String::new(), owner: String::new(), limit: 1.0 };
            let ty = self.plan.nodes[x.id].ty.clone();
            Node { op, inputs: vec![], ty, layer: String::new(), form: None }
        };
        let (version, name, nodes) = (PLAN_VERSION, String::new(), xs.iter().map(operand).collect());
        let mut plan = Plan { version, name, batch: 1, nodes, outputs: vec![], updates: vec![] };
        let given: Vec<Value> = xs.iter().enumerate().map(|(id, x)| Value { id, ..*x }).collect();
        way(&mut Build::new(&mut plan, "").priced(prices, network), &given);
        if !plan.nodes.iter().all(|node| prices.has(&node.op)) {
            return f64::INFINITY;
        }
        // without a cap on keys any choice is one
        let _ = choose_forms(&mut plan, prices, &Aim { network, max_key_bytes: None });
        let plan = overlapped(plan, prices);
        estimate(&plan, prices, &prices.rates(), &network).seconds
    }

    /// A node that is there already.
    pub fn value(&self, id: ValueId) -> Value {
        let ty = &self.plan.nodes[id].ty;
        Value { id, bits: ty.bits, frac: ty.frac }
    }

    /// Its shape.
    pub fn shape(&self, x: Value) -> &[usize] {
        &self.plan.nodes[x.id].ty.shape
    }

    /// Add a node.
    pub fn node(&mut self, op: Op, inputs: &[Value], shape: &[usize], bits: u32, frac: u32) -> Value {
        let ty = Type { shape: shape.to_vec(), bits, frac };
        let inputs = inputs.iter().map(|x| x.id).collect();
        self.plan.nodes.push(Node { op, inputs, ty, layer: self.layer.clone(), form: None });
        Value { id: self.plan.nodes.len() - 1, bits, frac }
    }

    /// Add a node of the shape of its first operand.
    pub(super) fn like(&mut self, op: Op, inputs: &[Value], bits: u32, frac: u32) -> Value {
        let shape = self.shape(inputs[0]).to_vec();
        self.node(op, inputs, &shape, bits, frac)
    }

    pub(super) fn add(&mut self, x: Value, y: Value) -> Value {
        self.like(Op::Add, &[x, y], x.bits, x.frac)
    }

    pub(super) fn sub(&mut self, x: Value, y: Value) -> Value {
        self.like(Op::Sub, &[x, y], x.bits, x.frac)
    }

    /// x + `value` units in the last place.
    pub(super) fn add_const(&mut self, x: Value, value: i64) -> Value {
        if value == 0 { x } else { self.like(Op::AddConst { value }, &[x], x.bits, x.frac) }
    }

    pub(super) fn mul_const(&mut self, x: Value, value: i64) -> Value {
        if value == 1 { x } else { self.like(Op::MulConst { value }, &[x], x.bits, x.frac) }
    }

    /// `a x + b` in units in the last place.
    pub(super) fn affine(&mut self, x: Value, a: i64, b: i64) -> Value {
        let x = self.mul_const(x, a);
        self.add_const(x, b)
    }

    /// The same integers read with `frac` fraction bits.
    pub(super) fn read(&mut self, x: Value, frac: u32) -> Value {
        if x.frac == frac { x } else { self.like(Op::Rescale, &[x], x.bits, frac) }
    }

    /// The same integers modulo 2^bits: fewer bits are local, more cost a comparison.
    pub(super) fn resize(&mut self, x: Value, bits: u32) -> Value {
        match bits.cmp(&x.bits) {
            std::cmp::Ordering::Equal => x,
            std::cmp::Ordering::Less => self.like(Op::Reduce, &[x], bits, x.frac),
            std::cmp::Ordering::Greater => self.like(Op::Extend, &[x], bits, x.frac),
        }
    }

    /// A value below 2^(magnitude) units in a ring of `bits`: only as many bits are extended as it has.
    pub(super) fn resize_small(&mut self, x: Value, magnitude: u32, bits: u32) -> Value {
        let least = self.resize(x, (magnitude + 1).min(x.bits).min(bits));
        self.resize(least, bits)
    }

    pub(super) fn mul(&mut self, x: Value, y: Value) -> Value {
        self.like(Op::Mul, &[x, y], x.bits, x.frac + y.frac)
    }

    /// Sums of products of pairs, in a ring of `bits`, which no factor's is smaller than.
    pub(super) fn muls_added(&mut self, pairs: &[[Value; 2]], bits: u32) -> Value {
        let [x, y] = pairs[0];
        self.like(Op::Mul, pairs.as_flattened(), bits, x.frac + y.frac)
    }

    /// The bit of x < 0 in a ring of `bits`.
    pub(super) fn is_negative(&mut self, x: Value, bits: u32) -> Value {
        self.like(Op::IsNegative, &[x], bits, 0)
    }

    /// The integers shifted down, the low bits lost, in a ring of as many bits less; the fraction is read as `frac`.
    pub(super) fn down(&mut self, x: Value, shift: u32, frac: u32) -> Value {
        let x = self.read(x, frac + shift);
        self.like(Op::Truncate { shift, rounding: Rounding::Floor }, &[x], x.bits - shift, frac)
    }

    /// Fewer fraction bits, to the nearest.
    pub(super) fn round(&mut self, x: Value, frac: u32) -> Value {
        let shift = x.frac - frac;
        if shift == 0 {
            return x;
        }
        let x = self.add_const(x, 1 << (shift - 1));
        self.down(x, shift, frac)
    }

    /// Fewer fraction bits, up or down by coins, in a ring of `bits`: where these are more than what is left, x must be small.
    pub(super) fn dither(&mut self, x: Value, shift: u32, bits: u32) -> Value {
        match shift {
            0 => self.resize(x, bits),
            _ => {
                let to = bits.max(x.bits - shift);
                let y = self.like(Op::Dither { shift }, &[x], to, x.frac - shift);
                self.resize(y, bits)
            }
        }
    }

    /// Fewer fraction bits, off by at most one unit and a half, in a ring of `bits`: as is cheapest. x must be small where
    /// `bits` are more than what is left. Where no gate follows, [`crate::shown::make_exact`] must.
    pub(crate) fn nearly(&mut self, x: Value, shift: u32, bits: u32) -> Value {
        if shift == 0 {
            return self.resize(x, bits);
        }
        let dithered = |b: &mut Build<'_>, x: Value| b.dither(x, shift, bits);
        let one_ulp = |b: &mut Build<'_>, x: Value| b.one_ulp(x, shift, bits);
        self.rounded(x, &dithered, &one_ulp)
    }

    /// What the cheaper of two ways makes of x: one without truncations within one unit, and one that makes its results of such,
    /// which is right where the family's are not off by more.
    pub(super) fn rounded(&mut self, x: Value, without: &Way<'_>, within: &Way<'_>) -> Value {
        match self.prices.is_none_or(|(prices, _)| prices.units() == 1) {
            true => self.cheapest(x, &[without, within]),
            false => without(self, x),
        }
    }

    /// Fewer fraction bits, to the nearest give or take a unit, with the rest as for [`Build::nearly`].
    pub(super) fn one_ulp(&mut self, x: Value, shift: u32, bits: u32) -> Value {
        let to = bits.max(x.bits - shift);
        let x = self.add_const(x, 1 << (shift - 1));
        let op = Op::Truncate { shift, rounding: Rounding::OneUlp };
        let y = self.like(op, &[x], to, x.frac - shift);
        self.resize(y, bits)
    }

    /// x where the bit is 1, else 0.
    pub(super) fn choose(&mut self, bit: Value, x: Value) -> Value {
        self.like(Op::Choose, &[bit, x], x.bits, x.frac)
    }

    /// x where every bit is 1, else 0.
    pub(super) fn choose_every(&mut self, bits: &[Value], x: Value) -> Value {
        match bits {
            [bit] => self.choose(*bit, x),
            _ => self.like(Op::ChooseEvery, &[bits, &[x]].concat(), x.bits, x.frac),
        }
    }

    /// More fraction bits in the same ring.
    pub(super) fn raise(&mut self, x: Value, frac: u32) -> Value {
        let y = self.mul_const(x, 1 << (frac - x.frac));
        self.read(y, frac)
    }

    /// The same number with `shift` more bits of fraction and ring.
    pub(super) fn up(&mut self, x: Value, shift: u32) -> Value {
        match shift {
            0 => x,
            _ => self.like(Op::ShiftUp { shift }, &[x], x.bits + shift, x.frac + shift),
        }
    }

    /// x in the given numbers, rounded to the nearest.
    pub(super) fn fit(&mut self, x: Value, bits: u32, frac: u32) -> Value {
        if x.frac > frac {
            let x = self.round(x, frac);
            return self.resize(x, bits);
        }
        let more = frac - x.frac;
        let x = self.resize(x, bits.min(WORD));
        if more == 0 { x } else { self.raise(x, frac) }
    }

    pub(super) fn reshape(&mut self, x: Value, shape: &[usize]) -> Value {
        if self.shape(x) == shape { x } else { self.node(Op::Reshape, &[x], shape, x.bits, x.frac) }
    }

    /// Rows `start..end` of dimension 0.
    pub(super) fn rows(&mut self, x: Value, start: usize, end: usize) -> Value {
        let mut shape = self.shape(x).to_vec();
        shape[0] = end - start;
        self.node(Op::Slice { dim: 0, start, end, step: 1 }, &[x], &shape, x.bits, x.frac)
    }

    /// Row `i` of `[rows, n]` as `[n]`.
    pub(super) fn row(&mut self, x: Value, i: usize) -> Value {
        let n = self.shape(x)[1];
        let row = self.rows(x, i, i + 1);
        self.reshape(row, &[n])
    }

    /// Values `[n]` as the rows of one.
    pub(super) fn stack(&mut self, xs: &[Value]) -> Value {
        let n = self.shape(xs[0])[0];
        let joined = match xs {
            [only] => *only,
            _ => self.node(Op::Concat { dim: 0 }, xs, &[xs.len() * n], xs[0].bits, xs[0].frac),
        };
        self.reshape(joined, &[xs.len(), n])
    }

    /// `sum over j of rows[i][j] x[j]`.
    pub(super) fn mix(&mut self, x: Value, rows: Vec<Vec<i64>>) -> Value {
        let mut shape = self.shape(x).to_vec();
        shape[0] = rows.len();
        self.node(Op::Mix { rows }, &[x], &shape, x.bits, x.frac)
    }

    /// `sum over j of weights[j] x[j]` of `[rows, n]` as `[n]`.
    pub(super) fn weighted(&mut self, x: Value, weights: Vec<i64>) -> Value {
        let n = self.shape(x)[1];
        let sum = self.mix(x, vec![weights]);
        self.reshape(sum, &[n])
    }

    /// Products of pairs `[n]`, in one round; all in one ring. Fractions are dropped: results are whole numbers.
    pub(super) fn muls(&mut self, pairs: &[(Value, Value)]) -> Vec<Value> {
        let side = |build: &mut Self, pick: fn(&(Value, Value)) -> Value| {
            let whole: Vec<Value> = pairs.iter().map(|p| build.read(pick(p), 0)).collect();
            build.stack(&whole)
        };
        let (x, y) = (side(self, |p| p.0), side(self, |p| p.1));
        let product = self.mul(x, y);
        match pairs.len() {
            1 => {
                let n = self.shape(product)[1];
                vec![self.reshape(product, &[n])]
            }
            many => (0..many).map(|i| self.row(product, i)).collect(),
        }
    }

    pub(super) fn approximates(&mut self, function: Function, x: Value, y: Value) -> Value {
        self.like(Op::Approximates { function }, &[x, y], y.bits, y.frac)
    }
}
