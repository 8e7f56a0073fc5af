//! The plan under construction: every captured value in the ring and fraction bits that its readers want.
//!
//! A value has one or more *forms*: plan values of different ring bits and fraction bits that stand for it. The
//! first is the one its operation made; others are made when a reader asks and then kept. So truncations and
//! extensions appear where they are needed, once.

use super::attention::softmaxes;
use super::draft::Draft;
use super::fine::{Fine, fine};
use super::inner::{Inner, inner};
use super::narrow::{Narrow, narrow};
use super::norm::{Norm, norms};
use super::precision::{Format, Formats, RoundingMode, compared, op_name, range_bits};
use super::report::Problem;
use crate::cost::{Network, Prices};
use crate::float::FloatTensor;
use crate::functions::Build;
use crate::graph::{GraphNode, GraphOp};
use crate::ir::{Node, Op, Plan, Rounding, Type, ValueId};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Role that shares weights.
pub const MODEL_OWNER: &str = "model_owner";
/// Role that shares inputs.
pub const DATA_OWNER: &str = "data_owner";
/// Role that learns outputs.
pub const RECEIVER: &str = "receiver";

/// Most fraction bits of an intermediate value.
pub(super) const MOST_FRACTION: u32 = 60;

/// A plan value and its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub id: ValueId,
    pub bits: u32,
    pub frac: u32,
}

pub(super) struct Emitter<'a> {
    pub draft: &'a Draft<'a>,
    pub formats: &'a Formats,
    pub wide: Vec<Option<u32>>,
    pub uses: Vec<usize>,
    /// In training: what is in fewer bits than the whole ring.
    pub narrow: Vec<Narrow>,
    /// In training: fraction bits of values that have more than others, and how far sums have grown.
    pub fine: Vec<Fine>,
    /// Sums of products that are one gate.
    pub inner: BTreeMap<usize, Inner>,
    /// Normalisations that are one function, by the products that end them.
    pub norms: BTreeMap<usize, Norm>,
    /// Softmaxes that one product alone reads, by these products.
    pub softmaxes: BTreeMap<usize, usize>,
    compared: Vec<bool>,
    /// Nodes that a smooth function is made of, but for the one that has its value.
    pub inside: Vec<Range<ValueId>>,
    pub forms: Vec<Vec<Form>>,
    pub plan: Plan,
    pub rounding: RoundingMode,
    /// Of the family: functions are made of what it has for least.
    pub prices: &'a dyn Prices,
    /// Where runs shall be fast.
    pub network: Network,
    /// The captured parameters that the plan's weights name.
    parameters: BTreeMap<String, usize>,
    weights: HashMap<(usize, u32, u32), ValueId>,
}

impl<'a> Emitter<'a> {
    pub fn new(
        draft: &'a Draft<'a>,
        formats: &'a Formats,
        wide: Vec<Option<u32>>,
        rounding: RoundingMode,
        (prices, network): (&'a dyn Prices, Network),
    ) -> Self {
        let uses = draft.uses();
        Emitter {
            draft,
            formats,
            wide,
            inner: inner(&draft.graph, formats, &uses),
            norms: norms(&draft.graph, formats, &uses),
            softmaxes: softmaxes(&draft.graph, formats, &uses),
            uses,
            narrow: match formats.narrow {
                true => narrow(&draft.graph),
                false => vec![Narrow::No; draft.graph.nodes.len()],
            },
            fine: fine(&draft.graph),
            compared: compared(&draft.graph),
            inside: Vec::new(),
            forms: Vec::with_capacity(draft.graph.nodes.len()),
            plan: Plan {
                version: crate::ir::PLAN_VERSION,
                name: draft.graph.name.clone(),
                batch: draft.graph.batch,
                nodes: Vec::new(),
                outputs: Vec::new(),
                updates: Vec::new(),
            },
            rounding,
            prices,
            network,
            parameters: BTreeMap::new(),
            weights: HashMap::new(),
        }
    }

    /// Adds nodes that belong to `layer`, by the family's prices.
    pub fn build(&mut self, layer: &str) -> Build<'_> {
        Build::new(&mut self.plan, layer).priced(self.prices, self.network)
    }

