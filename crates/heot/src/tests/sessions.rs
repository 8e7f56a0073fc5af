//! Sessions: what is refused and why, hints that are new for every set and shared by clients, and their life.

use super::*;

fn small_network() -> (Plan, BTreeMap<String, Vec<u64>>) {
    let plan = cases().into_iter().find(|case| case.name.starts_with("small network")).unwrap().plan;
    let mut prg = Seed::random().stream();
    let weights = plan.nodes.iter().filter_map(|node| {
        let Op::Weight { name, .. } = &node.op else { return None };
        Some((name.clone(), prg.elements(Ring::new(20), node.ty.len())))
    });
    let weights = weights.collect();
    (plan, weights)
}

/// Bits past the last element, sessions of the other side, masks that are another session's or not there, records cut off.
#[test]
fn wrong_messages_sessions_and_records_are_refused_with_their_reason() {
    let (plan, weights) = small_network();
    let refused = Mesh::new(2).run(|links| {
        let side = Side::ALL[links.me()];
        let (plan, zeros) = (&plan, zero_inputs(&plan));
        let own = session(links, plan, &weights, &mut []);
        // of which the other side has the other one
        let other = match side {
            Side::Server => Session::join(plan, 1, spool(), &mut [], links.to(1)),
            Side::Client => Session::serve(plan, hints(plan, &weights), &mut [], links.to(0)),
        };
        let other = other.unwrap();
        let channel = links.to(1 - links.me());
        let [mut short, mut cut] = [0, 1].map(|_| kept(|keep| keep(&[0]).unwrap()));
        let mut said = Vec::new();
        let mut none = |_: &[u8]| Err(KeyError::Corrupt("the disk is full".into()));
        said.push(make_material(plan, (side, Link::Near), channel, &mut none).unwrap_err_text());
        let mut cx = Cx::new(side, channel, &mut cut, Seed::from_bytes([9; 16]), 1);
        let of = Leaves::whole(3, Wanted::Less, Digits::Three);
        said.push(cx.take(of, 8).unwrap_err_text());
        said.push(cx.take(of, 8).unwrap_err_text());
        // three elements in a byte: nothing may be past them
        assert!(cx.incoming(3, vec![7]).is_ok());
        said.push(cx.incoming(3, vec![7, 8]).unwrap_err_text());
        for session in [&other, &own] {
            let given = Given { inputs: zeros.clone(), publics: BTreeMap::new(), masks: &mut short };
            said.push(walk(&mut cx, plan, session, given, &mut |_, _| {}).unwrap_err_text());
        }
        said
    });
    let whys = ["the disk is full", "were due", "has ended", "bits past", "of the other side", "were due"];
    for said in refused {
        assert_eq!(said.len(), whys.len());
        for (said, why) in said.iter().zip(whys) {
            assert!(said.contains(why), "{said}");
        }
    }
}

/// What announces hints is read in full or not at all; parameters that nobody has are refused, and weights that are not there.
#[test]
fn announcements_that_nobody_can_read_are_refused() {
    let (plan, weights) = small_network();
    let announced = |bytes: &[u8]| {
        Mesh::new(2).run(|links| {
            let side = Side::ALL[links.me()];
            let channel = links.to(side.other() as usize);
            match side {
                Side::Server => {
                    channel.send(&Step::new(1, "announced hints"), bytes.to_vec()).unwrap();
                    String::new()
                }
                Side::Client => {
                    Session::join(&plan, 1, spool(), &mut [], channel).map(|_| ()).unwrap_err().to_string()
                }
            }
        })[1]
            .clone()
    };
    // a norm for which there are no parameters
    let mut wide = vec![7; 26];
    (wide[16], wide[17], wide[25]) = (255, 1, 0);
    assert!(announced(&wide).contains("modulus"), "{}", announced(&wide));
    // a link that nobody knows
    wide[17] = 2;
    assert!(announced(&wide).contains("nobody can read"), "{}", announced(&wide));
    assert!(announced(&[0; 25]).contains("25 bytes"), "{}", announced(&[0; 25]));
    let missing = Weights::new(&plan, BTreeMap::new()).unwrap_err_text();
    assert!(missing.contains("was not given"), "{missing:?}");
    assert_eq!(weights.len(), plan.nodes.iter().filter(|n| matches!(n.op, Op::Weight { .. })).count());
}

