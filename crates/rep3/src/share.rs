use privet_family::Secret;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One party's share of a vector over Z_2^k: components i and i + 1 of three that add up to the value.
///
/// Elements are reduced. Cheap to clone; wiped when its last holder drops it; never printed.
#[derive(Clone, Default)]
pub struct Share {
    /// Component i, which the party before holds too.
    pub own: Arc<Secret>,
    /// Component i + 1, which the party after holds too.
    pub next: Arc<Secret>,
}

impl Share {
    /// From both components, of equal length.
    pub fn new(own: Vec<u64>, next: Vec<u64>) -> Share {
        debug_assert_eq!(own.len(), next.len());
        Share { own: Arc::new(own.into()), next: Arc::new(next.into()) }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// A copy of some elements.
    pub(crate) fn part(&self, range: Range<usize>) -> Share {
        Share::new(self.own[range.clone()].to_vec(), self.next[range].to_vec())
    }

    /// True when there is no element.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({} elements)", self.len())
    }
}

/// One party's share of `count` bit planes of `n` bits: two of three components whose XOR is the value.
///
/// Plane-major, `n.div_ceil(64)` words a plane, bit `e % 64` of word `e / 64` for element e. What stands in the padding
/// of a plane's last word is shared like the rest, and means nothing. Wiped when its last holder drops it.
#[derive(Clone, Default)]
pub struct Planes {
    /// Elements (bits of a plane).
    pub n: usize,
    /// Planes.
    pub count: usize,
    /// Component i, which the party before holds too.
    pub own: Arc<Secret>,
    /// Component i + 1, which the party after holds too.
    pub next: Arc<Secret>,
}

impl Planes {
    /// From both components of `count * n.div_ceil(64)` words.
    pub fn new(n: usize, count: usize, own: Vec<u64>, next: Vec<u64>) -> Planes {
        debug_assert!(own.len() == count * n.div_ceil(64) && next.len() == own.len());
        Planes { n, count, own: Arc::new(own.into()), next: Arc::new(next.into()) }
    }

    /// Words of one plane.
    pub fn words(&self) -> usize {
        self.n.div_ceil(64)
    }
}

impl fmt::Debug for Planes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Planes({} of {} bits)", self.count, self.n)
    }
}
