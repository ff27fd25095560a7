//! Positions of axes and names in a stack of panels, so that all panels are aligned.

/// Margin above a plot, and left of the y axis.
pub(super) const MARGIN: u32 = 14;
/// Width of the y axis with its labels.
const Y_AXIS: u32 = 62;
/// Height of the x axis with its labels.
pub(super) const BOTTOM: u32 = 48;
/// Width of a character in names in pixels, estimated generously.
const CHARACTER: u32 = 7;
/// Width of the sample before a name, with its gaps.
const SAMPLE: u32 = 46;

/// Left edge of the plots.
pub(super) const LEFT: u32 = MARGIN + Y_AXIS;

/// The common layout of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Width of the stack in pixels.
    pub width: u32,
    /// Width of the longest name with its sample.
    pub entry: u32,
}

impl Layout {
    /// The layout of a stack with names of up to `letters` letters.
    pub const fn new(width: u32, letters: u32) -> Self {
        Self { width, entry: letters * CHARACTER + SAMPLE }
    }

    /// Whether names are beside the plot, which keeps half of the width, or in rows below it.
    pub const fn is_beside(self) -> bool {
        2 * (LEFT + self.entry) <= self.width + LEFT
    }

    /// Right edge of the plots.
    pub const fn right(self) -> u32 {
        let right =
            if self.is_beside() { self.width.saturating_sub(self.entry) } else { self.width - MARGIN };
        if right > LEFT + 100 { right } else { LEFT + 100 }
    }

    /// Left edge of names beside the plot.
    pub const fn names(self) -> u32 {
        self.right() + 31
    }

    /// Number of names in a row below the plot.
    pub const fn columns(self) -> u32 {
        let columns = self.width.saturating_sub(2 * MARGIN) / self.entry;
        if columns > 0 { columns } else { 1 }
    }
}
