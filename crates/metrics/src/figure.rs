//! What code counts with. All of it is lock-free; readers may see one figure newer than another.

use crate::collect::Collector;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Only grows.
#[derive(Default, Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Goes up and down.
#[derive(Default, Debug)]
pub struct Gauge(AtomicI64);

impl Gauge {
    #[inline]
    pub fn add(&self, n: i64) {
        self.0.fetch_add(n, Relaxed);
    }
    #[inline]
    pub fn sub(&self, n: i64) {
        self.0.fetch_sub(n, Relaxed);
    }
    pub fn set(&self, n: i64) {
        self.0.store(n, Relaxed);
    }
    pub fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// How many operations of a class there were and how long they took; shown as `{latency: <microseconds>, ops}`.
#[derive(Default, Debug)]
pub struct Latency {
    pub ops: Counter,
    pub micros: Counter,
}

impl Latency {
    #[inline]
    pub fn took(&self, time: Duration) {
        self.ops.inc();
        self.micros.add(time.as_micros() as u64);
    }
}

/// How often something was done and how long it took; shown as `{num, totalMillis}`.
#[derive(Default, Debug)]
pub struct Timer {
    pub num: Counter,
    pub micros: Counter,
}

impl Timer {
    #[inline]
    pub fn took(&self, time: Duration) {
        self.num.inc();
        self.micros.add(time.as_micros() as u64);
    }
}

/// Which integer of BSON shows a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    Int,
    Long,
}

/// What stands beside a field of a [`group!`](crate::group).
#[derive(Clone, Copy, Debug)]
pub struct About {
    pub unit: &'static str,
    pub help: &'static str,
    pub width: Width,
}

/// A field of a group.
pub trait Figure {
    fn collect(&self, name: &'static str, about: About, to: &mut Collector<'_>);
}

impl Figure for Counter {
    fn collect(&self, name: &'static str, about: About, to: &mut Collector<'_>) {
        match about.width {
            Width::Int => to.counter(name, self.get() as i32, about.unit, about.help),
            Width::Long => to.counter(name, self.get(), about.unit, about.help),
        };
    }
}

impl Figure for Gauge {
    fn collect(&self, name: &'static str, about: About, to: &mut Collector<'_>) {
        match about.width {
            Width::Int => to.gauge(name, self.get() as i32, about.unit, about.help),
            Width::Long => to.gauge(name, self.get(), about.unit, about.help),
        };
    }
}

impl Figure for Latency {
    fn collect(&self, name: &'static str, about: About, to: &mut Collector<'_>) {
        to.within(name, |to| {
            to.counter("latency", self.micros.get(), "microseconds", about.help);
            to.counter("ops", self.ops.get(), about.unit, about.help);
        });
    }
}

impl Figure for Timer {
    fn collect(&self, name: &'static str, about: About, to: &mut Collector<'_>) {
        to.within(name, |to| {
            to.counter("num", self.num.get(), about.unit, about.help);
            to.counter("totalMillis", self.micros.get() / 1000, "milliseconds", about.help);
        });
    }
}
