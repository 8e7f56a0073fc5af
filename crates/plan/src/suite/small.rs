//! Small plans, one for every operation that opens or prepares anything: for tests that look at every bit.

use super::constant;
use crate::form::Form;
use crate::ir::{Node, Op, Output, PLAN_VERSION, Plan, Rounding, Type, Update};
use crate::suite::Operands;
use privet_ring::{Conv2d, Pool2d};

/// Writes a small plan.
struct Write(Plan);

impl Write {
    fn new(name: &str) -> Write {
        let (nodes, outputs, updates) = (vec![], vec![], vec![]);
        Write(Plan { version: PLAN_VERSION, name: name.into(), batch: 1, nodes, outputs, updates })
    }

    fn add(&mut self, op: Op, inputs: &[usize], shape: &[usize], [bits, frac]: [u32; 2]) -> usize {
        let ty = Type { shape: shape.to_vec(), bits, frac };
        let layer = format!("node{}", self.0.nodes.len());
        self.0.nodes.push(Node { op, inputs: inputs.to_vec(), ty, layer, form: None });
        self.0.nodes.len() - 1
    }

    fn input(&mut self, shape: &[usize], ty: [u32; 2]) -> usize {
        let name = format!("x{}", self.0.nodes.len());
        self.add(Op::Input { name, owner: "data_owner".into(), limit: 1.0 }, &[], shape, ty)
    }

    fn weight(&mut self, shape: &[usize], bits: u32) -> usize {
        let name = format!("w{}", self.0.nodes.len());
        self.add(Op::Weight { name, owner: "model_owner".into() }, &[], shape, [bits, 0])
    }

    fn done(mut self, output: usize) -> Plan {
        self.0.batch = self.0.nodes[0].ty.shape.first().copied().unwrap_or(1);
        self.0.outputs = vec![Output { value: output, name: "y".into(), to: "receiver".into() }];
        self.0.check().unwrap_or_else(|e| panic!("{}: {e}", self.0.name));
        self.0
    }
}

/// One operation of one operand.
fn unary(name: &str, op: Op, from: [u32; 2], to: [u32; 2]) -> Plan {
    let mut w = Write::new(name);
    let x = w.input(&[2], from);
    let y = w.add(op, &[x], &[2], to);
    w.done(y)
}

/// One operation of two operands of the same type.
fn binary(name: &str, op: Op, from: u32, to: u32) -> Plan {
    let mut w = Write::new(name);
    let (x, y) = (w.input(&[2], [from, 0]), w.input(&[2], [from, 0]));
    let z = w.add(op, &[x, y], &[2], [to, 0]);
    w.done(z)
}

fn truncation(name: &str, rounding: Rounding, to: u32) -> Plan {
    unary(name, Op::Truncate { shift: 3, rounding }, [7, 3], [to, 0])
}

fn pool(name: &str) -> Plan {
    let window =
        Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0; 2], dilation: [1; 2], ceil_mode: false };
    let mut w = Write::new(name);
    let x = w.input(&[1, 1, 2, 2], [6, 0]);
    let y = w.add(Op::MaxPool2d { window }, &[x], &[1, 1, 1, 1], [6, 0]);
    w.done(y)
}

fn argmax() -> Plan {
    let mut w = Write::new("argmax");
    let x = w.input(&[1, 4], [6, 0]);
    let y = w.add(Op::Argmax { dim: 1 }, &[x], &[1], [4, 0]);
    w.done(y)
}

fn select() -> Plan {
    let mut w = Write::new("select");
    let [c, x, y] = [0; 3].map(|_| w.input(&[2], [6, 0]));
    let s = w.add(Op::Select, &[c, x, y], &[2], [6, 0]);
    w.done(s)
}

fn choose() -> Plan {
    let mut w = Write::new("choose, twice by one bit");
    let (b, x) = (w.input(&[2], [1, 0]), w.input(&[2], [6, 0]));
    let y = w.add(Op::Choose, &[b, x], &[2], [6, 0]);
    w.add(Op::Choose, &[b, x], &[2], [6, 0]);
    w.done(y)
}

fn choose_every() -> Plan {
    let mut w = Write::new("choose by three bits");
    let [a, b, c] = [0; 3].map(|_| w.input(&[2], [1, 0]));
    let x = w.input(&[2], [6, 0]);
    let y = w.add(Op::ChooseEvery, &[a, b, c, x], &[2], [6, 0]);
    w.done(y)
}

fn scale() -> Plan {
    let mut w = Write::new("scale");
    let x = w.input(&[3], [9, 0]);
    let p = w.add(Op::Public { name: "rate".into(), limit: 1.0 }, &[], &[], [9, 0]);
    let y = w.add(Op::Scale, &[x, p], &[3], [9, 0]);
    w.done(y)
}

fn dropout() -> Plan {
    let mut w = Write::new("dropout, then a product");
    let x = w.input(&[8], [9, 0]);
    let y = w.add(Op::Dropout { stream: 0, keep: 1 << 31 }, &[x], &[8], [9, 0]);
    let z = w.add(Op::Mul, &[y, x], &[8], [9, 0]);
    w.done(z)
}

fn table(name: &str, op: Op, from: [u32; 2], rows: Option<usize>) -> Plan {
    let mut w = Write::new(name);
    let x = w.input(&[2], from);
    let shape: Vec<usize> = rows.into_iter().chain([2]).collect();
    let y = w.add(op, &[x], &shape, [64, 0]);
    w.done(y)
}

