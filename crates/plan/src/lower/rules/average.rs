//! Means become sums and one multiplication by a public constant.

use crate::graph::{GraphNode, GraphOp};
use crate::local::adaptive_window;
use crate::lower::draft::{Draft, Rewrite};
use privet_ring::Pool2d;

/// Numbers whose mean is one product.
const MOST_AT_ONCE: usize = 4096;
/// Halvings that are no product (`demand::halvings`).
const MOST_HALVINGS: u32 = 16;

/// Mean, average pooling and adaptive average pooling. The sums in between have no calibrated range: ring sums may
/// wrap as long as the scaled result fits.
pub(super) fn apply(draft: &mut Draft<'_>) {
    draft.rewrite(|graph, node| match node.op.clone() {
        GraphOp::Mean { dims, keepdim } => {
            let n = dims.iter().map(|&d| graph.nodes[node.inputs[0]].shape[d]).product();
            let sum = add(graph, node, GraphOp::Sum { dims, keepdim }, node.inputs[0], &node.shape);
            divided(graph, node, sum, n)
        }
        GraphOp::AvgPool2d { divisor: Some(1), .. } => graph.keep(node),
        GraphOp::AvgPool2d { window, count_include_pad, divisor } => {
            let [h, w] = image(graph, node);
            let counts = |axis: usize, extent: usize| {
                let outputs = 0..node.shape[2 + axis];
                outputs.map(|o| count(&window, axis, o, extent, count_include_pad)).collect::<Vec<_>>()
            };
            let sum_op = GraphOp::AvgPool2d { window, count_include_pad: true, divisor: Some(1) };
            let sum = add(graph, node, sum_op, node.inputs[0], &node.shape);
            match divisor {
                Some(n) => divided(graph, node, sum, n),
                None => divided_by_window(graph, node, sum, &counts(0, h), &counts(1, w)),
            }
        }
        GraphOp::AdaptiveAvgPool2d { output } => {
            let input = image(graph, node);
            let even = (0..2).all(|i| input[i].is_multiple_of(output[i]));
            let sums = if even {
                let kernel = [input[0] / output[0], input[1] / output[1]];
                window_sums(graph, node, node.inputs[0], kernel, &node.shape)
            } else {
                (0..2).fold(node.inputs[0], |x, axis| adaptive_sums(graph, node, x, axis, output[axis]))
            };
            let counts = |axis: usize| {
                let size = |o| {
                    let (start, end) = adaptive_window(input[axis], output[axis], o);
                    end - start
                };
                (0..output[axis]).map(size).collect::<Vec<_>>()
            };
            divided_by_window(graph, node, sums, &counts(0), &counts(1))
        }
        _ => graph.keep(node),
    });
}

fn image(graph: &Rewrite<'_>, node: &GraphNode) -> [usize; 2] {
    let shape = &graph.nodes[node.inputs[0]].shape;
    [shape[2], shape[3]]
}

fn add(graph: &mut Rewrite<'_>, like: &GraphNode, op: GraphOp, x: usize, shape: &[usize]) -> usize {
    graph.add(like, op, vec![x], shape.to_vec(), None)
}

pub(super) fn divided(graph: &mut Rewrite<'_>, node: &GraphNode, sum: usize, n: usize) -> usize {
    if n == 1 {
        graph.nodes[sum].range = node.range;
        return sum;
    }
    if n <= MOST_AT_ONCE || n.is_power_of_two() {
        let op = GraphOp::MulScalar { value: 1.0 / n as f64 };
        return graph.add(node, op, vec![sum], node.shape.clone(), node.range);
    }
    // 1 / n would leave few bits for its fraction: a power of two that only moves the point, then a factor from 1/2 to 1
    let halvings = n.ilog2().min(MOST_HALVINGS);
    let rest = 2f64.powi(halvings as i32) / n as f64;
    let range = node.range.map(|range| range.map(|end| end / rest));
    let op = GraphOp::MulScalar { value: 2f64.powi(-(halvings as i32)) };
    let moved = graph.add(node, op, vec![sum], node.shape.clone(), range);
    graph.add(node, GraphOp::MulScalar { value: rest }, vec![moved], node.shape.clone(), node.range)
}

