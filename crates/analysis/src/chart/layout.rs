//! Positions of the axes in a stack of panels, so that all panels are aligned.

/// Width of a stack in pixels.
pub(super) const WIDTH: u32 = 720;
/// Margin above a plot, and left of the y axis.
pub(super) const MARGIN: u32 = 14;
/// Width of the y axis with its labels.
const Y_AXIS: u32 = 62;
/// Height of the x axis with its labels.
pub(super) const BOTTOM: u32 = 48;
/// Width of a character in the legend in pixels, estimated generously.
const CHARACTER: u32 = 7;

/// Left edge of the plots.
pub(super) const LEFT: u32 = MARGIN + Y_AXIS;

/// Right edge of the plots, for a legend whose longest name has `legend` characters.
pub(super) const fn right(legend: u32) -> u32 {
    // Leaves room for the plot even if names are long.
    let right = WIDTH.saturating_sub(legend * CHARACTER + 46);
    if right > LEFT + 100 { right } else { LEFT + 100 }
}

/// Left edge of the names in this legend.
pub(super) const fn legend_names(legend: u32) -> u32 {
    right(legend) + 31
}
