//! What an operation of a client pays for blockers: `cargo bench -p pando-tenants`, nanoseconds of a processor for each look, where no
//! tenant has one, where one has, and where 1,000 have.

#![allow(clippy::disallowed_methods)]

use pando_base::Uuid;
use pando_tenants::operation::Phase;
use pando_tenants::{AccessBlockers, Kind, Operation};
use std::hint::black_box;
use std::time::{Duration, Instant};

const LOOKS: u32 = 5_000_000;

/// Time this thread has spent on a processor, where the system tells it: other load does not count.
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = stat.and_then(|s| s.split(' ').next()?.parse().ok());
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

fn blockers(tenants: usize) -> AccessBlockers {
    let all = AccessBlockers::default();
    if tenants > 0 {
        all.follow(
            Operation {
                all: false,
                id: Uuid([1; 16]),
                kind: Kind::ShardSplit,
                tenants: (0..tenants).map(|n| format!("tenant{n:04}")).collect(),
                recipient_set: "new".to_owned(),
                phase: Phase::NoBuilds,
                expires: false,
            },
            true,
        );
    }
    all
}

/// The best of five.
fn measure(all: &AccessBlockers, db: &str) -> f64 {
    let once = || {
        let start = cpu_time();
        (0..LOOKS).for_each(|_| assert!(black_box(all).check_write(black_box(db)).is_ok()));
        (cpu_time() - start).as_nanos() as f64 / f64::from(LOOKS)
    };
    (0..5).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn main() {
    for tenants in [0, 1, 1000] {
        let all = blockers(tenants);
        for (whose, db) in [
            ("a tenant that has one", "tenant0000_orders"),
            ("another tenant", "elsewhere_orders"),
            ("no tenant", "orders"),
        ] {
            println!("{tenants:5} blockers, {whose:22} {:6.1} ns", measure(&all, db));
        }
    }
}