/// Hints draw all anew: two sets at equal weights have nothing alike, and masks neither.
#[test]
fn hints_and_masks_of_equal_weights_differ() {
    let (plan, weights) = small_network();
    let drawn = Mesh::new(2).run(|links| {
        let mut all = Vec::new();
        for _ in 0..2 {
            // two with the hints, and three afterwards
            let mut first = [Vec::new(), Vec::new()];
            let mut keeps = first.each_mut().map(|masks| {
                |message: &[u8]| {
                    masks.push(message.to_vec());
                    Ok(())
                }
            });
            let [one, two] = &mut keeps;
            let session = session(links, &plan, &weights, &mut [one, two]);
            // two together, and one
            let channel = links.to(1 - links.me());
            let mut both = [(); 2].map(|()| MemoryKeys::default());
            let mut keeps = both.each_mut().map(|masks| {
                |message: &[u8]| {
                    masks.push(message.to_vec());
                    Ok(())
                }
            });
            let [one, two] = &mut keeps;
            session.make_masks(&plan, channel, &mut [one, two]).unwrap();
            let last = kept(|keep| session.make_masks(&plan, channel, &mut [keep]).unwrap());
            let frames = |masks: &MemoryKeys| masks.frames().map(<[u8]>::to_vec).collect::<Vec<_>>();
            let further = both.iter().chain([&last]).map(frames);
            all.extend(first.into_iter().chain(further).map(|masks| (*session.name(), masks)));
        }
        all
    });
    assert!(drawn[0].iter().zip(&drawn[1]).all(|(server, client)| server.0 == client.0));
    for drawn in drawn {
        let (one, other) = drawn.split_at(5);
        assert!(
            one.iter().all(|(name, _)| *name == one[0].0)
                && other.iter().all(|(name, _)| *name == other[0].0)
        );
        assert!(one[0].0 != other[0].0 && drawn.iter().all(|(_, masks)| masks.len() == one[0].1.len()));
        for (i, (_, masks)) in drawn.iter().enumerate() {
            let others = drawn.iter().enumerate().filter(|(j, _)| *j != i).flat_map(|(_, d)| &d.1);
            assert!(others.into_iter().all(|other| !masks.contains(other)), "masks {i} came twice");
        }
    }
    let outputs: u64 = 1 << 34;
    assert!(most_runs(&plan) > 1 << 20 && most_runs(&plan) < outputs);
}

/// One set of hints for two clients: the same bytes for both, masks of their own, and runs that are counted together.
#[test]
fn sessions_of_several_clients_share_hints_and_their_life() {
    let (plan, weights) = small_network();
    let shared = hints(&plan, &weights);
    let begun = |_: usize| {
        Mesh::new(2).run(|links| {
            let side = Side::ALL[links.me()];
            let channel = links.to(1 - links.me());
            let session = match side {
                Side::Server => Session::serve(&plan, Arc::clone(&shared), &mut [], channel).unwrap(),
                Side::Client => Session::join(&plan, 1, spool(), &mut [], channel).unwrap(),
            };
            let masks = kept(|keep| session.make_masks(&plan, channel, &mut [keep]).unwrap());
            (session, masks.frames().map(<[u8]>::to_vec).collect::<Vec<_>>())
        })
    };
    let sessions = [0, 1].map(begun);
    let names: Vec<&[u8; 32]> = sessions.iter().flatten().map(|(session, _)| session.name()).collect();
    assert!(names.iter().all(|name| *name == names[0]), "all hold the same hints");
    for (first, second) in sessions[0].iter().zip(&sessions[1]) {
        assert!(first.1.iter().all(|mask| !second.1.contains(mask)), "clients have masks of their own");
    }
    let whole = most_runs(&plan);
    for (n, session) in [0, 1, 1, 0, 1].into_iter().enumerate() {
        assert!(sessions[session][0].0.take_run());
        let left = whole - n as u64 - 1;
        assert!(sessions.iter().all(|both| both[0].0.runs_left() == left) && shared.runs_left() == left);
    }
    assert_eq!(sessions[0][1].0.runs_left(), whole, "a client counts its own");
}

