//! Where the panels of a stack have their axes, so that those below each other are aligned.

/// Width of a stack in pixels.
pub(super) const WIDTH: u32 = 720;
/// Above a plot, and left of the axis of y.
pub(super) const MARGIN: u32 = 14;
/// Room of the axis of y.
const Y_AXIS: u32 = 62;
/// Room of the axis of x.
pub(super) const BOTTOM: u32 = 48;
/// Pixels per character of the legend, generously.
const CHARACTER: u32 = 7;

/// Left edge of the plots.
pub(super) const LEFT: u32 = MARGIN + Y_AXIS;

/// Right edge of the plots, beside a legend whose longest name has `legend` characters.
pub(super) const fn right(legend: u32) -> u32 {
    // However long names are, something is left for the plot.
    let right = WIDTH.saturating_sub(legend * CHARACTER + 46);
    if right > LEFT + 100 { right } else { LEFT + 100 }
}

/// Left edge of the names in that legend.
pub(super) const fn legend_names(legend: u32) -> u32 {
    right(legend) + 31
}
