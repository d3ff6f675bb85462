//! `startRecordingTraffic`, `stopRecordingTraffic`: refused as by a server that was given no folder for recordings.

use super::prelude::*;

pub(super) async fn start(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "startRecordingTraffic";
    let mut named = false;
    for arg in req.args(OWNER) {
        match arg.name() {
            "filename" if !arg.is_absent() => {
                arg.str()?;
                named = true;
            }
            "bufferSize" | "maxFileSize" if !arg.is_absent() => drop(arg.exact_i64()?),
            "filename" | "bufferSize" | "maxFileSize" => {}
            _ => return Err(arg.unknown()),
        }
    }
    match named {
        false => Err(pando_command::request::missing(OWNER, "filename")),
        true => Err(Error::bad_value("Traffic recording directory not set")),
    }
}

pub(super) async fn stop(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("stopRecordingTraffic", &[])?;
    Err(Error::bad_value("Traffic recording not active"))
}
