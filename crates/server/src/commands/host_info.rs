//! `hostInfo`: the machine underneath.

use super::prelude::*;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("hostInfo", &[])?;
    let h = server.config.host.facts();
    let mut r = Reply::with_capacity(800);
    r.body.doc("system", |d| {
        d.date("currentTime", ctx.env().clock.wall_ms());
        d.str("hostname", &server.config.host_port());
        d.i32("cpuAddrSize", 64);
        d.i64("memSizeMB", (h.memory_bytes >> 20) as i64);
        d.i64("memLimitMB", (h.memory_limit_bytes >> 20) as i64);
        d.i32("numCores", h.cores as i32);
        // What the machine does not tell is left out.
        let counted = |d: &mut DocBuilder, name: &str, n: u32| {
            if n > 0 {
                d.i32(name, n as i32);
            }
        };
        counted(d, "numPhysicalCores", h.physical_cores);
        counted(d, "numCpuSockets", h.sockets);
        d.str("cpuArch", &h.cpu_arch);
        if h.numa_nodes > 0 {
            d.bool("numaEnabled", h.numa_nodes > 1);
        }
        counted(d, "numNumaNodes", h.numa_nodes);
    });
    r.body.doc("os", |d| {
        d.str("type", &h.os_type);
        d.str("name", &h.os_name);
        d.str("version", &h.os_version);
    });
    r.body.doc("extra", |d| {
        d.str("versionString", &format!("{} {}", h.os_type, h.os_version));
        d.str("kernelVersion", &h.os_version);
        d.i64("pageSize", h.page_size as i64);
        d.i64("numPages", h.memory_bytes.checked_div(h.page_size).unwrap_or(0) as i64);
        d.i64("maxOpenFiles", h.open_files_max as i64);
    });
    Ok(r)
}
