//! The server itself: its start and end, its files, its parameters, its set.

use crate::Event;
use crate::event::DONE;
use pando_base::ErrorCode;
use pando_bson::{DocBuf, RawDoc};
use std::path::Path;

impl Event {
    /// `options` are those of the configuration, `parameters` what the whole set has agreed on.
    pub fn startup(options: &RawDoc, parameters: &[DocBuf]) -> Event {
        Event::done("startup", |p| {
            p.raw_doc("startupOptions", options);
            p.array("initialClusterServerParameters", |a| {
                parameters.iter().for_each(|each| {
                    a.raw_doc(each);
                });
            });
        })
    }
    /// The end has begun.
    pub fn shutdown() -> Event {
        Event::done("shutdown", |_| {})
    }
    /// Files were rotated; `failed` = why the old one of the audit log stays in use.
    pub fn rotate_log(
        (pid, os_name, os_version): (u32, &str, &str),
        old: Option<&Path>,
        failed: Option<&str>,
    ) -> Event {
        let result = if failed.is_some() { ErrorCode::FileRenameFailed } else { DONE };
        Event::done("rotateLog", |p| {
            p.i64("pid", i64::from(pid));
            p.doc("osInfo", |d| {
                d.str("name", os_name).str("version", os_version);
            });
            p.doc("logRotationStatus", |d| {
                d.str("status", failed.unwrap_or("OK"));
                if let Some(old) = old {
                    d.str("rotatedLogPath", &old.display().to_string());
                }
            });
        })
        .with_result(result)
    }
    /// `logApplicationMessage`
    pub fn application_message(text: &str) -> Event {
        Event::done("applicationMessage", |p| {
            p.str("msg", text);
        })
    }
    pub fn repl_set_reconfig(old: &RawDoc, new: &RawDoc) -> Event {
        Event::done("replSetReconfig", |p| {
            p.raw_doc("old", old).raw_doc("new", new);
        })
    }
    pub fn get_cluster_parameter(asked: pando_bson::Value<'_>) -> Event {
        Event::done("getClusterParameter", |p| {
            p.value("requestedClusterServerParameters", asked);
        })
    }
    pub fn set_cluster_parameter(was: &RawDoc, is: &RawDoc) -> Event {
        of_parameter("setClusterParameter", was, is)
    }
    /// What is in force here has become different: set here, by another member, or taken back.
    pub fn update_cached_cluster_parameter(was: &RawDoc, is: &RawDoc) -> Event {
        of_parameter("updateCachedClusterServerParameter", was, is)
    }
}

fn of_parameter(action: &'static str, was: &RawDoc, is: &RawDoc) -> Event {
    Event::done(action, |p| {
        p.raw_doc("originalClusterServerParameter", was).raw_doc("updatedClusterServerParameter", is);
    })
}
