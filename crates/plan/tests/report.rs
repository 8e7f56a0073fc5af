//! What a user reads when a model cannot be compiled, and numbers that do not fit.

mod common;

use common::build::Model;
use common::lower;
use privet_plan::graph::GraphOp;
use privet_plan::lower::remedies::remedy;
use privet_plan::{CheckReport, EncodeError, FloatTensor, Precision, encode_inputs, encode_weights};

fn refused(m: &Model, precision: &Precision) -> CheckReport {
    lower(&m.graph, &m.params, precision).expect_err("must be refused")
}

#[test]
fn all_unsupported_operations_are_named_with_place_and_remedy() {
    let mut m = Model::new(1, 1);
    let x = m.input(&[1, 4]);
    let y = m.linear(x, 4);
    let names = ["aten.multinomial.default", "aten.layer_norm.default", "aten.foo.default"];
    let mut last = y;
    for name in names {
        last = m.map(GraphOp::Unsupported { name: name.into() }, last);
    }
    m.graph.outputs.push(privet_plan::graph::GraphOutput { node: last, name: "y".into(), to: None });
    let report = refused(&m, &Precision::default());
    let found: Vec<&str> = report.problems.iter().map(|p| p.op.as_str()).collect();
    assert_eq!(found, names);
    assert!(report.problems.iter().all(|p| p.source.starts_with("model.py:") && !p.remedy.is_empty()));
    let text = report.to_string();
    assert!(text.starts_with("3 problems in the model:"), "{text}");
    for part in ["aten.multinomial.default in layer4", "at model.py:4 in forward", "remedy: reveal the"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn every_common_operation_has_a_remedy_of_its_own() {
    let generic = remedy("aten.foo.default");
    for op in [
        "aten.softmax.int",
        "aten.index.Tensor (as many elements as a private mask keeps)",
        "aten.scatter.src (private places)",
        "aten._local_scalar_dense.default (a private value as a Python number)",
        "aten.randn.default",
        "aten.rand_like.default",
        "aten.kl_div.default",
        "aten.cosine_embedding_loss.default",
        "aten.grid_sampler.default",
        "aten.linalg_inv.default",
        "aten.nonzero.default",
        "torch.nn.functional.grid_sample",
        "aten._softmax.default",
        "aten.layer_norm.default",
        "aten.pow.Tensor_Tensor",
        "aten.div.Tensor",
        "aten.batch_norm.default",
        "aten.embedding.default",
        "aten.log_softmax.int",
        "aten.scaled_dot_product_attention.default",
        "aten.dropout.default",
    ] {
        assert_ne!(remedy(op), generic, "{op}");
    }
    assert!(remedy("aten._log_softmax.default").contains("classes"));
    assert!(remedy("aten.cosine_embedding_loss.default").contains("loss"), "a table is not what it lacks");
    assert!(remedy("aten.cummax.default (indices of maxima so far)").contains("values alone"));
    assert!(
        remedy("aten.index.Tensor (as many elements as a private mask keeps)").contains("depend on secret")
    );
    assert_eq!(remedy("aten.modest_thing"), generic, "a short name does not claim longer words");
}

#[test]
fn numbers_that_do_not_fit_name_layer_range_and_remedy() {
    let mut m = Model::new(2, 1);
    let x = m.input(&[1, 8]);
    let y = m.linear(x, 8);
    let y = m.map(GraphOp::MulScalar { value: 300.0 }, y);
    m.finish(y);
    let explicit =
        |bits, fraction| Precision { bits: Some(bits), fraction: Some(fraction), ..Precision::default() };
    let report = refused(&m, &explicit(32, 14));
    let problem = &report.problems[0];
    assert!(problem.what.contains("32 ring bits with 14 fraction bits"), "{problem}");
    assert!(problem.remedy.contains("bits"), "{problem}");
    // the remedy that is given is enough
    let need: u32 = problem.what.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(lower(&m.graph, &m.params, &explicit(need, 14)).is_ok());
    assert!(lower(&m.graph, &m.params, &explicit(need - 1, 14)).is_err());
    for (bits, fraction) in [(7, 2), (65, 2), (16, 8), (32, 0), (64, 40)] {
        refused(&m, &explicit(bits, fraction));
    }
    let fewer = Precision { bits: Some(32), ..Precision::default() };
    let plan = lower(&m.graph, &m.params, &fewer).unwrap().plan;
    assert!(plan.nodes[0].ty.frac < 14, "the fraction shrinks until the ranges fit");
}

#[test]
fn parameters_and_shapes_are_checked() {
    let mut m = Model::new(3, 1);
    let x = m.input(&[1, 4]);
    let y = m.linear(x, 2);
    m.finish(y);
    let missing = Model { params: Default::default(), ..clone(&m) };
    assert_eq!(refused(&missing, &Precision::default()).problems.len(), 2);
    let mut wrong = clone(&m);
    wrong.params.insert("p0".into(), FloatTensor { shape: vec![4, 2], data: vec![0.0; 8] });
    assert!(refused(&wrong, &Precision::default()).to_string().contains("[4, 2]"));
    let mut nan = clone(&m);
    nan.params.get_mut("p1").unwrap().data[1] = f64::NAN;
    assert!(refused(&nan, &Precision::default()).to_string().contains("NaN"));
    let mut shape = clone(&m);
    shape.graph.nodes[y].shape = vec![1, 3];
    assert!(refused(&shape, &Precision::default()).to_string().contains("should be [1, 2]"));
}

fn clone(m: &Model) -> Model {
    Model {
        graph: m.graph.clone(),
        params: m.params.clone(),
        inputs: m.inputs.clone(),
        numbers: common::Numbers(0),
    }
}

#[test]
fn inputs_outside_the_calibrated_range_are_refused_by_name_and_place() {
    let mut m = Model::new(4, 1);
    let x = m.input(&[1, 4]);
    let y = m.linear(x, 2);
    m.finish(y);
    let lowered = lower(&m.graph, &m.params, &Precision::default()).unwrap();
    let mut inputs = m.inputs.clone();
    for bad in [f64::NAN, f64::INFINITY, 1e9] {
        inputs.get_mut("x0").unwrap().data[3] = bad;
        let error = encode_inputs(&lowered.plan, None, &inputs).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`x0`") && text.contains("element 3"), "{text}");
        assert!(!text.contains("1000000000"), "values stay secret: {text}");
    }
    // twice the calibrated range is within the headroom
    inputs.insert("x0".into(), FloatTensor { shape: vec![1, 4], data: vec![4.0; 4] });
    encode_inputs(&lowered.plan, None, &inputs).unwrap();
    assert!(encode_inputs(&lowered.plan, Some("someone_else"), &Default::default()).unwrap().is_empty());
    let none = encode_weights(&lowered.plan, None, &Default::default()).unwrap_err();
    assert!(matches!(none, EncodeError::Missing { what: "weight", .. }));
    inputs.insert("x0".into(), FloatTensor { shape: vec![4], data: vec![0.0; 4] });
    assert!(matches!(encode_inputs(&lowered.plan, None, &inputs), Err(EncodeError::Shape { .. })));
}
