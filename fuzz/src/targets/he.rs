//! Ciphertexts, answers and partial decryptions.

use super::Fields;
use crate::Target;
use privet_he::layout::{Layout, Matmul, MatmulLayout};
use privet_he::threshold::{Partial, Summand};
use privet_he::{Answer, Context, Parameters, PublicKey, Query, SETS};
use privet_ring::Ring;
use std::sync::{Arc, LazyLock};

/// Every message of an encrypted product: of any length, and of the right length with any words.
pub const ENCRYPTED: Target = Target { name: "encrypted", run: encrypted, seeds, words: &[] };

static CONTEXT: LazyLock<Arc<Context>> = LazyLock::new(|| Context::new(&SETS[0]).expect("PRIVET_CPU"));

fn plan(parties: usize) -> (Parameters, MatmulLayout) {
    let shape = Matmul { groups: 1, m: 2, k: 3, o: 5 };
    let layout = MatmulLayout::with_blocks(shape, SETS[0].degree, [1, 3, 5]);
    let p = Parameters::on(&SETS[0], Ring::new(24), 4, layout.coefficients(), layout.output_len(), parties);
    (p.expect("the smallest set holds 24 bits"), layout)
}

/// So many bytes, the input over and over.
fn stretched(data: &[u8], len: usize) -> Vec<u8> {
    data.iter().copied().chain(std::iter::once(0)).cycle().take(len).collect()
}

fn encrypted(data: &[u8]) {
    let mut fields = Fields(data);
    let (kind, parties, exact) = (fields.byte(), 1 + usize::from(fields.byte() % 4), fields.byte() & 1 == 0);
    let (p, layout) = plan(parties);
    let context = &**CONTEXT;
    let bytes = |len: usize| if exact { stretched(fields.0, len) } else { fields.0.to_vec() };
    // what is read is written back as it was, but for padding bits, of which these lengths have none
    match kind % 5 {
        0 => {
            let b = bytes(PublicKey::bytes(context));
            if let Ok(key) = PublicKey::decode(context, &b) {
                assert_eq!(key.encode(), b);
            }
        }
        1 => {
            let b = bytes(Query::bytes(context, layout.queries()));
            if let Ok(query) = Query::decode(context, layout.queries(), &b) {
                assert!(query.encode() == b && query.polynomials() == layout.queries());
            }
        }
        2 => {
            let b = bytes(Answer::bytes(&p, &layout));
            if let Ok(answer) = Answer::decode(&p, &layout, &b) {
                assert_eq!(answer.encode(&p).len(), b.len());
            }
        }
        3 => {
            let b = bytes(Summand::bytes(&p, &layout));
            if let Ok(summand) = Summand::decode(context, &p, &layout, &b) {
                assert_eq!(summand.encode().len(), b.len());
            }
        }
        _ => {
            let b = bytes(Partial::bytes(&p, &layout));
            if let Ok(partial) = Partial::decode(&p, &layout, &b) {
                assert_eq!(partial.encode(&p).len(), b.len());
            }
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    (0..5u8)
        .flat_map(|kind| [vec![kind, 0, 0, 1, 2, 3], vec![kind, 2, 1, 7], vec![kind, 1, 0, 0xff]])
        .collect()
}
