//! Convolutions that read one value become one, for a family whose layers send what they read
//! ([`crate::cost::Prices::joined_macs`]): it is masked and sent once.
//!
//! The filters of all stand in a window that holds each of theirs, with zeros around; results are its channels. A 1 x 1 convolution beside
//! one of 3 x 3 becomes the middle of nine taps, and one that moves by two every second result of one that moves by one.

use super::rounds::{common_layer, of_weights};
use super::share::renumbered;
use crate::ir::{Node, Op, Plan, Type};
use privet_ring::Conv2d;

/// The plan with such convolutions joined, where one has at most so many times the multiplications of all by themselves; all else keeps its
/// order.
pub(crate) fn joined(plan: Plan, most: u64) -> Plan {
    let groups = groups(&plan, most);
    if groups.is_empty() {
        return plan;
    }
    let mut out = Rebuilt { plan: &plan, map: vec![None; plan.nodes.len()], nodes: Vec::new() };
    for id in 0..plan.nodes.len() {
        match groups.iter().find(|group| group[0] == id) {
            Some(group) => out.join(group),
            None => {
                out.keep(id);
            }
        }
    }
    let Rebuilt { map, nodes, .. } = out;
    let map: Vec<usize> = map.into_iter().map(|new| new.expect("every node is kept or joined")).collect();
    renumbered(Plan { nodes, ..plan }, &map)
}

