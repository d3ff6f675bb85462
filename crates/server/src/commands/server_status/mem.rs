//! `mem`: memory of the process.

use crate::Server;
use pando_metrics::Collector;

pub(super) fn collect(server: &Server, to: &mut Collector<'_>) {
    let u = server.config.host.usage();
    to.gauge("bits", 64, "bits", "Width of an address")
        .gauge("resident", (u.resident_bytes >> 20) as i32, "megabytes", "Memory of the process")
        .gauge(
            "virtual",
            (u.virtual_bytes >> 20) as i32,
            "megabytes",
            "Addresses that the process has mapped",
        )
        .gauge("supported", true, "boolean", "Whether these figures are known");
}
