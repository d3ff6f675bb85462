//! The arguments of `hello` and `isMaster`.

use pando_auth::UserName;
use pando_base::{Error, Result};
use pando_bson::shape::{Field, Shape};
use pando_bson::{ObjectId, RawDoc, Value};
use pando_command::request::{missing, wrong_type};
use pando_command::{Arg, Request};

/// What `hello` is asked with.
#[derive(Default)]
pub struct HelloArgs<'a> {
    pub hello_ok: bool,
    /// `helloOk` is there, whatever it says.
    pub names_hello_ok: bool,
    pub client: Option<Value<'a>>,
    pub compression: Option<&'a RawDoc>,
    pub topology: Option<(ObjectId, i64)>,
    pub max_await_ms: Option<i64>,
    pub internal: bool,
    /// The user whose mechanisms are asked for.
    pub mechanisms_of: Option<UserName>,
    pub speculative: Option<&'a RawDoc>,
}

/// Another server's range of wire versions.
const INTERNAL_CLIENT: Shape = Shape::Fields(&[
    Field::optional("minWireVersion", Shape::Number),
    Field::required("maxWireVersion", Shape::Number),
]);

/// The first step of a login, sent along.
fn check_speculative(step: &RawDoc) -> Result<()> {
    match step.first().map(|e| e.name()) {
        None => Err(Error::bad_value("hello.speculativeAuthenticate must be a non-empty Object")),
        Some("saslStart" | "authenticate") => Ok(()),
        Some(other) => {
            let text = format!("hello.speculativeAuthenticate unknown command: {other}");
            Err(Error::location(51769, text))
        }
    }
}

impl<'a> HelloArgs<'a> {
    pub fn parse(req: &Request<'a>) -> Result<HelloArgs<'a>> {
        const OWNER: &str = "hello";
        let mut a = HelloArgs::default();
        for arg in req.args(OWNER) {
            if arg.is_absent() && !matches!(arg.name(), "saslSupportedMechs" | "compression" | "client") {
                continue;
            }
            match arg.name() {
                "helloOk" => {
                    a.names_hello_ok = true;
                    a.hello_ok = arg.boolish()?;
                }
                "client" => a.client = Some(arg.value()),
                "compression" => {
                    arg.check(&Shape::List(&Shape::String))?;
                    a.compression = arg.value().as_array();
                }
                "topologyVersion" => a.topology = Some(parse_topology(arg.doc()?)?),
                "maxAwaitTimeMS" => a.max_await_ms = Some(arg.i64_at_least(0)?),
                "internalClient" => {
                    arg.check(&INTERNAL_CLIENT)?;
                    a.internal = true;
                }
                "speculativeAuthenticate" => {
                    let step = arg.doc()?;
                    check_speculative(step)?;
                    a.speculative = Some(step);
                }
                // Between this server and a client there is no balancer.
                "loadBalanced" => drop(arg.bool()?),
                "hostInfo" => arg.check(&Shape::String)?,
                "saslSupportedMechs" => a.mechanisms_of = Some(user_of(&arg)?),
                // Fields of newer drivers and of other servers: nothing follows from them here.
                _ => {}
            }
        }
        match (a.topology, a.max_await_ms) {
            (Some(_), None) => Err(Error::location(
                31368,
                "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'",
            )),
            (None, Some(_)) => Err(Error::location(
                31368,
                "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'",
            )),
            _ => Ok(a),
        }
    }
}

/// The user whose ways to log in are asked for.
fn user_of(arg: &Arg<'_>) -> Result<UserName> {
    match arg.value() {
        Value::String(name) => match name.split_once('.') {
            Some((db, user)) => Ok(UserName::new(user, db)),
            None => Err(Error::bad_value("UserName must contain a '.' separated database.user pair")),
        },
        Value::Document(user) => {
            if let Some(e) = user.iter().find(|e| !matches!(e.name(), "user" | "db")) {
                let text = format!("UserName contains an unknown field named: '{}", e.name());
                return Err(Error::bad_value(text));
            }
            let text = |name: &str| {
                let missing = || Error::bad_value(format!("UserName must contain a field named: {name}"));
                user.get(name).and_then(|v| v.as_str()).ok_or_else(missing)
            };
            Ok(UserName::new(text("user")?, text("db")?))
        }
        _ => Err(arg.wrong_type(&["string", "object"])),
    }
}

fn parse_topology(d: &RawDoc) -> Result<(ObjectId, i64)> {
    const OWNER: &str = "TopologyVersion";
    let (mut process, mut counter) = (None, None);
    for e in d {
        match (e.name(), e.value()) {
            ("processId", Value::ObjectId(id)) => process = Some(id),
            ("processId", v) => return Err(wrong_type(OWNER, "processId", &v, &["objectId"])),
            ("counter", Value::Int64(n)) if n < 0 => {
                return Err(Error::location(31372, "topologyVersion must have a non-negative counter"));
            }
            ("counter", Value::Int64(n)) => counter = Some(n),
            ("counter", v) => return Err(wrong_type(OWNER, "counter", &v, &["long"])),
            (other, _) => return Err(pando_command::request::unknown(OWNER, other)),
        }
    }
    Ok((
        process.ok_or_else(|| missing(OWNER, "processId"))?,
        counter.ok_or_else(|| missing(OWNER, "counter"))?,
    ))
}
