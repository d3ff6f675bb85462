//! Users of tenants, who go where their tenant goes, and what was promised to them.

mod builds;
pub(super) mod caller;
mod registers;
mod transactions;
pub(super) mod writers;

pub(super) use caller::{Caller, Place};
pub(super) use registers::Registers;
pub(super) use transactions::Transactions;
pub(super) use writers::Written;

use crate::ProcessId;
use crate::client::Client;
use crate::world::World;
use std::sync::{Arc, Mutex};

/// All of them.
#[derive(Clone, Default)]
pub(super) struct Users {
    pub(super) written: Arc<Mutex<Written>>,
    pub(super) registers: Arc<Mutex<Registers>>,
    pub(super) transactions: Arc<Mutex<Transactions>>,
}

impl Users {
    /// One of each kind.
    pub(super) fn come(&self, world: &World, people: ProcessId, place: &Place) {
        let sim = &world.sim;
        sim.spawn(people, "writer", writers::run(Caller::new(place.clone(), 1), self.written.clone()));
        sim.spawn(people, "register", registers::run(Caller::new(place.clone(), 2), self.registers.clone()));
        let c = Caller::new(place.clone(), 3);
        sim.spawn(people, "transactions", transactions::run(c, self.transactions.clone()));
        if place.user == 0 {
            sim.spawn(people, "builder", builds::run(Caller::new(place.clone(), 4)));
        }
    }
    /// What is wrong with a tenant's data at the primary of its owner.
    pub(super) async fn check(&self, c: &mut Client, tenant: usize) -> Result<Vec<String>, String> {
        let mut problems = writers::check(c, tenant, &self.written).await?;
        problems.extend(transactions::check(c, tenant, &self.transactions).await?);
        Ok(problems)
    }
}
