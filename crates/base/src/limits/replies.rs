//! Bounds of what replies say.

/// Bytes of an error's text: what it quotes may be as large as a document, and a reply of several errors has to fit into one.
pub const ERROR_TEXT_BYTES_MAX: usize = 1 << 20;
