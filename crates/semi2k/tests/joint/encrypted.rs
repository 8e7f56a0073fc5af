//! Products by encryption among 2, 3 and 5 parties: shares add up to the products of the sums, for several calls with the
//! same weights; bytes and work are as declared.

use super::*;
use privet_family::Products;
use privet_kernels::LinearShape;
use privet_ring::Conv2d;
use privet_semi2k::{Encryption, Task, elements_cost};

const BASE: Conv2d = Conv2d {
    batch: 1,
    in_channels: 3,
    input: [9, 8],
    out_channels: 4,
    kernel: [3, 3],
    stride: [1, 1],
    padding: [1; 4],
    dilation: [1, 1],
    groups: 1,
};

fn task(shape: LinearShape, count: usize, runs: usize, ring: Ring) -> Task {
    Task { what: Products { shape, count }, runs, calls: 2, ring, owner: None }
}

/// One run's products, in the clear, on the device that all families use.
fn clear(what: Products, ring: Ring, x: &[u64], w: &[u64]) -> Vec<u64> {
    let device = privet_kernels::cpu(1);
    let mut out = vec![0; what.output_len()];
    what.accumulate(&*device, ring, x, &what.prepare(&*device, ring, w), &mut out);
    out.into_iter().map(|y| ring.wrap(y)).collect()
}

/// Operand `number` of every party; `extreme` has the ends of the ring alone.
fn operand(party: usize, number: u8, ring: Ring, n: usize, extreme: bool) -> Vec<u64> {
    let all = elements(party, number, R64, n).into_iter();
    if !extreme {
        return all.map(|x| ring.wrap(x)).collect();
    }
    let top = 1 << (ring.bits() - 1);
    all.map(|x| ring.wrap([top, top - 1, u64::MAX, 0][(x & 3) as usize])).collect()
}

fn added(parties: usize, ring: Ring, of: impl Fn(usize) -> Vec<u64>) -> Vec<u64> {
    let mut sum = vec![0u64; of(0).len()];
    for party in 0..parties {
        sum.iter_mut().zip(of(party)).for_each(|(sum, x)| *sum = ring.wrap(sum.wrapping_add(x)));
    }
    sum
}

fn session(t: &mut Transfers<'_>, seed: u8) -> Encryption {
    let me = t.seats().parties().start;
    t.encryption(&Seed::from_bytes([seed + me as u8; 16]), 1 + me % 2).unwrap()
}

/// Two calls with the same weights.
fn products_are_right(parties: usize, task: Task, room: usize, extreme: bool) {
    let Task { what: Products { shape, count }, runs, ring, .. } = task;
    let (n, each) = (count * shape.weight_len(), count * shape.input_len());
    let x = |party, call: u8| operand(party, call, ring, runs * each, extreme);
    let w = |party| operand(party, 9, ring, n, extreme);
    let narrow = |bits| -> Vec<u64> {
        let narrow = Ring::new(bits);
        w(0).into_iter().map(|w| ring.wrap(narrow.signed(narrow.wrap(w)) as u64)).collect()
    };
    let all = joint(parties, |t| {
        let me = t.seats().parties().start;
        let mut session = session(t, 200).with_room(room);
        let own = match task.owner {
            None => Some(w(me)),
            Some((owner, bits)) => (owner == me).then(|| narrow(bits)),
        };
        let linear = t.linear(&mut session, task, own.as_deref()).unwrap();
        [0, 1].map(|call| {
            let x = Words::new(Seats::one(me), ring, vec![Secret::new(x(me, call))]);
            t.products(&mut session, &linear, &x).unwrap()
        })
    });
    let w = task.owner.map_or_else(|| added(parties, ring, w), |(_, bits)| narrow(bits));
    for call in 0..2 {
        let x = added(parties, ring, |party| x(party, call as u8));
        let expected: Vec<u64> = x.chunks(each).flat_map(|x| clear(task.what, ring, x, &w)).collect();
        let found = sum(all.iter().map(|calls| &calls[call]));
        assert_eq!(
            found, expected,
            "{parties} parties, {shape:?} {count} times, {runs} runs, {ring}, call {call}"
        );
    }
}

const ROOM: usize = 1 << 30;

#[test]
fn matrix_products() {
    let plain = |m, k, n| LinearShape::MatMul { m, k, n };
    let torch = |m, k, n| LinearShape::MatMulT { m, k, n };
    for (parties, shape, count, runs, k) in [
        (2, torch(3, 50, 7), 1, 1, 64),
        (2, plain(4, 20, 9), 3, 2, 64),
        (3, torch(2, 90, 5), 1, 4, 41),
        (3, plain(5, 6, 8), 2, 3, 24),
        (5, torch(1, 30, 10), 1, 1, 64),
        (2, plain(1, 1, 1), 1, 1, 1),
    ] {
        products_are_right(parties, task(shape, count, runs, Ring::new(k)), ROOM, false);
    }
    // transposed operands of a training step: x^T g and g W
    products_are_right(2, task(plain(40, 16, 10), 1, 1, R64), ROOM, false);
}

#[test]
fn matrix_products_at_the_ends_of_the_ring() {
    for parties in [2, 3, 5] {
        let shape = LinearShape::MatMulT { m: 3, k: 500, n: 20 };
        products_are_right(parties, task(shape, 1, 1, R64), ROOM, true);
        products_are_right(parties, task(shape, 1, 1, Ring::new(37)), ROOM, true);
    }
}

