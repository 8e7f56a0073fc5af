//! What a comparison by chunks has dealt, made from shared bits by ANDs: unary codes of chunks, products of masks.

use crate::preprocess::{BitwiseMask, PrepareError, Preprocess};
use crate::shares::Bits;
use privet_kernels::Chunks;

/// The first bits of chunks, from the top.
fn starts(chunks: &Chunks) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut start = chunks.bits() as usize;
    chunks.sizes.iter().map(move |size| {
        start -= *size as usize;
        (start, *size as usize)
    })
}

/// Whether some chunk begins with a pair whose product a mask brings along.
pub(crate) fn use_pairs(chunks: &Chunks) -> bool {
    starts(chunks).any(|(start, size)| size > 1 && start.is_multiple_of(2))
}

/// What a comparison has dealt: the unary code of every chunk of H, and of each level the products of its masks. All that the next
/// ANDs need is there when the last ones are, so all go together, whatever level they are of.
pub(crate) fn dealt(
    cx: &mut dyn Preprocess,
    chunks: &Chunks,
    mask: &BitwiseMask,
    levels: &[Vec<Bits>],
) -> Result<(Vec<Bits>, Vec<Vec<Bits>>), PrepareError> {
    let mut codes = Codes::new(chunks, mask);
    let mut all: Vec<Vec<Group<'_>>> = chunks
        .levels
        .iter()
        .zip(levels)
        .map(|(level, masks)| groups(chunks.equal, &level.groups, masks))
        .collect();
    let widest = chunks.levels.iter().flat_map(|level| level.groups.iter().copied());
    for j in 1..widest.chain([codes.widest()]).max().unwrap_or(0) {
        let of_groups = all.iter().flatten().flat_map(|group| group.factors(j));
        let factors: Vec<(&Bits, Vec<&Bits>)> = codes.factors(j).chain(of_groups).collect();
        let made = if factors.is_empty() { Vec::new() } else { cx.and(&factors)? };
        let mut made = made.into_iter();
        codes.grow(j, &mut made);
        all.iter_mut().flatten().for_each(|group| group.grow(j, &mut made));
    }
    let products = all.into_iter().map(|groups| groups.into_iter().flat_map(Group::products).collect());
    Ok((codes.of.into_iter().flatten().collect(), products.collect()))
}

/// The unary code of every chunk of H, `1{v < chunk}` for v = 0, 1, ..., chunk after chunk from the top, while they are made.
///
/// With t the bit above: `1{v < 2^j t + low}` is `t or 1{v < low}` below 2^j - 1, t at it, and `t and 1{v - 2^j < low}` above. So
/// a chunk of w bits takes `2^w - 1 - w` ANDs, each t with a whole code.
struct Codes<'a> {
    mask: &'a BitwiseMask,
    /// First bit and bits of each chunk.
    chunks: Vec<(usize, usize)>,
    of: Vec<Vec<Bits>>,
}

impl<'a> Codes<'a> {
    fn new(chunks: &Chunks, mask: &'a BitwiseMask) -> Codes<'a> {
        let chunks: Vec<(usize, usize)> = starts(chunks).collect();
        let of = chunks.iter().map(|(start, _)| vec![mask.bits[*start].clone()]).collect();
        Codes { mask, chunks, of }
    }

    /// Bits of the widest chunk.
    fn widest(&self) -> usize {
        self.chunks.iter().map(|(_, size)| *size).max().unwrap_or(0)
    }

    /// Chunks that bit j is put in front of.
    fn growing(&self, j: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.chunks.len()).filter(move |&c| self.chunks[c].1 > j)
    }

    /// Whether the mask brings the product with bit j along.
    fn paired(&self, c: usize, j: usize) -> bool {
        j == 1 && self.chunks[c].0.is_multiple_of(2) && !self.mask.pairs.is_empty()
    }

    fn factors(&self, j: usize) -> impl Iterator<Item = (&Bits, Vec<&Bits>)> {
        let multiplied = self.growing(j).filter(move |&c| !self.paired(c, j));
        multiplied.map(move |c| (&self.mask.bits[self.chunks[c].0 + j], self.of[c].iter().collect()))
    }

