//! What may run on a member that is not primary.

use super::Replication;
use pando_base::{Error, ErrorCode, Result};
use pando_command::{Flags, OpCtx, ReadMode};

impl Replication {
    /// On a member that is not primary: writes need one, reads need one or permission to read here.
    pub(crate) fn admit_elsewhere(&self, ctx: &OpCtx, flags: Flags) -> Result<()> {
        let opted_in = ctx.read_mode != ReadMode::Primary;
        // Clients that never said helloOk get the old words; drivers of that age look for them.
        let modern = ctx.client.hello_ok() || !ctx.client.is_connection();
        if !flags.any(Flags::SECONDARY_OK | Flags::SECONDARY_OPT_IN) {
            let text = if modern { "not primary" } else { "not master" };
            return Err(Error::new(ErrorCode::NotWritablePrimary, text));
        }
        if !flags.has(Flags::SECONDARY_OK) && !opted_in {
            let text =
                if modern { "not primary and secondaryOk=false" } else { "not master and slaveOk=false" };
            return Err(Error::new(ErrorCode::NotPrimaryNoSecondaryOk, text));
        }
        if flags.has(Flags::READ) && !self.member.is_readable() {
            return Err(Error::new(
                ErrorCode::NotPrimaryOrSecondary,
                "node is not in primary or recovering state",
            ));
        }
        Ok(())
    }
}
