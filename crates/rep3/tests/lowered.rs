//! Steps of training as lowering writes them, several times.

mod common;

use common::{Common, World, derived, updated};
use privet_plan::interpret_step;
use privet_plan::suite::{LoweredStep, lowered_steps};
use privet_prg::{Domain, Seed};
use privet_rep3::Security;
use privet_ring::{Ring, Tensor};
use privet_testkit::Mesh;

#[test]
fn lowered_steps_are_the_interpreters() {
    lowered_steps().iter().for_each(is_the_interpreters);
}

fn is_the_interpreters(lowered: &LoweredStep) {
    let case = &lowered.case;
    for security in [Security::SemiHonest, Security::Malicious] {
        let seed = Seed::random();
        let mut stream = seed.derive(Domain::Public, 0).stream();
        let [inputs, mut weights] = lowered.operands(&mut || stream.elements(Ring::R64, 1)[0]);
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
            for (output, value) in case.plan.outputs.iter().zip(&truth) {
                assert!(!output.name.starts_with("in_range") || value.data() == [1], "{}", output.name);
            }
            for (name, value) in updated(&case.plan, outcomes.each_ref()) {
                assert_eq!(
                    value,
                    next[&name].data(),
                    "{}, {security}: {name} after step {number}",
                    case.name
                );
                assert_ne!(
                    value,
                    weights[&name].data(),
                    "{}, {security}: {name} in step {number}",
                    case.name
                );
                let shape = next[&name].shape().to_vec();
                weights.insert(name, Tensor::new(shape, value).unwrap());
            }
        }
    }
}
