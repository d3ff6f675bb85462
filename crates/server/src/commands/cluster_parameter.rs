//! `getClusterParameter` and `setClusterParameter`: parameters of the whole set.

use super::prelude::*;
use crate::settings::cluster_parameters::CHANGE_STREAM_OPTIONS;
use pando_command::request::{missing, wrong_type};

pub(super) async fn get(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "getClusterParameter";
    let first = req.first().value();
    // The list of types has one member, and MongoDB writes it as a list.
    let wrong = || {
        let found = first.type_name();
        Error::type_mismatch(format!(
            "BSON field '{OWNER}.{OWNER}' is the wrong type '{found}', expected types '[string']"
        ))
    };
    let names = match first {
        Value::String("*") => Vec::new(),
        Value::String(name) => vec![name],
        Value::Array(list) => {
            let names =
                list.iter().map(|e| e.value().as_str().ok_or_else(wrong)).collect::<Result<Vec<_>>>()?;
            if names.is_empty() {
                return Err(Error::bad_value(
                    "Must supply at least one cluster server parameter name to getClusterParameter",
                ));
            }
            names
        }
        _ => return Err(wrong()),
    };
    if let Some(name) = names.iter().find(|name| **name != CHANGE_STREAM_OPTIONS) {
        return Err(Error::new(ErrorCode::NoSuchKey, format!("Unknown server parameter: {name}")));
    }
    let options = server.settings.cluster_parameters.change_streams();
    let mut r = Reply::new();
    r.body.array("clusterParameters", |a| {
        for _ in 0..names.len().max(1) {
            a.doc(|d| options.append_to(d));
        }
    });
    Ok(r)
}

pub(super) async fn set(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "setClusterParameter";
    let given = match req.first().value() {
        Value::Document(given) => given,
        Value::Null | Value::Undefined => return Err(missing(OWNER, OWNER)),
        v => return Err(wrong_type(OWNER, OWNER, &v, &["object"])),
    };
    if let Some(arg) = req.args(OWNER).next() {
        return Err(arg.unknown());
    }
    if !server.replication.member.is_replicated() {
        let text = "setClusterParameter cannot be run on standalones";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let (name, value) = given.first().map_or(("", Value::Null), |e| (e.name(), e.value()));
    server.settings.set_cluster_parameter(ctx, name, value).await?;
    Ok(Reply::new())
}