#[test]
fn weights_whose_values_are_not_kept() {
    let shape = LinearShape::MatMulT { m: 3, k: 500, n: 20 };
    products_are_right(2, task(shape, 1, 1, R64), 0, false);
}

#[test]
fn convolutions_of_networks() {
    for (parties, runs, conv) in [
        (2, 1, BASE),
        (
            3,
            2,
            Conv2d {
                in_channels: 1,
                input: [12, 12],
                out_channels: 5,
                kernel: [5, 5],
                padding: [0; 4],
                ..BASE
            },
        ),
        (2, 2, Conv2d { kernel: [7, 7], stride: [2, 2], padding: [3; 4], input: [14, 15], ..BASE }),
        (2, 1, Conv2d { kernel: [1, 1], stride: [2, 2], padding: [0; 4], in_channels: 8, ..BASE }),
        (5, 1, Conv2d { stride: [2, 2], batch: 2, ..BASE }),
        (2, 3, Conv2d { groups: 4, in_channels: 4, out_channels: 4, ..BASE }),
        (
            3,
            1,
            Conv2d {
                groups: 2,
                in_channels: 4,
                out_channels: 6,
                dilation: [2, 1],
                padding: [2, 2, 1, 1],
                ..BASE
            },
        ),
    ] {
        products_are_right(parties, task(LinearShape::Conv2d(conv), 1, runs, R64), ROOM, false);
    }
}

#[test]
fn weights_that_one_party_knows() {
    for (parties, owner) in [(2, 0), (2, 1), (3, 1), (3, 2)] {
        let shape = LinearShape::MatMulT { m: 4, k: 60, n: 6 };
        let known = Task { owner: Some((owner, 20)), ..task(shape, 1, 2, R64) };
        products_are_right(parties, known, ROOM, false);
    }
    let conv = Task { owner: Some((0, 16)), ..task(LinearShape::Conv2d(BASE), 1, 1, Ring::new(48)) };
    products_are_right(3, conv, ROOM, false);
}

#[test]
fn many_products_of_elements() {
    for (parties, k, n, extreme) in
        [(2, 64, 10_000, false), (2, 64, 100, true), (3, 41, 9000, true), (5, 64, 50, true), (2, 1, 5, false)]
    {
        let ring = Ring::new(k);
        let (x, y) = (|p| operand(p, 1, ring, n, extreme), |p| operand(p, 2, R64, n, extreme));
        let all = joint(parties, |t| {
            let me = t.seats().parties().start;
            let share = |ring, v| Words::new(Seats::one(me), ring, vec![Secret::new(v)]);
            let mut session = session(t, 210);
            t.multiply_encrypted(&mut session, &share(ring, x(me)), &share(R64, y(me))).unwrap()
        });
        let (a, b) = (added(parties, ring, x), added(parties, R64, y));
        let expected: Vec<u64> = a.iter().zip(&b).map(|(a, b)| ring.wrap(a.wrapping_mul(*b))).collect();
        assert_eq!(sum(&all), expected, "{parties} parties, {ring}, {n} elements");
    }
}

/// Bytes of each party at the steps of encryption, and the work, against what is declared.
#[test]
fn costs_are_those_declared() {
    for (parties, owner) in [(2, None), (3, None), (2, Some(0)), (3, Some(2))] {
        let task = task(LinearShape::MatMulT { m: 30, k: 300, n: 40 }, 1, 2, R64);
        let task = Task { calls: 1, owner: owner.map(|owner| (owner, 64)), ..task };
        let n = 9000;
        let mut mesh = Mesh::new(parties);
        let log = mesh.record();
        let work = mesh.run(|links| {
            let me = links.me();
            with_transfers(links, |t| {
                let mut session = session(t, 200);
                let w = elements(me, 9, R64, task.what.shape.weight_len());
                let w = owner.is_none_or(|owner| owner == me).then_some(&w[..]);
                let linear = t.linear(&mut session, task, w).unwrap();
                t.products(&mut session, &linear, &words(me, 1, R64, 2 * task.what.shape.input_len()))
                    .unwrap();
                let before = session.work();
                t.multiply_encrypted(&mut session, &words(me, 1, R64, n), &words(me, 2, R64, n)).unwrap();
                let after = session.work();
                [before, (after.0 - before.0, after.1 - before.1)]
            })
        });
        for (me, work) in work.iter().enumerate() {
            let declared = [task.cost(parties, me).unwrap(), elements_cost(R64, n, parties).unwrap()];
            for (i, c) in declared.iter().enumerate() {
                let work = work[i];
                assert_eq!(work, (c.hint_transforms + c.transforms, c.hint_products + c.products));
            }
            let sent = |name: &str| -> usize {
                log.of(me).iter().filter(|s| &*s.step.name == name).map(|s| s.bytes.len()).sum()
            };
            let [linear, elements] = declared;
            let partial = |bytes| if me + 1 < parties { bytes } else { 0 };
            assert_eq!(sent("encrypted products / weights"), (parties - 1) * linear.hint_bytes);
            let readers = if owner.is_none() { parties - 1 } else { 1 };
            assert_eq!(sent("encrypted products / operand"), readers * linear.operand_bytes);
            assert_eq!(sent("encrypted products / shares"), partial(linear.partial_bytes));
            let both = elements.hint_bytes + elements.operand_bytes;
            assert_eq!(sent("encrypted products of words / operands"), (parties - 1) * both);
            assert_eq!(sent("encrypted products of words / shares"), partial(elements.partial_bytes));
        }
    }
}
