//! SVG pictures of sweeps.
