//! This server as logins see it: its users are in its own data.

use crate::Server;
use pando_auth::login::LoggedIn;
use pando_auth::roles::Resolved;
use pando_auth::{Authority, User, UserName};
use pando_base::Result;
use pando_command::Client;
use pando_env::{BoxFuture, Host};
use pando_logins::{KeepsUsers, Logins};
use std::sync::Arc;

impl KeepsUsers for Server {
    fn logins(&self) -> &Logins {
        &self.logins
    }
    fn host(&self) -> &dyn Host {
        &*self.config.host
    }
    fn user<'a>(&'a self, name: &'a UserName) -> BoxFuture<'a, Result<Option<User>>> {
        Box::pin(async { self.principals.user(name) })
    }
    fn logged_in<'a>(&'a self, user: &'a LoggedIn) -> BoxFuture<'a, Result<Option<(User, Resolved)>>> {
        Box::pin(async { self.principals.logged_in(user) })
    }
    fn authority_of<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<Arc<Authority>>> {
        Box::pin(async { self.principals.authority(client) })
    }
}