fn linear() -> Plan {
    let mut w = Write::new("linear, then a product of secrets");
    let (x, a, bias) = (w.input(&[1, 2], [9, 0]), w.weight(&[2, 2], 9), w.weight(&[2], 9));
    let y = w.add(Op::Linear, &[x, a, bias], &[1, 2], [9, 0]);
    let turned = w.add(Op::Permute { dims: vec![1, 0] }, &[y], &[2, 1], [9, 0]);
    let z = w.add(Op::MatMul, &[turned, y], &[2, 2], [9, 0]);
    w.done(z)
}

fn convolution() -> Plan {
    let geometry = Conv2d {
        batch: 1,
        in_channels: 1,
        input: [2, 2],
        out_channels: 2,
        kernel: [2, 1],
        stride: [1; 2],
        padding: [0; 4],
        dilation: [1; 2],
        groups: 1,
    };
    let mut w = Write::new("convolution");
    let (x, f, bias) = (w.input(&[1, 1, 2, 2], [9, 0]), w.weight(&[2, 1, 2, 1], 9), w.weight(&[2], 9));
    let y = w.add(Op::Conv2d { geometry }, &[x, f, bias], &[1, 2, 1, 2], [9, 0]);
    w.done(y)
}

fn states() -> Plan {
    let mut w = Write::new("two states, one updated");
    let state = |name: &str| Op::State { name: name.into(), owner: "model_owner".into() };
    let (a, b) = (w.add(state("a"), &[], &[3], [9, 0]), w.add(state("b"), &[], &[3], [9, 0]));
    let y = w.add(Op::Mul, &[a, b], &[3], [9, 0]);
    w.0.updates = vec![Update { state: a, value: y }];
    w.done(y)
}

fn sum_of_products() -> Plan {
    let mut w = Write::new("sum of products");
    let (a, b) = (w.input(&[3], [6, 0]), w.input(&[3], [9, 0]));
    let y = w.add(Op::Mul, &[a, b, b, b], &[3], [5, 0]);
    w.done(y)
}

/// A plan for every operation that opens or prepares anything.
pub fn small_plans() -> Vec<Plan> {
    let pieces = vec![[3, -2, 1], [40, 5, -1]];
    let tables = vec![vec![1, -5, 7, 9], vec![3, 2, 1, 0]];
    vec![
        unary("relu", Op::Relu, [6, 0], [6, 0]),
        unary("relu with a level", Op::Relu, [9, 0], [9, 0]),
        unary("relu into a larger ring", Op::Relu, [6, 0], [9, 0]),
        unary("sign", Op::IsNegative, [6, 0], [5, 0]),
        unary("sign bit", Op::IsNegative, [6, 0], [1, 0]),
        unary("extend", Op::Extend, [6, 0], [9, 0]),
        truncation("truncate, down", Rounding::Floor, 4),
        truncation("truncate, down, kept", Rounding::Floor, 7),
        truncation("truncate, one unit", Rounding::OneUlp, 4),
        truncation("truncate, stochastic", Rounding::Stochastic, 4),
        truncation("truncate, stochastic, kept", Rounding::Stochastic, 7),
        unary("dither", Op::Dither { shift: 3 }, [7, 3], [4, 0]),
        binary("equal", Op::Equal, 6, 4),
        binary("product", Op::Mul, 6, 6),
        binary("maximum", Op::Max, 6, 6),
        pool("pool"),
        argmax(),
        select(),
        choose(),
        choose_every(),
        scale(),
        dropout(),
        table("look-up", Op::Lookup { tables }, [2, 0], Some(2)),
        table("quadratics", Op::Piecewise { shift: 3, pieces }, [4, 0], None),
        table("exponential", Op::Exponential { first: 20, rows: vec![(-1, 20)], scale: 0 }, [9, 8], Some(1)),
        unary("waves", Op::Waves { step: 1, digits: 4, waves: vec![[9, -5], [2, 3]] }, [6, 0], [9, 0]),
        linear(),
        convolution(),
        states(),
        sum_of_products(),
    ]
}

/// The plan with all its comparisons in this form, if it has any.
pub fn in_form(plan: &Plan, form: Form) -> Option<Plan> {
    let mut plan = plan.clone();
    let mut any = false;
    for node in plan.nodes.iter_mut().filter(|node| Form::applies(&node.op)) {
        node.form = Some(form);
        any = true;
    }
    any.then_some(plan)
}

/// Comparisons by chunks: every gate in one form of two levels, and one gate in forms of none, one and three.
pub fn small_chunked() -> Vec<Plan> {
    let formed = |mut plan: Plan, width: u8, fan: u8| {
        let form = Form::Chunks { width, fan };
        plan.name = format!("{}, {form}", plan.name);
        in_form(&plan, form).into_iter().map(move |formed| Plan { name: plan.name.clone(), ..formed })
    };
    let mut all: Vec<Plan> = small_plans().into_iter().flat_map(|plan| formed(plan, 2, 2)).collect();
    for (width, fan) in [(8, 2), (3, 9), (1, 2)] {
        all.extend(formed(unary("relu", Op::Relu, [6, 0], [6, 0]), width, fan));
        all.extend(formed(binary("equal", Op::Equal, 6, 4), width, fan));
    }
    all
}

/// The same small value in all elements: within the range of every operation.
pub fn small_operands(plan: &Plan) -> [Operands; 2] {
    constant(plan, |ring| 1 << ring.bits().saturating_sub(4))
}
