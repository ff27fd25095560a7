//! Bytes to structs and back.
