use super::images::{both, concat, placed, reshape, shape, slice, stretched};
use crate::graph::{GraphNode, GraphOp};
use crate::lower::draft::{Draft, Rewrite};
use privet_ring::Pool2d;
use std::collections::{HashMap, HashSet};

/// What padding counts as, negated: less than any number of a padded pool, which are promised to be below 2^13.
const LEAST: f64 = 8192.0;

/// A max pool and its gradient share their games: `right > left`, level by level, first over a window's rows, then over its
/// columns. The winner is `left + choose(bit, right - left)`, so that the first of equals wins, as in PyTorch. The gradient goes
/// down again: `choose(bit, g)` to the right one and what is left of g to the left one. All games of a level are one gate.
pub(super) fn apply(draft: &mut Draft<'_>) {
    let nodes = &draft.graph.nodes;
    let with_gradient: HashSet<(usize, Window)> = nodes
        .iter()
        .filter_map(|n| match n.op {
            GraphOp::MaxPool2dGrad { window } => Some((n.inputs[0], key(&window))),
            _ => None,
        })
        .collect();
    let operands: Vec<Option<usize>> = nodes.iter().map(|n| n.inputs.first().copied()).collect();
    let mut pools: HashMap<(usize, Window), Pool> = HashMap::new();
    let mut id = 0;
    draft.rewrite(|graph, node| {
        let operand = operands[id];
        id += 1;
        match node.op {
            GraphOp::MaxPool2d { window }
                if operand.is_some_and(|x| with_gradient.contains(&(x, key(&window)))) =>
            {
                let pool = pools.entry((node.inputs[0], key(&window)));
                pool.or_insert_with(|| Pool::of(graph, node, node.inputs[0], &window)).result
            }
            GraphOp::MaxPool2dGrad { window } => {
                let pool = pools.entry((node.inputs[0], key(&window)));
                let pool = pool.or_insert_with(|| Pool::of(graph, node, node.inputs[0], &window)).clone();
                pool.gradient(graph, node, node.inputs[1], &window)
            }
            _ => graph.keep(node),
        }
    });
}

/// A window that can be a key.
type Window = ([usize; 2], [usize; 2], [usize; 2], [usize; 2], bool);

fn key(w: &Pool2d) -> Window {
    (w.kernel, w.stride, w.padding, w.dilation, w.ceil_mode)
}

/// A max pool and its bits.
#[derive(Clone)]
struct Pool {
    /// The maxima.
    result: usize,
    /// The bits of the games over the rows (along dimension 3), then over the columns, level by level.
    games: [Vec<Level>; 2],
    /// The extents that windows ran over.
    input: [usize; 2],
}

/// One level: the stacked bits, and how many of its games there are; who has no game goes on as the last one.
#[derive(Clone)]
struct Level {
    bits: usize,
    games: usize,
    bye: bool,
}

impl Pool {
    fn of(graph: &mut Rewrite<'_>, node: &GraphNode, x: usize, window: &Pool2d) -> Pool {
        let from = shape(graph, x);
        let input = [from[2], from[3]];
        let output = window.output(input);
        // so that zeros are less than everything
        let moved = (0..2).any(|i| window.padding[i] > 0 || reach(window, i, output[i]) > input[i]);
        let mut y = if moved { shifted(graph, node, x, LEAST) } else { x };
        let (rows, games_of_rows) = along(graph, node, y, window, 1, output[1]);
        let (columns, games_of_columns) = along(graph, node, rows, window, 0, output[0]);
        y = columns;
        let result = if moved { shifted(graph, node, y, -LEAST) } else { y };
        Pool { result, games: [games_of_rows, games_of_columns], input }
    }

    fn gradient(&self, graph: &mut Rewrite<'_>, node: &GraphNode, g: usize, window: &Pool2d) -> usize {
        let g = returned(graph, node, g, &self.games[1]);
        let g = scattered(graph, node, g, window, 0, self.input[0]);
        let g = returned(graph, node, g, &self.games[0]);
        scattered(graph, node, g, window, 1, self.input[1])
    }
}

/// One past the last index that a window of `output` windows reaches, from the first index of the first.
fn reach(window: &Pool2d, axis: usize, output: usize) -> usize {
    (output - 1) * window.stride[axis] + window.dilation[axis] * (window.kernel[axis] - 1) + 1
}

