use serde::{Deserialize, Serialize};

/// A two-dimensional convolution, NCHW, weights `[out_channels, in_channels / groups, kh, kw]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv2d {
    /// N.
    pub batch: usize,
    /// C of the input.
    pub in_channels: usize,
    /// Input height and width.
    pub input: [usize; 2],
    /// C of the output.
    pub out_channels: usize,
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal stride.
    pub stride: [usize; 2],
    /// Zero padding before and after rows; before and after columns: `[top, bottom, left, right]`.
    pub padding: [usize; 4],
    /// Vertical and horizontal dilation.
    pub dilation: [usize; 2],
    /// Groups; divides both channel counts.
    pub groups: usize,
}

impl Conv2d {
    /// Output height and width.
    pub fn output(&self) -> [usize; 2] {
        let dim = |i: usize| {
            let span = self.dilation[i] * (self.kernel[i] - 1) + 1;
            let padded = self.input[i] + self.padding[2 * i] + self.padding[2 * i + 1];
            (padded + self.stride[i]).saturating_sub(span) / self.stride[i]
        };
        [dim(0), dim(1)]
    }

    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.batch * self.in_channels * self.input[0] * self.input[1]
    }

    /// Elements of the weights.
    pub fn weight_len(&self) -> usize {
        self.out_channels * (self.in_channels / self.groups) * self.kernel[0] * self.kernel[1]
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        let [h, w] = self.output();
        self.batch * self.out_channels * h * w
    }

    /// Ring multiplications of one pass.
    pub fn macs(&self) -> u64 {
        (self.output_len() * (self.in_channels / self.groups) * self.kernel[0] * self.kernel[1]) as u64
    }

    /// Patches of 3 x 3 outputs along either axis, where windows are of 3 x 3 and move by one: 36 multiplications make one for each
    /// pair of channels, instead of 81 (`karatsuba.rs` of `privet-kernels`).
    pub fn patches(&self) -> Option<[usize; 2]> {
        let suits =
            self.kernel == [3; 2] && self.stride == [1; 2] && self.dilation == [1; 2] && self.groups == 1;
        suits.then(|| self.output().map(|extent| extent.div_ceil(3)))
    }

    /// Multiplications by [`Conv2d::patches`], with as many more as could be made in the time of all else, where these are fewer
    /// than [`Conv2d::macs`] for one image: weights serve every batch. `speed` is how many of them take a cycle. Registers hold eight
    /// pixels.
    pub fn work_in_patches(&self, speed: usize) -> Option<u64> {
        // Cycles for each input channel of a patch, each of its output channels, and each pair of channels: of a Zen 4.
        const INPUT: usize = 110;
        const OUTPUT: usize = 60;
        const PAIR: usize = 32;
        let [height, width] = self.patches()?;
        let pairs = self.in_channels * self.out_channels;
        let work = |batch: usize| {
            let patches = batch * height * width;
            let additions = patches * (INPUT * self.in_channels + OUTPUT * self.out_channels) + PAIR * pairs;
            (36 * pairs * patches.next_multiple_of(8) + speed * additions) as u64
        };
        (work(1) < Conv2d { batch: 1, ..*self }.macs()).then(|| work(self.batch))
    }

    /// Multiplications where every input meets every tap once and products are added to the outputs that they belong to, with as many
    /// more as could be made in the time of these additions (`scattered.rs` of `privet-kernels`). `None` where outputs' windows
    /// take no more, for one image.
    pub fn work_scattered(&self) -> Option<u64> {
        // Multiplications in the time of an addition to an output in memory: of a Zen 4.
        const ADDITION: usize = 6;
        if self.stride != [1; 2] {
            return None;
        }
        let products = self.input[0] * self.input[1] * self.out_channels * self.kernel[0] * self.kernel[1];
        let work = |batch: usize| (batch * products * (self.in_channels / self.groups + ADDITION)) as u64;
        (work(1) < Conv2d { batch: 1, ..*self }.macs()).then(|| work(self.batch))
    }
}

/// A two-dimensional pooling window over NCHW.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool2d {
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal stride.
    pub stride: [usize; 2],
    /// Padding above and below; left and right (torch's symmetric padding).
    pub padding: [usize; 2],
    /// Vertical and horizontal dilation (1 for average pooling).
    pub dilation: [usize; 2],
    /// Round output extents up (a window that would start in the right or bottom padding is dropped).
    pub ceil_mode: bool,
}

impl Pool2d {
    /// Output height and width for an input of `[h, w]`, as torch computes them.
    pub fn output(&self, input: [usize; 2]) -> [usize; 2] {
        let dim = |i: usize| {
            let span = self.dilation[i] * (self.kernel[i] - 1) + 1;
            let room = (input[i] + 2 * self.padding[i]).saturating_sub(span);
            if !self.ceil_mode {
                return room / self.stride[i] + 1;
            }
            let out = room.div_ceil(self.stride[i]) + 1;
            if (out - 1) * self.stride[i] >= input[i] + self.padding[i] { out - 1 } else { out }
        };
        [dim(0), dim(1)]
    }

    /// The input positions along one axis (0 vertical, 1 horizontal) that output `o` covers; padding left out.
    pub fn window(&self, axis: usize, o: usize, extent: usize) -> impl Iterator<Item = usize> + use<> {
        let (pad, step) = (self.padding[axis] as isize, self.dilation[axis]);
        let start = (o * self.stride[axis]) as isize - pad;
        (0..self.kernel[axis])
            .map(move |j| start + (j * step) as isize)
            .filter(move |&p| p >= 0 && (p as usize) < extent)
            .map(|p| p as usize)
    }
}
