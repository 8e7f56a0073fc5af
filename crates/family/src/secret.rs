use privet_ring::BitVec;
use std::ops::{Deref, DerefMut};

/// What a [`Secret`] holds: 64-bit words.
pub trait Wipe {
    /// All of them.
    fn words_mut(&mut self) -> &mut [u64];
}

impl Wipe for Vec<u64> {
    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
}

impl Wipe for BitVec {
    fn words_mut(&mut self) -> &mut [u64] {
        BitVec::words_mut(self)
    }
}

/// A mask, or a share of anything: zeroed when dropped, and never printed.
///
/// A masked value is no secret: it is uniform, and tells nothing once its mask is gone from all memories.
/// Two are compared word by word, not in constant time: a protocol compares digests.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T: Wipe = Vec<u64>>(T);

impl<T: Wipe + Default> Secret<T> {
    /// Guard `words` from now on.
    pub fn new(words: T) -> Secret<T> {
        Secret(words)
    }

    /// The words unguarded: to be opened, or sent to whom they belong.
    pub fn expose(mut self) -> T {
        std::mem::take(&mut self.0)
    }
}

impl<T: Wipe> Drop for Secret<T> {
    fn drop(&mut self) {
        privet_prg::wiped::clear_far(self.0.words_mut());
    }
}

impl<T: Wipe> Deref for Secret<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Wipe> DerefMut for Secret<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl From<Vec<u64>> for Secret {
    fn from(words: Vec<u64>) -> Secret {
        Secret(words)
    }
}

impl FromIterator<u64> for Secret {
    fn from_iter<I: IntoIterator<Item = u64>>(words: I) -> Secret {
        Secret(words.into_iter().collect())
    }
}

impl AsRef<[u64]> for Secret {
    fn as_ref(&self) -> &[u64] {
        &self.0
    }
}

impl<T: Wipe> std::fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Copies of what was there after it was wiped.
    static SEEN: Mutex<Vec<u64>> = Mutex::new(Vec::new());

    #[derive(Default)]
    struct Watched(Vec<u64>);

    impl Wipe for Watched {
        fn words_mut(&mut self) -> &mut [u64] {
            &mut self.0
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            SEEN.lock().unwrap().extend(&self.0);
        }
    }

    #[test]
    fn words_are_zero_when_they_are_given_back() {
        let secret = Secret::new(Watched(vec![7; 100]));
        assert_eq!(format!("{:?}", Secret::new(vec![7])), "Secret(..)");
        drop(secret);
        assert_eq!(*SEEN.lock().unwrap(), [0; 100]);
        assert_eq!(Secret::new(vec![1, 2]).expose(), [1, 2]);
    }
}
