//! Where a run takes its material from.

#[cfg(test)]
use super::Maker;
use super::frame::{Frame, Material};
use super::{Correlation, Need};
use crate::context::{RunError, Side};
#[cfg(test)]
use crate::encryption::Encryption;
use crate::mutation;
use privet_family::keys::KeySource;
use privet_net::Channel;
#[cfg(test)]
use privet_ot::Pair;
#[cfg(test)]
use privet_prg::Prg;

/// Where a run takes its material from.
pub(crate) enum Stock<'a> {
    /// A record.
    Record(&'a mut dyn KeySource),
    /// Transfers, of which it is made when it is asked for.
    #[cfg(test)]
    Fresh(Box<Fresh>),
}

/// What tests make material of, as it is asked for.
#[cfg(test)]
pub(crate) struct Fresh {
    pub pair: Pair,
    pub prg: Prg,
    pub encryption: Encryption,
    /// Number of the steps that make it.
    pub step: u32,
}

#[cfg(test)]
impl<'a> Stock<'a> {
    /// Of transfers and coins; the steps that make material have this number.
    pub fn fresh(pair: Pair, prg: Prg, step: u32) -> Stock<'a> {
        Stock::Fresh(Box::new(Fresh { pair, prg, encryption: Encryption::new(1), step }))
    }
}

impl Stock<'_> {
    /// All chunks of a need.
    ///
    /// Of what is made with the peer there is more than one message; `channel` leads there.
    pub fn take<K: Correlation>(
        &mut self,
        side: Side,
        of: K,
        n: usize,
        #[cfg_attr(not(test), expect(unused_variables, reason = "records are made before"))]
        channel: &mut dyn Channel,
    ) -> Result<Material<K>, RunError> {
        let (shape, need) = (of.shape(side), Need { of: of.into(), n });
        let mut frames = Vec::new();
        for (first, n) in need.chunks() {
            let frame = match self {
                Stock::Record(record) => Frame::read(&shape, first, n, record.take(8 * shape.words(n))?),
                #[cfg(test)]
                Stock::Fresh(fresh) => {
                    let Fresh { pair, prg, encryption, step } = &mut **fresh;
                    let mut maker =
                        Maker { side, pair, channel: &mut *channel, step: *step, prg, encryption };
                    super::make(&of, &mut maker, first, n)?
                }
            };
            frames.push(mutation::again(frame));
        }
        Ok(Material::of(frames))
    }
}
