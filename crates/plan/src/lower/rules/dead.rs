use crate::graph::GraphOp;
use crate::lower::draft::Draft;

/// Remove what no output and no update depends on. Inputs stay: the data owner still announces them.
pub(super) fn apply(draft: &mut Draft<'_>) {
    let nodes = std::mem::take(&mut draft.graph.nodes);
    let mut live: Vec<bool> = nodes.iter().map(|n| matches!(n.op, GraphOp::Input { .. })).collect();
    for output in &draft.graph.outputs {
        live[output.node] = true;
    }
    for update in &draft.graph.updates {
        (live[update.state], live[update.node]) = (true, true);
    }
    for id in (0..nodes.len()).rev() {
        if live[id] {
            nodes[id].inputs.iter().for_each(|&i| live[i] = true);
        }
    }
    let mut map = vec![usize::MAX; nodes.len()];
    for (id, mut node) in nodes.into_iter().enumerate().filter(|(id, _)| live[*id]) {
        node.inputs.iter_mut().for_each(|i| *i = map[*i]);
        map[id] = draft.graph.nodes.len();
        draft.graph.nodes.push(node);
    }
    draft.renumber(&map);
}
