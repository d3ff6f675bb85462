//! `createUser` and `updateUser`.

use super::{check_there, first_name, restrictions, role_names};
use crate::commands::prelude::*;
use pando_audit::Event;
use pando_auth::certificate::EXTERNAL;
use pando_auth::scram::Credentials;
use pando_auth::{Mechanism, Password, Proof, User, UserName};
use pando_base::Uuid;
use pando_env::Env;
use pando_logins::iterations_of;
use pando_request::settings::users::{roles, texts};
use pando_request::{CreateUserArgs, UpdateUserArgs};
use std::collections::{BTreeMap, BTreeSet};

pub(in crate::commands) async fn create(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = CreateUserArgs::parse(&req)?;
    let name = UserName::new(first_name(&req)?, req.db);
    let granted = role_names(&roles(&req, args.roles)?);
    ctx.arguments_read()?;
    if name.db == "local" {
        return Err(Error::bad_value("Cannot create users in the local database"));
    }
    if name.user.is_empty() {
        return Err(Error::bad_value("User document needs 'user' field to be non-empty"));
    }
    if name.db == EXTERNAL && server.logins.is_members(&name.user) {
        return Err(Error::bad_value(
            "Cannot create an x.509 user with a subjectname that would be recognized as an internal cluster member",
        ));
    }
    let asked = Asked::of(args.password, args.digest, args.mechanisms)?;
    if name.db != EXTERNAL && asked.password.is_none() {
        return Err(Error::bad_value(
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db",
        ));
    }
    let restrictions = restrictions(args.restrictions)?.unwrap_or_default();
    let proof = asked.prove(server, ctx.env(), &name, None).await?.unwrap_or(Proof::External);
    check_there(&server.principals.roles()?, &granted)?;
    server.upkeep.admission.before_write(ctx).await?;
    server.principals.write_schema_version(ctx).await?;
    let user = User {
        name: name.clone(),
        id: Some(Uuid::from_random(random(ctx.env()))),
        proof,
        restrictions,
        custom_data: args.custom_data.map(pando_bson::Document::from),
        roles: granted,
    };
    let event = || Event::create_user(&name, args.custom_data, &user.roles);
    server
        .principals
        .change_user(ctx, &name, event, |old| match old {
            Some(_) => Err(Error::location(51003, format!("User \"{name}\" already exists"))),
            None => Ok(Some(user.clone())),
        })
        .await?;
    Ok(Reply::new())
}

pub(in crate::commands) async fn update(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = UpdateUserArgs::parse(&req)?;
    let name = UserName::new(first_name(&req)?, req.db);
    let granted = args.roles.map(|list| roles(&req, list)).transpose()?.map(|named| role_names(&named));
    ctx.arguments_read()?;
    let asked = Asked::of(args.password, args.digest, args.mechanisms)?;
    let nothing = asked.password.is_none()
        && asked.mechanisms.is_none()
        && args.custom_data.is_none()
        && granted.is_none()
        && args.restrictions.is_none();
    if nothing {
        return Err(Error::bad_value("Must specify at least one field to update in updateUser"));
    }
    let restrictions = restrictions(args.restrictions)?;
    let known = server.principals.user(&name)?;
    let proof = asked.prove(server, ctx.env(), &name, known.as_ref()).await?;
    if let Some(granted) = &granted {
        check_there(&server.principals.roles()?, granted)?;
    }
    server.upkeep.admission.before_write(ctx).await?;
    let event = || Event::update_user(&name, asked.password.is_some(), args.custom_data, granted.as_ref());
    server
        .principals
        .change_user(ctx, &name, event, |old| {
            let text = format!("User {name} not found");
            let mut user = old.ok_or_else(|| Error::new(ErrorCode::UserNotFound, text))?;
            user.proof = proof.clone().unwrap_or(user.proof);
            user.roles = granted.clone().unwrap_or(user.roles);
            user.restrictions = restrictions.clone().unwrap_or(user.restrictions);
            user.custom_data = args.custom_data.map(pando_bson::Document::from).or(user.custom_data);
            Ok(Some(user))
        })
        .await?;
    Ok(Reply::new())
}

/// What a command says of a password.
struct Asked {
    password: Option<Password>,
    /// The password is none, but what an older client made of it.
    digested: bool,
    mechanisms: Option<BTreeSet<Mechanism>>,
}

impl Asked {
    fn of(password: Option<&str>, digest: Option<bool>, mechanisms: Option<&RawDoc>) -> Result<Asked> {
        let mechanisms = match mechanisms {
            None => None,
            Some(list) if list.is_empty() => {
                return Err(Error::bad_value("mechanisms field must not be empty"));
            }
            Some(list) => {
                let each = texts(list).into_iter().map(|name| {
                    let unknown = || Error::bad_value(format!("Unknown auth mechanism '{name}'"));
                    Mechanism::of_name(name).ok_or_else(unknown)
                });
                Some(each.collect::<Result<BTreeSet<_>>>()?)
            }
        };
        Ok(Asked { password: password.map(Password::new), digested: digest == Some(false), mechanisms })
    }

    /// What is to be kept of it; `None` when nothing was said. `known` is the user as it is.
    async fn prove(
        &self,
        server: &Server,
        env: &Env,
        name: &UserName,
        known: Option<&User>,
    ) -> Result<Option<Proof>> {
        let Some(password) = &self.password else { return self.keep_some(known) };
        if name.db == EXTERNAL {
            return Err(Error::bad_value(
                "Cannot set the password for users defined on the '$external' database",
            ));
        }
        let mechanisms = self.mechanisms.clone().unwrap_or_else(|| Mechanism::ALL.into_iter().collect());
        if self.digested && mechanisms.contains(&Mechanism::ScramSha256) {
            return Err(Error::bad_value("Use of SCRAM-SHA-256 requires undigested passwords"));
        }
        if password.is_empty() {
            return Err(Error::location(50687, "Error preflighting UTF-8 conversion: the password is empty"));
        }
        let mut credentials = BTreeMap::new();
        for mechanism in mechanisms {
            let iterations = server.instance.params.int(iterations_of(mechanism)) as u32;
            let salt: [u8; 32] = random(env);
            let salt = salt.get(..mechanism.salt_size()).unwrap_or_default().to_vec();
            let (password, user, digested) = (password.clone(), name.user.clone(), self.digested);
            // Slow on purpose.
            let made = env.offload(move || match digested {
                true => Ok(Credentials::of_digest(&password, &salt, iterations)),
                false => Credentials::of_password(mechanism, &user, &password, &salt, iterations),
            });
            let made = made.await.ok_or_else(|| Error::internal("hashing a password failed"))?;
            credentials.insert(mechanism, made?);
        }
        Ok(Some(Proof::Password(credentials)))
    }

    /// Without a password, mechanisms can only be given up.
    fn keep_some(&self, known: Option<&User>) -> Result<Option<Proof>> {
        let (Some(kept), Some(known)) = (&self.mechanisms, known) else { return Ok(None) };
        let Proof::Password(known) = &known.proof else { return Ok(None) };
        if kept.iter().any(|m| !known.contains_key(m)) {
            return Err(Error::bad_value("mechanisms field must be a subset of previously set mechanisms"));
        }
        let some = known.iter().filter(|(m, _)| kept.contains(m));
        Ok(Some(Proof::Password(some.map(|(m, c)| (*m, c.clone())).collect())))
    }
}

fn random<const N: usize>(env: &Env) -> [u8; N] {
    let mut bytes = [0; N];
    env.rng.fill(&mut bytes);
    bytes
}