/// Groups of two convolutions or more.
fn groups(plan: &Plan, most: u64) -> Vec<Vec<usize>> {
    let fixed = of_weights(plan);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (id, node) in plan.nodes.iter().enumerate() {
        let Op::Conv2d { geometry } = &node.op else { continue };
        let is_one = node.inputs[1..].iter().all(|&i| fixed[i]) && !fixed[node.inputs[0]];
        if !is_one || geometry.groups != 1 || geometry.dilation != [1, 1] {
            continue;
        }
        let fits = |group: &&mut Vec<usize>| {
            let all: Vec<Conv2d> = group.iter().chain([&id]).map(|&id| geometry_of(plan, id)).collect();
            numbers(plan, group[0]) == numbers(plan, id) && Joint::of(&all, most).is_some()
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(id),
            None => groups.push(vec![id]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

fn geometry_of(plan: &Plan, id: usize) -> Conv2d {
    let Op::Conv2d { geometry } = &plan.nodes[id].op else { unreachable!("convolutions alone are grouped") };
    *geometry
}

/// What convolutions of a group have in common: the value, and the numbers of all operands and of the result.
fn numbers(plan: &Plan, id: usize) -> (usize, Vec<[u32; 2]>) {
    let node = &plan.nodes[id];
    let of = |ty: &Type| [ty.bits, ty.frac];
    let operands = node.inputs.iter().map(|&i| of(&plan.nodes[i].ty));
    (node.inputs[0], operands.chain([of(&node.ty)]).collect())
}

/// The convolution that has others in it.
struct Joint {
    geometry: Conv2d,
    /// Where each one's window stands in the joint one: rows and columns before it.
    before: Vec<[usize; 2]>,
    /// How far apart its results are among those of the joint one.
    step: Vec<[usize; 2]>,
}

impl Joint {
    /// None where it would multiply too much.
    fn of(members: &[Conv2d], most: u64) -> Option<Joint> {
        let mut geometry = members[0];
        geometry.out_channels = members.iter().map(|g| g.out_channels).sum();
        let (mut before, mut step) = (vec![[0; 2]; members.len()], vec![[0; 2]; members.len()]);
        for axis in 0..2 {
            let stride = members.iter().map(|g| g.stride[axis]).min()?;
            let first = members.iter().map(|g| g.padding[2 * axis]).max()?;
            let mut results = 0;
            geometry.kernel[axis] = 0;
            for (m, g) in members.iter().enumerate() {
                if !g.stride[axis].is_multiple_of(stride) || g.output()[axis] == 0 {
                    return None;
                }
                before[m][axis] = first - g.padding[2 * axis];
                step[m][axis] = g.stride[axis] / stride;
                geometry.kernel[axis] = geometry.kernel[axis].max(before[m][axis] + g.kernel[axis]);
                results = results.max((g.output()[axis] - 1) * step[m][axis] + 1);
            }
            let reached = (results - 1) * stride + geometry.kernel[axis];
            let last = reached.saturating_sub(geometry.input[axis] + first);
            (geometry.stride[axis], geometry.padding[2 * axis], geometry.padding[2 * axis + 1]) =
                (stride, first, last);
        }
        let alone: u64 = members.iter().map(Conv2d::macs).sum();
        (geometry.macs() <= most.saturating_mul(alone)).then_some(Joint { geometry, before, step })
    }
}

struct Rebuilt<'a> {
    plan: &'a Plan,
    /// New numbers of the nodes so far.
    map: Vec<Option<usize>>,
    nodes: Vec<Node>,
}

impl Rebuilt<'_> {
    fn push(&mut self, op: Op, inputs: Vec<usize>, ty: Type, layer: &str) -> usize {
        self.nodes.push(Node { op, inputs, ty, layer: layer.into(), form: None });
        self.nodes.len() - 1
    }

    /// A node and what it needs, unless it is there.
    fn keep(&mut self, id: usize) -> usize {
        if let Some(there) = self.map[id] {
            return there;
        }
        let plan = self.plan;
        let node = &plan.nodes[id];
        let inputs = node.inputs.iter().map(|&i| self.keep(i)).collect();
        self.nodes.push(Node { inputs, ..node.clone() });
        let new = self.nodes.len() - 1;
        self.map[id] = Some(new);
        new
    }

    /// One convolution with all filters, and each one's results.
    fn join(&mut self, group: &[usize]) {
        let plan = self.plan;
        let members: Vec<Conv2d> = group.iter().map(|&id| geometry_of(plan, id)).collect();
        let Joint { geometry, before, step } = Joint::of(&members, u64::MAX).expect("a group fits");
        let first = &plan.nodes[group[0]];
        let layer = common_layer(plan, group);
        let mut inputs = vec![self.keep(first.inputs[0])];
        let [high, wide] = geometry.kernel;
        let filters: Vec<usize> = (0..group.len())
            .map(|m| {
                let w = self.keep(plan.nodes[group[m]].inputs[1]);
                if members[m].kernel == geometry.kernel {
                    return w;
                }
                let around = |axis: usize| {
                    let after = geometry.kernel[axis] - before[m][axis] - members[m].kernel[axis];
                    [before[m][axis], after]
                };
                let mut ty = self.nodes[w].ty.clone();
                (ty.shape[2], ty.shape[3]) = (high, wide);
                let amounts = vec![[0; 2], [0; 2], around(0), around(1)];
                self.push(Op::Pad { amounts }, vec![w], ty, &layer)
            })
            .collect();
        inputs.push(self.behind(filters, &layer));
        if first.inputs.len() > 2 {
            let biases = group.iter().map(|&id| self.keep(plan.nodes[id].inputs[2])).collect();
            inputs.push(self.behind(biases, &layer));
        }
        let [rows, columns] = geometry.output();
        let of = |channels: usize, [rows, columns]: [usize; 2]| Type {
            shape: vec![geometry.batch, channels, rows, columns],
            ..first.ty.clone()
        };
        let ty = of(geometry.out_channels, [rows, columns]);
        let all = self.push(Op::Conv2d { geometry }, inputs, ty, &layer);
        let mut start = 0;
        for ((&id, g), step) in group.iter().zip(&members).zip(step) {
            let (end, layer) = (start + g.out_channels, &plan.nodes[id].layer);
            let channels = Op::Slice { dim: 1, start, end, step: 1 };
            let mut at = self.push(channels, vec![all], of(g.out_channels, [rows, columns]), layer);
            start = end;
            let mut size = [rows, columns];
            for axis in 0..2 {
                let end = (g.output()[axis] - 1) * step[axis] + 1;
                if step[axis] == 1 && end == size[axis] {
                    continue;
                }
                size[axis] = g.output()[axis];
                let slice = Op::Slice { dim: 2 + axis, start: 0, end, step: step[axis] };
                at = self.push(slice, vec![at], of(g.out_channels, size), layer);
            }
            self.map[id] = Some(at);
        }
    }

    /// One tensor behind the other.
    fn behind(&mut self, parts: Vec<usize>, layer: &str) -> usize {
        let mut ty = self.nodes[parts[0]].ty.clone();
        ty.shape[0] = parts.iter().map(|&part| self.nodes[part].ty.shape[0]).sum();
        self.push(Op::Concat { dim: 0 }, parts, ty, layer)
    }
}
