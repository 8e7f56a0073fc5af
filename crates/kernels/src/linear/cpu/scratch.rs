use super::buffer::Buffer;
use super::kernel::Tile;
use std::cell::Cell;

thread_local! {
    static KEPT: Cell<Option<Box<Parts>>> = const { Cell::new(None) };
}

struct Parts {
    packed: Buffer,
    tile: Tile,
}

/// Working memory of this thread that goes back on drop, so that short products one after the other do not clear their
/// own. What it holds at first is left from the products before.
pub(super) struct Scratch(Option<Box<Parts>>);

impl Scratch {
    /// With room for `len` bytes of packed rows.
    pub(super) fn take(len: usize) -> Scratch {
        let kept = KEPT.take().filter(|kept| kept.packed.len() >= len);
        let new = || Box::new(Parts { packed: Buffer::zeros(len), tile: Tile::zeros() });
        Scratch(Some(kept.unwrap_or_else(new)))
    }

    /// `len` bytes for packed rows, no more than asked for, and a tile.
    pub(super) fn parts(&mut self, len: usize) -> (&mut [u8], &mut Tile) {
        let Some(parts) = &mut self.0 else { unreachable!("there until drop") };
        (&mut parts.packed[..len], &mut parts.tile)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // a thread that ends has no place for it any more
        let _ = KEPT.try_with(|kept| kept.set(self.0.take()));
    }
}
