//! Three parties in three threads, for this crate's unit tests.

use crate::proof::{Algebra, Claim, Kind, Transcript};
use crate::{Keys, Party, PartyId, Planes, Security, Share};
use privet_kernels::cpu;
use privet_kernels::fold::spec::spread;
use privet_prg::Seed;
use privet_ring::Ring;
use privet_testkit::Mesh;

/// The common key, and that of the coins.
pub const COMMON: [u8; 16] = [9; 16];

/// Fixed keys, so that a failing test can be repeated.
pub fn keys(id: PartyId) -> Keys {
    let key = |j: PartyId| Seed::from_bytes([j.index() as u8 + 1; 16]);
    Keys { own: key(id), next: key(id.next()), common: Seed::from_bytes(COMMON) }
}

/// Run the same program at every party over in-memory channels; results in the order of the parties.
pub fn three<T: Send>(security: Security, program: impl Fn(&mut Party) -> T + Sync) -> [T; 3] {
    three_on([1; 3], security, program)
}

/// The same, where each party has so many threads.
pub fn three_on<T: Send>(
    threads: [usize; 3],
    security: Security,
    program: impl Fn(&mut Party) -> T + Sync,
) -> [T; 3] {
    let devices = threads.map(cpu);
    let results = Mesh::new(3).run(|links| {
        let id = PartyId::ALL[links.me()];
        let [prev, next] = links.both([id.prev().index(), id.next().index()]);
        let mut party = Party::new(id, security, devices[id.index()].as_ref(), keys(id), prev, next);
        party.coin_key = Some(Seed::from_bytes(COMMON));
        program(&mut party)
    });
    results.try_into().unwrap_or_else(|_| unreachable!("three parties"))
}

impl Party<'_> {
    /// The most bytes of statements that this party remembered at a time.
    pub fn most_remembered(&mut self) -> u64 {
        self.note_remembered();
        self.most_remembered
    }

    /// What it remembers now: its transcript, and all of what is being verified.
    pub fn note_remembered(&mut self) {
        let stated = self.transcript.as_ref().map_or(0, |t| t.bytes());
        let now = stated + self.under_way.iter().map(|one| one.bytes).sum::<u64>();
        self.most_remembered = self.most_remembered.max(now);
    }
}

/// A party's share of public `values`; components 0 and 1 come from a seed that only the test knows.
pub fn share(id: PartyId, ring: Ring, values: &[u64]) -> Share {
    let mut stream = Seed::from_bytes(*b"components 0 + 1").stream();
    let (c0, c1) = (stream.elements(ring, values.len()), stream.elements(ring, values.len()));
    let last = values.iter().zip(c0.iter().zip(&c1));
    let c2 = last.map(|(x, (a, b))| ring.wrap(x.wrapping_sub(*a).wrapping_sub(*b))).collect();
    let components = [c0, c1, c2];
    Share::new(components[id.index()].clone(), components[id.next().index()].clone())
}

/// The value of three shares; fails unless both holders of every component agree.
pub fn open(ring: Ring, shares: [&Share; 3]) -> Vec<u64> {
    for id in PartyId::ALL {
        assert_eq!(shares[id.index()].next, shares[id.next().index()].own, "component of {}", id.next());
    }
    let [a, b, c] = shares.map(|s| &s.own);
    a.iter()
        .zip(b.iter().zip(c.iter()))
        .map(|(a, (b, c))| ring.wrap(a.wrapping_add(*b).wrapping_add(*c)))
        .collect()
}

/// The words of three shares of planes; fails unless both holders of every component agree.
pub fn open_planes(shares: [&Planes; 3]) -> Vec<u64> {
    for id in PartyId::ALL {
        assert_eq!(shares[id.index()].next, shares[id.next().index()].own, "component of {}", id.next());
    }
    let [a, b, c] = shares.map(|s| &s.own);
    a.iter().zip(b.iter().zip(c.iter())).map(|(a, (b, c))| a ^ b ^ c).collect()
}

