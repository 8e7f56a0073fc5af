//! Output extents and windows against positions counted one by one.

use privet_ring::{Conv2d, Pool2d};
use proptest::prelude::*;

fn conv() -> impl Strategy<Value = Conv2d> {
    let pair = |r: std::ops::RangeInclusive<usize>| [r.clone(), r];
    (pair(1..=12), pair(1..=5), pair(1..=4), [0usize..=4, 0..=4, 0..=4, 0..=4], pair(1..=3)).prop_map(
        |(input, kernel, stride, padding, dilation)| Conv2d {
            batch: 2,
            in_channels: 6,
            input,
            out_channels: 4,
            kernel,
            stride,
            padding,
            dilation,
            groups: 2,
        },
    )
}

/// Starts `0, stride, ...` for which a window of `span` fits into `len`.
fn fitting(len: usize, span: usize, stride: usize) -> usize {
    (0..len).step_by(stride).filter(|start| start + span <= len).count()
}

proptest! {
    #[test]
    fn convolution_outputs_are_the_windows_that_fit(c in conv()) {
        for axis in 0..2 {
            let padded = c.input[axis] + c.padding[2 * axis] + c.padding[2 * axis + 1];
            let span = c.dilation[axis] * (c.kernel[axis] - 1) + 1;
            prop_assert_eq!(c.output()[axis], fitting(padded, span, c.stride[axis]));
        }
        let [h, w] = c.output();
        prop_assert_eq!(c.output_len(), 2 * 4 * h * w);
        prop_assert_eq!(c.input_len(), 2 * 6 * c.input[0] * c.input[1]);
        prop_assert_eq!(c.weight_len(), 4 * 3 * c.kernel[0] * c.kernel[1]);
        prop_assert_eq!(c.macs(), (c.output_len() * 3 * c.kernel[0] * c.kernel[1]) as u64);
    }

    #[test]
    fn pooling_covers_what_torch_covers(
        extent in 1usize..20, kernel in 1usize..5, stride in 1usize..5, padding in 0usize..3,
        dilation in 1usize..3, ceil_mode: bool,
    ) {
        prop_assume!(2 * padding <= kernel);
        let span = dilation * (kernel - 1) + 1;
        prop_assume!(span <= extent + 2 * padding);
        let pool = Pool2d {
            kernel: [kernel; 2],
            stride: [stride; 2],
            padding: [padding; 2],
            dilation: [dilation; 2],
            ceil_mode,
        };
        let [out, same] = pool.output([extent, extent]);
        prop_assert_eq!(out, same);
        let floor = fitting(extent + 2 * padding, span, stride);
        if ceil_mode {
            prop_assert!(out == floor || out == floor + 1);
            // The last window starts inside the input or its left padding.
            prop_assert!((out - 1) * stride < extent + padding);
        } else {
            prop_assert_eq!(out, floor);
        }
        for o in 0..out {
            let window: Vec<usize> = pool.window(0, o, extent).collect();
            let want: Vec<usize> = (0..extent)
                .filter(|p| (0..kernel).any(|j| p + padding == o * stride + j * dilation))
                .collect();
            prop_assert_eq!(window, want, "output {}", o);
        }
    }
}

#[test]
fn a_kernel_larger_than_the_input_has_no_output() {
    let c = Conv2d {
        batch: 1,
        in_channels: 1,
        input: [2, 2],
        out_channels: 1,
        kernel: [5, 5],
        stride: [1, 1],
        padding: [1, 1, 1, 1],
        dilation: [1, 1],
        groups: 1,
    };
    assert_eq!(c.output(), [0, 0]);
}