    pub fn node(&self, v: usize) -> &'a GraphNode {
        &self.draft.graph.nodes[v]
    }

    pub fn format(&self, v: usize) -> Format {
        self.formats.of(&self.node(v).layer)
    }

    pub fn is_parameter(&self, v: usize) -> bool {
        self.draft.parameter(self.node(v)).is_some()
    }

    /// Bits in front of the fraction that value `v` should have: at most, and without a range, what its layer's
    /// activations have.
    pub fn need(&self, v: usize) -> u32 {
        let Format { k, f, g, .. } = self.format(v);
        if self.formats.keep_ring {
            return k - f - g;
        }
        let spare = self.formats.headroom + self.compared[v] as u32;
        self.node(v).range.map_or(k - f - g, |range| range_bits(range, spare).min(k - f - g))
    }

    /// Whether value `v` is part of an operation that is emitted as a whole, and of nothing else.
    pub fn is_part(&self, v: usize) -> bool {
        self.inner.values().any(|inner| inner.product == v)
            || self.norms.values().any(|n| n.parts.contains(&v))
            || self.softmaxes.values().any(|&softmax| softmax == v)
    }

    /// The range of value `v`, calibrated or known from its reader.
    fn range(&self, v: usize) -> Option<[f64; 2]> {
        self.inner.get(&v).map_or(self.node(v).range, |inner| Some(inner.range))
    }

    pub fn problem(&self, v: usize, what: String, remedy: &str) -> Problem {
        let node = self.node(v);
        Problem {
            op: op_name(&node.op),
            layer: node.layer.clone(),
            source: node.source.clone(),
            what,
            remedy: remedy.into(),
        }
    }

    /// Add a plan node on behalf of captured node `v`.
    pub fn push(
        &mut self,
        v: usize,
        op: Op,
        inputs: Vec<ValueId>,
        shape: &[usize],
        bits: u32,
        frac: u32,
    ) -> Form {
        let ty = Type { shape: shape.to_vec(), bits, frac };
        self.plan.nodes.push(Node { op, inputs, ty, layer: self.node(v).layer.clone(), form: None });
        Form { id: self.plan.nodes.len() - 1, bits, frac }
    }

    /// Add a plan node with one operand and the shape of that operand.
    pub fn unary(&mut self, v: usize, op: Op, x: Form, bits: u32, frac: u32) -> Form {
        let shape = self.plan.nodes[x.id].ty.shape.clone();
        self.push(v, op, vec![x.id], &shape, bits, frac)
    }

    /// Parameter `v` as a plan weight in the given numbers.
    pub fn weight(&mut self, v: usize, bits: u32, frac: u32) -> Form {
        if let Some(&id) = self.weights.get(&(v, bits, frac)) {
            return Form { id, bits, frac };
        }
        let node = self.node(v);
        let GraphOp::Parameter { name } = &node.op else { unreachable!("callers ask for parameters only") };
        let mut name = name.clone();
        while self.parameters.contains_key(&name) {
            // the same parameter in other numbers is a tensor of its own
            name = format!("{name}@{bits}.{frac}");
        }
        self.parameters.insert(name.clone(), v);
        let op = Op::Weight { name, owner: MODEL_OWNER.into() };
        let form = self.push(v, op, vec![], &node.shape, bits, frac);
        self.weights.insert((v, bits, frac), form.id);
        form
    }

    /// Whether a node is one of those that a smooth function is made of.
    pub fn is_inside(&self, id: ValueId) -> bool {
        let at = self.inside.partition_point(|nodes| nodes.end <= id);
        self.inside.get(at).is_some_and(|nodes| nodes.contains(&id))
    }

    /// The tensor of the plan's weight of that name.
    pub fn tensor(&self, name: &str) -> Option<&FloatTensor> {
        self.draft.parameter(self.node(*self.parameters.get(name)?))
    }

    /// The finished plan and the tensors of its weights.
    pub fn finish(self) -> (Plan, BTreeMap<String, FloatTensor>) {
        let tensor = |v: usize| self.draft.parameter(self.node(v)).cloned().unwrap_or_default();
        let parameters = self.parameters.iter().map(|(name, &v)| (name.clone(), tensor(v))).collect();
        (self.plan, parameters)
    }

    /// The form that `v`'s operation made.
    pub fn native(&self, v: usize) -> Form {
        self.forms[v][0]
    }

    /// An existing form with exactly these numbers.
    pub fn find(&self, v: usize, bits: u32, frac: u32) -> Option<Form> {
        self.forms[v].iter().copied().find(|f| f.bits == bits && f.frac == frac)
    }

    /// `v` in exactly these numbers.
    pub fn obtain(&mut self, v: usize, bits: u32, frac: u32) -> Form {
        if self.is_parameter(v) {
            return self.weight(v, bits, frac);
        }
        if let Some(form) = self.find(v, bits, frac) {
            return form;
        }
        let from = self.with_frac(v, bits, frac, bits);
        let op = match from.bits.cmp(&bits) {
            std::cmp::Ordering::Equal => return from,
            std::cmp::Ordering::Less => Op::Extend,
            std::cmp::Ordering::Greater => Op::Reduce,
        };
        let form = self.unary(v, op, from, bits, frac);
        self.forms[v].push(form);
        form
    }

    /// `v` with `frac` fraction bits in a ring of at most `bits`: what comparisons run on, the fewer bits the
    /// cheaper.
    pub fn at_most(&mut self, v: usize, bits: u32, frac: u32) -> Form {
        if self.is_parameter(v) {
            return self.weight(v, bits, frac);
        }
        let from = self.with_frac(v, bits, frac, 0);
        if from.bits <= bits { from } else { self.obtain(v, bits, frac) }
    }

    /// Whether `v` can be had in `bits` with `frac` fraction bits without an extension: it is there, or comes so from the
    /// truncation that it needs anyway, or by local operations.
    pub fn widens(&self, v: usize, bits: u32, frac: u32) -> bool {
        let native = self.native(v);
        self.find(v, bits, frac).is_some()
            || match native.frac.cmp(&frac) {
                std::cmp::Ordering::Greater => {
                    !self.forms[v].iter().any(|f| f.frac == frac) && self.may_keep(v, native)
                }
                std::cmp::Ordering::Equal | std::cmp::Ordering::Less => native.bits >= bits,
            }
    }

    /// Whether `x`, a form of `v`, stays a quarter of its ring away from wrapping, headroom included: what a truncation asks for
    /// whose result has more bits than are left. Without a calibrated range nothing is known.
    pub fn may_keep(&self, v: usize, x: Form) -> bool {
        let spare = self.formats.headroom + self.compared[v] as u32;
        self.range(v).is_some_and(|range| x.frac + range_bits(range, spare) < x.bits)
    }

    /// A form with `frac` fraction bits, the narrowest of those with at least `bits`, else the widest. One that has to be
    /// made has `wanted` bits, or as many as another reader will want, if a truncation gives them.
    fn with_frac(&mut self, v: usize, bits: u32, frac: u32, wanted: u32) -> Form {
        let same = || self.forms[v].iter().copied().filter(|f| f.frac == frac);
        let enough = same().filter(|f| f.bits >= bits).min_by_key(|f| f.bits);
        if let Some(form) = enough.or_else(|| same().max_by_key(|f| f.bits)) {
            return form;
        }
        let native = self.native(v);
        let form = if native.frac > frac {
            // whoever reads fewer bits reduces it
            let wanted = self.wide[v].unwrap_or(wanted).max(wanted);
            self.truncate(v, native, native.frac - frac, wanted)
        } else {
            let room = self.room(v, native, frac);
            self.raise(v, room, frac)
        };
        self.forms[v].push(form);
        form
    }

    /// `native` in a ring that holds it with `frac` fraction bits: an index has only the bits that it needs as a whole number.
    fn room(&mut self, v: usize, native: Form, frac: u32) -> Form {
        let least = (native.bits + frac - native.frac).min(64);
        match self.node(v).op {
            GraphOp::Argmax { .. } if native.bits < least => {
                self.unary(v, Op::Extend, native, least, native.frac)
            }
            _ => native,
        }
    }

    /// Fraction bits of value `v` where nothing else decides.
    pub fn frac(&self, v: usize) -> u32 {
        self.fine[v].frac.unwrap_or(self.format(v).f)
    }

    /// Drop `shift` fraction bits of `x`, a form of `v`, as the user wants them rounded; in a ring of `wanted` bits where more than
    /// what is left and x's range allow it.
    pub fn truncate(&mut self, v: usize, x: Form, shift: u32, wanted: u32) -> Form {
        let (left, k) = (x.bits - shift, self.format(v).k);
        let bits = match self.formats.keep_ring {
            true if x.bits == k || self.is_narrow(v, x) => k,
            false if wanted > left && self.may_keep(v, x) => wanted,
            true | false => left,
        };
        self.truncate_into(v, x, shift, bits)
    }

    /// The same in a ring of `bits`. Where these are more than what is left, x stays a quarter of its ring away from wrapping.
    pub fn truncate_into(&mut self, v: usize, x: Form, shift: u32, bits: u32) -> Form {
        let (x, rounding) = match self.rounding {
            RoundingMode::Floor => (x, Rounding::Floor),
            RoundingMode::Stochastic => (x, Rounding::Stochastic),
            RoundingMode::Nearest => (self.add_half(v, x, shift), Rounding::Floor),
            RoundingMode::OneUlp => (self.add_half(v, x, shift), Rounding::OneUlp),
        };
        self.unary(v, Op::Truncate { shift, rounding }, x, bits, x.frac - shift)
    }

    /// What a ReLU alone reads of `v`, cut with a bit more than is left: so the plan promises that it stays away from the ring's ends. For a family
    /// that makes sign and carry together and needs less for such values ([`crate::cost::Prices::cuts_promised`]), and where the ReLU's result
    /// has so many bits.
    pub fn promised_cut(&mut self, v: usize, format: Format, wide: Option<u32>) -> Option<Form> {
        let is_exact = matches!(self.rounding, RoundingMode::Floor | RoundingMode::Nearest);
        if !self.prices.cuts_promised() || !is_exact || self.is_parameter(v) || self.uses[v] != 1 {
            return None;
        }
        let native = self.native(v);
        let shift = native.frac.checked_sub(format.f).filter(|shift| *shift > 0)?;
        let bits = native.bits - shift + 1;
        let is_apt = native.bits - shift == format.m() && wide.is_some_and(|wide| wide >= bits);
        (is_apt && self.may_keep(v, native)).then(|| self.truncate(v, native, shift, bits))
    }

    /// Half a unit of what will be left after dropping `shift` bits.
    fn add_half(&mut self, v: usize, x: Form, shift: u32) -> Form {
        self.unary(v, Op::AddConst { value: 1 << (shift - 1) }, x, x.bits, x.frac)
    }

    /// More fraction bits for `x` on behalf of `v`: an exact local product.
    pub fn raise(&mut self, v: usize, x: Form, frac: u32) -> Form {
        if x.frac == frac {
            return x;
        }
        let scaled = self.unary(v, Op::MulConst { value: 1 << (frac - x.frac) }, x, x.bits, x.frac);
        self.unary(v, Op::Rescale, scaled, x.bits, frac)
    }

    /// `v` as a factor in Z_2^k where the product gains `gain` fraction bits and needs `need` bits in front: the
    /// native form when there is room for its extra fraction bits, so that one truncation serves two products.
    pub fn factor(&mut self, v: usize, format: Format, gain: u32, need: u32) -> Form {
        let Format { k, f, .. } = format;
        if self.is_parameter(v) {
            return self.weight(v, k, f);
        }
        if let Some(form) = self.find(v, k, f) {
            return form;
        }
        let native = self.native(v);
        let total = native.frac + gain;
        if native.bits == k && native.frac >= f && total + need <= k && total <= MOST_FRACTION {
            return native;
        }
        self.obtain(v, k, f)
    }
}
