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

/// The unary code of every chunk of H, `1{v < chunk}` for v = 0, 1, ..., chunk after chunk from the top.
///
/// With t the bit above: `1{v < 2^j t + low}` is `t or 1{v < low}` below 2^j - 1, t at it, and `t and 1{v - 2^j < low}` above. So
/// a chunk of w bits takes `2^w - 1 - w` ANDs, each t with a whole code.
pub(crate) fn of(
    cx: &mut dyn Preprocess,
    chunks: &Chunks,
    mask: &BitwiseMask,
) -> Result<Vec<Bits>, PrepareError> {
    let starts: Vec<(usize, usize)> = starts(chunks).collect();
    let mut codes: Vec<Vec<Bits>> = starts.iter().map(|(start, _)| vec![mask.bits[*start].clone()]).collect();
    for j in 1..starts.iter().map(|(_, size)| *size).max().unwrap_or(0) {
        let paired = |start: usize| j == 1 && start.is_multiple_of(2) && !mask.pairs.is_empty();
        let grows: Vec<usize> = (0..starts.len()).filter(|&c| starts[c].1 > j).collect();
        let multiplied: Vec<usize> = grows.iter().copied().filter(|&c| !paired(starts[c].0)).collect();
        let factors: Vec<(&Bits, Vec<&Bits>)> =
            multiplied.iter().map(|&c| (&mask.bits[starts[c].0 + j], codes[c].iter().collect())).collect();
        let mut products = if factors.is_empty() { Vec::new() } else { cx.and(&factors)? }.into_iter();
        for c in grows {
            let start = starts[c].0;
            let both = match paired(start) {
                true => vec![mask.pairs[start / 2].clone()],
                false => products.next().expect("as many as were asked for"),
            };
            let top = &mask.bits[start + j];
            let below = codes[c].iter().zip(&both).map(|(low, both)| top.xor(low).xor(both));
            let mut code: Vec<Bits> = below.collect();
            code.push(top.clone());
            code.extend(both);
            codes[c] = code;
        }
    }
    Ok(codes.into_iter().flatten().collect())
}

/// Products of a level's masks, as [`privet_kernels::chunks`] wants them: of every group those of two and more of the a (which mask
/// `eq`), by sets; then for every item from the last its b (which masks `lt`) with every set of earlier a.
pub(crate) fn products(
    cx: &mut dyn Preprocess,
    equal: bool,
    groups: &[usize],
    masks: &[Bits],
) -> Result<Vec<Bits>, PrepareError> {
    let mut first = 0;
    let mut all: Vec<Group> = Vec::new();
    for (i, &size) in groups.iter().enumerate() {
        let last = i + 1 == groups.len();
        let variables = if last && !equal { size - 1 } else { size };
        let a = |j: usize| if equal { first + j } else { first + 2 * j + 1 };
        let a = (0..variables).map(|j| &masks[a(j)]).collect();
        let b = if equal { Vec::new() } else { (0..size).map(|j| &masks[first + 2 * j]).collect() };
        all.push(Group::new(size, a, b));
        first += if equal { size } else { 2 * size };
    }
    for j in 1..groups.iter().copied().max().unwrap_or(0) {
        let factors: Vec<(&Bits, Vec<&Bits>)> = all.iter().flat_map(|group| group.factors(j)).collect();
        if factors.is_empty() {
            continue;
        }
        let mut results = cx.and(&factors)?.into_iter();
        all.iter_mut().for_each(|group| group.grow(j, &mut results));
    }
    Ok(all.into_iter().flat_map(Group::products).collect())
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
