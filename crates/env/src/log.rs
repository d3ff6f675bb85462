//! The server's log: MongoDB's one-JSON-object-per-line form, behind a cheap handle.
//!
//! `env.log.info(Component::Storage, 22315, "Opening the data files", |a| { a.str("dbpath", path); })`
//! costs one virtual call when the line is not wanted. Where lines go (file, stdout, memory ring, nowhere)
//! is the sink's business; the real sink is in `shell`, tests and the simulator bring their own.
//! What an attribute may hold, and what of it is not shown, is in [`pando_base::redaction`].
//! Ids are stable: tools and launchers wait for some of MongoDB's numbers, so where MongoDB has a line for
//! the same event we use its id and text.

pub use pando_base::redaction::push_json_string;
use pando_base::redaction::{ClientData, Plain};
use std::fmt::Write as _;
use std::sync::Arc;

macro_rules! components {
    ($($name:ident $text:literal $path:literal;)*) => {
        /// Which part of the server speaks (`c` of a line).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Component { $($name,)* }
        impl Component {
            pub const ALL: &[Component] = &[$(Component::$name,)*];
            /// As printed in `c`.
            pub fn text(self) -> &'static str {
                match self { $(Component::$name => $text,)* }
            }
            /// The dotted name used by `logComponentVerbosity` and `systemLog.component.*`.
            pub fn path(self) -> &'static str {
                match self { $(Component::$name => $path,)* }
            }
        }
    };
}
components! {
    Default "-" "default";
    Access "ACCESS" "accessControl";
    Command "COMMAND" "command";
    Control "CONTROL" "control";
    Executor "EXECUTOR" "executor";
    Geo "GEO" "geo";
    Index "INDEX" "index";
    Network "NETWORK" "network";
    ConnPool "CONNPOOL" "network.connectionPool";
    Query "QUERY" "query";
    Repl "REPL" "replication";
    Election "ELECTION" "replication.election";
    ReplHeartbeat "REPL_HB" "replication.heartbeats";
    InitSync "INITSYNC" "replication.initialSync";
    Rollback "ROLLBACK" "replication.rollback";
    Sharding "SHARDING" "sharding";
    Storage "STORAGE" "storage";
    Recovery "RECOVERY" "storage.recovery";
    Journal "JOURNAL" "storage.journal";
    Write "WRITE" "write";
    Ftdc "FTDC" "ftdc";
    Txn "TXN" "transaction";
    Test "TEST" "test";
}

/// How much it matters (`s` of a line).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    Fatal,
    Error,
    Warning,
    Info,
    /// 1 to 5; written when the component's verbosity is at least that.
    Debug(u8),
}

impl Severity {
    pub fn text(self) -> &'static str {
        match self {
            Severity::Fatal => "F",
            Severity::Error => "E",
            Severity::Warning => "W",
            Severity::Info => "I",
            Severity::Debug(0 | 1) => "D1",
            Severity::Debug(2) => "D2",
            Severity::Debug(3) => "D3",
            Severity::Debug(4) => "D4",
            Severity::Debug(_) => "D5",
        }
    }
}

/// One event on its way to the sink.
pub struct Record<'a> {
    pub severity: Severity,
    pub component: Component,
    pub id: i32,
    /// Who was working: `conn12`, `listener`, `initandlisten`, a task's name.
    pub ctx: &'a str,
    pub msg: &'a str,
    /// A JSON object, or empty.
    pub attr: &'a str,
}

