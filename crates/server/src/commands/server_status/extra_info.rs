//! `extra_info`: what the operating system says of the process.

use crate::Server;
use pando_metrics::Collector;

pub(super) fn collect(server: &Server, to: &mut Collector<'_>) {
    let u = server.config.host.usage();
    to.text("note", "fields vary by platform", "What a reader should know of these figures")
        .counter("user_time_us", u.user_cpu_us, "microseconds", "Processor time of the process")
        .counter(
            "system_time_us",
            u.system_cpu_us,
            "microseconds",
            "Processor time of the kernel for the process",
        )
        .gauge("maximum_resident_set_kb", u.resident_bytes >> 10, "kilobytes", "Memory of the process")
        .counter("page_faults", u.page_faults, "page faults", "Page faults that read from disk")
        .gauge("threads", u.threads, "threads", "Threads of the process");
}
