//! `buildInfo`: which MongoDB release this server follows, and which build it is.

use super::prelude::*;
use crate::config::{GIT_VERSION, VERSION, VERSION_ARRAY};

pub(super) async fn run(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::with_capacity(700);
    append(&mut r.body, server.config.allocator);
    Ok(r)
}

pub(crate) fn append(b: &mut DocBuilder, allocator: &str) {
    b.str("version", VERSION);
    b.str("gitVersion", GIT_VERSION);
    b.array("modules", |_| {});
    b.str("allocator", allocator);
    b.str("javascriptEngine", "none");
    b.str("sysInfo", "deprecated");
    b.array("versionArray", |a| {
        for n in VERSION_ARRAY {
            a.value(Value::Int32(n));
        }
    });
    b.doc("openssl", |d| {
        d.str("running", "disabled");
        d.str("compiled", "disabled");
    });
    b.doc("buildEnvironment", |d| {
        d.str("distmod", "");
        d.str("distarch", std::env::consts::ARCH);
        d.str("cc", "rustc");
        d.str("ccflags", "");
        d.str("cxx", "rustc");
        d.str("cxxflags", "");
        d.str("linkflags", "");
        d.str("target_arch", std::env::consts::ARCH);
        d.str("target_os", std::env::consts::OS);
    });
    b.i32("bits", 64);
    b.bool("debug", cfg!(debug_assertions));
    b.i32("maxBsonObjectSize", pando_base::limits::BSON_USER_BYTES_MAX as i32);
    b.array("storageEngines", |a| {
        a.str("lsm");
    });
    b.doc("pandodb", |d| {
        d.str("version", env!("CARGO_PKG_VERSION"));
    });
}