    /// Take the results in.
    fn grow(&mut self, j: usize, results: &mut impl Iterator<Item = Vec<Bits>>) {
        for c in self.growing(j).collect::<Vec<_>>() {
            let start = self.chunks[c].0;
            let both = match self.paired(c, j) {
                true => vec![self.mask.pairs[start / 2].clone()],
                false => results.next().expect("as many as were asked for"),
            };
            let top = &self.mask.bits[start + j];
            let below = self.of[c].iter().zip(&both).map(|(low, both)| top.xor(low).xor(both));
            let mut code: Vec<Bits> = below.collect();
            code.push(top.clone());
            code.extend(both);
            self.of[c] = code;
        }
    }
}

/// The groups of a level, whose products [`privet_kernels::chunks`] wants: of every group those of two and more of the a (which mask
/// `eq`), by sets; then for every item from the last its b (which masks `lt`) with every set of earlier a.
fn groups<'a>(equal: bool, groups: &[usize], masks: &'a [Bits]) -> Vec<Group<'a>> {
    let mut first = 0;
    let mut all: Vec<Group<'a>> = Vec::new();
    for (i, &size) in groups.iter().enumerate() {
        let last = i + 1 == groups.len();
        let variables = if last && !equal { size - 1 } else { size };
        let a = |j: usize| if equal { first + j } else { first + 2 * j + 1 };
        let a = (0..variables).map(|j| &masks[a(j)]).collect();
        let b = if equal { Vec::new() } else { (0..size).map(|j| &masks[first + 2 * j]).collect() };
        all.push(Group::new(size, a, b));
        first += if equal { size } else { 2 * size };
    }
    all
}

/// One group while its products are made.
struct Group<'a> {
    size: usize,
    a: Vec<&'a Bits>,
    b: Vec<&'a Bits>,
    /// Products of sets of a.
    alone: Vec<Option<Bits>>,
    /// Of every item its b with sets of earlier a.
    with_item: Vec<Vec<Option<Bits>>>,
}

impl<'a> Group<'a> {
    fn new(size: usize, a: Vec<&'a Bits>, b: Vec<&'a Bits>) -> Group<'a> {
        let mut alone = vec![None; 1 << a.len()];
        a.iter().enumerate().for_each(|(j, bits)| alone[1 << j] = Some((*bits).clone()));
        let with_item = (0..b.len()).map(|i| vec![None; 1 << i]).collect();
        Group { size, a, b, alone, with_item }
    }

    /// What item j's masks are multiplied with: the products of all sets of earlier a.
    fn factors(&self, j: usize) -> impl Iterator<Item = (&Bits, Vec<&Bits>)> {
        let sets = if j < self.size { 1..1 << j } else { 1..1 };
        sets.filter_map(move |set| {
            let mine: Vec<&Bits> = [self.a.get(j), self.b.get(j)].into_iter().flatten().copied().collect();
            let product = self.alone.get(set).and_then(Option::as_ref)?;
            (!mine.is_empty()).then_some((product, mine))
        })
    }

    /// Take the results in.
    fn grow(&mut self, j: usize, results: &mut impl Iterator<Item = Vec<Bits>>) {
        if j >= self.size || (j >= self.a.len() && j >= self.b.len()) {
            return;
        }
        for set in 1..1usize << j {
            let mut products = results.next().expect("as many as were asked for").into_iter();
            if j < self.a.len() {
                self.alone[set | 1 << j] = products.next();
            }
            if j < self.b.len() {
                self.with_item[j][set] = products.next();
            }
        }
    }

    fn products(self) -> Vec<Bits> {
        let alone = self.alone.into_iter().enumerate().filter(|(set, _)| set.count_ones() >= 2);
        let with_item = self.with_item.into_iter().rev().flat_map(|sets| sets.into_iter().skip(1));
        alone.map(|(_, bits)| bits).chain(with_item).map(|bits| bits.expect("all were made")).collect()
    }
}

/// For each value of the numbers with these bits whether it is the one, in order, all but the last: `2^w - w - 1` ANDs.
pub(crate) fn one_hot(cx: &mut dyn Preprocess, bits: &[Bits]) -> Result<Vec<Bits>, PrepareError> {
    let mut hot = vec![bits[0].not(), bits[0].clone()];
    for bit in &bits[1..] {
        let given: Vec<&Bits> = hot[1..].iter().collect();
        let mut high = cx.and(&[(bit, given)])?.swap_remove(0);
        // the products add up to the bit
        let first = high.iter().fold(bit.clone(), |rest, product| rest.xor(product));
        high.insert(0, first);
        hot = hot.iter().zip(&high).map(|(hot, high)| hot.xor(high)).collect();
        hot.extend(high);
    }
    hot.pop();
    Ok(hot)
}