/// torch's divisor of one window along one axis: with `count_include_pad` padding counts, but not what
/// `ceil_mode` adds beyond it.
pub(super) fn count(window: &Pool2d, axis: usize, o: usize, extent: usize, count_include_pad: bool) -> usize {
    if !count_include_pad {
        return window.window(axis, o, extent).count();
    }
    let start = o * window.stride[axis];
    let end = extent + 2 * window.padding[axis];
    (0..window.kernel[axis]).filter(|j| start + j * window.dilation[axis] < end).count()
}

/// Divide by `rows[i] * columns[j]`. Where all are equal that is one scalar. Otherwise runs of equal counts are cut
/// out, scaled each by its own constant and put together again, first by rows, then by columns.
pub(super) fn divided_by_window(
    graph: &mut Rewrite<'_>,
    node: &GraphNode,
    sum: usize,
    rows: &[usize],
    columns: &[usize],
) -> usize {
    let equal = |counts: &[usize]| counts.iter().all(|&c| c == counts[0]);
    if equal(rows) && equal(columns) {
        return divided(graph, node, sum, rows[0] * columns[0]);
    }
    let bands = runs(rows).into_iter().map(|(top, bottom, height)| {
        let band = slice(graph, node, sum, 2, top, bottom);
        let parts = runs(columns).into_iter().map(|(left, right, width)| {
            let part = slice(graph, node, band, 3, left, right);
            let shape = graph.nodes[part].shape.clone();
            let op = GraphOp::MulScalar { value: 1.0 / (height * width) as f64 };
            graph.add(node, op, vec![part], shape, node.range)
        });
        let parts: Vec<usize> = parts.collect();
        concat(graph, node, parts, 3)
    });
    let bands: Vec<usize> = bands.collect();
    concat(graph, node, bands, 2)
}

/// `(first, one past last, count)` of every run of equal counts.
fn runs(counts: &[usize]) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (i, &count) in counts.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.2 == count => run.1 = i + 1,
            _ => runs.push((i, i + 1, count)),
        }
    }
    runs
}

/// Sums over windows side by side.
fn window_sums(
    graph: &mut Rewrite<'_>,
    node: &GraphNode,
    x: usize,
    kernel: [usize; 2],
    shape: &[usize],
) -> usize {
    if kernel == [1, 1] {
        return x;
    }
    let window = Pool2d { kernel, stride: kernel, padding: [0, 0], dilation: [1, 1], ceil_mode: false };
    let op = GraphOp::AvgPool2d { window, count_include_pad: true, divisor: Some(1) };
    add(graph, node, op, x, shape)
}

/// Sums over torch's adaptive windows along one image axis.
fn adaptive_sums(graph: &mut Rewrite<'_>, node: &GraphNode, x: usize, axis: usize, output: usize) -> usize {
    let dim = 2 + axis;
    let extent = graph.nodes[x].shape[dim];
    if output == extent {
        return x;
    }
    let mut shape = graph.nodes[x].shape.clone();
    if extent.is_multiple_of(output) {
        shape[dim] = output;
        let mut kernel = [1, 1];
        kernel[axis] = extent / output;
        return window_sums(graph, node, x, kernel, &shape);
    }
    shape[dim] = 1;
    let sums = (0..output).map(|o| {
        let (start, end) = adaptive_window(extent, output, o);
        let part = slice(graph, node, x, dim, start, end);
        add(graph, node, GraphOp::Sum { dims: vec![dim], keepdim: true }, part, &shape)
    });
    let sums: Vec<usize> = sums.collect();
    concat(graph, node, sums, dim)
}

fn slice(graph: &mut Rewrite<'_>, node: &GraphNode, x: usize, dim: usize, start: usize, end: usize) -> usize {
    let (mut shape, range) = (graph.nodes[x].shape.clone(), graph.nodes[x].range);
    if end - start == shape[dim] {
        return x;
    }
    shape[dim] = end - start;
    graph.add(node, GraphOp::Slice { dim, start, end, step: 1 }, vec![x], shape, range)
}

fn concat(graph: &mut Rewrite<'_>, node: &GraphNode, parts: Vec<usize>, dim: usize) -> usize {
    if let [only] = parts[..] {
        return only;
    }
    let mut shape = graph.nodes[parts[0]].shape.clone();
    shape[dim] = parts.iter().map(|&p| graph.nodes[p].shape[dim]).sum();
    let range = graph.nodes[parts[0]].range;
    graph.add(node, GraphOp::Concat { dim }, parts, shape, range)
}
