//! What a router says of itself: `ping`, `buildInfo`, `hostInfo`, `getCmdLineOpts`, `whatsmyuri`, `getLog`, `listCommands`, `features`.

use super::super::prelude::*;
use crate::config::{GIT_VERSION, VERSION, VERSION_ARRAY};
use pando_base::limits;
use pando_command::{Flags, Privileges};

pub(in crate::commands) async fn ping(_: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    match req.args("ping").next() {
        Some(arg) => Err(arg.unknown()),
        None => Ok(Reply::new()),
    }
}

/// Nothing has to be done here.
pub(in crate::commands) async fn nothing(_: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Ok(Reply::new())
}

pub(in crate::commands) async fn build_info(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::with_capacity(700);
    let b = &mut r.body;
    b.str("version", VERSION).str("gitVersion", GIT_VERSION);
    b.array("modules", |_| {});
    b.str("allocator", router.config.allocator).str("javascriptEngine", "none").str("sysInfo", "deprecated");
    b.array("versionArray", |a| VERSION_ARRAY.into_iter().for_each(|n| _ = a.value(Value::Int32(n))));
    b.doc("openssl", |d| _ = d.str("running", "disabled").str("compiled", "disabled"));
    b.doc("buildEnvironment", |d| {
        d.str("distarch", std::env::consts::ARCH).str("cc", "rustc");
        d.str("target_arch", std::env::consts::ARCH).str("target_os", std::env::consts::OS);
    });
    b.i32("bits", 64).bool("debug", cfg!(debug_assertions));
    b.i32("maxBsonObjectSize", limits::BSON_USER_BYTES_MAX as i32);
    b.array("storageEngines", |_| {});
    b.doc("pandodb", |d| _ = d.str("version", env!("CARGO_PKG_VERSION")));
    Ok(r)
}

pub(in crate::commands) async fn host_info(router: &Router, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let facts = router.config.host.facts();
    let mut r = Reply::new();
    r.body.doc("system", |d| {
        d.date("currentTime", ctx.env().clock.wall_ms()).str("hostname", &facts.hostname);
        d.i32("cpuAddrSize", 64).i64("memSizeMB", (facts.memory_bytes >> 20) as i64);
        d.i64("memLimitMB", (facts.memory_limit_bytes >> 20) as i64);
        d.i32("numCores", facts.cores as i32).str("cpuArch", &facts.cpu_arch);
        d.bool("numaEnabled", facts.numa_nodes > 1);
    });
    r.body.doc("os", |d| {
        d.str("type", &facts.os_type).str("name", &facts.os_name).str("version", &facts.os_version);
    });
    r.body.doc("extra", |d| _ = d.i64("pageSize", facts.page_size as i64));
    Ok(r)
}

pub(in crate::commands) async fn command_line(router: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("getCmdLineOpts", &[])?;
    let mut r = Reply::new();
    r.body.array("argv", |a| router.config.argv.iter().for_each(|arg| _ = a.str(arg)));
    r.body.raw_doc("parsed", &router.config.parsed);
    Ok(r)
}

pub(in crate::commands) async fn my_uri(_: &Router, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.str("you", ctx.client.remote.as_deref().unwrap_or(""));
    Ok(r)
}

pub(in crate::commands) async fn log(_: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let which = req.first_str("getLog")?;
    let mut r = Reply::with_capacity(64 << 10);
    let sink = ctx.env().log.sink();
    let (lines, written) = match which {
        "*" => {
            r.body.array("names", |a| _ = a.str("global").str("startupWarnings"));
            return Ok(r);
        }
        "global" => sink.recent(),
        "startupWarnings" => {
            let lines = sink.startup_warnings();
            let n = lines.len() as u64;
            (lines, n)
        }
        other => return Err(Error::new(ErrorCode::OperationFailed, format!("No log named '{other}'"))),
    };
    r.body.i32("totalLinesWritten", i32::try_from(written).unwrap_or(i32::MAX));
    r.body.array("log", |a| lines.iter().for_each(|line| _ = a.str(line)));
    Ok(r)
}

pub(in crate::commands) async fn list_commands(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::with_capacity(32 << 10);
    r.body.doc("commands", |all| {
        let shown = router.registry.commands().filter(|c| c.handler.is_some() && !c.flags.has(Flags::HIDDEN));
        for spec in shown {
            all.doc(spec.name, |d| {
                d.str("help", spec.help).bool("requiresAuth", spec.privileges != Privileges::Open);
                d.bool("secondaryOk", spec.flags.has(Flags::SECONDARY_OK));
                d.bool("adminOnly", spec.flags.has(Flags::ADMIN_ONLY));
                d.array("apiVersions", |a| {
                    if spec.api_v1 {
                        a.str("1");
                    }
                });
                d.array("deprecatedApiVersions", |_| {});
            });
        }
    });
    Ok(r)
}

pub(in crate::commands) async fn features(_: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.bool("js", false);
    Ok(r)
}
