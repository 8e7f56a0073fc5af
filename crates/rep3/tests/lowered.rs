//! A step of training as lowering writes it, several times.

mod common;

use common::{Common, World, derived, updated};
use privet_plan::interpret_step;
use privet_plan::suite::{lowered_operands, lowered_step};
use privet_prg::{Domain, Seed};
use privet_rep3::Security;
use privet_ring::{Ring, Tensor};
use privet_testkit::Mesh;

#[test]
fn lowered_steps_are_the_interpreters() {
    let case = lowered_step();
    for security in [Security::SemiHonest, Security::Malicious] {
        let seed = Seed::random();
        let mut stream = seed.derive(Domain::Public, 0).stream();
        let [inputs, mut weights] = lowered_operands(&case.plan, &mut || stream.elements(Ring::R64, 1)[0]);
        let mut world = World::new(&case.plan, security, &[inputs.clone(), weights.clone()], &seed);
        for number in 0..2 {
            let session = common::keys(&seed.derive(Domain::Session, 0));
            let mut coins = Common(&case.plan, security, derived(&derived(&session, number), 0));
            let (truth, next) = interpret_step(&case.plan, &inputs, &weights, &mut coins).unwrap();
            world.keys = session.each_ref().map(|keys| keys.derive(number));
            let outcomes = world.run(Mesh::new(3)).map(Result::unwrap);
            for (states, outcome) in world.states.iter_mut().zip(&outcomes) {
                states.extend(outcome.states.clone());
            }
            case.compare(&world.outputs(outcomes.each_ref()), &truth);
            assert_eq!(truth[1].data(), [1], "everything is in range");
            for (name, value) in updated(&case.plan, outcomes.each_ref()) {
                assert_eq!(value, next[&name].data(), "{security}: {name} after step {number}");
                assert_ne!(value, weights[&name].data(), "{security}: {name} in step {number}");
                let shape = next[&name].shape().to_vec();
                weights.insert(name, Tensor::new(shape, value).unwrap());
            }
        }
    }
}
