//! What a run is asked for.

/// How long and how wild.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// So many equal members; otherwise each seed draws a shape.
    pub members: Option<u16>,
    pub users: i64,
    /// Virtual time with faults.
    pub seconds: u64,
    /// Mean virtual time between two faults.
    pub between_ms: u64,
    /// The longest that one lasts.
    pub longest_ms: u64,
    /// Mean virtual time between two commands of one user.
    pub pause_ms: u64,
    /// Of a million writes to a connection, so many break it.
    pub break_ppm: u64,
    /// Virtual time between the last fault and the last write.
    pub calm_ms: u64,
    /// Of the log, so many lines are told with a failure.
    pub lines: usize,
    /// Of a cluster: ranges move between its shards.
    pub moves: bool,
    /// Of two sets with tenants: one of them is merged into the other one, again and again.
    pub merges: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            members: None,
            users: 2,
            seconds: 1800,
            between_ms: 14_000,
            longest_ms: 25_000,
            pause_ms: 2000,
            break_ppm: 50,
            calm_ms: 20_000,
            lines: 80,
            moves: false,
            merges: false,
        }
    }
}
