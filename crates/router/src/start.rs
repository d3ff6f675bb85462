//! A router is assembled, waits for its config servers, and looks after itself.

use crate::Router;
use crate::commands;
use crate::concern_defaults::KnownDefaults;
use crate::config::Config;
use crate::principals::Principals;
use crate::remote::Shards;
use crate::transactions::Transactions;
use pando_audit::Event;
use pando_base::redaction::WithCode;
use pando_base::{Error, Result, limits};
use pando_bson::ObjectId;
use pando_command::{Instance, Param, Params};
use pando_env::sync::Notify;
use pando_env::{Component, Env};
use pando_fleet::{Fleet, Monitors};
use pando_logins::Logins;
use pando_metadata_cache::{ConfigServers, MetadataCache, TimeKeys, Times};
use pando_rpc::{LoginAs, Options, Pool};
use pando_session::Sessions;
use pando_session::Spills;
use pando_session::cursors::Cursors;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

impl Router {
    /// Begins; the config servers must answer before clients are served.
    pub async fn start(env: Env, config: Config, params: Params) -> Result<Arc<Router>> {
        let instance = Instance::new(env.clone(), params);
        config.audit.iter().for_each(|log| instance.record_in(log.clone()));
        if config.asks_for_logins {
            instance.ask_for_logins();
        }
        let times = Arc::new(Times::default());
        let login = LoginAs::Member(config.cluster_auth.clone());
        let options = Options { name: "PandoDB Router", login, ..Options::default() };
        let pool = Pool::with(env.clone(), options.clone(), pando_rpc::Bounds::default(), times.gossips());
        let monitors = Monitors::new(env.clone(), options, pool.clone());
        let set = monitors.of(&config.configdb.set, config.configdb.hosts.iter().map(String::as_str));
        let fleet = Fleet { env: env.clone(), monitors, pool };
        let servers = Arc::new(ConfigServers { fleet: fleet.clone(), set, times: times.clone() });
        let principals = Principals::new(servers.clone());
        let logins = Logins::new(&env, config.cluster_auth.clone(), config.certificates.clone());
        let catalog = Arc::new(MetadataCache::new(&env, servers));
        let shards = Shards { env: env.clone(), times, fleet, catalog, stamps: Arc::default() };
        let mut process_id = ObjectId([0; 12]);
        env.rng.fill(&mut process_id.0);
        // Routers that are started in the same folder listen on ports of their own.
        let spills = Spills::new(&env, &format!("_tmp_pandos_{}", config.port));
        let router = Arc::new_cyclic(|me| Router {
            me: me.clone(),
            shards,
            transactions: Transactions::default(),
            concern_defaults: KnownDefaults::default(),
            principals,
            logins,
            time_keys: TimeKeys::default(),
            instance,
            registry: commands::registry(),
            config,
            cursors: Cursors::default(),
            spills,
            sessions: Sessions::default(),
            process_id,
            ending: AtomicBool::new(false),
            changed: Notify::new(),
        });
        router.register_metrics();
        router.wait_for_config_servers(&env).await?;
        router.audit(|| Event::startup(&router.config.parsed, &[]));
        router.begin_tasks(&env);
        router.begin_reports(&env);
        router.begin_session_rounds(&env);
        router.begin_following_principals(&env);
        Ok(router)
    }

    async fn wait_for_config_servers(&self, env: &Env) -> Result<()> {
        let pause = Duration::from_millis(limits::ROUTER_START_RETRY_MS);
        loop {
            let reading = async {
                self.catalog.refresh_shards().await?;
                self.refresh_concern_defaults().await?;
                match self.instance.asks_for_logins() {
                    true => self.read_time_keys().await,
                    false => Ok(()),
                }
            };
            match reading.await {
                Ok(()) => return Ok(()),
                Err(_) if self.is_ending() => return Err(Error::internal("asked to end while it started")),
                Err(e) => {
                    env.log.warn(Component::Sharding, 23834, "The config servers cannot be read yet", |a| {
                        a.data("error", &WithCode(&e));
                    });
                    env.clock.sleep(pause).await;
                }
            }
        }
    }
    /// Shards are read again now and then, and cursors that nobody asks for go.
    fn begin_tasks(self: &Arc<Self>, env: &Env) {
        let router = Arc::downgrade(self);
        let clock = env.clock.clone();
        env.spawn("router upkeep", async move {
            let mut rounds = 0u64;
            loop {
                clock.sleep(Duration::from_millis(limits::ROUTER_UPKEEP_MS)).await;
                let Some(router) = router.upgrade() else { return };
                if router.is_ending() {
                    return;
                }
                rounds += 1;
                if rounds.is_multiple_of(limits::ROUTER_SHARDS_READ_ROUNDS) {
                    // Whoever needs a shard that is not known reads them again by itself.
                    let _ = router.catalog.refresh_shards().await;
                    // What was known before is gone by until they answer.
                    let _ = router.refresh_concern_defaults().await;
                }
                router.reap();
            }
        });
    }
    fn reap(&self) {
        let idle = self.instance.params.int(Param::cursorTimeoutMillis).max(0) as u64;
        let now = self.instance.env.clock.mono();
        self.cursors.reap(now, Duration::from_millis(idle));
        let minutes = limits::SESSION_TIMEOUT_MINUTES;
        self.transactions.reap(now, Duration::from_secs(minutes * 60));
        self.sessions.reap(now, Duration::from_secs(minutes * 60));
    }
}
