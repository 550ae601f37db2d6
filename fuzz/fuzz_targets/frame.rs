//! Feeds bytes to the parser of control frames: `cargo +nightly fuzz run frame` in this
//! repository's root. What is a frame must come out as the same frame when written and read again,
//! and a test in it must be refused or be within all limits.

#![no_main]

use flatout_bench::network::frame::{Frame, MAX_FRAME_BYTES};
use flatout_bench::network::spec::{MAX_BLOCK_BYTES, MAX_STREAMS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(frame) = Frame::decode(bytes) else { return };
    let written = frame.encode();
    assert!(written.len() <= MAX_FRAME_BYTES);
    // Text is cut when it is sent, so it need not come back as it was.
    if !matches!(frame, Frame::Refused { .. }) {
        assert_eq!(Frame::decode(&written).as_ref(), Some(&frame));
    }
    if let Frame::Prepare { spec } = frame
        && spec.check().is_ok()
    {
        assert!(spec.streams <= MAX_STREAMS && spec.block_bytes <= MAX_BLOCK_BYTES);
        assert!(spec.flows().len() <= 3 * usize::from(MAX_STREAMS));
    }
});
