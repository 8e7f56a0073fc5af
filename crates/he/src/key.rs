//! Keys of a call, and what one party encrypts with them.

use crate::context::{Coeff, Points};
use crate::encode;
use crate::mutation;
use crate::product::{Message, Operand, Product, Tiles, Zero};
use crate::sample::{self, Small};
use privet_prg::{Prg, Seed};

/// One party's ternary keys of some tiles, fresh; wiped on drop, never printed. Each encrypts a group's tile once, so no
/// key ever meets a public polynomial twice.
pub struct Keys {
    product: Product,
    tiles: Tiles,
    pub(crate) s: Vec<Points>,
    groups: usize,
}

impl Product {
    /// Fresh keys for these tiles of every group, and encryptions of 0 under them, which go to all who own weights. `prg`
    /// is the party's own.
    pub fn keys(&self, tiles: Tiles, prg: &mut Prg) -> (Keys, Message<Zero>) {
        assert!(tiles.end <= self.layout.blocks().tiles, "tiles of the layout");
        let (context, a) = (&self.context, self.public_of_zero());
        let mut keys = Keys { product: self.clone(), tiles: tiles.clone(), s: Vec::new(), groups: 0 };
        let seeds: Vec<Seed> = tiles.map(|_| prg.seed()).collect();
        let made = context.each(seeds.len(), |i| {
            let mut prg = seeds[if mutation::active("keys-repeat") { 0 } else { i }].stream();
            let s = context.points(context.small(&sample::ternary(&mut prg, context.degree())));
            let mut errors = sample::errors(&mut prg, context.degree());
            mutation::constant("key-without-error", &mut errors, sample::OFFSET);
            let b = keys.hide(&a, &s, context.small(&errors));
            (s, b)
        });
        let (s, b) = made.into_iter().unzip();
        keys.s = s;
        (keys, self.message(b))
    }
}

impl Keys {
    /// The tiles.
    pub fn tiles(&self) -> Tiles {
        self.tiles.clone()
    }

    /// `message - a s` as values; the message has its error.
    fn hide(&self, a: &Points, s: &Points, message: Coeff) -> Points {
        let context = &self.product.context;
        let mut body = context.points(message);
        context.add(&mut body.words, &context.product(a, s).words, true);
        body
    }

    /// Encrypt this party's share of the tiles of a group, one group after the other; all values of the operand are given
    /// every time. `prg` is the party's own.
    ///
    /// Panics where the group is not the next one, or where the number of values is another.
    pub fn encrypt(&mut self, group: usize, x: &[u64], prg: &mut Prg) -> Message<Operand> {
        let (product, layout) = (&self.product, &self.product.layout);
        let (context, b) = (&product.context, layout.blocks());
        assert!(group == self.groups && group < b.groups, "each group once");
        assert_eq!(x.len(), layout.input_len(), "number of values");
        let public: Vec<Points> = context.each(b.inputs, |input| product.public(group, input));
        let seeds: Vec<Seed> = (0..self.tiles.len() * b.inputs).map(|_| prg.seed()).collect();
        #[expect(clippy::integer_division_remainder_used, reason = "numbers of polynomials are public")]
        let bodies = context.each(seeds.len(), |i| {
            let (tile, input) = (i / b.inputs, i % b.inputs);
            let number = (group * b.tiles + self.tiles.start + tile) * b.inputs + input;
            let mut packed = Small::zeros(context.degree());
            layout.pack_input(number, x, &mut packed);
            let message =
                encode::message(context, product.parameters.plain(), &packed, &mut seeds[i].stream());
            self.hide(&public[input], &self.s[tile], message)
        });
        self.groups += 1;
        Message::new(bodies)
    }
}
