use super::deal::Dealing;
use super::{Deal, Dealt, PIECE};
use crate::context::{Messages, Party};
use crate::keys::Streams;
use crate::parts::Role;
use crate::planes::Words;
use crate::proof::{Algebra, Column, Kind, Mask, Operand, Rest, View};
use crate::{PartyId, RunError, mutation};
use privet_prg::Prg;
use privet_ring::{Ring, pack};
use std::sync::Arc;

/// `x y + plus` for words of bits.
pub(crate) struct And {
    pub x: Words,
    pub y: Words,
    pub plus: Option<Words>,
}

/// ANDs before their round.
#[derive(Default)]
struct Begun {
    /// To the party before.
    payload: Vec<u8>,
    /// `z_i` of every gate, and F_i and F_(i+1) where they are proved.
    sent: Vec<(Vec<u64>, Option<[Mask; 2]>)>,
}

impl Party<'_> {
    /// AND equally long words of bits: one message to the party before, one round.
    ///
    /// The reshare over Z_2: party i sends `z_i = x_i y_i ^ x_i y_(i+1) ^ x_(i+1) y_i ^ F_i ^ F_(i+1)`.
    pub(crate) fn and(&mut self, what: &str, gates: &[And]) -> Result<Vec<Words>, RunError> {
        Ok(self.and_beside_deal(what, gates, vec![])?.0)
    }

    /// [`Party::and`] and [`Party::deal_all`] in one round: the one has messages to the party before, the other to the party after. Of
    /// either there may be none.
    pub(crate) fn and_beside_deal(
        &mut self,
        what: &str,
        gates: &[And],
        columns: Vec<Deal>,
    ) -> Result<(Vec<Words>, Vec<Dealt>), RunError> {
        // what is not sent takes no keys
        let Begun { payload, sent } = if gates.is_empty() { Begun::default() } else { self.begin_and(gates) };
        let Dealing { payload: dealt, expected, made } =
            if columns.is_empty() { Dealing::default() } else { self.begin_deal(columns) };
        let bytes = payload.len();
        let got = self.talk(what, Messages { prev: payload, next: dealt }, (expected, bytes))?;
        let dealt = self.end_deal(what, made, &got.prev)?;
        Ok((self.end_and(what, gates, sent, &got.next)?, dealt))
    }

    fn begin_and(&mut self, gates: &[And]) -> Begun {
        let Streams { own: mut key, next: mut next_key } = self.draw();
        // the masks again, where they are proved
        let streams = self.transcript.as_ref().map(|_| [&key, &next_key].map(|key| Arc::new(key.again(0))));
        let mut start_of_gate = 0;
        let mut payload = Vec::with_capacity(gates.iter().map(|gate| 8 * gate.x.len()).sum());
        let mut sent = Vec::with_capacity(gates.len());
        let (mut own, mut next) = ([0; PIECE], [0; PIECE]);
        for And { x, y, .. } in gates {
            let n = x.len();
            let mut z = Vec::with_capacity(n);
            let mask = |stream: &Arc<Prg>| Mask::of(stream, start_of_gate, n, "and-unmasked");
            let masks = streams.as_ref().map(|streams| streams.each_ref().map(mask));
            // draws are of whole blocks
            start_of_gate += n.next_multiple_of(2);
            for start in (0..n).step_by(PIECE) {
                let piece = start..n.min(start + PIECE);
                let (own, next) = (&mut own[..piece.len()], &mut next[..piece.len()]);
                key.fill(Ring::R64, own);
                next_key.fill(Ring::R64, next);
                mutation::mask("and-unmasked", [&mut *own, &mut *next]);
                let x = x.own[piece.clone()].iter().zip(&x.next[piece.clone()]);
                let y = y.own[piece.clone()].iter().zip(&y.next[piece.clone()]);
                let drawn = own.iter().zip(next.iter());
                z.extend(
                    x.zip(y)
                        .zip(drawn)
                        .map(|(((xi, xj), (yi, yj)), (f, g))| xi & (yi ^ yj) ^ xj & yi ^ f ^ g),
                );
                pack(Ring::R64, &z[piece], &mut payload);
            }
            sent.push((z, masks));
        }
        Begun { payload, sent }
    }

    /// The results, with what the party after sent.
    fn end_and(
        &mut self,
        what: &str,
        gates: &[And],
        sent: Vec<(Vec<u64>, Option<[Mask; 2]>)>,
        mut rest: &[u8],
    ) -> Result<Vec<Words>, RunError> {
        let mut out = Vec::with_capacity(gates.len());
        for (gate, (mut own, masks)) in gates.iter().zip(sent) {
            let (message, later) = rest.split_at(8 * own.len());
            rest = later;
            let came = self.unpack(what, Ring::R64, message, own.len(), self.id.next())?;
            let came = Column::from(came);
            let next = match &gate.plus {
                Some(plus) => {
                    Algebra::Bits.add(&mut own, &plus.own);
                    Algebra::Bits.sum(&came, &plus.next).into()
                }
                None => came.clone(),
            };
            if let Some(masks) = masks {
                self.claim_and(gate, came, masks);
            }
            out.push(Words { own: own.into(), next });
        }
        Ok(out)
    }

    /// Remember to prove every z_i: the first row of the table in docs/rep3.md, section 6. `came` is z_(i+1), and the masks
    /// are F_i and F_(i+1).
    fn claim_and(&mut self, And { x, y, .. }: &And, came: Column, [own, next]: [Mask; 2]) {
        let Some(transcript) = &mut self.transcript else { return };
        let own = Rest::masked(own, None, vec![[x.own.clone(), y.own.clone()]]);
        let next = Rest::masked(next, Some(came), vec![]);
        let sum = |factor: &Words| Operand::Sum([factor.own.clone(), factor.next.clone()]);
        for prover in PartyId::ALL {
            let view = match Role::of(self.id, prover) {
                Role::Mine => View::Prover(vec![[sum(x), sum(y)]]),
                Role::After => View::verifier([[x.next.clone(), y.next.clone()]], next.clone()),
                Role::Before => View::verifier([[x.own.clone(), y.own.clone()]], own.clone()),
            };
            super::remember(transcript, Kind::Bits, prover, view);
        }
    }
}
