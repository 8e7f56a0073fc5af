//! Gates whose dealt words fill more than one frame: bits that were opened choose among the words of their own elements.

mod common;

use common::World;
use privet_plan::interpret;
use privet_plan::ir::{Op, Rounding};
use privet_plan::suite::{constant, gate};
use privet_prg::Seed;
use privet_testkit::Mesh;

/// Two frames of one word each, and more of two.
const N: usize = 70_001;

#[test]
fn elements_beyond_the_first_frame_are_the_interpreters() {
    let truncate = Op::Truncate { shift: 4, rounding: Rounding::Floor };
    let gates = [
        (Op::Relu, 1, [64, 64]),
        (Op::Relu, 1, [60, 64]),
        (truncate.clone(), 1, [64, 60]),
        (truncate, 1, [60, 60]),
        (Op::Equal, 2, [64, 64]),
    ];
    for (op, inputs, [from, to]) in gates {
        let plan = gate(op, inputs, N, from, to);
        for word in [0x5_4321_u64, 0x5_4321_u64.wrapping_neg()] {
            let operands = constant(&plan, |_| word);
            let (world, mut keys) = World::new(&plan, &operands, &Seed::random(), &Seed::random());
            let mut coins = |_, _, _| -> Vec<u64> { unreachable!("nothing here takes a coin") };
            let truth = interpret(&plan, &operands[0], &operands[1], &mut coins).unwrap();
            let [k0, k1] = &mut keys;
            let [y0, y1] = world.run([k0, k1], Mesh::new(2)).map(Result::unwrap);
            let found = world.outputs([&y0, &y1]);
            assert!(
                found[0] == truth[0].data(),
                "{:?} from {from} to {to} bits of {word:x}",
                plan.nodes[inputs].op
            );
        }
    }
}