/// `n` values: the edges of the ring, then uniform ones.
pub fn edges(ring: Ring, n: usize) -> Vec<u64> {
    let half = 1u64 << (ring.bits() - 1);
    let edges = [0, 1, half, half.wrapping_sub(1), half.wrapping_add(1), ring.mask(), ring.mask() - 1];
    let mut values = Seed::from_bytes([5; 16]).stream().elements(ring, n);
    values.iter_mut().zip(edges).for_each(|(x, edge)| *x = ring.wrap(edge));
    values
}

/// Run a program at three honest parties of either kind; `program` gives a share. Its value, which is the same for both
/// kinds; fails unless every statement that is to be proved holds, word by word, and each of its operands is alike at both
/// parties that have it.
pub fn value(ring: Ring, program: impl Fn(&mut Party) -> Share + Sync) -> Vec<u64> {
    let semi_honest = three(Security::SemiHonest, &program);
    let malicious = three(Security::Malicious, |cx| {
        let share = program(cx);
        (share, cx.transcript.take().expect("a transcript"))
    });
    let found = open(ring, malicious.each_ref().map(|(share, _)| share));
    assert_eq!(open(ring, semi_honest.each_ref()), found, "malicious and semi-honest differ");
    check_claims(malicious.each_ref().map(|(_, transcript)| transcript));
    found
}

/// Fails unless every statement holds.
pub fn check_claims(transcripts: [&Transcript; 3]) {
    let [a, b, c] = transcripts.map(Transcript::claims);
    assert!(a.len() == b.len() && b.len() == c.len(), "{}, {} and {} claims", a.len(), b.len(), c.len());
    for (i, claims) in a.iter().zip(b).zip(c).map(|((a, b), c)| [a, b, c]).enumerate() {
        assert!(claims.iter().all(|c| c.prover == claims[0].prover && c.kind == claims[0].kind), "claim {i}");
        let prover = claims[0].prover;
        let [p, after, before] = [prover, prover.next(), prover.prev()].map(|id| claims[id.index()]);
        let (None, Some(s_after), Some(s_before)) = (&p.rest, &after.rest, &before.rest) else {
            panic!("the views of claim {i} are not of the parties around {prover}")
        };
        let (kind, words) = (p.kind, p.words);
        assert!(claims.iter().all(|c| c.words == words && c.terms.len() == p.terms.len()), "claim {i}");
        assert!(!p.terms.is_empty() && s_after.len() == words && s_before.len() == words, "claim {i}");
        let factor = |claim: &Claim, t: usize, of: usize| {
            let found = claim.terms[t][of].as_ref()?.to_vec();
            Some(if of == 1 && kind == Kind::Numbers { spread(&found, words) } else { found })
        };
        let algebra = match kind {
            Kind::Bits | Kind::Numbers => Algebra::Bits,
            Kind::Ring(ring) => Algebra::Ring(ring),
        };
        let mut sums = algebra.sum(&s_before.to_vec(kind), &s_after.to_vec(kind));
        for t in 0..p.terms.len() {
            let [left, right] = [0, 1].map(|of| {
                let found = factor(p, t, of).expect("the prover has all factors");
                // factors are sums modulo 2^64
                let algebra = match algebra {
                    Algebra::Ring(_) => Algebra::Ring(Ring::R64),
                    other => other,
                };
                let mut sum = vec![0; words];
                for summand in [before, after].into_iter().filter_map(|claim| factor(claim, t, of)) {
                    algebra.add(&mut sum, &summand);
                }
                assert!(found == sum, "claim {i} by {prover}: a factor is not the sum of its summands");
                found
            });
            algebra.add_product(&mut sums, &left, &right);
        }
        for (w, sum) in sums.into_iter().enumerate() {
            assert_eq!(sum, 0, "claim {i} by {prover}, word {w}, does not hold");
        }
    }
}

#[test]
fn a_product_is_reshared() {
    let ring = Ring::new(40);
    let (x, y) = ([3, ring.mask(), 1 << 39], [5, 7, 2]);
    for security in [Security::SemiHonest, Security::Malicious] {
        let z = three(security, |cx| {
            let (x, y) = (share(cx.id, ring, &x), share(cx.id, ring, &y));
            crate::linear::mul(cx, ring, &x, &y).unwrap()
        });
        assert_eq!(open(ring, z.each_ref()), [15, ring.mask() - 6, 0]);
    }
}
