//! Captured graphs for another batch.

mod common;

use common::build::Model;
use common::reference::evaluate;
use privet_plan::graph::GraphOp;
use privet_plan::{Graph, PlanError};
use privet_ring::Pool2d;

#[test]
fn a_rebatched_model_treats_every_row_alike() {
    let mut m = Model::new(1, 1);
    let x = m.input(&[1, 2, 6, 6]);
    let c = m.conv(x, 4, 3, 1, 1, 2);
    let b = m.batch_norm(c);
    let window =
        Pool2d { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let p = m.op(GraphOp::MaxPool2d { window }, &[b], &[1, 4, 3, 3]);
    let s = m.op(GraphOp::Mean { dims: vec![2, 3], keepdim: true }, &[p], &[1, 4, 1, 1]);
    let a = m.op(GraphOp::Add, &[p, s], &[1, 4, 3, 3]);
    let shift = m.param(&[1, 4, 1, 1]);
    let a = m.op(GraphOp::Sub, &[a, shift], &[1, 4, 3, 3]);
    let f = m.flatten(a);
    let y = m.linear(f, 3);
    m.finish(y);
    let graph = m.graph.with_batch(3).unwrap();
    assert_eq!((graph.batch, graph.nodes[y].shape.as_slice()), (3, &[3, 3][..]));
    let all = m.tensor(&[3, 2, 6, 6], 2.0);
    let run = |graph: &Graph, data: &[f64], n: usize| {
        let x = privet_plan::FloatTensor { shape: vec![n, 2, 6, 6], data: data.to_vec() };
        evaluate(graph, &[("x0".to_string(), x)].into_iter().collect(), &m.params)[y].data.clone()
    };
    let together = run(&graph, &all.data, 3);
    let apart: Vec<f64> = all.data.chunks(72).flat_map(|row| run(&m.graph, row, 1)).collect();
    assert_eq!(together, apart);
    assert_eq!(graph.with_batch(1).unwrap(), m.graph);
}

fn refused(build: impl Fn(&mut Model, usize) -> usize) {
    let mut m = Model::new(1, 2);
    let x = m.input(&[2, 3, 4]);
    let y = build(&mut m, x);
    m.finish(y);
    assert!(matches!(m.graph.with_batch(5), Err(PlanError::Node { .. })), "{:?}", m.graph.nodes[y].op);
}

#[test]
fn operations_that_mix_rows_are_refused() {
    refused(|m, x| m.op(GraphOp::Reshape, &[x], &[6, 4]));
    refused(|m, x| m.op(GraphOp::Sum { dims: vec![0], keepdim: false }, &[x], &[3, 4]));
    refused(|m, x| m.op(GraphOp::Mean { dims: vec![1, 0], keepdim: true }, &[x], &[1, 1, 4]));
    refused(|m, x| m.op(GraphOp::Permute { dims: vec![1, 0, 2] }, &[x], &[3, 2, 4]));
    refused(|m, x| m.op(GraphOp::Slice { dim: 0, start: 0, end: 1, step: 1 }, &[x], &[1, 3, 4]));
    refused(|m, x| m.op(GraphOp::Concat { dim: 0 }, &[x, x], &[4, 3, 4]));
    refused(|m, x| m.op(GraphOp::Pad { amounts: vec![[1, 0], [0, 0], [0, 0]] }, &[x], &[3, 3, 4]));
    refused(|m, x| m.op(GraphOp::Argmax { dim: 0, keepdim: false }, &[x], &[3, 4]));
    refused(|m, x| m.op(GraphOp::Expand, &[x], &[6, 2, 3, 4]));
    refused(|m, x| {
        let p = m.param(&[2, 3, 4]);
        m.op(GraphOp::Add, &[x, p], &[2, 3, 4])
    });
    refused(|m, x| {
        let p = m.param(&[2, 1, 4]);
        m.op(GraphOp::Concat { dim: 1 }, &[x, p], &[2, 4, 4])
    });
    refused(|m, x| {
        let flat = m.flatten(x);
        let t = m.op(GraphOp::Slice { dim: 1, start: 0, end: 2, step: 1 }, &[flat], &[2, 2]);
        m.op(GraphOp::MatMul, &[t, flat], &[2, 12])
    });
}
