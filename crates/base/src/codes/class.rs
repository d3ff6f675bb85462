//! Classes of errors: what may be done about one, by whom. Every list of codes that some code decides by is one bit here;
//! `tests.rs` holds the lists as they are documented.

/// A server may repeat the call. `RetryableWriteError` on retryable writes; transient in a transaction; resumable for
/// change streams.
pub const RETRIABLE: u32 = 1;
/// `TransientTransactionError` inside a transaction though not retriable.
pub const TRANSIENT_IN_TXN: u32 = 1 << 1;
/// `ResumableChangeStreamError` though not retriable.
pub const RESUMABLE: u32 = 1 << 2;
/// "Not writable primary": a state-change error.
pub const NOT_PRIMARY: u32 = 1 << 3;
/// "Node is recovering": a state-change error.
pub const RECOVERING: u32 = 1 << 4;
/// Shutting down: drivers also drop their pool.
pub const SHUTDOWN: u32 = 1 << 5;
/// The connection closes after the reply.
pub const CLOSES: u32 = 1 << 6;
/// Overload: carries the overload labels, and nothing was done.
pub const OVERLOAD: u32 = 1 << 7;
/// The sender's routing information is not the receiver's: refresh, and target again.
pub const STALE_ROUTING: u32 = 1 << 8;
/// Somebody or something ended the operation from outside.
pub const INTERRUPTION: u32 = 1 << 9;
/// The peer was not reached, or the connection to it was lost.
pub const NETWORK: u32 = 1 << 10;
/// A driver repeats a write that has a transaction number.
pub const RETRYABLE_WRITE: u32 = 1 << 11;
/// A driver repeats a read once.
pub const RETRYABLE_READ: u32 = 1 << 12;
/// The cursor is gone, whatever becomes of its node.
pub const CURSOR_INVALIDATED: u32 = 1 << 13;
/// A time limit has passed, somebody's.
pub const EXCEEDED_TIME: u32 = 1 << 14;
/// Ends a write command as a whole instead of becoming the error of one of its writes: what comes after would fail for
/// the same reason.
pub const ENDS_COMMAND: u32 = 1 << 15;
/// Becomes the error of its write, but the documents behind it in an unordered insert are not tried.
pub const ENDS_BATCH: u32 = 1 << 16;
