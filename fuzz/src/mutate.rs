//! Mutations of inputs: bytes, numbers, words of the language, and pieces of other inputs.

use privet_prg::Prg;

/// Largest input, bytes.
pub const MAX_INPUT: usize = 64 << 10;

/// Numbers at which parsers err.
const EDGES: &[u64] = &[
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    1 << 31,
    (1 << 31) - 1,
    (1 << 32) - 1,
    1 << 63,
    u64::MAX / 2,
    u64::MAX,
];

/// A source of choices. Reproducible from the seed of its stream.
pub struct Choices(Prg);

impl Choices {
    /// From a stream.
    pub fn new(stream: Prg) -> Self {
        Choices(stream)
    }

    fn word(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `n`, which is not 0. (Slightly skewed, which does not matter here.)
    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }
}

/// One to eight changes of `input`, which may take pieces of `other`.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], words: &[&str], choices: &mut Choices) {
    for _ in 0..1 + choices.below(8) {
        change(input, other, words, choices);
    }
    input.truncate(MAX_INPUT);
}

fn change(input: &mut Vec<u8>, other: &[u8], words: &[&str], c: &mut Choices) {
    let len = input.len();
    let at = c.below(len + 1);
    let longest = 1 << c.below(7);
    let span = 1 + c.below(longest);
    match c.below(10) {
        _ if len == 0 => insert(input, 0, &c.word().to_le_bytes()[..span.min(8)]),
        0 => input[at.min(len - 1)] ^= 1 << c.below(8),
        1 => input[at.min(len - 1)] = c.word() as u8,
        2 => {
            let width = 1 << c.below(4);
            let number = EDGES[c.below(EDGES.len())].wrapping_add(c.below(3) as u64).wrapping_sub(1);
            overwrite(input, at, &number.to_le_bytes()[..width]);
        }
        3 => drop(input.drain(at.min(len - 1)..(at + span).min(len).max(at.min(len - 1)))),
        4 => {
            let piece = input[at..(at + span).min(len)].to_vec();
            let to = c.below(len + 1);
            insert(input, to, &piece);
        }
        5 if !other.is_empty() => {
            let from = c.below(other.len());
            let piece = &other[from..(from + span).min(other.len())];
            if c.below(2) == 0 { insert(input, at, piece) } else { overwrite(input, at, piece) }
        }
        6 if !words.is_empty() => {
            let word = words[c.below(words.len())].as_bytes();
            if c.below(2) == 0 { insert(input, at, word) } else { overwrite(input, at, word) }
        }
        7 => number(input, at, c),
        8 => input.truncate(at),
        _ => insert(input, at, &c.word().to_le_bytes()[..span.min(8)]),
    }
}

/// Puts another number where the next decimal digits from `at` on stand.
fn number(input: &mut Vec<u8>, at: usize, c: &mut Choices) {
    let Some(from) = (at..input.len()).find(|&i| input[i].is_ascii_digit()) else { return };
    let until = (from..input.len()).find(|&i| !input[i].is_ascii_digit()).unwrap_or(input.len());
    let value = if c.below(2) == 0 { EDGES[c.below(EDGES.len())] } else { c.below(10) as u64 };
    input.splice(from..until, value.to_string().into_bytes());
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}

fn overwrite(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let end = (at + piece.len()).min(input.len());
    input.splice(at..end, piece.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_prg::Seed;

    #[test]
    fn mutations_change_inputs_within_bounds() {
        let mut choices = Choices::new(Seed::from_bytes([7; 16]).stream());
        let start = b"{\"a\":12}".to_vec();
        let mut changed = 0;
        for _ in 0..2000 {
            let mut input = if choices.below(2) == 0 { start.clone() } else { vec![0; MAX_INPUT] };
            let before = input.clone();
            mutate(&mut input, b"other", &["word"], &mut choices);
            assert!(input.len() <= MAX_INPUT);
            changed += usize::from(input != before);
        }
        assert!(changed > 1500, "{changed} of 2000");
    }
}
