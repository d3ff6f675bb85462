//! What a step costs: simulated time, messages, work of the router; and, for the eye, the time of the real processor.

use crate::Machine;
use crate::net::Sent;
use crate::{ProcessId, World};
use std::time::Duration;

/// What the world around says of this process. A library has no clock: whoever runs it hands one in.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    /// Nanoseconds of processor that this thread has used.
    pub cpu_ns: fn() -> u64,
    /// Bytes of memory that the process has.
    pub resident: fn() -> u64,
}

impl Outside {
    /// Says nothing.
    pub fn nothing() -> Outside {
        Outside { cpu_ns: || 0, resident: || 0 }
    }
}

/// A step: how often it was done, and what all of that took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: &'static str,
    pub times: u64,
    pub time: Duration,
    /// From and to the router.
    pub of_router: Sent,
    /// From anybody to anybody.
    pub of_all: Sent,
    /// Polls of the router's tasks: its work.
    pub work: u64,
    /// Of the real processor, for all machines together.
    pub cpu: Duration,
}

impl Row {
    /// Of one of its times.
    pub fn each_time(&self) -> Duration {
        self.time / u32::try_from(self.times.max(1)).unwrap_or(u32::MAX)
    }
    /// Messages from and to the router of one of its times.
    pub fn each_messages(&self) -> f64 {
        self.of_router.messages as f64 / self.times.max(1) as f64
    }
}

/// The world's counters at one moment.
pub(super) struct Reading {
    time: Duration,
    of_router: Sent,
    of_all: Sent,
    work: u64,
    cpu_ns: u64,
}

impl Reading {
    pub(super) fn now(world: &World, (router, process): (Machine, ProcessId), outside: Outside) -> Reading {
        Reading {
            time: world.sim.now(),
            of_router: world.net.sent_by_and_to(router),
            of_all: world.net.sent(),
            work: world.sim.polls_of(process),
            cpu_ns: (outside.cpu_ns)(),
        }
    }
    /// What was done so many times since another reading.
    pub(super) fn since(&self, before: &Reading, name: &'static str, times: u64) -> Row {
        let less = |now: Sent, then: Sent| Sent {
            messages: now.messages.saturating_sub(then.messages),
            bytes: now.bytes.saturating_sub(then.bytes),
        };
        Row {
            name,
            times,
            time: self.time - before.time,
            of_router: less(self.of_router, before.of_router),
            of_all: less(self.of_all, before.of_all),
            work: self.work.saturating_sub(before.work),
            cpu: Duration::from_nanos(self.cpu_ns.saturating_sub(before.cpu_ns)),
        }
    }
}
