//! `setFeatureCompatibilityVersion`: which release's on-disk features may be used. All versions in reach keep the
//! same form of data here, so the version is a document and a parameter, and nothing has to be converted.

use super::prelude::*;
use pando_command::Param;
use pando_command::request::wrong_type;

/// Versions that a 7.0 server can be told to stay compatible with.
const VERSIONS: [&str; 3] = ["6.0", "6.3", "7.0"];

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "setFeatureCompatibilityVersion";
    let Value::String(wanted) = req.first().value() else {
        return Err(wrong_type(OWNER, OWNER, &req.first().value(), &["string"]));
    };
    let mut confirmed = false;
    for arg in req.args(OWNER) {
        match arg.name() {
            "confirm" => confirmed = arg.boolish()?,
            _ => return Err(arg.unknown()),
        }
    }
    if !VERSIONS.contains(&wanted) {
        return Err(Error::location(
            4_926_900,
            format!(
                "Invalid feature compatibility version value '{wanted}'; expected '6.0' or '6.3' or '7.0'. See \
                 https://docs.mongodb.com/master/release-notes/6.0-compatibility/#feature-compatibility."
            ),
        ));
    }
    let row = server.instance.params.find("featureCompatibilityVersion");
    let now = row.map(|row| server.instance.params.get(&row));
    let now = now.as_ref().and_then(|v| v.as_str()).unwrap_or_default();
    if !confirmed {
        return Err(Error::location(7_369_100, unconfirmed(wanted, wanted > now)));
    }
    if wanted != now {
        let mut doc = DocBuilder::new();
        doc.str("_id", crate::local::FEATURE_VERSION);
        doc.str("version", wanted);
        server.before_write(ctx).await?;
        server.put_by_id(ctx, &crate::local::versions_ns(), &doc.finish()).await?;
        server.instance.params.force_text(Param::featureCompatibilityVersion, wanted);
    }
    Ok(Reply::new())
}

fn unconfirmed(wanted: &str, upgrade: bool) -> String {
    match upgrade {
        true => format!(
            "Once you have upgraded to {wanted}, you will not be able to downgrade FCV and binary version without \
             support assistance. Please re-run this command with 'confirm: true' to acknowledge this and continue \
             with the FCV upgrade."
        ),
        false => "Once you have downgraded the FCV, if you choose to downgrade the binary version, it will require \
                  support assistance. Please re-run this command with 'confirm: true' to acknowledge this and \
                  continue with the FCV downgrade."
            .to_owned(),
    }
}
