//! What the firmware says of the memory modules.
