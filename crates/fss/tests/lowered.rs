//! A step of training as lowering writes it, several times.

mod common;

use common::{NUMBER, RecordCoins, World};
use privet_fss::SessionMasks;
use privet_plan::interpret_step;
use privet_plan::suite::{lowered_operands, lowered_step};
use privet_prg::{Domain, Seed};
use privet_ring::{Ring, Tensor};
use privet_testkit::Mesh;

#[test]
fn lowered_steps_are_the_interpreters() {
    let case = lowered_step();
    let seed = Seed::random();
    let mut stream = seed.stream();
    let [inputs, mut weights] = lowered_operands(&case.plan, &mut || stream.elements(Ring::R64, 1)[0]);
    for step in 0..3 {
        let record = seed.derive(Domain::Record, NUMBER + step);
        let (world, mut keys) = World::new(&case.plan, &[inputs.clone(), weights.clone()], &seed, &record);
        let session = SessionMasks::new(&case.plan, world.device.as_ref(), &seed);
        let mut coins = RecordCoins { plan: &case.plan, session, record: &record };
        let (outputs, next) = interpret_step(&case.plan, &inputs, &weights, &mut coins).unwrap();
        let [k0, k1] = &mut keys;
        let [y0, y1] = world.run([k0, k1], Mesh::new(2)).map(Result::unwrap);
        case.compare(&world.outputs([&y0, &y1]), &outputs);
        assert_eq!(outputs[1].data(), [1], "everything is in range");
        let found = world.updates([&y0, &y1]);
        assert_eq!(found.len(), 5);
        for (name, value) in found {
            assert_eq!(value, next[&name].data(), "`{name}` after step {step}");
            assert_ne!(value, weights[&name].data(), "`{name}` in step {step}");
            let shape = next[&name].shape().to_vec();
            weights.insert(name, Tensor::new(shape, value).unwrap());
        }
    }
}