fn shifted(graph: &mut Rewrite<'_>, node: &GraphNode, x: usize, by: f64) -> usize {
    let to = shape(graph, x);
    graph.add(node, GraphOp::AddScalar { value: by }, vec![x], to, None)
}

/// The maxima along one axis, and the games.
fn along(
    graph: &mut Rewrite<'_>,
    node: &GraphNode,
    x: usize,
    window: &Pool2d,
    axis: usize,
    output: usize,
) -> (usize, Vec<Level>) {
    let (dim, padding) = (2 + axis, window.padding[axis]);
    let (stride, kernel) = (window.stride[axis], window.kernel[axis]);
    let extent = reach(window, axis, output).max(graph.nodes[x].shape[dim] + padding);
    let x = placed(graph, node, x, dim, padding as isize, extent).expect("the image is inside");
    let mut players: Vec<usize> = (0..kernel)
        .map(|j| {
            let start = j * window.dilation[axis];
            slice(graph, node, x, dim, [start, start + (output - 1) * stride + 1, stride])
        })
        .collect();
    let mut levels = Vec::new();
    while players.len() > 1 {
        let games = players.len() / 2;
        let left: Vec<usize> = players.iter().copied().step_by(2).take(games).collect();
        let right: Vec<usize> = players.iter().copied().skip(1).step_by(2).collect();
        let bye = players.get(2 * games).copied();
        let left = concat(graph, node, &left, 0);
        let right = concat(graph, node, &right, 0);
        let difference = both(graph, node, GraphOp::Sub, right, left);
        let to = shape(graph, difference);
        let bits = graph.add(node, GraphOp::Positive, vec![difference], to, None);
        let gain = both(graph, node, GraphOp::Choose, bits, difference);
        let winners = both(graph, node, GraphOp::Add, left, gain);
        players = parts(graph, node, winners, games);
        players.extend(bye);
        levels.push(Level { bits, games, bye: bye.is_some() });
    }
    (players[0], levels)
}

/// `count` equal parts along dimension 0.
fn parts(graph: &mut Rewrite<'_>, node: &GraphNode, x: usize, count: usize) -> Vec<usize> {
    let rows = graph.nodes[x].shape[0] / count;
    (0..count).map(|i| slice(graph, node, x, 0, [i * rows, (i + 1) * rows, 1])).collect()
}

/// The gradients of the players of a tournament, in order, from that of its winner.
fn returned(graph: &mut Rewrite<'_>, node: &GraphNode, g: usize, levels: &[Level]) -> Vec<usize> {
    let mut players = vec![g];
    for level in levels.iter().rev() {
        let bye = if level.bye { players.pop() } else { None };
        let g = concat(graph, node, &players, 0);
        let right = both(graph, node, GraphOp::Choose, level.bits, g);
        let left = both(graph, node, GraphOp::Sub, g, right);
        let left = parts(graph, node, left, level.games);
        let right = parts(graph, node, right, level.games);
        players = left.into_iter().zip(right).flat_map(|(l, r)| [l, r]).chain(bye).collect();
    }
    players
}

/// What the j-th element of every window gets, for all j, added up where windows overlap, over the image's extent.
fn scattered(
    graph: &mut Rewrite<'_>,
    node: &GraphNode,
    players: Vec<usize>,
    window: &Pool2d,
    axis: usize,
    extent: usize,
) -> usize {
    let (dim, stride) = (2 + axis, window.stride[axis]);
    let to = shape(graph, players[0]);
    let tiles = stride == players.len() && window.dilation[axis] == 1 && window.padding[axis] == 0;
    if tiles && to[dim] * stride == extent {
        let mut apart = to.clone();
        apart.insert(dim + 1, 1);
        let columns: Vec<usize> = players.iter().map(|&p| reshape(graph, node, p, &apart)).collect();
        let all = concat(graph, node, &columns, dim + 1);
        let mut whole = to;
        whole[dim] = extent;
        return reshape(graph, node, all, &whole);
    }
    let mut sum = None;
    for (j, &player) in players.iter().enumerate() {
        let apart = stretched(graph, node, player, dim, stride);
        let before = (j * window.dilation[axis]) as isize - window.padding[axis] as isize;
        let Some(part) = placed(graph, node, apart, dim, before, extent) else { continue };
        sum = Some(match sum {
            None => part,
            Some(sum) => both(graph, node, GraphOp::Add, sum, part),
        });
    }
    sum.expect("some element of a window is in the image")
}
