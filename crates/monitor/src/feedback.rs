//! What an error of a call says of the member that was called (SYS-210, SH-REG-5).

use crate::hello::TopologyVersion;
use crate::set::Set;
use pando_base::ErrorCode;
use pando_base::codes::class;

/// Why a call failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// The connection broke, or could not be made.
    Network,
    /// No answer in time.
    Timeout,
    /// The member said so.
    Code(ErrorCode),
}

/// A call that failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallError {
    pub what: What,
    /// Of the member when the connection was made.
    pub generation: u64,
    /// The connection had been made, with its handshake and login.
    pub was_connected: bool,
    /// What the reply had.
    pub topology_version: Option<TopologyVersion>,
}

/// What to do about connections to the member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Effect {
    /// It is not what it was thought to be: ask it at once.
    pub ask: bool,
    /// Its connections are good for nothing.
    pub drop_connections: bool,
}

impl Set {
    /// Takes in an error.
    pub fn failed(&mut self, host: &str, e: &CallError) -> Effect {
        let Some(m) = self.members.get_mut(host) else { return Effect::default() };
        if e.generation < m.generation {
            return Effect::default();
        }
        let (changed, drop_connections) = match e.what {
            What::Network => (true, true),
            // Slow is not gone: a member with too many clients would lose them all. Its own probe tells.
            What::Timeout => (false, false),
            What::Code(code) if code.is(class::NOT_PRIMARY | class::RECOVERING) => {
                let known = e.topology_version.zip(m.topology_version);
                if known
                    .is_some_and(|(new, known)| new.process == known.process && new.counter <= known.counter)
                {
                    // Said before it told who is primary now.
                    return Effect::default();
                }
                (true, code.is(class::SHUTDOWN) || !e.was_connected)
            }
            What::Code(_) => (!e.was_connected, !e.was_connected),
        };
        if !changed {
            return Effect::default();
        }
        m.forget();
        m.topology_version = e.topology_version;
        m.generation += u64::from(drop_connections);
        Effect { ask: true, drop_connections }
    }
}
