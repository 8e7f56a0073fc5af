//! Steps of training as lowering writes them, several times.

mod common;

use common::{NUMBER, RecordCoins, World};
use privet_fss::SessionMasks;
use privet_plan::interpret_step;
use privet_plan::suite::{LoweredStep, lowered_steps};
use privet_prg::{Domain, Seed};
use privet_ring::{Ring, Tensor};
use privet_testkit::Mesh;

#[test]
fn lowered_steps_are_the_interpreters() {
    lowered_steps().iter().for_each(is_the_interpreters);
}

fn is_the_interpreters(lowered: &LoweredStep) {
    let case = &lowered.case;
    let seed = Seed::random();
    let mut stream = seed.stream();
    let [inputs, mut weights] = lowered.operands(&mut || stream.elements(Ring::R64, 1)[0]);
    for step in 0..3 {
        let record = seed.derive(Domain::Record, NUMBER + step);
        let (world, mut keys) = World::new(&case.plan, &[inputs.clone(), weights.clone()], &seed, &record);
        let session = SessionMasks::new(&case.plan, world.device.as_ref(), &seed);
        let mut coins = RecordCoins { plan: &case.plan, session, record: &record };
        let (outputs, next) = interpret_step(&case.plan, &inputs, &weights, &mut coins).unwrap();
        let [k0, k1] = &mut keys;
        let [y0, y1] = world.run([k0, k1], Mesh::new(2)).map(Result::unwrap);
        case.compare(&world.outputs([&y0, &y1]), &outputs);
        for (output, value) in case.plan.outputs.iter().zip(&outputs) {
            assert!(!output.name.starts_with("in_range") || value.data() == [1], "{}", output.name);
        }
        let found = world.updates([&y0, &y1]);
        assert_eq!(found.len(), case.plan.updates.len());
        for (name, value) in found {
            assert_eq!(value, next[&name].data(), "{}: `{name}` after step {step}", case.name);
            assert_ne!(value, weights[&name].data(), "{}: `{name}` in step {step}", case.name);
            let shape = next[&name].shape().to_vec();
            weights.insert(name, Tensor::new(shape, value).unwrap());
        }
    }
}