/// Two clients whose sessions begin at once, and one whose session broke off before: each layer's hint is made once for all of them.
#[test]
fn sessions_that_begin_at_once_share_what_each_makes_of_the_hints() {
    let (plan, weights) = small_network();
    let shared = hints(&plan, &weights);
    // it hangs up after the first hint
    let broken = Mesh::new(2).run(|links| match Side::ALL[links.me()] {
        Side::Server => {
            let full = &mut |_: &[u8]| Err(KeyError::Corrupt("the disk is full".into()));
            Session::serve(&plan, Arc::clone(&shared), &mut [full], links.to(1)).unwrap_err_text()
        }
        Side::Client => {
            let keep = &mut |_: &[u8]| Ok(());
            // whether it notices depends on who is faster
            Session::join(&plan, 1, spool(), &mut [keep], links.to(0))
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default()
        }
    });
    assert!(broken[0].contains("the disk is full"), "{broken:?}");
    let begun = || {
        Mesh::new(2).run(|links| {
            let me = links.me();
            let channel = links.to(1 - me);
            let mut masks = Vec::new();
            let keep = &mut |mask: &[u8]| {
                masks.push(mask.to_vec());
                Ok(())
            };
            let session = match Side::ALL[me] {
                Side::Server => Session::serve(&plan, Arc::clone(&shared), &mut [keep], channel),
                Side::Client => Session::join(&plan, 1, spool(), &mut [keep], channel),
            };
            (*session.unwrap().name(), masks)
        })
    };
    let [one, other] = std::thread::scope(|scope| {
        [scope.spawn(begun), scope.spawn(begun)].map(|session| session.join().unwrap())
    });
    let names: Vec<&[u8; 32]> = one.iter().chain(&other).map(|(name, _)| name).collect();
    assert!(names.iter().all(|name| *name == names[0]), "all hold the same hints");
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one.1.len(), other.1.len());
        assert!(one.1.iter().all(|mask| !other.1.contains(mask)), "clients have masks of their own");
    }
}

/// Where a hint cannot rest the session ends, nothing of the layer is sent, and the next session makes it anew.
#[test]
fn a_layer_whose_hint_cannot_rest_is_made_by_the_next_session() {
    let (plan, weights) = small_network();
    let full = std::sync::atomic::AtomicBool::new(true);
    let spool = Spool::holding(0, move || match full.swap(false, std::sync::atomic::Ordering::SeqCst) {
        true => Err(std::io::Error::other("the disk is full")),
        false => tempfile::tempfile(),
    });
    let made = Weights::new(&plan, weights).unwrap();
    let hints = Arc::new(Hints::new(&plan, Arc::new(made), AIM, 1, spool));
    let begun = || {
        let mut mesh = Mesh::new(2);
        let log = mesh.record();
        let said = mesh.run(|links| {
            let me = links.me();
            let channel = links.to(1 - me);
            let session = match Side::ALL[me] {
                Side::Server => Session::serve(&plan, Arc::clone(&hints), &mut [], channel),
                Side::Client => Session::join(&plan, 1, super::spool(), &mut [], channel),
            };
            session.map(|session| *session.name()).map_err(|e| e.to_string())
        });
        (said, log.of(0).iter().filter(|sent| sent.step.name.ends_with(" / hint")).count())
    };
    let (said, sent) = begun();
    assert!(said[0].as_ref().is_err_and(|e| e.contains("the disk is full")) && said[1].is_err(), "{said:?}");
    assert_eq!(sent, 0, "hints that were sent");
    let (said, sent) = begun();
    assert!(said[0].is_ok() && said[0] == said[1] && sent > 1, "{said:?}, {sent} hints");
}

/// Whoever asks at the same time: no run is given twice, and none beyond the last.
#[test]
fn a_life_ends_after_its_last_run() {
    let (runs, life) = (1000, Life::of(1000));
    let taken: u64 = std::thread::scope(|scope| {
        let asks = || (0..runs).filter(|_| life.take()).count() as u64;
        let all: Vec<_> = (0..4).map(|_| scope.spawn(asks)).collect();
        all.into_iter().map(|asks| asks.join().unwrap()).sum()
    });
    assert_eq!((taken, life.left(), life.take()), (runs, 0, false));
}

/// Shares of inputs that are nothing but zeros.
fn zero_inputs(plan: &Plan) -> HashMap<ValueId, Vec<u64>> {
    let nodes = plan.nodes.iter().enumerate().filter(|(_, node)| matches!(node.op, Op::Input { .. }));
    nodes.map(|(v, node)| (v, vec![0; node.ty.len()])).collect()
}

trait ErrorText {
    fn unwrap_err_text(self) -> String;
}

impl<T> ErrorText for Result<T, crate::RunError> {
    fn unwrap_err_text(self) -> String {
        self.map(|_| ()).unwrap_err().to_string()
    }
}
