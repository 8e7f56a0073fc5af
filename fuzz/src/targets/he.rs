//! Polynomials and partial openings of encrypted products.

use super::Fields;
use crate::Target;
use privet_he::galois::{Galois, GaloisLayout, Secret, SwitchKeys};
use privet_he::layout::{Layout, Matmul, MatmulLayout};
use privet_he::{Context, Message, Parameters, Partial, Product, SETS, Zero};
use privet_prg::Seed;
use privet_ring::Ring;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Every message of an encrypted product: of any length, and of the right length with any words.
pub const ENCRYPTED: Target = Target { name: "encrypted", run: encrypted, seeds, words: &[] };

static CONTEXT: LazyLock<Arc<Context>> = LazyLock::new(|| Context::new(&SETS[0], 1).expect("PRIVET_CPU"));

/// With hints and encryptions of 0 of fewer bits, if so.
fn product(parties: usize, coarse: bool) -> Product {
    let shape = Matmul { groups: 1, m: 2, k: 3, o: 5 };
    let layout = MatmulLayout::with_blocks(shape, SETS[0].degree, [1, 3, 5]);
    let p = Parameters::on(&SETS[0], Ring::new(24), 4, layout.coefficients(), layout.output_len(), parties);
    let p = p.expect("the smallest set holds 24 bits");
    let p = if coarse { p.coarse(layout.coefficients(), layout.output_len()) } else { p };
    Product::new(&CONTEXT, &p, Arc::new(layout), Seed::from_bytes([1; 16]))
}

/// So many bytes, the input over and over.
fn stretched(data: &[u8], len: usize) -> Vec<u8> {
    data.iter().copied().chain(std::iter::once(0)).cycle().take(len).collect()
}

fn encrypted(data: &[u8]) {
    let mut fields = Fields(data);
    let (kind, parties, exact) = (fields.byte(), 2 + usize::from(fields.byte() % 4), fields.byte() & 1 == 0);
    let product = product(parties, kind & 2 == 0);
    let bytes = |len: usize| if exact { stretched(fields.0, len) } else { fields.0.to_vec() };
    // what is read is written back as it was, but for padding bits, of which these lengths have none
    if kind & 1 == 0 {
        let b = bytes(product.bytes::<Zero>(2));
        if let Ok(message) = Message::<Zero>::decode(&product, 2, &b) {
            assert!(message.encode() == b && message.len() == 2);
        }
    } else {
        let tiles = 0..product.layout().blocks().tiles;
        let b = bytes(product.partial_bytes(0, tiles.clone()));
        if let Ok(partial) = Partial::decode(&product, 0, tiles, &b) {
            assert_eq!(partial.encode(product.parameters()).len(), b.len());
        }
    }
}

/// Every message of a gathered product, likewise: keys, operands and answers.
pub const GATHERED: Target = Target { name: "gathered", run: gathered, seeds, words: &[] };

static GALOIS: LazyLock<(Galois, Secret, Mutex<SwitchKeys>)> = LazyLock::new(|| {
    let galois = Galois::new(Seed::from_bytes([2; 16]), 1).expect("PRIVET_CPU");
    let (secret, message) = galois.keys(0, &mut Seed::from_bytes([3; 16]).stream());
    let keys = galois.read_keys(0, &message).expect("its own message");
    (galois, secret, Mutex::new(keys))
});

fn gathered(data: &[u8]) {
    let mut fields = Fields(data);
    let (kind, exact) = (fields.byte(), fields.byte() & 1 == 0);
    let (galois, secret, keys) = &*GALOIS;
    let layout =
        GaloisLayout::plan(Matmul { groups: 1, m: 2, k: 1, o: 3 }, Ring::new(24), 1).expect("it fits");
    let bytes = |len: usize| if exact { stretched(fields.0, len) } else { fields.0.to_vec() };
    match kind % 3 {
        0 => {
            let b = bytes(layout.answer_bytes());
            assert!(galois.open(secret, &layout, &b).is_err() || b.len() == layout.answer_bytes());
        }
        1 => {
            let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
            let b = bytes(layout.operand_bytes());
            let prg = &mut Seed::from_bytes([4; 16]).stream();
            if let Ok(answer) = galois.multiply(&mut keys, &layout, &b, &[1; 3], &[2; 6], prg) {
                assert_eq!(answer.encode().len(), layout.answer_bytes());
            }
        }
        _ => assert!(galois.read_keys(0, &bytes(Galois::key_bytes())).is_err() || exact),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    (0..4u8)
        .flat_map(|kind| [vec![kind, 0, 0, 1, 2, 3], vec![kind, 2, 1, 7], vec![kind, 1, 0, 0xff]])
        .collect()
}