/// Where records go. The control methods serve `logRotate`, `getLog` and `logComponentVerbosity`.
pub trait LogSink: Send + Sync {
    fn enabled(&self, component: Component, severity: Severity) -> bool;
    fn write(&self, record: &Record<'_>);
    /// Verbosity of a component (0 to 5), inherited ones resolved.
    fn verbosity(&self, _component: Component) -> u8 {
        0
    }
    /// The component's own setting; `None` = inherited.
    fn own_verbosity(&self, _component: Component) -> Option<u8> {
        None
    }
    /// `None` = inherit from the parent component.
    fn set_verbosity(&self, _component: Component, _level: Option<u8>) {}
    /// The latest lines, oldest first, and how many were written since the start.
    fn recent(&self) -> (Vec<String>, u64) {
        (Vec::new(), 0)
    }
    /// The warnings of the start (`getLog: "startupWarnings"`).
    fn startup_warnings(&self) -> Vec<String> {
        Vec::new()
    }
    /// Renames or reopens the file.
    fn rotate(&self) -> std::io::Result<()> {
        Ok(())
    }
    /// Empties `recent`.
    fn clear(&self) {}
    /// `redactClientLogData`: nothing that a client has sent is shown.
    fn redacts(&self) -> bool {
        false
    }
    fn set_redaction(&self, _on: bool) {}
}

/// A sink that keeps nothing.
struct Nowhere;
impl LogSink for Nowhere {
    fn enabled(&self, _: Component, _: Severity) -> bool {
        false
    }
    fn write(&self, _: &Record<'_>) {}
}

/// The handle everybody holds: a sink and the name of the one who speaks.
#[derive(Clone)]
pub struct Log {
    sink: Arc<dyn LogSink>,
    ctx: Arc<str>,
}

impl Log {
    pub fn new(sink: Arc<dyn LogSink>, ctx: &str) -> Log {
        Log { sink, ctx: ctx.into() }
    }
    /// Discards everything.
    pub fn none() -> Log {
        Log::new(Arc::new(Nowhere), "-")
    }
    /// The same sink under another `ctx`.
    pub fn named(&self, ctx: &str) -> Log {
        Log { sink: self.sink.clone(), ctx: ctx.into() }
    }
    pub fn ctx(&self) -> &str {
        &self.ctx
    }
    pub fn sink(&self) -> &dyn LogSink {
        &*self.sink
    }
    pub fn enabled(&self, component: Component, severity: Severity) -> bool {
        self.sink.enabled(component, severity)
    }
    pub fn at(
        &self,
        severity: Severity,
        component: Component,
        id: i32,
        msg: &str,
        fill: impl FnOnce(&mut Attrs),
    ) {
        if !self.sink.enabled(component, severity) {
            return;
        }
        let mut attrs = Attrs { redacts: self.sink.redacts(), ..Attrs::default() };
        fill(&mut attrs);
        let attr = attrs.finish();
        self.sink.write(&Record { severity, component, id, ctx: &self.ctx, msg, attr: &attr });
    }
    pub fn fatal(&self, component: Component, id: i32, msg: &str, fill: impl FnOnce(&mut Attrs)) {
        self.at(Severity::Fatal, component, id, msg, fill);
    }
    pub fn error(&self, component: Component, id: i32, msg: &str, fill: impl FnOnce(&mut Attrs)) {
        self.at(Severity::Error, component, id, msg, fill);
    }
    pub fn warn(&self, component: Component, id: i32, msg: &str, fill: impl FnOnce(&mut Attrs)) {
        self.at(Severity::Warning, component, id, msg, fill);
    }
    pub fn info(&self, component: Component, id: i32, msg: &str, fill: impl FnOnce(&mut Attrs)) {
        self.at(Severity::Info, component, id, msg, fill);
    }
    /// `level` 1 to 5.
    pub fn debug(&self, level: u8, component: Component, id: i32, msg: &str, fill: impl FnOnce(&mut Attrs)) {
        self.at(Severity::Debug(level), component, id, msg, fill);
    }
}

/// The `attr` object under construction.
#[derive(Default)]
pub struct Attrs {
    json: String,
    /// What clients have sent is not shown.
    redacts: bool,
}

impl Attrs {
    fn key(&mut self, name: &str) {
        self.json.push(if self.json.is_empty() { '{' } else { ',' });
        push_json_string(&mut self.json, name);
        self.json.push(':');
    }
    /// A text of the server's own, or a name; what a client has sent goes by [`Attrs::data`].
    pub fn str(&mut self, name: &str, v: &str) -> &mut Self {
        self.key(name);
        push_json_string(&mut self.json, v);
        self
    }
    /// What a client may have sent: documents, texts, errors.
    pub fn data(&mut self, name: &str, v: &(impl ClientData + ?Sized)) -> &mut Self {
        self.key(name);
        v.push_json(&mut self.json, self.redacts);
        self
    }
    /// Anything printable that holds nothing of a client's, as a string.
    pub fn show(&mut self, name: &str, v: impl Plain) -> &mut Self {
        self.str(name, &v.to_string())
    }
    pub fn i64(&mut self, name: &str, v: i64) -> &mut Self {
        self.key(name);
        let _ = write!(self.json, "{v}");
        self
    }
    pub fn u64(&mut self, name: &str, v: u64) -> &mut Self {
        self.key(name);
        let _ = write!(self.json, "{v}");
        self
    }
    pub fn f64(&mut self, name: &str, v: f64) -> &mut Self {
        self.key(name);
        if v.is_finite() {
            let _ = write!(self.json, "{v:?}");
        } else {
            self.json.push_str("null");
        }
        self
    }
    pub fn bool(&mut self, name: &str, v: bool) -> &mut Self {
        self.key(name);
        self.json.push_str(if v { "true" } else { "false" });
        self
    }
    /// Text that already is JSON, and holds nothing of a client's.
    pub fn own_json(&mut self, name: &str, v: &str) -> &mut Self {
        self.key(name);
        self.json.push_str(v);
        self
    }
    /// A nested object.
    pub fn object(&mut self, name: &str, fill: impl FnOnce(&mut Attrs)) -> &mut Self {
        let mut inner = Attrs { redacts: self.redacts, ..Attrs::default() };
        fill(&mut inner);
        let text = inner.finish();
        self.own_json(name, if text.is_empty() { "{}" } else { &text })
    }
    /// The object's text; empty when no field was added.
    pub fn finish(mut self) -> String {
        if !self.json.is_empty() {
            self.json.push('}');
        }
        self.json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_form_a_json_object_with_escapes() {
        let mut a = Attrs::default();
        a.str("s", "a\"b\\\n\u{1}").i64("n", -3).bool("b", true).object("o", |o| {
            o.f64("x", 1.5);
        });
        assert_eq!(a.finish(), r#"{"s":"a\"b\\\n\u0001","n":-3,"b":true,"o":{"x":1.5}}"#);
        assert_eq!(Attrs::default().finish(), "");
    }
}
