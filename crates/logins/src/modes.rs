//! `setParameter` of how a running process speaks TLS and how members log in to each other: one step at a time, and never back.

use crate::Logins;
use pando_base::{Error, Result};
use pando_bson::{Bson, Value};
use pando_command::Instance;
use pando_command::params::{Param, ParamRow};
use pando_env::tls::TlsMode;

impl Logins {
    /// What the parameter was; `None` for a parameter of something else.
    pub fn set_mode(&self, instance: &Instance, row: &ParamRow, v: &Value<'_>) -> Result<Option<Bson>> {
        let name = v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        match row.param {
            Param::clusterAuthMode => {
                let dials_tls = self.certificates.as_ref().is_some_and(|c| c.mode().dials());
                self.cluster_auth.set_mode(&name, dials_tls)?;
            }
            Param::tlsMode => self.set_tls_mode(&name)?,
            _ => return Ok(None),
        }
        instance.params.set(row, v).map(Some)
    }

    /// A running server goes from `allowTLS` to `preferTLS` to `requireTLS`, one step at a time, and never back.
    fn set_tls_mode(&self, name: &str) -> Result<()> {
        let wanted = TlsMode::from_name(name).ok_or_else(|| {
            Error::bad_value(format!(
                "Invalid tlsMode setting '{name}', expected one of: 'disabled', 'allowTLS', 'preferTLS', or 'requireTLS'"
            ))
        })?;
        let certificates = self.certificates.as_ref();
        let now = certificates.map_or(TlsMode::Disabled, |c| c.mode());
        let Some(certificates) = certificates.filter(|_| now.may_become(wanted)) else {
            return Err(Error::bad_value(format!(
                "Illegal state transition for tlsMode, attempt to change from {} to {name}",
                now.name()
            )));
        };
        certificates.set_mode(wanted);
        Ok(())
    }
}
