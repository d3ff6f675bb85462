//! Bounds of a tenant's data on its way from one set to another.

/// Tenants whose data one primary holds still at once, as of one time each: every one keeps old versions of all rows.
pub const TENANT_EXPORTS_MAX: usize = 16;
/// A tenant's data that nobody has asked for during this time is let go.
pub const TENANT_EXPORT_IDLE_MS: u64 = 600_000;
/// Between two looks at what nobody asks for.
pub const TENANT_EXPORT_LOOK_MS: u64 = 10_000;
/// Entries of the log that are looked at for one answer.
pub const TENANT_ENTRIES_LOOKED_AT: usize = 50_000;
/// Bytes of entries in one answer; one entry at least, or one operation of a transaction. The set that takes a tenant over holds one answer at a
/// time.
pub const TENANT_ENTRIES_BYTES_MAX: usize = 4 << 20;
/// Whoever asks for entries that are not there yet waits no longer: well below the limit of a call.
pub const TENANT_ENTRIES_WAIT_MS_MAX: u64 = 10_000;
/// Documents that are written, and bytes of entries about them, in one transaction of the set that takes a tenant over. What was told as one entry is
/// not divided.
pub const TENANT_CARRIED_OUT_TOGETHER: usize = 1_000;
pub const TENANT_CARRIED_OUT_BYTES: usize = 4 << 20;
/// How far the log goes that is carried out is noted at the latest when it is so much behind what has been looked at, though nothing of it was the
/// tenant's: that set's log goes on, and loses its front.
pub const TENANT_PROGRESS_NOTED_SECS: u32 = 10;
/// One member of another set is waited for so long before the next one is asked.
pub const PEER_SET_HOST_MS_MAX: u64 = 15_000;
/// When all members of another set have been asked in vain.
pub const PEER_SET_PAUSE_MS: u64 = 100;
/// While a tenant's clients may be waiting, a member that does not answer for so long is passed over.
pub const PEER_SET_SOON_MS_MAX: u64 = 1_500;
/// What one set tells another one while tenants move is answered after so long, or told again.
pub const PEER_SET_TOLD_MS_MAX: u64 = 3_000;
/// The clock of a set that tenants come to is moved so far beyond the time at which they were blocked.
pub const TENANT_CLOCK_AHEAD_SECS: u32 = 2;
